"""The command `what-if`, on tables of small groups whose answers are worked out by hand."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.simulation.core_run import rows_of, run_of
from tests.simulation.given_tables import GivenTables
from tests.streaming.tables.signs import leave_silent_sign
from tests.streaming.views.story import json_of, run

T0 = 1_772_323_200_000  # 2026-03-01T00:00:00Z
MINUTE = 60_000


def _event(kind: str, minute: int, group: str | None = "orders", system: str = "kafka", **fields: Any) -> bytes:
    event = {"type": kind, "schema_version": 1, "system": system, "cluster": system, "event_time": T0 + minute * MINUTE}
    return json.dumps(event | ({} if group is None else {"group": group}) | fields).encode()


def _joins(minute: int, member: str, topics: list[str], group: str = "orders", **fields: Any) -> bytes:
    described = {"host": f"h-{member}", "session_timeout_ms": 86_400_000, "subscriptions": topics}
    return _event("member_joined", minute, group, member_id=member, **described, **fields)


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a group of range with two members, and two of CONSISTENT_HASH with their own settings.

    The rebalance of the second minute stopped the first one for two seconds, and 30 messages of its one moved queue
    were read twice.
    """
    ring = {"strategy": "CONSISTENT_HASH", "strategy_settings": {"virtual_nodes": 3}}
    of_ring = {"group": "ring", "system": "rocketmq"}
    of_old_ring = of_ring | {"group": "old-ring"}
    lines = [
        _event("topic_queues", 0, None, topic="t", queue_count=4),
        _event("group_settings", 0, strategy="range"),
        _joins(0, "a", ["t"], strategies=["range"]),
        _event("clock", 1, None),
        _joins(2, "b", ["t"], strategies=["range"], rack="r1"),
        _event("clock", 3, None),
        _event(
            "topic_queues",
            3,
            None,
            system="rocketmq",
            topic="t",
            queues=[{"broker": "x", "queue_id": n} for n in range(9)],
        ),
        _event("group_settings", 3, **of_ring, **ring),
        *(_joins(3, f"10.0.0.{n}@7", ["t"], **of_ring) for n in range(3)),
        _event("group_settings", 3, **of_old_ring, **ring),
        *(_joins(3, f"10.0.0.{n}@7", ["t"], **of_old_ring) for n in range(3)),
        _event("clock", 5, None, system="rocketmq"),
    ]
    played = run_of(lines)
    rows = {**rows_of(played.changes), "rebalances": played.rows()}
    measured = {"pause_ms": 2_000, "repeated_messages": 30, "queues_moved": 1, "queues_assigned": 0}
    for row in rows["rebalances"]:
        if row["members_before"] == 1:
            row |= measured
        if row["group_id"] == "old-ring":  # as release 0.2.0 left it
            row["settings"] = None
    root = tmp_path_factory.mktemp("planned")
    GivenTables(rows).write(root)
    return root


def test_a_new_member_is_foreseen_by_name_with_what_it_costs(planned: Path) -> None:
    lines = run(planned, "what-if", "-g", "orders", "--add", "1").stdout.splitlines()
    assert lines[0] == "orders in kafka now (kafka.range, 2 members, 4 queues): 1 new member"
    table = {line.split()[0]: line.split()[2:] for line in lines[3:6]}
    assert table == {
        "a": ["stays", "2", "2", "t(0,1)"],
        "b": ["stays", "2", "1", "t(2)"],
        "new-1": ["new", "-", "1", "t(3)"],
    }
    assert "b     new-1  1       t(3)" in lines
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    assert "Moves: 1 of 4 queues move" in text
    assert "Spread: 0 before, 1 after (t 0 -> 1)" in text
    assert "Stands still: all 4 queues of all members: 2.0 s (2.0 s to 2.0 s, from 1 rebalance of this group)" in text
    assert "Read twice: about 30 messages (30 to 30, from 1 rebalance of this group)" in text
    assert "Waiting: unknown" in text
    assert "sort before all others: other queues move, 3 instead of 1, with a spread of 1" in text


def test_a_lost_host_is_noticed_late_and_its_cost_is_unknown_without_such_a_rebalance(planned: Path) -> None:
    (found,) = json_of(planned, "what-if", "-g", "orders", "--lose-host", "h-a")
    assert [(row["member_id"], row["change"]) for row in found["members"]] == [("a", "lost"), ("b", "stays")]
    assert (found["noticed_after_ms"], found["stands_still_ms"], found["repeated_messages"]) == (86_400_000, None, None)
    assert [move["after"] for move in found["moves"]] == [["b"], ["b"]]


