"""The command `replay`, on the tables of a small group whose answers are worked out by hand."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from streaming.commands.app import app
from streaming.views.reader import Reader
from tests.model.core_tables import run_core
from tests.model.times import T0, Event
from tests.simulation.given_tables import GivenTables

MINUTE = 60_000


def event(kind: str, minute: float, **fields: Any) -> Event:
    common = {"schema_version": 1, "system": "rocketmq", "cluster": "shop", "type": kind}
    return common | {"event_time": T0 + round(minute * MINUTE)} | fields


def joined(member_id: str, minute: float) -> Event:
    named = {"group": "orders", "member_id": member_id, "host": f"/10.0.0.{ord(member_id[0]) - 96}:9"}
    return event("member_joined", minute, **named, subscriptions=["t"], strategies=["AVG"], session_timeout_ms=10**9)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve queues: a has them all, b joins after a minute and c after two; after four, c leaves."""
    root = tmp_path_factory.mktemp("tables")
    queues = [{"broker": "b", "queue_id": number} for number in range(12)]
    events = [
        event("topic_queues", 0, topic="t", queues=queues),
        joined("a-1", 0),
        joined("b-1", 1),
        joined("c-1", 2),
        event("member_left", 4, group="orders", member_id="c-1"),
    ]
    GivenTables.of(run_core([events])).write(root)
    return root


def run(tables: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["replay", "--tables", str(tables), "-g", "orders", *arguments])


def rows(tables: Path, *arguments: str) -> list[dict[str, Any]]:
    answer = run(tables, *arguments, "--json")
    assert answer.exit_code == 0, answer.stderr
    return [json.loads(line) for line in answer.stdout.splitlines()]


def test_the_past_is_decided_again_and_under_policies(tables: Path) -> None:
    recorded, without, more, circle = rows(
        tables, "-p", "without c-1", "-p", "queues t=13", "-p", "strategy=AVG_BY_CIRCLE + without 10.0.0.3"
    )
    # b takes 6 of a; c takes 4 of b, and b 2 of a; c's 4 go to b, and 2 of b back to a.
    assert (recorded["policy"], recorded["rebalances"], recorded["moved"]) == (None, 4, 18)
    assert recorded["not_reproduced"] == []
    assert (without["rebalances"], without["moved"]) == (2, 6)
    assert len(without["gone"]) == 2
    # a: 13 queues; then 7 and 6; for two of three minutes 5, 4 and 4; spread 0 for one minute, then 1.
    assert more["spread"] == pytest.approx(3 / 4)
    assert (circle["rebalances"], circle["moved"], circle["idle"]) == (2, 6, 0)


def test_people_read_what_would_have_been(tables: Path) -> None:
    said = run(tables, "--all-strategies", "-p", "without c-1")
    assert said.exit_code == 0, said.stderr
    lines = said.stdout.splitlines()
    assert lines[0].startswith("orders in shop, ")
    assert lines[1] == "4 rebalances, all decided again as recorded."
    assert lines[3].split() == ["POLICY", "REBALANCES", "MOVED", "IDLE", "SPREAD", "QUEUE-PAUSE"]
    assert lines[4].split() == ["as", "recorded", "4", "18", "0.0", "0.0", "unknown"]
    assert {line.split()[0] for line in lines[6:9]} == {
        "strategy=AVG",
        "strategy=AVG_BY_CIRCLE",
        "strategy=CONSISTENT_HASH",
    }
    assert any(line.startswith("without c-1: without ") for line in lines)
    assert max(map(len, lines)) <= 80 + len("strategy=CONSISTENT_HASH")


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("strategy=AVG_BY_CIRCEL", "there are rocketmq.AVG, rocketmq.AVG_BY_CIRCLE"),
        ("strategy=PINNED", "needs settings, which no table has"),
        ("queues s=3", "never subscribed to a topic s with known queues; it had t"),
        ("queues t=0", "at least one queue"),
        ("without d-1", "never had a member, host or client d-1"),
        ("faster", "'faster' is no policy; a policy is strategy=NAME"),
        ("static+session_timeout=30s", "static: RocketMQ has no static members"),
        ("session_timeout=soon", "'soon' is not a duration"),
        ("join_delay=0s", "a time is longer than nothing"),
        ("members=-3", "has had only 3 clients"),
    ],
)
def test_what_cannot_be_meant_is_named(tables: Path, policy: str, said: str) -> None:
    answer = run(tables, "-p", policy)
    assert answer.exit_code == 2
    assert said in answer.stderr


def test_what_a_policy_did_to_members_is_said(tables: Path) -> None:
    more, fewer = rows(tables, "-p", "members=+2", "-p", "members=-1")[1:]
    assert more["rebalances"] == 4
    assert more["notes"] == [
        "new members are there whenever any member is, and never restart; their ids are taken to sort last"
    ]
    assert (fewer["rebalances"], fewer["moved"]) == (2, 6)
    assert fewer["notes"] == ["the clients that came last are never there: c-1@10.0.0.3"]
    said = run(tables, "-p", "members=-1", "-p", "strategy=AVG", "-p", "strategy=AVG_BY_CIRCLE").stdout
    assert "To set members=-1: the number of processes, or of threads that consume in each." in said
    assert "To set strategy=AVG, strategy=AVG_BY_CIRCLE: DefaultMQPushConsumer.allocate" in " ".join(said.split())
    assert "members=-1: the clients that came last are never there: c-1@10.0.0.3." in said


def test_a_span_without_rebalances_is_named(tables: Path) -> None:
    answer = run(tables, "--since", str(T0 + 4 * MINUTE))
    assert (answer.exit_code, "has no rebalance in that time" in answer.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-g", "orders", "--all"], "name groups with --group, or take all of them with --all"),
        ([], "name groups with --group, or take all of them with --all"),
        (["--all", "-p", "faster"], "'faster' is no policy; a policy is strategy=NAME"),
        (["-g", "orders", "-g", "payments", "--into", "s4://lake"], "s4"),
    ],
)
def test_what_no_job_could_replay_is_refused_before_spark_starts(tables: Path, arguments: list[str], said: str) -> None:
    answer = CliRunner().invoke(app, ["replay", "--tables", str(tables), *arguments])
    assert answer.exit_code == 2
    assert said in answer.stderr


@pytest.mark.parametrize("table", ["members", "topics", "assignments"])
def test_without_a_table_that_a_history_needs_there_are_no_figures(tables: Path, tmp_path: Path, table: str) -> None:
    shutil.copytree(tables, tmp_path / "tables")
    shutil.rmtree(tmp_path / "tables" / table)
    answer = run(tmp_path / "tables", "--all-strategies")
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert f"the table {table} has no rows for group orders, but its rebalances count some" in answer.stderr


def test_rebalances_that_were_not_recorded_are_named_and_not_counted_among_the_recorded(
    tables: Path, tmp_path: Path
) -> None:
    given = Reader(tables)
    rebalances = sorted(given.rows("rebalances"), key=lambda row: row["event_time"])
    lost = rebalances.pop()
    kept = {name: given.rows(name) for name in ("groups", "members", "assignments", "topics")}
    GivenTables({**kept, "rebalances": rebalances}).write(tmp_path)
    said = run(tmp_path).stdout
    assert said.splitlines()[1] == "3 rebalances, 3 decided again as recorded."
    assert f"{lost['rebalance_id'][:8]} (was not recorded)" in said
