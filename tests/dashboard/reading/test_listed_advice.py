"""The best advice to each group is taken from the newest run over all groups, judged as the command judges it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dashboard.reading.listed_advice import advice_runs, advice_table
from dashboard.reading.listing_query import piece, plain_rows
from dashboard.reading.listings import ADVICE, GROUPS
from dashboard.reading.questions import Reading
from streaming.commands.app import app
from streaming.settings.model import Dashboard
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.replay_tables import REPLAYS
from streaming.tables.writer import Mark
from tests.dashboard.replayed_tables import STARTED_AT, write_run
from tests.streaming.commands.test_advise import rows, write_savings
from tests.streaming.views.story import write_story


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("replayed")
    write_savings(root)
    write_run(root)
    return root


def test_each_group_has_the_best_that_the_command_advises(replayed: Path, settings: Dashboard) -> None:
    reading = Reading.of(replayed, settings)
    orders, unmeasured = plain_rows(advice_table(reading))
    (said,) = rows(replayed, "advise", "-g", "orders", "--days", "366")
    best = said["advice"][0]
    assert (orders["result"], orders["policy"], orders["sure"]) == ("advice", best["policy"], best["sure"])
    assert orders["saved_pause_ms"] == best["saved_pause_ms"]
    assert orders["saved_repeated_messages"] == best["saved_repeated"]
    assert orders["settings"] == "; ".join(best["settings"])
    assert orders["policies"] == len(said["advice"])
    assert (orders["replay_id"], orders["started_at"]) == ("run-1", STARTED_AT)
    assert (unmeasured["result"], unmeasured["policy"]) == ("unknown", None)
    assert "was never measured" in unmeasured["unknown"]


def test_groups_have_it_as_a_short_text_and_nothing_where_there_is_none(replayed: Path, settings: Dashboard) -> None:
    found = piece(Reading.of(replayed, settings), GROUPS, {}, limit=9, is_whole=True).rows
    texts = {row["group_id"]: row["advice"] for row in found}
    assert texts["unmeasured"] is None
    assert texts["orders"].startswith("strategy=CONSISTENT_HASH: ~")
    assert " of queue-pause, ~" in texts["orders"]
    shown = CliRunner().invoke(app, ["show", "groups", "--tables", str(replayed), "--json"])
    assert {row["group_id"]: row["advice"] for row in map(json.loads, shown.stdout.splitlines())} == texts


def test_without_a_run_there_is_nothing(story_tables: Path, settings: Dashboard) -> None:
    reading = Reading.of(story_tables, settings)
    assert (advice_runs(reading), piece(reading, ADVICE, {}, limit=9).total) == ([], 0)


@pytest.mark.parametrize(
    ("runs", "taken"),
    [
        # The newest one of all clusters ends the search; one of a cluster comes before older ones.
        ([{}, {}], ["r1"]),
        ([{}, {"cluster": "c1"}], ["r1", "r0"]),
        ([{"cluster": "c1"}, {}], ["r1"]),
        ([{"cluster": "c1"}, {"cluster": "c2"}, {"cluster": "c1"}], ["r2", "r1"]),
        # Others are no advice: unfinished, of some groups, of some policies, without strategies.
        ([{}, {"finished_at": None}], ["r0"]),
        ([{}, {"groups_asked": ["orders"]}], ["r0"]),
        ([{}, {"policies": ["without a"]}], ["r0"]),
        ([{}, {"policies": []}], ["r0"]),
        ([{}, {"all_strategies": False}], ["r0"]),
    ],
)
def test_advice_is_taken_from(
    tmp_path: Path, settings: Dashboard, runs: list[dict[str, Any]], taken: list[str]
) -> None:
    write_story(tmp_path)
    given = dict.fromkeys(REPLAYS.names) | {"groups_asked": [], "policies": ["static"], "all_strategies": True}
    found = [
        given | {"replay_id": f"r{number}", "started_at": STARTED_AT + number, "finished_at": STARTED_AT + 100} | run
        for number, run in enumerate(runs)
    ]
    DeltaRsTable(tmp_path, REPLAYS).append(to_arrow(REPLAYS, found), Mark("runs", 1))
    assert [run["replay_id"] for run in advice_runs(Reading.of(tmp_path, settings))] == taken


def test_a_cluster_has_the_advice_of_the_newest_run_that_has_it(tmp_path: Path, settings: Dashboard) -> None:
    write_savings(tmp_path)
    write_run(tmp_path)
    reading = Reading.of(tmp_path, settings)
    assert {row["replay_id"] for row in plain_rows(advice_table(reading))} == {"run-1"}
    write_run(tmp_path, "run-2", started_at=STARTED_AT + 5, cluster="shop")
    reading.tables.refresh()  # type: ignore[attr-defined]
    assert {row["replay_id"] for row in plain_rows(advice_table(reading))} == {"run-2"}
    assert advice_table(reading).num_rows == 2
