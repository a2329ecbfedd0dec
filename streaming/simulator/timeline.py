"""Shell: simulated time: actions in order, and the delivery of events to their readers."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

import msgspec

from udfs.model.events import AnyEvent

# Actions within one millisecond happen in this order.
ACTION, HEARTBEAT, EXPIRY = 0, 1, 2


class Timeline:
    """Runs actions at their times; actions with the same time run by phase, then in the order of registration."""

    def __init__(self, start_ms: int) -> None:
        self.now = start_ms
        self._queue: list[tuple[int, int, int, Callable[[], None]]] = []
        self._registered = 0

    def at(self, time_ms: int, action: Callable[[], None], phase: int = ACTION) -> None:
        """Run ``action`` at ``time_ms``, or right after the current action if that is past."""
        self._registered += 1
        heapq.heappush(self._queue, (max(time_ms, self.now), phase, self._registered, action))

    def run_until(self, time_ms: int) -> None:
        """Run everything up to and including ``time_ms``."""
        while self._queue and self._queue[0][0] <= time_ms:
            self.now, _, _, action = heapq.heappop(self._queue)
            action()
        self.now = max(self.now, time_ms)


class Delivery(msgspec.Struct, frozen=True):
    """One event as a reader gets it.

    Attributes:
        deliver_at: When it reaches the log; if its event time is before that of its neighbours, it is out of order.
        otherwise_written: Written in the contract's other notation: key order, RFC 3339 or epoch ms.
        envelope: The CloudEvents source of an event with an id; None for no envelope.
    """

    deliver_at: int
    event: AnyEvent
    otherwise_written: bool = False
    envelope: str | None = None


class Post:
    """Holds events until they are delivered, in order of delivery."""

    def __init__(self) -> None:
        self._queue: list[tuple[int, int, Delivery]] = []
        self._sent = 0

    def send(self, delivery: Delivery) -> None:
        """Add one event."""
        self._sent += 1
        heapq.heappush(self._queue, (delivery.deliver_at, self._sent, delivery))

    def until(self, time_ms: int | None) -> Iterator[Delivery]:
        """Return the events delivered up to and including ``time_ms``; None for all."""
        while self._queue and (time_ms is None or self._queue[0][0] <= time_ms):
            yield heapq.heappop(self._queue)[2]
