"""Core: the interface between a shard and its groups: a group's input and output. No I/O.

A shard holds liveness in arrays and groups as encoded values. When something about a group is due, the
shard decodes it, passes everything due as ``GroupInput`` and stores the result of ``GroupLogic.advance``.
All times are epoch ms; "due" means strictly before ``clock``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from udfs.model.config import CoreConfig
from udfs.model.events import AnyEvent, GroupSnapshot, QueueInfo
from udfs.model.journal import Change, Rebalance, Rejected
from udfs.model.observations import UNKNOWN, NearQueue, Observation, Offsets, QueueFall, QueueWait, ReadOffsets
from udfs.model.systems import System


class DueEvent(msgspec.Struct, frozen=True):
    """One event that is due.

    Attributes:
        event: The parsed event, all times in epoch ms.
        event_id: The event's own id, else the hash of its canonical content.
        late: Older than the clock before this batch *and* than the last change applied to its group. It applies at
            ``GroupInput.clock_before``, before everything else, and the rebalance names its own time.
        source, position: Where it was read.
    """

    event: AnyEvent
    event_id: str
    late: bool = False
    source: str = ""
    position: str = ""


class TopicsView(Protocol):
    """The cluster's topics as described by the events so far."""

    def at(self, topic: str, time_ms: int) -> tuple[QueueInfo, ...] | None:
        """Return the topic's queues at that time (events of that event time included).

        Returns: queues by (broker, queue_id); ``()`` when deleted; None when not reported yet.
        """

    def before(self, topic: str, time_ms: int) -> tuple[QueueInfo, ...] | None:
        """Return the topic's queues right before a time, even in an earlier batch; None if it was not reported yet."""

    def first_description(self, topic: str) -> tuple[QueueInfo, ...] | None:
        """Return the first reported queues of the topic since it was last unknown."""

    def has_any(self, time_ms: int) -> bool:
        """Return whether any topic of the cluster had been reported by then."""

    def topic_id(self, topic: str, time_ms: int) -> str | None:
        """Return Kafka's UUID of the topic that had this name at that time, if reported."""

    def renewed_at(self, topic: str, time_ms: int) -> int | None:
        """Return when the name last changed to another topic, or to none, up to then; None if it never did."""

    def appeared_at(self, topic: str, time_ms: int) -> int | None:
        """Return when the topic was last reported after it was unknown or deleted, up to then; None if not kept."""


class DedupView(Protocol):
    """The remembered ids of one group."""

    def is_repeat(self, event_id: str, time_ms: int) -> bool:
        """Return whether an event being applied is a repeat; remember it if it is the first with its id.

        Not used for ``TopicQueues`` (the topic's own window has filtered them, so a group gets only changes), nor for
        heartbeats without a description.
        """


Progress: TypeAlias = Mapping[int, Sequence[int]]


def observed_since(progress: Progress, offsets: Offsets, at: int) -> tuple[Progress, Offsets]:
    """Return the observations of queues from a given time on: earlier ones belong to a group that was deleted then.

    Ends count from the group's first own observation of a queue on, as for any other new group.
    """
    times = {queue: [time for time in of_queue if time >= at] for queue, of_queue in progress.items()}
    observed = {
        queue: _from_first_own([seen for seen in of_queue if seen[0] >= at]) for queue, of_queue in offsets.items()
    }
    some_offsets = ReadOffsets({queue: some for queue, some in observed.items() if some})
    return {queue: some for queue, some in times.items() if some}, some_offsets


def _from_first_own(observed: Sequence[Observation]) -> list[Observation]:
    own = (time for time, committed, _, position in observed if committed != UNKNOWN or position >= 0)
    first = next(own, None)
    return [] if first is None else [seen for seen in observed if seen[0] >= first]


