"""Core: how fast the start of a log moves, as retention deletes its messages. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

# Three starts of a log are two deletions and the start before them: the least that shows how fast it moves.
STARTS_OF_PACE: Final = 3
# A log whose start has not moved for so many times as long as between its last two moves is not about to delete.
_QUIET_AFTER: Final = 3


class LogPace(NamedTuple):
    """How fast a log's start moves: by so many offsets in so many ms, since it moved last.

    Attributes:
        moved_at: When the log began at ``start``, its newest start.
    """

    moved_at: int
    start: int
    offsets: int
    span_ms: int

    @classmethod
    def of(cls, starts: Sequence[tuple[int, int]], at: int) -> LogPace | None:
        """Return the pace of a log at a time; None if it is not known, or the log is not about to delete.

        Args:
            starts: When it first began there, and where; the newest first.
        """
        if len(starts) < STARTS_OF_PACE:
            return None
        (moved_at, start), (before_at, before), *_ = starts
        between, quiet = moved_at - before_at, at - moved_at
        if between <= 0 or quiet > _QUIET_AFTER * between:
            return None
        return cls(moved_at, start, start - before, max(between, quiet))

    def left_ms(self, offset: int, at: int) -> int:
        """Return how long after a time the log begins beyond an offset; 0 if it does."""
        return max(0, self.moved_at + round((offset - self.start) * self.span_ms / self.offsets) - at)
