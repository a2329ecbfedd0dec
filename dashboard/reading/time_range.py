"""Dashboard: the span of time that a page shows, in bins that fit it, with the equally long span before it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dashboard.reading.listing import SINCE, UNTIL
from dashboard.reading.listing_query import BadQuestionError, time_parameter
from dashboard.reading.questions import Reading
from dashboard.reading.window import DAY_MS, HOUR_MS, MINUTE_MS, last_day

SECOND_MS = 1_000
# The spans that end now, by their names in addresses.
PRESETS: Mapping[str, int] = {
    "15m": 15 * MINUTE_MS,
    "1h": HOUR_MS,
    "6h": 6 * HOUR_MS,
    "24h": DAY_MS,
    "7d": 7 * DAY_MS,
}
DEFAULT = "24h"
# A chart has at most this many bins; beyond the longest of these lengths they are multiples of it.
MOST_BINS = 48
_BINS_MS = (
    *(seconds * SECOND_MS for seconds in (1, 5, 10, 30)),
    *(minutes * MINUTE_MS for minutes in (1, 2, 5, 10, 30)),
    *(hours * HOUR_MS for hours in (1, 2, 4, 12, 24)),
)
_UNITS = (("d", DAY_MS), ("h", HOUR_MS), ("min", MINUTE_MS), ("s", SECOND_MS))


class TimeRange(NamedTuple):
    """A span of event time: since_ms <= T < until_ms, in epoch ms.

    Attributes:
        name: That of the preset; empty for a custom span.
        is_chosen: Whether somebody chose it; otherwise it is the default.
    """

    since_ms: int
    until_ms: int
    name: str = ""
    is_chosen: bool = True

    @classmethod
    def preset(cls, reading: Reading, name: str = "", *, is_chosen: bool = True) -> TimeRange:
        """Return the span of a preset up to now, or to the end of what is known, in whole minutes.

        Args:
            name: One of ``PRESETS``; empty for the default.
        """
        name = name or DEFAULT
        until_ms = (last_day(reading).now_ms // MINUTE_MS + 1) * MINUTE_MS
        return cls(until_ms - PRESETS[name], until_ms, name, is_chosen)

    @classmethod
    def between(cls, reading: Reading, since: str, until: str, names: tuple[str, str] = (SINCE, UNTIL)) -> TimeRange:
        """Return the span between two times, as ``parse_time`` takes them.

        Args:
            since: Empty for a day before the end. until: Empty for the end of the default range.
            names: Those of the two parameters, for errors.

        Raises:
            BadQuestionError: A text is no time, or the range is empty.
        """
        until_ms = time_parameter(names[1], until) if until else cls.preset(reading).until_ms
        since_ms = time_parameter(names[0], since) if since else until_ms - PRESETS[DEFAULT]
        if not 0 <= since_ms < until_ms:
            raise BadQuestionError(f"{names[0]}: it is not before {names[1]}")
        return cls(since_ms, until_ms)

    def meets(self, begin_ms: int | None, end_ms: int | None) -> bool:
        """Return whether a span of which these are the ends is open at some time in it; None: not known, or open."""
        return (begin_ms or 0) < self.until_ms and (end_ms is None or end_ms > self.since_ms)

    @property
    def span_ms(self) -> int:
        """Return its length."""
        return self.until_ms - self.since_ms

    @property
    def bin_ms(self) -> int:
        """Return the length of a bin of its charts.

        Example:
            >>> [TimeRange(0, length_ms).bin_ms // 1_000 for length_ms in PRESETS.values()]
            [30, 120, 600, 1800, 14400]
        """
        needed = -(-self.span_ms // MOST_BINS)
        longest = _BINS_MS[-1]
        return next((bin_ms for bin_ms in _BINS_MS if bin_ms >= needed), -(-needed // longest) * longest)

    @property
    def bin_text(self) -> str:
        """Return the length of a bin for people.

        Example:
            >>> [TimeRange(0, length_ms).bin_text for length_ms in PRESETS.values()]
            ['30 s', '2 min', '10 min', '30 min', '4 h']
        """
        unit, unit_ms = next((unit, unit_ms) for unit, unit_ms in _UNITS if not self.bin_ms % unit_ms)
        return f"{self.bin_ms // unit_ms} {unit}"

    @property
    def first_bin_ms(self) -> int:
        """Return the beginning of the first bin; of that bin only what is within the span counts."""
        return self.since_ms // self.bin_ms * self.bin_ms

    @property
    def bins(self) -> range:
        """Return the beginnings of the bins."""
        return range(self.first_bin_ms, self.until_ms, self.bin_ms)

    @property
    def earlier(self) -> TimeRange:
        """Return the equally long span before it."""
        return TimeRange(self.since_ms - self.span_ms, self.since_ms)
