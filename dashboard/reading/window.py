"""Dashboard: the time that pages show: up to now, or up to the end of tables that nobody writes any more."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from dashboard.reading.questions import Reading
from streaming.machine.clock import now_ms

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
# Now moves on in such steps: what depends on it is kept that long.
STEP_MS = 5 * 60_000
_NEWEST = """
select max(epoch_ms(seen_at)) as newest
from (select last_rebalance_at as seen_at from groups union all select opened_at from findings)
"""


class Window(NamedTuple):
    """A span of event time: since <= T < until, in epoch ms.

    Attributes:
        now_ms: Now, or the end of the tables.
        is_live: It ends now, and not with the tables.
    """

    since_ms: int
    until_ms: int
    now_ms: int
    is_live: bool = True


def last_day(reading: Reading, at_ms: int | None = None) -> Window:
    """Return the last 24 hours: in whole hours, up to the end of this hour.

    Tables whose newest change is older than a day are a recording: their last 24 hours are shown.

    Args:
        reading: The tables.
        at_ms: Now; None = by the clock.
    """
    now = now_ms() if at_ms is None else at_ms
    newest = newest_ms(reading)
    is_live = newest is None or newest > now - DAY_MS
    end = now if is_live or newest is None else newest
    until = end // HOUR_MS * HOUR_MS + HOUR_MS
    step = end // STEP_MS * STEP_MS + STEP_MS
    return Window(until - DAY_MS, until, step, is_live)


def newest_ms(reading: Reading) -> int | None:
    """Return the event time of the newest rebalance or change of a group; None = there is none."""

    def compute() -> pa.Table:
        # By DuckDB: making a table of Python's values imports pandas, a third of a second of the first request.
        found = {"groups": reading.columns("groups", ["last_rebalance_at"])}
        return reading.sql(_NEWEST, found | {"findings": reading.columns("findings", ["opened_at"])})

    newest: int | None = reading.kept("newest", ["groups", "findings"], compute)["newest"][0].as_py()
    return newest
