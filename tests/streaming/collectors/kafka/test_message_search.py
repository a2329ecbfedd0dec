"""The search for a message's time is compared with logs whose messages all have known times."""

from __future__ import annotations

import bisect
import random
from collections.abc import Callable, Sequence

import pytest

from streaming.collectors.kafka.message_search import DatedMessage, MessageSearch

NOW = 1_772_334_720_000


def first_since(log: Sequence[int], time_ms: int, start: int = 0) -> DatedMessage | None:
    """Return what a broker does: the first message that is not older, of a log in the order of time."""
    offset = bisect.bisect_left(log, time_ms, lo=start)
    return DatedMessage(offset, log[offset]) if offset < len(log) else None


def steady(_: random.Random) -> list[int]:
    return [NOW - 600_000 + 50 * number for number in range(11_000)]


def bursts(rng: random.Random) -> list[int]:
    return sorted(NOW - 60_000 * rng.randrange(1, 600) + rng.randrange(200) for _ in range(20_000))


def once_a_day(rng: random.Random) -> list[int]:
    return [NOW - 86_400_000 * days + rng.randrange(1_000) for days in range(30, 0, -1)]


def at_once(_: random.Random) -> list[int]:
    return [NOW - 5_000] * 1_000


@pytest.mark.parametrize(("log_of", "most"), [(steady, 9), (bursts, 9), (once_a_day, 4), (at_once, 2)])
def test_the_time_of_any_message_is_found_to_a_hundredth_of_its_age(
    log_of: Callable[[random.Random], list[int]], most: int
) -> None:
    rng = random.Random(11)
    log = log_of(rng)
    for offset in sorted(rng.sample(range(len(log)), 30)):
        search = MessageSearch(offset, len(log), NOW)
        while search.found is None:
            time_ms = search.next_time
            search.learn(time_ms, first_since(log, time_ms))
        assert search.found.offset == offset
        assert abs(search.found.written_at - log[offset]) <= max(1, (NOW - log[offset]) / 99)
        assert search.steps <= most


def test_a_search_goes_on_from_a_message_that_is_known() -> None:
    log = steady(random.Random())
    search = MessageSearch(7_000, len(log), NOW, DatedMessage(6_990, log[6_990]))
    for _ in range(2):
        time_ms = search.next_time
        search.learn(time_ms, first_since(log, time_ms))
    assert search.found == DatedMessage(7_000, pytest.approx(log[7_000], abs=2_500))
    assert MessageSearch(7_000, len(log), NOW, DatedMessage(7_000, log[7_000])).found == (7_000, log[7_000])


def test_a_message_that_was_deleted_has_no_time() -> None:
    log = steady(random.Random())
    search = MessageSearch(50, len(log), NOW)
    assert search.next_time == 0
    search.learn(0, first_since(log, 0, start=60))
    assert search.is_deleted
    assert search.found is None


def test_messages_by_a_clock_that_is_ahead_are_new() -> None:
    log = [NOW + 60_000 + number for number in range(100)]
    search = MessageSearch(40, 100, NOW)
    for _ in range(8):
        time_ms = search.next_time
        search.learn(time_ms, first_since(log, time_ms))
    assert search.found is not None
    assert search.found.written_at >= NOW
