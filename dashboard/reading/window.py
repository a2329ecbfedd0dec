"""Dashboard: the time that pages show: up to now, or up to the end of tables that no job writes any more."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

import pyarrow as pa

from dashboard.reading.questions import Reading
from streaming.machine.clock import now_ms
from streaming.views.group_health import shown_until
from streaming.views.reader import Within

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
# The last 24 hours touch so many whole hours: the first and the last of them count in part.
HOURS = 25
_NEWEST = """
select max(epoch_ms(seen_at)) as newest
from (select last_rebalance_at as seen_at from groups union all select opened_at from findings)
"""
_TIMES = """
select distinct epoch_ms(event_time) as event_ms from rebalances where event_time is not null order by event_ms
"""
_NEVER_MS = 2**62


class Window(NamedTuple):
    """The last 24 hours of event time, in epoch ms.

    Attributes:
        since_ms: Their begin, in whole minutes.
        now_ms: Now, or the end of the tables.
        first_hour_ms, until_ms: The whole hours around them: begin <= T < end.
        is_live: They end now, and not with the tables.
    """

    since_ms: int
    now_ms: int
    first_hour_ms: int
    until_ms: int
    is_live: bool = True


class Recent(NamedTuple):
    """The first rebalance of the last 24 hours, and that of the last 60 minutes: their event times in epoch ms.

    What counts these rebalances is kept for them and not for now: it changes when one of them is recent no longer.
    """

    day_ms: int
    hour_ms: int


def last_day(reading: Reading, at_ms: int | None = None) -> Window:
    """Return the last 24 hours, up to now.

    Tables whose newest change is older than a day are a recording: their last 24 hours are shown.

    Args:
        at_ms: Now; None = by the clock.
    """
    now = now_ms() if at_ms is None else at_ms
    newest = newest_ms(reading)
    end = shown_until(newest, now)
    first_hour = (end - DAY_MS) // HOUR_MS * HOUR_MS
    since = (end - DAY_MS) // MINUTE_MS * MINUTE_MS
    return Window(since, end, first_hour, first_hour + HOURS * HOUR_MS, end == now)


def recent(reading: Reading, window: Window) -> Recent:
    """Return where the last 24 hours and the last 60 minutes begin among the rebalances: now - 24 h < T."""
    within = {"event_time": Within(window.first_hour_ms, window.until_ms)}

    def compute() -> pa.Table:
        rows = reading.tables.read("rebalances", columns=["event_time"], where=within)
        return reading.sql(_TIMES, {"rebalances": rows})

    found = reading.kept(("times", window.first_hour_ms), ["rebalances"], compute)
    if not found.num_rows:
        return Recent(_NEVER_MS, _NEVER_MS)
    # One buffer of int64: a list of all of them for each request would take longer than the rest of it.
    times = memoryview(found["event_ms"].chunk(0).buffers()[1]).cast("q")[: found.num_rows]
    places = (bisect_right(times, window.now_ms - span) for span in (DAY_MS, HOUR_MS))
    return Recent(*(times[place] if place < len(times) else _NEVER_MS for place in places))


def page_time(reading: Reading) -> tuple[int, Recent]:
    """Return what pages are kept for besides the versions of tables: the minute, and what is recent."""
    window = last_day(reading)
    return window.since_ms, recent(reading, window)


def newest_ms(reading: Reading) -> int | None:
    """Return the event time of the newest rebalance or change of a group; None = there is none."""

    def compute() -> pa.Table:
        # By DuckDB: making a table of Python's values imports pandas, a third of a second of the first request.
        found = {"groups": reading.columns("groups", ["last_rebalance_at"])}
        return reading.sql(_NEWEST, found | {"findings": reading.columns("findings", ["opened_at"])})

    newest: int | None = reading.kept("newest", ["groups", "findings"], compute)["newest"][0].as_py()
    return newest
