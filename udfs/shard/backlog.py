"""Core: what groups were not told yet, because one batch has not the time for all of it. No I/O.

A group stops between two moments, and what it was not told yet waits here, batch by batch: what came later is told
as that batch would have told it, with the clock and the topics as they stood then. So it leaves no trace in what is
decided how often a group had to stop.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from udfs.model.errors import StateVersionError
from udfs.model.events import AnyEvent, TopicQueues
from udfs.packets.packet import CarriedEvent, read_event
from udfs.shard.state_format import Buffer


class Held(msgspec.Struct, array_like=True):
    """What one batch brought for one group, or what is left of it.

    Attributes:
        batch: The shard's number of that batch.
        clock_before, clock: The cluster's clock before and in it.
        events: Of the group itself. topics: ``TopicQueues`` that changed something.
        heartbeats: Member and time of those without a description, any order.
        progress: As ``GroupInput.progress``.
    """

    batch: int
    clock_before: int | None
    clock: int
    events: list[CarriedEvent]
    topics: list[CarriedEvent]
    heartbeats: list[tuple[str, int]]
    progress: dict[int, list[int]]

    def since(self, time_ms: int) -> Held:
        """Return what is left from a time on."""
        return Held(
            self.batch,
            self.clock_before,
            self.clock,
            [carried for carried in self.events if carried.event_time >= time_ms],
            [carried for carried in self.topics if carried.event_time >= time_ms],
            [(member_id, at) for member_id, at in self.heartbeats if at >= time_ms],
            self.progress,
        )

    def only_moves_the_clock_after(self, former: Held) -> bool:
        """Return whether it brought nothing behind what another batch brought, but for the time that passed."""
        newest = {queue: times[-1] for queue, times in former.progress.items()}
        return not (self.events or self.topics or self.heartbeats) and newest == {
            queue: times[-1] for queue, times in self.progress.items()
        }


class Brought(NamedTuple):
    """What one batch brought for a group: as ``Held``, with events parsed.

    Attributes:
        mine: Topics that the group subscribed to as it began, or may as of these events.
    """

    batch: int
    clock_before: int | None
    clock: int
    events: list[tuple[AnyEvent, CarriedEvent]]
    moves: list[tuple[TopicQueues, CarriedEvent]]
    mine: set[str]
    heartbeats: list[tuple[str, int]]
    progress: dict[int, list[int]]

    @classmethod
    def of(cls, held: Held) -> Brought:
        """Return what waited, parsed."""
        moves = [(event, one) for one in held.topics if isinstance(event := read_event(one), TopicQueues)]
        events = [(read_event(one), one) for one in held.events]
        return cls(
            held.batch, held.clock_before, held.clock, events, moves, set(), list(held.heartbeats), held.progress
        )

    def held(self, heartbeats: list[tuple[str, int]]) -> Held:
        """Return the same as it waits, with these heartbeats of known members beside the others."""
        return Held(
            self.batch,
            self.clock_before,
            self.clock,
            [carried for _, carried in self.events],
            [carried for _, carried in self.moves],
            sorted({*self.heartbeats, *heartbeats}),
            self.progress,
        )


class Backlog:
    """What waits, by the key of its group, the oldest batch first."""

    def __init__(self, data: Buffer = b"") -> None:
        self._data = data
        self._changed = False
        try:
            rows = msgspec.msgpack.decode(data, type=list[tuple[int, list[Held]]]) if len(data) else []
        except msgspec.MsgspecError as error:
            raise StateVersionError(f"the state's backlog cannot be read: it is damaged ({error})") from error
        self._held: dict[int, list[Held]] = dict(rows)

    @property
    def groups(self) -> list[int]:
        """The keys of the groups that have to go on, ascending."""
        return sorted(self._held)

    def of(self, group: int) -> list[Held]:
        """Return what waits for a group."""
        return self._held.get(group, [])

    def put(self, group: int, held: list[Held]) -> None:
        """Let this wait for a group, and nothing else."""
        if held:
            self._held[group] = held
            self._changed = True
        elif self._held.pop(group, None) is not None:
            self._changed = True

    def events(self) -> list[CarriedEvent]:
        """Return the events of all groups that wait; topics are known already."""
        return [carried for _, held in sorted(self._held.items()) for one in held for carried in one.events]

    def oldest_batch(self) -> int | None:
        """Return the oldest batch of which something waits; None if nothing does."""
        return min((held[0].batch for held in self._held.values()), default=None)

    def oldest_clock(self) -> int | None:
        """Return the oldest clock before a batch of which something waits; None if there is none."""
        clocks = [held[0].clock_before for held in self._held.values()]
        return min((clock for clock in clocks if clock is not None), default=None)

    def encode(self) -> Buffer:
        """Return the bytes from which an equal backlog is read."""
        if self._changed:
            self._data = msgspec.msgpack.encode(sorted(self._held.items())) if self._held else b""
            self._changed = False
        return self._data
