"""Shell: when a message of a partition was written, found by its offset in a search over time. No I/O here.

A broker answers a time with the first message that is not older, its offset and its time (ListOffsets), without anybody
reading it. So each answer shows a message up to the one that is sought, or a time that is later than it.
"""

from __future__ import annotations

from typing import NamedTuple

# The search ends where the time is known to this share of the message's age, or to the millisecond.
_TOLERANCE = 0.01
# Steps in turn: where messages come in bursts, interpolation alone approaches from one side. A probe is as close to the
# bound that moved last as the search has to come.
_STEPS = ("interpolate", "probe", "interpolate", "interpolate", "bisect")


class DatedMessage(NamedTuple):
    """The offset of a message, and when it was written: epoch ms, as brokers report it."""

    offset: int
    written_at: int


class MessageSearch:
    """The search for one message, between one that is up to it and a time after it.

    Args:
        offset: Of the message. end: The partition's end offset, at ``now_ms``. before: A message up to this one.
    """

    def __init__(self, offset: int, end: int, now_ms: int, before: DatedMessage | None = None) -> None:
        self.offset = offset
        self.steps = 0
        self.before = before
        self._came_down = False
        self._now_ms = now_ms
        # The first message that is not older than this time has at least this offset, which is beyond the one sought.
        self._beyond = DatedMessage(end, now_ms + 1)
        # Whether no message up to it is left, or none has a time.
        self.is_deleted = False

    @property
    def next_time(self) -> int:
        """Return the time to request next."""
        if self.before is None:
            return 0
        (low, since), (high, until) = self.before, self._beyond
        step = _STEPS[self.steps % len(_STEPS)]
        if step == "probe":
            time_ms = until - self._close_ms if self._came_down else since + self._close_ms
        else:
            share = 0.5 if step == "bisect" else (self.offset - low) / (high - low)
            time_ms = since + round((until - since) * share)
        return max(since + 1, min(time_ms, until - 1))

    @property
    def _close_ms(self) -> int:
        age_ms = self._now_ms - (0 if self.before is None else self.before.written_at)
        return max(1, round(age_ms * _TOLERANCE))

    def learn(self, time_ms: int, first: DatedMessage | None) -> None:
        """Note the first message that is not older than a time; None if there is none."""
        self.steps += 1
        if first is not None and first.offset <= self.offset:
            self._came_down = False
            if self.before is None or first.written_at > self.before.written_at:
                self.before = first
        elif time_ms == 0:
            self.is_deleted = True
        elif time_ms < self._beyond.written_at:
            self._came_down = True
            self._beyond = DatedMessage(self._beyond.offset if first is None else first.offset, time_ms)

    @property
    def found(self) -> DatedMessage | None:
        """Return the message with its time, once that is known closely enough."""
        if self.before is None or self.is_deleted:
            return None
        since = self.before.written_at
        is_close = self.before.offset == self.offset or self._beyond.written_at - since <= self._close_ms
        return DatedMessage(self.offset, since) if is_close else None
