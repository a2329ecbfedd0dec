"""The cost of a rebalance of a real MetaQ group equals what its members count themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.metaq import MetaqCluster
from tests.kit.metaq_members import MetaqMember, partitions_of, wait_until, wait_until_shared
from tests.live.metaq_story import Collected, Event, collecting
from tests.simulation.core_run import CoreRun, run_of
from udfs.model.journal import Rebalance

pytestmark = [pytest.mark.broker, pytest.mark.timeout(900)]
GROUP, TOPIC, PARTITIONS = "costing", "kit-orders", 12
NEVER_MS = 3_600_000


def test_a_member_commits_revoked_queues_and_byte_offsets_are_not_messages(
    metaq: MetaqCluster, new_metaq_member: Callable[..., MetaqMember], tmp_path: Path
) -> None:
    partitions = partitions_of(TOPIC, PARTITIONS)
    with collecting(metaq, tmp_path / "events") as collected:
        a = new_metaq_member(metaq, GROUP, [TOPIC], consumer_id="a", commit_interval_ms=500)
        wait_until_shared([a], partitions)
        collected.wait_for(lambda events: _members(events) == ["costing_a"], "one has joined")
        # Only an offset that moves between two polls is a commit.
        _read_and_commit(metaq, a, collected, 0)
        _read_and_commit(metaq, a, collected, max(_offsets(collected.events()).values()))
        committed = _offsets(collected.events())
        b = new_metaq_member(metaq, GROUP, [TOPIC], consumer_id="b", commit_interval_ms=NEVER_MS)
        wait_until_shared([a, b], partitions)
        _put(metaq)
        wait_until([a, b], lambda: a.records_read + b.records_read >= 360)
        given_up = a.records_read + b.records_read - 360
        collected.wait_for(lambda events: _members(events) == ["costing_a", "costing_b"], "another has joined")
        b.kill()
        wait_until_shared([a], partitions)
        # It begins where the first had given them up.
        a.wait_until(lambda: a.records_read + b.records_read >= 360 + 60)
        collected.wait_for(lambda events: _members(events) == ["costing_a"], "one is killed")
        collected.stop()
    run = run_of(collected.lines())
    joined, killed = sorted(_rows(run), key=lambda row: row.generation)[-2:]
    assert given_up == 0
    assert (joined.repeated_messages, joined.repeated_estimated_messages, joined.waiting_messages) == (None, 0, None)
    assert (killed.repeated_messages, killed.repeated_estimated_messages, killed.waiting_messages) == (None, None, None)
    # Ten messages are more than ten bytes, and where a partition ends is not in ZooKeeper.
    assert all(offset > 10 * len(b"message") for offset in committed.values()), committed
    shown = [queue for row in run.progress if row.group_id == GROUP for queue in row.queues]
    assert {offset for _, offset, *_ in shown} >= set(committed.values())
    assert all((end, end_at) == (None, None) for *_, end, end_at, _ in shown)


def _put(metaq: MetaqCluster) -> None:
    for _, _, number in partitions_of(TOPIC, PARTITIONS):
        metaq.broker.put(TOPIC, number, [b"message"] * 10)


def _read_and_commit(metaq: MetaqCluster, member: MetaqMember, collected: Collected, before: int) -> None:
    """Let the only member read ten more messages of each partition, until all is reported as committed."""
    read = member.records_read
    _put(metaq)
    member.wait_until(lambda: member.records_read == read + 10 * PARTITIONS)

    def is_reported(events: list[Event]) -> bool:
        offsets = _offsets(events).values()
        return len(offsets) == PARTITIONS and len(set(offsets)) == 1 and min(offsets) > before

    collected.wait_for(is_reported, "what it has committed")


def _members(events: list[Event]) -> list[str]:
    snapshots = [event for event in events if event["type"] == "group_snapshot" and event["group"] == GROUP]
    return [member["member_id"] for member in snapshots[-1].get("members", ())] if snapshots else []


def _offsets(events: list[Event]) -> dict[int, int]:
    """Return the last offset of each partition that has one."""
    reported = [event for event in events if event["type"] == "progress" and event["group"] == GROUP]
    found = {queue["queue_id"]: queue["offset"] for event in reported for queue in event["queues"]}
    return {number: offset for number, offset in found.items() if offset}


def _rows(run: CoreRun) -> list[Rebalance]:
    return [row for row in run.rebalances if row.group_id == GROUP]
