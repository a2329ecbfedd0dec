"""Advice to one group is computed on request as the command does, within limits; beyond them a run has to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.reading import requested_advice as module
from dashboard.reading.dependencies import noted_reads
from dashboard.reading.questions import Reading
from dashboard.reading.requested_advice import requested_advice
from streaming.settings.model import Dashboard, load
from streaming.tables.errors import NotFoundError
from streaming.terminal.output import TIMES, with_times
from tests.dashboard.replayed_tables import write_run
from tests.streaming.commands.test_advise import rows, write_savings

CORE = load().core_config()


@pytest.fixture(scope="module")
def saving(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("saving")
    write_savings(root)
    return root


@pytest.mark.parametrize("days", [1, 7, 30])
def test_it_is_what_the_command_says(saving: Path, settings: Dashboard, days: int) -> None:
    (said,) = rows(saving, "advise", "-g", "orders", "--days", str(days))
    found = requested_advice(Reading.of(saving, settings), CORE, None, "orders", days)
    row = with_times(found.row, TIMES)
    assert isinstance(row, dict)
    assert {name: row[name] for name in said} == said
    assert (row["refused"], row["replay_id"], row["computed_at"] is None) == (None, None, False)


def test_it_is_computed_once_and_no_page_follows_its_tables(
    saving: Path, settings: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = Reading.of(saving, settings)
    with noted_reads() as read:
        first = requested_advice(reading, CORE, "shop", "orders", 7)
    assert read == set()
    monkeypatch.setattr(module, "_computed", lambda *_: pytest.fail("it is kept"))
    assert requested_advice(reading, CORE, "shop", "orders", 7).figures == first.figures


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("MOST_REBALANCES", "rebalances with"),
        ("MOST_QUEUES", "are decided again here; fewer days have fewer"),
        ("MOST_READ", "are read; `advise` of the command line has no such limit"),
    ],
)
def test_beyond_a_limit_it_says_so_and_has_what_a_run_has(
    saving: Path, settings: Dashboard, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit: str, said: str
) -> None:
    monkeypatch.setattr(module, limit, 1)
    refused = requested_advice(Reading.of(saving, settings), CORE, "shop", "orders", 7)
    assert said in refused.refused
    assert (refused.advice, refused.run, refused.figures) == (None, None, [])
    write_savings(tmp_path)
    write_run(tmp_path)
    found = requested_advice(Reading.of(tmp_path, settings), CORE, "shop", "orders", 7)
    assert (found.refused, found.row["replay_id"], found.computed_at) == (refused.refused, "run-1", None)
    assert found.advice is not None
    assert found.advice.advice[0].policy == "strategy=CONSISTENT_HASH"


def test_it_ends_after_the_time_of_a_query(saving: Path, settings: Dashboard) -> None:
    reading = Reading.of(saving, settings)
    reading.queries.timeout_s = 0.0
    found = requested_advice(reading, CORE, "shop", "orders", 7)
    assert "again took longer than 0 s; fewer days take less" in found.refused


def test_an_unknown_group_is_named(saving: Path, settings: Dashboard) -> None:
    with pytest.raises(NotFoundError, match="there is no group ordres"):
        requested_advice(Reading.of(saving, settings), CORE, None, "ordres", 7)