def test_the_past_and_growth_and_racks_and_the_newest_members(planned: Path) -> None:
    (past,) = json_of(planned, "what-if", "-g", "orders", "--add", "1", "--at", str(T0 + MINUTE))
    assert [row["member_id"] for row in past["members"]] == ["a", "new-1"]
    (grown,) = json_of(planned, "what-if", "-g", "orders", "--queues", "t=6")
    assert (grown["queues_moved"], grown["queues_assigned"]) == (1, 2), "a gets 2 of b's, b gets the new ones"
    (in_rack,) = json_of(planned, "what-if", "-g", "orders", "--lose-rack", "r1")
    (newest,) = json_of(planned, "what-if", "-g", "orders", "--remove", "1")
    assert [row["after"] is None for row in in_rack["members"]] == [row["after"] is None for row in newest["members"]]
    assert {row["member_id"]: row["change"] for row in newest["members"]} == {"a": "stays", "b": "leaves"}


def test_a_rolling_restart_is_two_rebalances_a_member_and_none_with_static_ones(planned: Path) -> None:
    (dynamic,) = json_of(planned, "what-if", "-g", "orders", "--rolling-restart")
    assert [row["step"] for row in dynamic["rebalances"]] == ["leave", "return"] * 2
    assert [row["queues_moved"] for row in dynamic["rebalances"]] == [2, 2, 2, 2]
    assert dynamic["queues_moved"] == 0, "range gives everyone the same as before"
    (static,) = json_of(planned, "what-if", "-g", "orders", "--rolling-restart", "--static")
    assert static["rebalances"] == []


def test_all_strategies_are_compared(planned: Path) -> None:
    found = {
        row["strategy"]: row for row in json_of(planned, "what-if", "-g", "orders", "--strategy", "all", "--add", "1")
    }
    assert len(found) >= 6
    assert {name: found[name]["queues_moved"] for name in ("kafka.range", "kafka.sticky")} == {
        "kafka.range": 1,
        "kafka.sticky": 1,
    }
    assert found["kafka.roundrobin"]["queues_switched"] == 2
    assert found["kafka.cooperative-sticky"]["queues_stopped"] == 1
    assert run(planned, "what-if", "-g", "orders", "--strategy", "all").stdout.startswith("STRATEGY")


def test_a_strategy_has_the_settings_that_were_set_for_the_group(planned: Path) -> None:
    result = run(planned, "what-if", "-g", "ring", "--add", "1")
    assert result.exit_code == 0, result.stderr
    assert " ".join(result.stdout.split()).startswith(
        "ring in rocketmq now (rocketmq.CONSISTENT_HASH, 3 members, 9 queues): 1 new member"
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-g", "orders"], "nothing is to change"),
        (["-g", "orders", "--add", "1", "--static"], "only with --rolling-restart"),
        (["-g", "orders", "--remove", "c"], "group orders has no member c"),
        (["-g", "orders", "--remove", "3"], "group orders has only 2 members to remove"),
        (["-g", "orders", "--queues", "t=3"], "topic t has 4 queues: partitions cannot be taken away"),
        (["-g", "orders", "--queues", "t"], "--queues is TOPIC=N"),
        (["-g", "orders", "--strategy", "AVG"], "Kafka has no strategy AVG"),
        (["-g", "orders", "--lose-host", "h-c"], "no member of orders is on h-c; they are on h-a, h-b"),
        (["-g", "ring", "--lose-rack", "r1"], "racks of the members of ring are not known"),
        (["-g", "old-ring", "--add", "1"], "its settings are not in the tables"),
        (["-g", "ring", "--strategy", "CONFIG"], "rocketmq.CONFIG needs settings"),
        (["-g", "nobody", "--add", "1"], "there is no group nobody"),
        (["-g", "orders", "--add", "1", "--at", str(T0 - 1)], "group orders has no members at"),
    ],
)
def test_what_cannot_be_foreseen_is_refused_with_its_reason(planned: Path, arguments: list[str], sentence: str) -> None:
    result = run(planned, "what-if", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr


def test_nothing_slow_is_loaded(planned: Path) -> None:
    program = (
        "import sys; from streaming.commands.app import app\n"
        f"try: app(['what-if', '--tables', {str(planned)!r}, '-g', 'orders', '--add', '1'], standalone_mode=False)\n"
        "finally: print({'pandas', 'duckdb', 'pyspark', 'streaming.settings.model'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_where_the_cluster_is_blind_the_group_is_as_last_known(planned: Path, tmp_path: Path) -> None:
    shutil.copytree(planned, tmp_path / "tables")
    leave_silent_sign(tmp_path / "tables", "kafka", known_until=T0)
    answer = run(tmp_path / "tables", "what-if", "-g", "orders", "--add", "1")
    assert answer.stdout.startswith("orders in kafka as last known (")
    assert "In doubt: the group is as last known, because kafka is blind since" in answer.stdout
    assert answer.stderr.startswith("kafka is blind since 2026-03-01T00:00:00Z:")
    past = run(tmp_path / "tables", "what-if", "-g", "orders", "--add", "1", "--at", "2026-03-01T00:03:30Z")
    assert (past.stdout.startswith("orders in kafka at 2026-03-01T00:03:30"), past.stderr) == (True, "")
