"""Core: the queue of what is due for a group in one batch, in the order of event times. No I/O.

Events with the same timestamp are sorted by kind: bare heartbeats come after described ones and before members' reports
of their queues; expiries come last. In a group with reported generations, events that may be a cause of a generation
come before a generation with the same timestamp (``coordinator._EVIDENCE``).
"""

from __future__ import annotations

import heapq
from typing import Literal, NamedTuple

from udfs.model.events import ORDER_AT_ONE_TIME, Heartbeat
from udfs.model.group_api import DueEvent

# Sort ranks of bare heartbeats and expiries among events with the same timestamp.
HEARTBEAT = 2 * ORDER_AT_ONE_TIME[Heartbeat] + 1
EXPIRY = 100


class MemberDue(NamedTuple):
    """A bare heartbeat of a member, or an end of its session to be checked."""

    kind: Literal["heartbeat", "expiry"]
    member_id: str


class QueuedItem(NamedTuple):
    """A due item; entries sort by their fields, the last of which is never compared.

    Attributes:
        at: When it applies. own: Its own time, if something newer was applied before.
        snapshot_order: Rank among snapshots with the same timestamp. tie: The id of the event or member.
        number: Position in the order in which items were found.
    """

    at: int
    order: int
    own: int
    snapshot_order: tuple[int, int]
    tie: str
    number: int
    what: DueEvent | MemberDue


class EventQueue:
    """The due items, earliest first."""

    def __init__(self) -> None:
        self._entries: list[QueuedItem] = []
        self._pushed = 0

    def push_event(self, at: int, order: int, snapshot_order: tuple[int, int], due: DueEvent) -> None:
        """Add an event with its rank among events, and among snapshots, with the same timestamp."""
        self._push(at, order, due.event.event_time, due.event_id, due, snapshot_order)

    def push_heartbeat(self, at: int, own: int, member_id: str) -> None:
        """Add a bare heartbeat."""
        self._push(at, HEARTBEAT, own, member_id, MemberDue("heartbeat", member_id))

    def push_expiry(self, at: int, deadline: int, member_id: str) -> None:
        """Add the end of a session at its current deadline."""
        self._push(at, EXPIRY, deadline, member_id, MemberDue("expiry", member_id))

    def _push(
        self,
        at: int,
        order: int,
        own: int,
        tie: str,
        what: DueEvent | MemberDue,
        snapshot_order: tuple[int, int] = (0, 0),
    ) -> None:
        self._pushed += 1
        heapq.heappush(self._entries, QueuedItem(at, order, own, snapshot_order, tie, self._pushed, what))

    def clear(self) -> None:
        """Drop all entries."""
        self._entries.clear()

    def next_at(self) -> int | None:
        """Return when the next entry applies; None if the queue is empty."""
        return self._entries[0].at if self._entries else None

    def pop(self) -> QueuedItem:
        """Take the next entry."""
        return heapq.heappop(self._entries)

    def pop_events(self, at: int) -> list[DueEvent]:
        """Remove and return all events with this, the next, timestamp; heartbeats and expiries with it stay."""
        events: list[DueEvent] = []
        others: list[QueuedItem] = []
        while self.next_at() == at:
            entry = self.pop()
            if isinstance(entry.what, DueEvent):
                events.append(entry.what)
            else:
                others.append(entry)
        for entry in others:
            heapq.heappush(self._entries, entry)
        return events
