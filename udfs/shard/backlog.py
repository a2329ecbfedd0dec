"""Core: input of groups that exceeded one batch's work limit, waiting for the next batch. No I/O.

A group stops between two event times, and its remaining input waits here, batch by batch. Later it is applied with the
clock and the topics of the batch in which it came. So decisions do not depend on how often a group had to stop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from udfs.model.errors import StateVersionError
from udfs.model.events import AnyEvent, TopicQueues
from udfs.model.group_api import Progress, observed_since
from udfs.model.observations import NearQueue, Observation, Offsets, QueueFall, QueueWait, ReadOffsets
from udfs.model.systems import System
from udfs.packets.packet import CarriedEvent, read_event
from udfs.shard.state_format import Buffer


class Held(msgspec.Struct, array_like=True):
    """The input of one group from one batch, or the rest of it.

    Attributes:
        batch: That batch's number within the shard.
        clock_before, clock: The cluster's clock before and in that batch.
        events: The group's own events. topics: ``TopicQueues`` that changed something.
        heartbeats: Member and time of heartbeats without a description, in any order.
        progress, offsets, standstills, near, falls: See ``GroupInput``.
    """

    batch: int
    clock_before: int | None
    clock: int
    events: list[CarriedEvent]
    topics: list[CarriedEvent]
    heartbeats: list[tuple[str, int]]
    progress: dict[int, list[int]]
    offsets: dict[int, list[Observation]] = msgspec.field(default_factory=dict)
    standstills: list[QueueWait] = msgspec.field(default_factory=list)
    near: list[NearQueue] = msgspec.field(default_factory=list)
    falls: list[QueueFall] = msgspec.field(default_factory=list)

    def since(self, time_ms: int, observed_ms: int | None) -> Held:
        """Return the rest: input from a time on and, unless all, what was observed of queues from another time on."""
        progress, offsets = self.progress, self.offsets
        if observed_ms is not None:
            progress, offsets = _copied(*observed_since(progress, ReadOffsets(offsets), observed_ms))
        return Held(
            self.batch,
            self.clock_before,
            self.clock,
            [carried for carried in self.events if carried.event_time >= time_ms],
            [carried for carried in self.topics if carried.event_time >= time_ms],
            [(member_id, at) for member_id, at in self.heartbeats if at >= time_ms],
            progress,
            offsets,
            [found._replace(stalled=max(found.stalled, time_ms)) for found in self.standstills],
            self.near,
            [fall for fall in self.falls if fall.at >= time_ms],
        )

    def only_moves_the_clock_after(self, former: Held) -> bool:
        """Return whether this input adds only a newer clock to an earlier batch's input."""
        if (
            self.events
            or self.topics
            or self.heartbeats
            or self.standstills
            or self.near
            or self.falls
            or _newest(self.progress) != _newest(former.progress)
        ):
            return False
        return all(former.offsets.get(queue, [])[-1:] == observed[-1:] for queue, observed in self.offsets.items())


def _newest(progress: dict[int, list[int]]) -> dict[int, int]:
    return {queue: times[-1] for queue, times in progress.items()}


def _copied(progress: Progress, offsets: Offsets) -> tuple[dict[int, list[int]], dict[int, list[Observation]]]:
    times = {queue: list(times) for queue, times in progress.items()}
    return times, {queue: list(observed) for queue, observed in offsets.items()}


class CollectedInput:
    """The due input of one group in the current batch, as it is collected."""

    __slots__ = ("events", "name", "system", "unknown_member_heartbeats")

    def __init__(self, name: str, system: System) -> None:
        self.name = name
        self.system = system
        self.events: list[tuple[AnyEvent, CarriedEvent]] = []
        self.unknown_member_heartbeats: list[tuple[str, int]] = []


class BatchInput(NamedTuple):
    """The input of one group from one batch; like ``Held``, with parsed events.

    Attributes:
        own_topics: Topics that the group subscribed to at the start of the batch, or may subscribe to with these
            events.
    """

    batch: int
    clock_before: int | None
    clock: int
    events: list[tuple[AnyEvent, CarriedEvent]]
    topic_changes: list[tuple[TopicQueues, CarriedEvent]]
    own_topics: set[str]
    heartbeats: list[tuple[str, int]]
    progress: Progress
    offsets: Offsets
    standstills: Sequence[QueueWait] = ()
    near: Sequence[NearQueue] = ()
    falls: Sequence[QueueFall] = ()

    @classmethod
    def of(cls, held: Held) -> BatchInput:
        """Return waiting input, parsed."""
        topic_changes = [
            (event, carried) for carried in held.topics if isinstance(event := read_event(carried), TopicQueues)
        ]
        events = [(read_event(carried), carried) for carried in held.events]
        return cls(
            held.batch,
            held.clock_before,
            held.clock,
            events,
            topic_changes,
            set(),
            list(held.heartbeats),
            held.progress,
            ReadOffsets(held.offsets),
            held.standstills,
            held.near,
            held.falls,
        )

    def held(self, heartbeats: list[tuple[str, int]]) -> Held:
        """Return this input in its waiting form, with these heartbeats of its members added."""
        return Held(
            self.batch,
            self.clock_before,
            self.clock,
            [carried for _, carried in self.events],
            [carried for _, carried in self.topic_changes],
            sorted({*self.heartbeats, *heartbeats}),
            *_copied(self.progress, self.offsets),
            list(self.standstills),
            list(self.near),
            list(self.falls),
        )


class Backlog:
    """Waiting input by group key, the oldest batch first."""

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
        """Return the keys of the groups with waiting input, ascending."""
        return sorted(self._held)

    def of(self, group: int) -> list[Held]:
        """Return the waiting input of a group."""
        return self._held.get(group, [])

    def put(self, group: int, held: list[Held]) -> None:
        """Replace the waiting input of a group."""
        if held:
            self._held[group] = held
            self._changed = True
        elif self._held.pop(group, None) is not None:
            self._changed = True

    def events(self) -> list[CarriedEvent]:
        """Return the waiting events of all groups, without topic changes, which are already applied."""
        return [
            carried for _, held in sorted(self._held.items()) for batch_input in held for carried in batch_input.events
        ]

    def oldest_batch(self) -> int | None:
        """Return the oldest batch with waiting input; None if there is none."""
        return min((held[0].batch for held in self._held.values()), default=None)

    def oldest_clock(self) -> int | None:
        """Return the oldest clock before a batch with waiting input; None if there is none."""
        clocks = [held[0].clock_before for held in self._held.values()]
        return min((clock for clock in clocks if clock is not None), default=None)

    def encode(self) -> Buffer:
        """Return bytes that decode to an equal backlog."""
        if self._changed:
            self._data = msgspec.msgpack.encode(sorted(self._held.items())) if self._held else b""
            self._changed = False
        return self._data
