"""Dashboard: the limit of requests from an address: a bucket that refills."""

from __future__ import annotations

from collections import OrderedDict

# An address without recent requests has a full bucket, so forgetting it changes nothing.
REMEMBERED_ADDRESSES = 4_096
BURST = 4


class RateLimit:
    """Allows each address a number of requests a second, and a few times as many at once."""

    def __init__(self, per_second: int) -> None:
        self._per_second = per_second
        self._burst = float(BURST * per_second)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, address: str, now_s: float) -> bool:
        """Return whether one more request of an address is within the limit, and count it.

        Args:
            now_s: The time of a monotonic clock.
        """
        left, counted_s = self._buckets.pop(address, (self._burst, now_s))
        left = min(self._burst, left + (now_s - counted_s) * self._per_second)
        is_allowed = left >= 1
        self._buckets[address] = (left - 1 if is_allowed else left, now_s)
        if len(self._buckets) > REMEMBERED_ADDRESSES:
            self._buckets.popitem(last=False)
        return is_allowed
