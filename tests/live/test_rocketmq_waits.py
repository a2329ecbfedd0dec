"""Waits of RocketMQ's clients that take minutes: a 4.9 member that hangs, and locks of one that was killed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit.rocketmq import RocketMq
from tests.kit.rocketmq_members import RocketMqMember, queues_of, wait_until_assigned
from tests.live.rocketmq_findings import found_in, pauses_of
from tests.live.rocketmq_story import Story, are_missed, collecting
from tests.simulation.core_run import run_of
from udfs.group.assignment.client_timings import LOCK_EXPIRES_MS, LOCK_RENEWAL_MS

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(900)]
StartMember = Callable[..., RocketMqMember]
A, B = "127.0.0.1@a", "127.0.0.1@b"
JOINED = (("group_created", None), ("member_joined", A), ("member_joined", B))
QUICK: dict[str, Any] = {"rebalance_interval_ms": 2_000}
_PATIENCE_S = 300.0


def test_a_member_of_4_9_that_hangs_is_given_up_after_two_minutes(
    rocketmq49: RocketMq, new_rocketmq_member: StartMember, tmp_path: Path
) -> None:
    rocketmq49.create_topic("long-hung", 4)
    folder = tmp_path / "events"
    with collecting(rocketmq49, folder, include_groups=("long-hanging",), client_timeout_ms=500) as collected:
        story = Story("long-hanging", collected)
        a, b = [new_rocketmq_member(rocketmq49, "long-hanging", ["long-hung"], instance=name, **QUICK) for name in "ab"]
        wait_until_assigned([a, b], queues_of("long-hung", 4))
        story.record("both join", [a, b], *JOINED)
        b.freeze()
        collected.poll_until(lambda events: are_missed(events, B), "it does not answer")
        wait_until_assigned([a], queues_of("long-hung", 4), _PATIENCE_S)
        story.record("one hangs", [a], ("session_expired", B))
    run = story.check()
    assert "running_info_missing" not in found_in(run, "long-hanging")


def test_queues_that_a_killed_member_locked_stand_still_until_its_locks_expire(
    each_rocketmq: RocketMq, new_rocketmq_member: StartMember, tmp_path: Path
) -> None:
    cluster = each_rocketmq
    cluster.create_topic("locked", 4)
    more: dict[str, Any] = {"ordered": True, **QUICK}
    with collecting(cluster, tmp_path / "events", include_groups=("locking",)) as collected:
        story = Story("locking", collected)
        a, b = [new_rocketmq_member(cluster, "locking", ["locked"], instance=name, **more) for name in "ab"]
        wait_until_assigned([a, b], queues_of("locked", 4))
        story.record("both join", [a, b], *JOINED)
        taken = b.held()
        b.kill()
        cluster.wait_until(lambda: cluster.member_ids("locking") == [A], "the broker lists one")
        collected.poll()
        wait_until_assigned([a], queues_of("locked", 4), _PATIENCE_S)
        story.record("one is killed", [a], ("member_gone", B))
        collected.poll_until(
            lambda _: pauses_of(run_of(collected.lines()), "locking", A).keys() >= set(taken), "what it took is read"
        )
    run = story.check()
    pauses = pauses_of(run, "locking", A)
    # It had last renewed its locks at most this long before it was killed.
    assert all(pauses[queue] >= LOCK_EXPIRES_MS - LOCK_RENEWAL_MS for queue in taken), pauses
