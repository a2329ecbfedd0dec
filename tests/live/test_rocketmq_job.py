"""The job itself beside a real RocketMQ 5.5: its tables agree with the members of several groups."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.job.commands import ManyRuns
from tests.kit.rocketmq import RocketMq
from tests.kit.rocketmq_members import RocketMqMember, queues_of, wait_until_assigned, wait_until_held
from tests.live.job import SELDOM
from tests.live.pages import live_pages
from tests.live.tables import Owners, owners, rows_of

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]
CLUSTER = "shop"
A, B = "127.0.0.1@a", "127.0.0.1@b"
QUICK: dict[str, Any] = {"rebalance_interval_ms": 2_000}


def held_by(members: Sequence[RocketMqMember], topic: str) -> Owners:
    """Return what members say that they hold of a topic."""
    held = {
        member.client_id or "": {(broker, number) for _, broker, number in member.held(topic)} for member in members
    }
    return {name: queues for name, queues in held.items() if queues}


def causes(tables: Path, group: str) -> list[tuple[str, str | None]]:
    """Return why a group was assigned anew; its retry topic, which may come behind its members, aside."""
    found = [row for row in rows_of(tables, "rebalances") if row["group_id"] == group]
    reported = [trigger for row in sorted(found, key=lambda row: row["generation"]) for trigger in row["triggers"]]
    named = [(trigger["kind"], trigger["member_id"] or trigger["topic"]) for trigger in reported]
    return [cause for cause in named if not (cause[1] or "").startswith("%RETRY%")]


def test_tables_and_pages_show_reports_of_members_of_several_groups(
    rocketmq55: RocketMq, new_rocketmq_member: Callable[..., RocketMqMember], runs: ManyRuns, tmp_path: Path
) -> None:
    cluster = rocketmq55
    for topic, queues in (("job-orders", 5), ("job-news", 3)):
        cluster.create_topic(topic, queues)
    a = new_rocketmq_member(cluster, "job-steady", ["job-orders"], instance="a", **QUICK)
    mixed = [
        new_rocketmq_member(cluster, "job-mixed", ["job-orders"], instance=name, strategy=strategy, **QUICK)
        for name, strategy in (("a", "AVG"), ("b", "AVG_BY_CIRCLE"))
    ]
    broadcast = new_rocketmq_member(cluster, "job-heard", ["job-news"], instance="a", broadcasting=True, **QUICK)
    wait_until_assigned([a], queues_of("job-orders", 5))
    wait_until_held({broadcast: queues_of("job-news", 3)})

    config, tables = tmp_path / "monitor.toml", tmp_path / "tables"
    config.write_text(f"{SELDOM}\n[rocketmq]\npoll_interval_ms = 1000\nrunning_info_share = 1.0\n")
    arguments: list[str | Path] = ["run", "--rocketmq", cluster.address, "--cluster", CLUSTER]
    arguments += ["--include-group", "job-.*", "--tables", tables, "--checkpoint", tmp_path / "checkpoint"]
    running = runs.start([*arguments, "--config", config])

    def wait_until_reported(group: str, members: Sequence[RocketMqMember], topic: str, what: str) -> None:
        def is_reported(origin: str) -> bool:
            return owners(tables, CLUSTER, group, topic, origin) == held_by(members, topic)

        running.wait_until(lambda: is_reported("reported"), f"{what}: reported")
        running.wait_until(lambda: is_reported("computed"), f"{what}: computed")

    wait_until_reported("job-steady", [a], "job-orders", "one alone")
    b = new_rocketmq_member(cluster, "job-steady", ["job-orders"], instance="b", **QUICK)
    wait_until_assigned([a, b], queues_of("job-orders", 5))
    wait_until_reported("job-steady", [a, b], "job-orders", "another joins")
    cluster.set_queues("job-orders", 7)
    wait_until_assigned([a, b], queues_of("job-orders", 7))
    wait_until_reported("job-steady", [a, b], "job-orders", "queues come")
    with live_pages(tables, CLUSTER, "job-steady") as pages:
        pages.wait_until_shown({A, B})
        b.freeze()
        # A hanging member cannot report its queues; the other one gets all of them once the broker has given it up.
        wait_until_assigned([a], queues_of("job-orders", 7))
        wait_until_reported("job-steady", [a], "job-orders", "one hangs")
        pages.wait_until_shown({A})
        pages.every_page()
    a.kill()
    running.wait_until(lambda: causes(tables, "job-steady")[-1] == ("member_gone", A), "the last is killed")
    wait_until_held(
        {
            mixed[0]: queues_of("job-orders", 4),
            mixed[1]: [("job-orders", "broker-a", number) for number in (1, 3, 5)],
        }
    )
    wait_until_reported("job-mixed", mixed, "job-orders", "two strategies")
    wait_until_reported("job-heard", [broadcast], "job-news", "broadcasting")
    running.signal(signal.SIGTERM)
    ended = running.wait()
    assert ended.exit_code == 0, ended.stderr[-3000:]
    assert "Traceback" not in ended.stderr
    joined = [("group_created", None), ("member_joined", A)]
    grown = ("queue_count_changed", "job-orders")
    ends = [("session_expired", B), ("member_gone", A)]
    assert causes(tables, "job-steady") == [*joined, ("member_joined", B), grown, *ends]
    assert causes(tables, "job-mixed") == [*joined, ("member_joined", B), grown]
    assert causes(tables, "job-heard") == joined
    assert {row["group_id"]: row["mode"] for row in rows_of(tables, "groups")} == {
        "job-steady": "clustering",
        "job-mixed": "clustering",
        "job-heard": "broadcasting",
    }
    wrong = {(row["group_id"], row["kind"]) for row in rows_of(tables, "findings") if row["closed_at"] is None}
    assert ("job-mixed", "strategies_differ") in wrong
    assert {kind for group, kind in wrong if group != "job-mixed"} <= {"flapping"}
    ways = {(row["group_id"], row["member_id"]): row["left_reason"] for row in rows_of(tables, "members")}
    assert (ways["job-steady", B], ways["job-steady", A]) == ("expired", "absent_from_snapshot")
    assert rows_of(tables, "rejected_events") == []
