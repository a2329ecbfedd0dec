"""Shell: the brokers' clock, as far as the records of a topic show it.

A record of ``__consumer_offsets`` carries the clock of the coordinator that wrote it; Kafka has no request for a
broker's time. A ``clock`` event must not run ahead of that clock, or later records would seem to be older than it. So
the time of a ``clock`` event is this machine's, minus its lead over the brokers:

- A record was written before it was read, so this machine is ahead by at most (time read − the record's time).
- A record that did not exist at a given time was written after it, so this machine is ahead by at least (that time −
  the record's time).

If the two bounds are close, the upper one is used, so that the clock never runs ahead. Otherwise (nothing was written
for long), the lower one is used, which is proven.
"""

from __future__ import annotations

from collections import deque

WINDOW_MS = 600_000  # older observations are forgotten, because clocks drift and are set


class BrokerClock:
    """Estimates the brokers' clock. It is monotonic.

    Args:
        round_ms: Time between rounds. Bounds that two rounds would explain count as close.
    """

    def __init__(self, round_ms: int) -> None:
        self._close_ms = 2 * round_ms
        self._bounds: deque[tuple[int, int | None, int]] = deque()  # when, at least, at most
        self._ahead_ms = 0
        self._uncertain_ms: int | None = None
        self._newest = 0

    @property
    def ahead_ms(self) -> int:
        """Return the estimated lead of this machine's clock over the brokers'."""
        return self._ahead_ms

    @property
    def uncertain_ms(self) -> int | None:
        """Return the difference of the two bounds; None if no record was seen yet."""
        return self._uncertain_ms

    def saw_record(self, record_ms: int, *, written_after_ms: int | None, read_ms: int) -> None:
        """Add the evidence of one record.

        Args:
            written_after_ms: A time of this machine at which it did not exist yet; None if unknown.
        """
        least = None if written_after_ms is None else written_after_ms - record_ms
        self._bounds.append((read_ms, least, read_ms - record_ms))
        while self._bounds[0][0] < read_ms - WINDOW_MS:
            self._bounds.popleft()
        at_most = min(most for _, _, most in self._bounds)
        # A broker that has just started may show fewer records than there are, and records that it shows later look as
        # if they had been written since. A record that contradicts the upper bound proves nothing.
        at_least = max((least for _, least, _ in self._bounds if least is not None and least <= at_most), default=0)
        proven = max(0, at_least)
        self._uncertain_ms = at_most - proven
        self._ahead_ms = max(0, at_most) if self._uncertain_ms <= self._close_ms else proven

    def at(self, local_ms: int) -> int:
        """Return the brokers' time at a time of this machine; never less than a previous result."""
        self._newest = max(self._newest, local_ms - self._ahead_ms)
        return self._newest
