"""Shell: decides when a clock should precede the next round, because something that the query has read can be decided.

The job decides events older than the allowed lateness. On a cluster where nothing more is written, only a ``clock``
advances its time, and rounds are seconds apart. So as soon as the lateness has passed since the newest record that was
read, another clock is written. While nothing is read, none is.
"""

from __future__ import annotations

from collections import deque

_AT_MOST = 1_000  # at most this many times are waiting; beyond that the rounds suffice


class EarlyClock:
    """The times (epoch ms, by the brokers' clock) that wait for a clock.

    Args:
        lateness_ms: The job's allowed lateness; events older than the clock by more than this are decided.
    """

    def __init__(self, lateness_ms: int) -> None:
        self._lateness_ms = lateness_ms
        self._waiting: deque[int] = deque(maxlen=_AT_MOST)

    def add(self, time_ms: int) -> None:
        """Add a waiting time."""
        if not self._waiting or time_ms > self._waiting[-1]:
            self._waiting.append(time_ms)

    def is_due(self, clock_ms: int) -> bool:
        """Return whether a clock with this time decides something that waits."""
        return bool(self._waiting) and self._waiting[0] + self._lateness_ms < clock_ms

    def passed(self, clock_ms: int) -> None:
        """Remove times that are decided by a clock that was written, or is about to be."""
        while self.is_due(clock_ms):
            self._waiting.popleft()
