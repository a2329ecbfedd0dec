"""Shell: a log of events that leaves out most clocks of a quiet cluster, because each costs the job a whole batch.

A clock is left out only if it decides nothing: a clock that was written already covers all that the cluster has shown.
So no row comes later than with all clocks, except those that only time makes, such as a finding about a long silence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streaming.collectors.event_log.log import EventLog, ForwardingLog
from udfs.model.annotations import ContractEvent
from udfs.model.events import Clock

# Of three clocks in a row two are left out.
_LEFT_OUT = 2
# The first clock after something happened may have been taken before it, and have waited for the query; not the second.
_CLOCKS_AFTER = 2


class QuietLog(ForwardingLog):
    """Passes everything on to another log, except most clocks of a cluster in which nothing happens.

    Args:
        lateness_ms: The job's allowed lateness. silent_after_ms: A cluster is unknown this long after its last event;
            clocks are never left out for more than half of it.
        is_prompt: Returns whether the job's batches are short; otherwise a clock might be read late, and the cluster
            seem silent. position: Returns how far the query has read what the cluster itself records; a change of it is
            activity.
    """

    def __init__(
        self,
        log: EventLog,
        *,
        lateness_ms: int,
        silent_after_ms: int,
        is_prompt: Callable[[], bool] = lambda: True,
        position: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(log)
        # An event may be dated later than the clock after it, by less than the lateness, and waits that long again.
        self._settle_ms = 2 * lateness_ms
        self._longest_gap_ms = silent_after_ms // 2
        self._is_prompt = is_prompt
        self._position = position
        self._position_before: object = None
        self._awaited = _CLOCKS_AFTER  # clocks to be written until a time is known at which all has happened
        self._settles_at = 0
        self._last_ms: int | None = None  # of the clock before, whether it was written or not
        self._written_ms = 0
        self._left_out = 0

    def append(self, events: Sequence[ContractEvent]) -> None:
        """Append the events, unless they are one clock that decides nothing.

        Raises:
            LogFull: See ``EventLog``.
        """
        clocks = [event for event in events if isinstance(event, Clock)]
        position = self._position()
        if len(clocks) < len(events) or any(clock.lost for clock in clocks) or position != self._position_before:
            self._awaited = _CLOCKS_AFTER
        self._position_before = position
        if not clocks:
            self._log.append(events)
            return
        clock_ms = clocks[-1].event_time
        may_miss = self._may_miss(clock_ms)
        self._last_ms = clock_ms
        if self._left_out < may_miss:
            self._left_out += 1
            return
        self._log.append(events)
        if self._awaited:
            self._awaited -= 1
            self._settles_at = clock_ms + self._settle_ms
        self._written_ms, self._left_out = clock_ms, 0

    def _may_miss(self, clock_ms: int) -> int:
        """Return how many clocks in a row may be left out if this one comes now."""
        gap_ms = 0 if self._last_ms is None else clock_ms - self._last_ms
        if self._awaited or self._written_ms <= self._settles_at or gap_ms <= 0 or not self._is_prompt():
            return 0
        # A poll begins a little late.
        return max(0, min(_LEFT_OUT, (self._longest_gap_ms + gap_ms // 10) // gap_ms - 1))
