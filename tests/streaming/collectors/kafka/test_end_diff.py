"""Ends of partitions are reported as they move, and when they are due."""

from __future__ import annotations

from streaming.collectors.kafka.end_diff import EndDiff
from udfs.model.events import QueueEnd, QueueEnds

Ends = dict[tuple[str, int], int]


def reports(diff: EndDiff, ends: Ends, at: int, starts: Ends | None = None) -> list[tuple[str, tuple[QueueEnd, ...]]]:
    events = diff.diff(ends, starts or {}, at)
    diff.note(events, ends, at)
    assert all(isinstance(event, QueueEnds) and event.event_time == at for event in events)
    return [(event.topic, event.queues) for event in events]


def test_only_ends_that_moved_are_reported_by_topic() -> None:
    diff = EndDiff("c", 10)
    assert reports(diff, {("b", 0): 5, ("a", 1): 0, ("a", 0): 7}, 100) == [
        ("a", (QueueEnd(0, 7), QueueEnd(1, 0))),
        ("b", (QueueEnd(0, 5),)),
    ]
    assert reports(diff, {("b", 0): 6, ("a", 1): 0, ("a", 0): 7}, 200) == [("b", (QueueEnd(0, 6),))]


def test_a_start_that_moved_is_reported_with_the_end_and_one_that_is_unknown_is_not() -> None:
    diff, ends = EndDiff("c", 10), {("a", 0): 7}
    assert reports(diff, ends, 100, {("a", 0): 0}) == [("a", (QueueEnd(0, 7, start_offset=0),))]
    assert reports(diff, ends, 200, {("a", 0): 0}) == []
    assert reports(diff, ends, 300) == []
    assert reports(diff, ends, 400, {("a", 0): 5}) == [("a", (QueueEnd(0, 7, start_offset=5),))]


def test_a_partition_that_comes_again_is_reported_again() -> None:
    diff = EndDiff("c", 10)
    reports(diff, {("a", 0): 7}, 100)
    assert reports(diff, {}, 200) == []
    assert reports(diff, {("a", 0): 7}, 300) == [("a", (QueueEnd(0, 7),))]


def test_unwritten_ends_are_reported_by_the_next_read() -> None:
    diff = EndDiff("c", 10)
    assert diff.diff({("a", 0): 7}, {}, 100)
    assert diff.is_due(100)
    assert diff.diff({("a", 0): 7}, {}, 101)


def test_ends_are_due_once_in_each_interval_and_never_without_one() -> None:
    diff = EndDiff("c", 10)
    assert diff.is_due(0)
    reports(diff, {}, 100)
    assert [diff.is_due(at) for at in (100, 109, 110)] == [False, False, True]
    assert not EndDiff("c", 0).is_due(10**15)


def test_after_a_read_that_lacks_partitions_the_next_comes_later() -> None:
    diff = EndDiff("c", 10)
    diff.note([], {}, 100, is_complete=False)
    assert [diff.is_due(at) for at in (110, 159, 160)] == [False, False, True]