class GroupInput(msgspec.Struct, kw_only=True):
    """Everything that is due for one group.

    Attributes:
        clock_before: The cluster clock before the batch; None before the first.
        clock: Events strictly before it are due; a deadline D is due when clock > D.
        detected_at: The batch's own timestamp.
        events: Due events of this group in any order, including late ones; also ``TopicQueues`` of topics that a member
            of the group subscribes to (now or as of events in this list).
        heartbeats: Heartbeats without a description that are due: member id -> distinct times, ascending.
        last_heartbeat: Last applied heartbeat of each member that is tracked by heartbeats.
        work_limit: The group stops between two event times after this much work, counted in members and queues
            processed. None for no limit.
        progress: Commit times by ``packet.queue_key``: those applied before and those due, ascending.
        offsets: How far the group has read, by ``packet.queue_key``: time, committed offset, end offset, position of
            its owner; -1 if one was not observed then, -2 for a commit without an offset. Both applied and due
            observations, ascending. Both are read while the group advances, not later.
        standstills: When messages of its queues waited, as far as an evaluation lies in that time and before the clock;
            only if an evaluation lies between the two values of the clock.
        near: The queues that may be near the start of their log, or before it, at such an evaluation.
        falls: Due commits that are lower than the ones before, by time.
    """

    cluster: str
    system: System
    group_id: str
    clock_before: int | None
    clock: int
    detected_at: int
    events: Sequence[DueEvent] = ()
    heartbeats: Mapping[str, Sequence[int]] = msgspec.field(default_factory=dict)
    last_heartbeat: Mapping[str, int] = msgspec.field(default_factory=dict)
    progress: Progress = msgspec.field(default_factory=dict)
    offsets: Offsets = msgspec.field(default_factory=ReadOffsets)
    standstills: Sequence[QueueWait] = ()
    near: Sequence[NearQueue] = ()
    falls: Sequence[QueueFall] = ()
    work_limit: int | None = None


class GroupOutput(msgspec.Struct, kw_only=True):
    """The result of advancing a group.

    Attributes:
        last_heartbeat: Every member that is tracked by heartbeats now, with its last applied heartbeat (or its join).
        session_timeouts_ms: The session timeouts of the same members.
        topics: Topics that the group's members subscribe to: sorted, distinct.
        wake_at: The group must be advanced again once the clock is past this, even if nothing is due.
        last_applied_ms: Events before it are late: the time of the last change that makes a rebalance or of the last
            snapshot, or just after the last expiry.
        ignored_event_ids: Ids of late events that changed nothing, such as a heartbeat of a departed member; they are
            not listed as late.
        outdated: Ids of events with fields that are older than the current ones; those fields change nothing.
        work: The number of members and queues processed.
        stopped_at: Input at or after this time was not applied, because the work reached its limit; all input
            before it was. None: everything was applied.
        system: The group's system, if an event named another one than assumed.
        observed_since: Observations of its queues before this time belong to a group that was deleted or forgotten
            then; None if it was neither.
        rebalances, changes, rejected: In the order in which they were decided. The shard lists late events.
    """

    last_heartbeat: dict[str, int] = msgspec.field(default_factory=dict)
    session_timeouts_ms: dict[str, int] = msgspec.field(default_factory=dict)
    topics: list[str] = msgspec.field(default_factory=list)
    wake_at: int | None = None
    last_applied_ms: int | None = None
    ignored_event_ids: list[str] = msgspec.field(default_factory=list)
    outdated: list[str] = msgspec.field(default_factory=list)
    work: int = 0
    stopped_at: int | None = None
    observed_since: int | None = None
    system: System | None = None
    rebalances: list[Rebalance] = msgspec.field(default_factory=list)
    changes: list[Change] = msgspec.field(default_factory=list)
    rejected: list[Rejected] = msgspec.field(default_factory=list)


class GroupLogic(Protocol):
    """The functions of ``udfs.group.coordinator`` that a shard calls; the type of a group is opaque to the shard."""

    def new_group(self, cluster: str, system: System, group_id: str) -> Any:
        """Return a new, empty group."""

    def encode_group(self, group: Any, /) -> bytes:
        """Return a group as bytes that begin with its version."""

    def decode_group(self, data: bytes, /) -> Any:
        """Decode what ``encode_group`` wrote, in this or an earlier version."""

    def members_by_heartbeat(self, group: Any, /) -> Sequence[str]:
        """Return exactly the members that ``GroupOutput.last_heartbeat`` named when the group was last advanced."""

    def snapshot_of(self, group: Any, last_heartbeat: Mapping[str, int], event_time: int, /) -> GroupSnapshot:
        """Return the group as a restored snapshot of the contract, readable by people and by other versions."""

    def advance(
        self, group: Any, group_input: GroupInput, topics: TopicsView, dedup: DedupView, config: CoreConfig, /
    ) -> GroupOutput:
        """Apply everything that is due to a group, which is changed in place."""
