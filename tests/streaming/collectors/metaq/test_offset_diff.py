"""Offsets of two reads: which have moved, and when."""

from __future__ import annotations

from streaming.collectors.metaq.offset_diff import OffsetDiff
from streaming.collectors.metaq.zk_reader import Offset


def diff(offsets: OffsetDiff, group: str, *found: Offset) -> list[tuple[int, bool, list[tuple[object, ...]]]]:
    """Return of each event the time, whether its offsets have moved, and these; the read is at 1000."""
    events = offsets.diff(group, found, 1_000)
    assert {(event.cluster, event.group) for event in events} <= {("c", group)}
    assert all(len({queue.moved for queue in event.queues}) == 1 for event in events)
    return [
        (
            event.event_time,
            event.queues[0].moved,
            [(queue.topic, queue.broker, queue.queue_id, queue.offset) for queue in event.queues],
        )
        for event in events
    ]


def test_the_first_read_shows_no_commit() -> None:
    offsets = OffsetDiff("c")
    assert diff(offsets, "g", Offset("t", "0-0", 5, 10)) == [(1_000, False, [("t", "0", 0, 5)])]
    assert diff(offsets, "g", Offset("t", "0-0", 5, 10)) == []


def test_moved_offsets_are_one_event_with_the_time_of_the_newest_commit() -> None:
    offsets = OffsetDiff("c")
    diff(offsets, "g", Offset("t", "1-0", 5, 10), Offset("t", "0-1", 5, 10), Offset("u", "0-0", 5, 10))
    assert diff(offsets, "g", Offset("t", "1-0", 6, 20), Offset("t", "0-1", 4, 30), Offset("u", "0-0", 5, 90)) == [
        (30, True, [("t", "0", 1, 4), ("t", "1", 0, 6)])
    ]
    assert diff(offsets, "g", Offset("t", "1-0", 6, 20), Offset("t", "0-1", 4, 30)) == []


def test_a_partition_that_is_new_has_not_moved_yet() -> None:
    offsets = OffsetDiff("c")
    diff(offsets, "g", Offset("t", "0-0", 5, 10))
    assert diff(offsets, "g", Offset("t", "0-0", 6, 11), Offset("t", "0-1", 7, 11)) == [
        (11, True, [("t", "0", 0, 6)]),
        (1_000, False, [("t", "0", 1, 7)]),
    ]


def test_groups_do_not_mix_and_a_deleted_one_begins_again() -> None:
    offsets = OffsetDiff("c")
    diff(offsets, "g", Offset("t", "0-0", 5, 10))
    assert diff(offsets, "h", Offset("t", "0-0", 6, 10)) == [(1_000, False, [("t", "0", 0, 6)])]
    offsets.forget("g")
    offsets.forget("never there")
    assert diff(offsets, "g", Offset("t", "0-0", 7, 10)) == [(1_000, False, [("t", "0", 0, 7)])]
