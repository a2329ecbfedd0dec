"""The command `advise`, on a group one of whose members comes and goes, and one that was never measured."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from streaming.commands.app import app
from tests.model.core_tables import run_core
from tests.model.times import Event
from tests.simulation.core_run import rows_of
from tests.simulation.given_tables import GivenTables
from tests.streaming.commands.test_replay import event
from tests.streaming.tables.signs import known, leave_sign, sign

PAUSE_MS, REPEATED = 1_000, 60


def joined(group: str, member_id: str, minute: float) -> Event:
    named = {"group": group, "member_id": member_id, "host": f"/10.0.0.{ord(member_id[0]) - 96}:9"}
    return event("member_joined", minute, **named, subscriptions=["t"], strategies=["AVG"], session_timeout_ms=10**9)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tables")
    write_savings(root)
    return root


def write_savings(root: Path) -> None:
    """Write groups of 60 queues by AVG in which c comes and goes four times in eight days.

    In orders each move costs a second and 60 messages; in unmeasured nothing was measured.
    """
    queues = [{"broker": "b", "queue_id": number} for number in range(60)]
    events = [event("topic_queues", 0, topic="t", queues=queues)]
    for group in ("orders", "unmeasured"):
        events += [joined(group, "a-1", 0), joined(group, "b-1", 1)]
        for day in (0, 3, 5, 8):
            events.append(joined(group, "c-1", 1440 * day + 10))
            events.append(event("member_left", 1440 * day + 20, group=group, member_id="c-1"))
    run = run_core([sorted(events, key=lambda each: each["event_time"])])
    rows = {**rows_of(run.changes), "rebalances": run.rows()}
    for row in rows["rebalances"]:
        if row["group_id"] == "orders" and row["queues_moved"]:
            row["queue_pause_ms"] = PAUSE_MS * row["queues_moved"]
            row["repeated_messages"] = REPEATED * row["queues_moved"]
    GivenTables(rows).write(root)


def run(tables: Path, command: str, *arguments: str) -> Result:
    return CliRunner().invoke(app, [command, "--tables", str(tables), *arguments])


def rows(tables: Path, command: str, *arguments: str) -> list[dict[str, Any]]:
    answer = run(tables, command, *arguments, "--json")
    assert answer.exit_code == 0, answer.stderr
    return [json.loads(line) for line in answer.stdout.splitlines()]


def test_the_strategy_that_moves_least_is_advised_with_what_it_saves(tables: Path) -> None:
    (found,) = rows(tables, "advise", "-g", "orders", "--days", "30")
    recorded, *replayed = rows(tables, "replay", "-g", "orders", "--all-strategies")
    moved = {row["policy"]: row["moved"] for row in replayed}
    assert moved["strategy=CONSISTENT_HASH"] < recorded["moved"]
    best = found["advice"][0]
    assert best["policy"] == min(moved, key=lambda policy: moved[policy])
    fewer = recorded["moved"] - moved[best["policy"]]
    assert (best["fewer_moves"], best["saved_pause_ms"]) == (fewer, fewer * PAUSE_MS)
    # Of a queue that got an owner: the first rebalance assigned all queues, and moved none.
    assert best["saved_repeated"] == fewer * REPEATED
    assert "strategy=AVG" not in {advice["policy"] for advice in found["advice"]}
    assert found["recorded"]["queues_moved"] == recorded["moved"]


def test_only_the_last_days_count(tables: Path) -> None:
    (week,), (month,) = (rows(tables, "advise", "-g", "orders", "--days", days) for days in ("7", "30"))
    assert month["recorded"]["rebalances"] > week["recorded"]["rebalances"] > 0
    # A history begins after the first rebalance of the span: of the day before, nothing is left.
    assert week["covers_from"] > month["covers_from"]


def test_people_read_it_at_80_columns(tables: Path) -> None:
    said = run(tables, "advise", "-g", "orders", "--days", "30")
    assert said.exit_code == 0, said.stderr
    lines = said.stdout.splitlines()
    assert lines[0].startswith("orders in shop, the last 30 days: 10 rebalances, ")
    assert "1. strategy=CONSISTENT_HASH" in lines
    assert max(map(len, lines)) <= 80
    assert {"saves", "assumes", "sure"} <= {
        line.split()[0] for line in lines if line.startswith("   ") and line[3] != " "
    }


def test_what_was_never_measured_is_unknown_and_no_advice(tables: Path) -> None:
    (found,) = rows(tables, "advise", "-g", "unmeasured")
    assert found["advice"] == []
    assert "was never measured" in found["unknown"]
    said = run(tables, "advise", "-g", "unmeasured")
    assert said.exit_code == 0
    assert "No advice: what a moved queue costs this group was never" in said.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name a group with --group, or take all of them with --all"),
        (["-g", "orders", "--all"], "name a group with --group, or take all of them with --all"),
        (["-g", "orders", "--into", "elsewhere"], "--into: is where --all writes"),
        (["-g", "ordres"], "there is no group ordres; did you mean orders?"),
    ],
)
def test_what_cannot_be_asked_is_named(tables: Path, arguments: list[str], said: str) -> None:
    answer = run(tables, "advise", *arguments)
    assert answer.exit_code == 2
    assert said in answer.stderr


def test_it_ends_with_the_newest_rebalance_of_a_recording(tables: Path) -> None:
    (found,) = rows(tables, "advise", "-g", "orders", "--days", "1")
    assert found["covers_to"] is not None
    assert found["recorded"]["rebalances"] == 1


def test_what_the_days_cover_is_said_and_that_a_cluster_is_blind(tables: Path, tmp_path: Path) -> None:
    (found,) = rows(tables, "advise", "-g", "orders")
    said = run(tables, "advise", "-g", "orders")
    span = f"They are from {found['covers_from']} to {found['covers_to']}."
    assert (span in " ".join(said.stdout.split()), said.stderr) == (True, "")
    shutil.copytree(tables, tmp_path / "tables")
    leave_sign(tmp_path / "tables", sign(known("shop"), state="stopped"))
    for arguments in (["advise"], ["replay"], ["replay", "--json"]):
        blind = run(tmp_path / "tables", *arguments, "-g", "orders")
        assert blind.exit_code == 0
        assert blind.stderr.startswith("shop is blind since "), arguments
        assert "the job was stopped at " in blind.stderr
    assert run(tmp_path / "tables", "replay", "-g", "orders", "--until", str(found["covers_to"])).stderr == ""
