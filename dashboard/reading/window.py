"""Dashboard: the time shown on pages, up to now, or up to the end of the knowledge of all clusters."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

import pyarrow as pa

from dashboard.reading.known_time import cluster_names, known_end, unknown_clusters
from dashboard.reading.questions import Reading
from streaming.machine.clock import now_ms
from streaming.views.reader import Within

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
# The last 24 hours touch this many whole hours: the first and the last of them count in part.
HOURS = 25
_TIMES = """
select distinct epoch_ms(event_time) as event_ms from rebalances where event_time is not null order by event_ms
"""
_NEVER_MS = 2**62


class Window(NamedTuple):
    """The last 24 hours of event time, in epoch ms.

    Attributes:
        since_ms: The beginning, in whole minutes.
        now_ms: Now, or the end of what is known.
        first_hour_ms, until_ms: The whole hours around them: begin <= T < end.
        is_live: Whether they end now, and not earlier.
    """

    since_ms: int
    now_ms: int
    first_hour_ms: int
    until_ms: int
    is_live: bool = True


class Recent(NamedTuple):
    """The first rebalances of the last 24 hours and of the last 60 minutes: their event times in epoch ms.

    Results that count these rebalances are cached for this and not for now: it changes when a rebalance is no longer
    recent.
    """

    day_ms: int
    hour_ms: int


def last_day(reading: Reading, at_ms: int | None = None) -> Window:
    """Return the last 24 hours, up to now or, if no cluster is known now, up to the last knowledge of any.

    Args:
        at_ms: Now; None for the clock's time.
    """
    now = now_ms() if at_ms is None else at_ms
    states = {name: reading.freshness.of(name).state for name in cluster_names(reading)}
    is_live = not states or any(state in ("known", "partly_known") for state in states.values())
    ends = (known_end(reading, name, now) for name in states)
    end = now if is_live else max((end_ms for end_ms in ends if end_ms is not None), default=now)
    return _day_until(end, is_live=is_live)


def last_day_of(reading: Reading, cluster: str) -> Window:
    """Return the last 24 hours of one cluster, up to now or to the end of its knowledge."""
    now = now_ms()
    is_live = reading.freshness.of(cluster).state in ("known", "partly_known")
    end = known_end(reading, cluster, now)
    return _day_until(now if end is None else end, is_live=is_live)


def ended_before(reading: Reading, end_ms: int) -> tuple[str, ...]:
    """Return the clusters that were unknown for a minute before a time, so that the changes up to it are unknown."""
    ends = {name: known_end(reading, name, end_ms) for name in unknown_clusters(reading)}
    return tuple(name for name, end in ends.items() if end is None or end < end_ms - MINUTE_MS)


def _day_until(end: int, *, is_live: bool) -> Window:
    first_hour = (end - DAY_MS) // HOUR_MS * HOUR_MS
    since = (end - DAY_MS) // MINUTE_MS * MINUTE_MS
    return Window(since, end, first_hour, first_hour + HOURS * HOUR_MS, is_live)


def recent(reading: Reading, window: Window) -> Recent:
    """Return the beginning of the last 24 hours and the last 60 minutes among the rebalances: now - 24 h < T."""
    within = {"event_time": Within(window.first_hour_ms, window.until_ms)}

    def compute() -> pa.Table:
        rows = reading.tables.read("rebalances", columns=["event_time"], where=within)
        return reading.sql(_TIMES, {"rebalances": rows})

    found = reading.kept(("times", window.first_hour_ms), ["rebalances"], compute)
    if not found.num_rows:
        return Recent(_NEVER_MS, _NEVER_MS)
    # One buffer of int64 is used, because a list of all of them for each request would take longer than the rest of it.
    times = memoryview(found["event_ms"].chunk(0).buffers()[1]).cast("q")[: found.num_rows]
    places = (bisect_right(times, window.now_ms - span) for span in (DAY_MS, HOUR_MS))
    return Recent(*(times[place] if place < len(times) else _NEVER_MS for place in places))


def page_time(reading: Reading) -> tuple[int, Recent]:
    """Return the cache key of pages in addition to the versions of tables: the minute, and what is recent."""
    window = last_day(reading)
    return window.since_ms, recent(reading, window)
