"""When next unread messages were written, as a cluster's brokers report it; the test plays the brokers."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from streaming.collectors.kafka import unread_messages
from streaming.collectors.kafka.message_search import DatedMessage
from streaming.collectors.kafka.unread_messages import UnreadMessages
from udfs.kafka.consumer_offsets import EVERY_GROUP, GroupPatterns
from udfs.model.events import Progress

NOW = 1_772_334_720_000
T, U = ("t", 0), ("u", 0)


class Brokers:
    """Partitions with the times of their messages, groups with their commits, and the requests that were sent."""

    def __init__(self) -> None:
        # A message each 100 ms, up to now.
        self.logs = {place: [NOW - 100 * (1_000 - number) for number in range(1_000)] for place in (T, U)}
        self.commits: dict[str, dict[tuple[str, int], int]] = {}
        self.asked: list[list[str]] = []
        self.requests = 0
        self.away: set[tuple[str, int]] = set()

    @property
    def ends(self) -> dict[tuple[str, int], int]:
        return {place: len(log) for place, log in self.logs.items()}

    def consumer_groups(self) -> list[str]:
        return sorted(self.commits)

    def committed(self, groups: Sequence[str]) -> dict[str, dict[tuple[str, int], int]]:
        self.asked.append(list(groups))
        return {name: dict(self.commits[name]) for name in groups}

    def first_since(self, times: Mapping[tuple[str, int], int]) -> dict[tuple[str, int], DatedMessage | None]:
        self.requests += 1
        found: dict[tuple[str, int], DatedMessage | None] = {}
        for place, time_ms in times.items():
            log = self.logs[place]
            offset = bisect.bisect_left(log, time_ms)
            if place not in self.away:
                found[place] = DatedMessage(offset, log[offset]) if offset < len(log) else None
        return found


def dated(events: list[Progress]) -> dict[tuple[str, str], tuple[int, int]]:
    """Return group and topic with the reported message."""
    assert not any(queue.moved or queue.offset or queue.end_offset for event in events for queue in event.queues)
    return {
        (event.group, queue.topic): (queue.written_offset or 0, queue.written_at or 0)
        for event in events
        for queue in event.queues
    }


def read(unread: UnreadMessages, brokers: Brokers, at_ms: int = NOW) -> dict[tuple[str, str], tuple[int, int]]:
    return dated(unread.read(brokers, brokers.ends, at_ms))  # type: ignore[arg-type]


def test_of_all_groups_the_next_unread_messages_are_found_in_the_same_requests() -> None:
    brokers = Brokers()
    brokers.commits = {"a": {T: 400, U: 1_000}, "b": {T: 990, U: 10}, "c": {T: -1, ("gone", 0): 7}}
    found = read(UnreadMessages("c", 10, EVERY_GROUP), brokers)
    assert found.keys() == {("a", "t"), ("b", "t"), ("b", "u")}
    for (_, topic), (offset, written_at) in found.items():
        true = brokers.logs[topic, 0][offset]
        assert abs(written_at - true) <= (NOW - true) / 99
    assert (found["a", "t"][0], found["b", "t"][0], found["b", "u"][0]) == (400, 990, 10)
    assert brokers.requests <= 8


def test_what_is_known_is_reported_again_after_a_minute_and_what_is_read_no_more() -> None:
    brokers, unread = Brokers(), UnreadMessages("c", 10, EVERY_GROUP)
    brokers.commits = {"a": {T: 400}}
    first = read(unread, brokers)
    assert list(first) == [("a", "t")]
    requests = brokers.requests
    assert read(unread, brokers, NOW + 59_999) == {}
    assert read(unread, brokers, NOW + 60_000) == first
    assert brokers.requests == requests  # nothing is sought again
    brokers.commits["a"][T] = 1_000
    assert read(unread, brokers, NOW + 130_000) == {}
    brokers.commits["a"][T] = 405  # the group went back
    assert read(unread, brokers, NOW + 130_000)["a", "t"][0] == 405


def test_a_slow_consumer_costs_few_requests_and_a_topic_that_was_made_again_has_no_former_times() -> None:
    brokers, unread = Brokers(), UnreadMessages("c", 10, EVERY_GROUP)
    brokers.commits = {"a": {T: 400}}
    read(unread, brokers)
    before = brokers.requests
    brokers.commits["a"][T] = 450
    assert read(unread, brokers, NOW + 1)["a", "t"] == (450, brokers.logs[T][450])
    assert brokers.requests - before <= 2
    brokers.logs[T] = [NOW + 10_000 + 100 * number for number in range(300)]
    brokers.commits["a"][T] = 200
    offset, written_at = read(unread, brokers, NOW + 60_000)["a", "t"]
    assert offset == 200
    assert written_at == pytest.approx(NOW + 30_000, abs=400)


def test_the_groups_with_the_most_waiting_messages_come_each_time_and_the_others_in_turn() -> None:
    brokers, unread = Brokers(), UnreadMessages("c", 4, GroupPatterns((".*",), ("x",)))
    brokers.commits = {name: {T: 1_000} for name in "abcdefgx"} | {"e": {T: 10}, "f": {T: 500}, "g": {T: 900}}
    for _ in range(4):
        read(unread, brokers)
    assert brokers.asked[:2] == [["a", "b", "c", "d"], ["e", "f", "g"]]
    assert [asked[:2] for asked in brokers.asked[2:]] == [["e", "f"], ["e", "f"]]
    assert {name for asked in brokers.asked[2:] for name in asked[2:]} == {"a", "b", "c", "d"}


def test_a_partition_without_a_leader_delays_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = Brokers()
    brokers.commits, brokers.away = {"a": {T: 400, U: 400}}, {U}
    assert list(read(UnreadMessages("c", 10, EVERY_GROUP), brokers)) == [("a", "t")]
    monkeypatch.setattr(unread_messages, "_STEPS_AT_ONCE", 2)
    brokers.away, unread = set(), UnreadMessages("c", 10, EVERY_GROUP)
    brokers.logs[T] = [NOW - 10_000_000, *brokers.logs[T][1:]]
    found: list[Any] = []
    while not found:  # a search that takes longer goes on at the next read
        found = [queue for queue in read(unread, brokers) if queue[1] == "t"]
    assert brokers.requests > 2


def test_nothing_is_requested_of_no_group() -> None:
    brokers = Brokers()
    brokers.commits = {"a": {T: 400}}
    assert read(UnreadMessages("c", 0, EVERY_GROUP), brokers) == {}
    assert (brokers.asked, brokers.requests) == ([], 0)
