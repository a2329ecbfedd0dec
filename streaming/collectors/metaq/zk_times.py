"""Shell: the times of ZooKeeper transactions, as far as the nodes show them. No I/O here.

ZooKeeper keeps with each node the transactions that created and last changed it, and their times by its own clock. For
a removal it keeps only the transaction (``pzxid`` of the parent). Transactions are numbered in order, so a transaction
with a time bounds those with only a number.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from typing import Final

_KEPT: Final = 20_000
_CLOCK_WINDOW_MS: Final = 600_000  # older bounds are forgotten, because clocks drift and are set


class TransactionTimes:
    """The newest dated transactions."""

    def __init__(self) -> None:
        self._times: list[tuple[int, int]] = []

    def learn(self, zxid: int, ms: int) -> None:
        """Record the time of a transaction by ZooKeeper's clock."""
        place = bisect_left(self._times, (zxid, ms))
        if place < len(self._times) and self._times[place] == (zxid, ms):
            return
        insort(self._times, (zxid, ms))
        if len(self._times) > _KEPT:
            del self._times[0]

    def not_after(self, zxid: int) -> int | None:
        """Return a time by which a transaction had happened: that of the next dated one."""
        place = bisect_left(self._times, (zxid,))
        return self._times[place][1] if place < len(self._times) else None

    def not_before(self, zxid: int) -> int | None:
        """Return a time before which a transaction had not happened: that of the previous dated one."""
        place = bisect_right(self._times, (zxid, 2**63))
        return self._times[place - 1][1] if place else None


class ServerClock:
    """The proven difference between ZooKeeper's clock and this machine's.

    A noticed change had happened, and a node that did not exist was created later, so each dated node bounds the
    difference from both sides. If neither side excludes that the clocks agree, they are assumed to agree.
    """

    def __init__(self) -> None:
        self._bounds: deque[tuple[int, int, int | None]] = deque()  # when, at least, at most
        self._newest = 0
        self.ahead_ms = 0

    def observe(self, ms: int, *, noticed_ms: int, absent_ms: int | None) -> None:
        """Add the evidence of a new node.

        Args:
            ms: When it was created, by ZooKeeper's clock. noticed_ms: When it was noticed, by this machine's.
            absent_ms: A time of this machine at which it did not exist yet, or None.
        """
        self._bounds.append((noticed_ms, ms - noticed_ms, None if absent_ms is None else ms - absent_ms))
        while self._bounds[0][0] < noticed_ms - _CLOCK_WINDOW_MS:
            self._bounds.popleft()
        least = max(least for _, least, _ in self._bounds)
        most = min((most for _, _, most in self._bounds if most is not None), default=0)
        self.ahead_ms = least if least > 0 else min(0, most)

    def at(self, local_ms: int) -> int:
        """Return ZooKeeper's time at a time of this machine."""
        return local_ms + self.ahead_ms

    def advance(self, local_ms: int) -> int:
        """Return the same, but never less than a previous result."""
        self._newest = max(self._newest, self.at(local_ms))
        return self._newest
