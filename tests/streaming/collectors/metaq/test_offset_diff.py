"""Offsets of two reads: which have moved, and when."""

from __future__ import annotations

from streaming.collectors.metaq.offset_diff import OffsetDiff
from streaming.collectors.metaq.zk_reader import Offset


def test_the_first_read_is_no_evidence() -> None:
    assert OffsetDiff("c").diff("g", [Offset("t", "0-0", 5, 10)]) == []


def test_what_has_moved_is_one_event_with_the_time_of_the_newest_commit() -> None:
    offsets = OffsetDiff("c")
    offsets.diff("g", [Offset("t", "1-0", 5, 10), Offset("t", "0-1", 5, 10), Offset("u", "0-0", 5, 10)])
    (event,) = offsets.diff("g", [Offset("t", "1-0", 6, 20), Offset("t", "0-1", 4, 30), Offset("u", "0-0", 5, 90)])
    assert (event.cluster, event.group, event.event_time) == ("c", "g", 30)
    assert [(one.topic, one.broker, one.queue_id, one.offset) for one in event.queues] == [
        ("t", "0", 1, 4),
        ("t", "1", 0, 6),
    ]
    assert offsets.diff("g", [Offset("t", "1-0", 6, 20), Offset("t", "0-1", 4, 30)]) == []


def test_a_partition_that_is_new_has_not_moved_yet() -> None:
    offsets = OffsetDiff("c")
    offsets.diff("g", [])
    assert offsets.diff("g", [Offset("t", "0-0", 5, 10)]) == []
    assert len(offsets.diff("g", [Offset("t", "0-0", 6, 11)])) == 1


def test_groups_do_not_mix_and_a_deleted_one_begins_again() -> None:
    offsets = OffsetDiff("c")
    offsets.diff("g", [Offset("t", "0-0", 5, 10)])
    assert offsets.diff("h", [Offset("t", "0-0", 6, 10)]) == []
    offsets.forget("g")
    offsets.forget("never there")
    assert offsets.diff("g", [Offset("t", "0-0", 7, 10)]) == []
