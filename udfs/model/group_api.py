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
from udfs.model.observations import Offsets, ReadOffsets
from udfs.model.systems import System


class DueEvent(msgspec.Struct, frozen=True):
    """One event that is due.

    Attributes:
        event: Parsed, all times epoch ms.
        event_id: The event's own id, else the hash of its canonical content.
        late: Older than the clock before this batch *and* than what was applied to its group. It applies at
            ``GroupInput.clock_before``, before everything else, and the rebalance names its own time.
        source, position: Where it was read.
    """

    event: AnyEvent
    event_id: str
    late: bool = False
    source: str = ""
    position: str = ""


class TopicsView(Protocol):
    """The cluster's topics as the events so far describe them."""

    def at(self, topic: str, time_ms: int) -> tuple[QueueInfo, ...] | None:
        """Return the topic's queues at that time (events of that event time included).

        Returns: queues by (broker, queue_id); ``()`` when deleted; None when not reported yet.
        """

    def before(self, topic: str, time_ms: int) -> tuple[QueueInfo, ...] | None:
        """Return the topic's queues right before a time, be it of an earlier batch; None: it was not reported yet."""

    def first_description(self, topic: str) -> tuple[QueueInfo, ...] | None:
        """Return the first reported queues of the topic since it was last unknown."""

    def has_any(self, time_ms: int) -> bool:
        """Return whether any topic of the cluster had been reported by then."""

    def topic_id(self, topic: str, time_ms: int) -> str | None:
        """Return Kafka's UUID of the topic that had this name at that time, where it was reported."""

    def renewed_at(self, topic: str, time_ms: int) -> int | None:
        """Return when a name last began to be that of another topic, or of none any more, up to then; None: never."""


class DedupView(Protocol):
    """The remembered ids of one group."""

    def is_repeat(self, event_id: str, time_ms: int) -> bool:
        """Evaluate an event as it is applied, and remember it when it is the first with its id.

        Not used for ``TopicQueues`` (their topic's window has filtered them: a group gets changes only),
        nor about heartbeats without a description.
        """


Progress: TypeAlias = Mapping[int, Sequence[int]]


def observed_since(progress: Progress, offsets: Offsets, at: int) -> tuple[Progress, Offsets]:
    """Return the observations of queues from a time on: those before are of a group that was deleted then."""
    times = {queue: [time for time in of_queue if time >= at] for queue, of_queue in progress.items()}
    observed = {queue: [one for one in of_queue if one[0] >= at] for queue, of_queue in offsets.items()}
    some_offsets = ReadOffsets({queue: some for queue, some in observed.items() if some})
    return {queue: some for queue, some in times.items() if some}, some_offsets


class GroupInput(msgspec.Struct, kw_only=True):
    """All that is due for one group.

    Attributes:
        clock_before: The cluster clock before the batch; None before the first.
        clock: Events strictly before it are due; a deadline D is due when clock > D.
        detected_at: The batch's own timestamp.
        events: Due events of this group, late ones included, any order; ``TopicQueues`` of topics that a
            member of the group subscribes to (now or as of events in this list) are among them.
        heartbeats: Heartbeats without a description that are due: member id -> distinct times, ascending.
        last_heartbeat: Last applied heartbeat of each member that lives by heartbeats.
        work_limit: The group stops between two event times after so much work: members and queues that it
            processed. None: it does not stop.
        progress: Commit times by ``packet.queue_key``: those applied before and those due, ascending.
        offsets: By ``packet.queue_key`` how far the group has come: time, committed offset, end of the queue, position
            of its owner; -1 where one was not observed then, -2 for a commit without an offset. What was applied
            before, and what is due, ascending. Both are read while the group advances, not later.
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
    work_limit: int | None = None


class GroupOutput(msgspec.Struct, kw_only=True):
    """What a group returns.

    Attributes:
        last_heartbeat: Every member that lives by heartbeats now, with its last applied heartbeat (or its join).
        session_timeouts_ms: Its session timeout, for the same members.
        topics: Topics that the group's members subscribe to: sorted, distinct.
        wake_at: The group must be advanced again once the clock is past this, even if nothing is due.
        last_applied_ms: Events before it are late: the time of the last change that makes a rebalance or of the last
            snapshot, or one past that of the last expiry.
        ignored_event_ids: Ids of late events that changed nothing, such as a heartbeat of a departed member: they
            are not listed as late.
        outdated: Ids of events with fields that are older than the current ones: those fields change nothing.
        work: How many members and queues it processed.
        stopped_at: Input at or after this time was not applied, because the work reached its limit; all input
            before it was. None: everything was applied.
        system: The group's system, where an event has named another one than it was believed to be of.
        observed_since: What was observed of its queues before it is of a group that was deleted or forgotten then;
            None: it was neither.
        rebalances, changes, rejected: In the order in which they were decided. Late events are listed by the shard.
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
        """Return a group as bytes, its version first."""

    def decode_group(self, data: bytes, /) -> Any:
        """Read what ``encode_group`` wrote, now or in an earlier version."""

    def members_by_heartbeat(self, group: Any, /) -> Sequence[str]:
        """Return exactly the members that ``GroupOutput.last_heartbeat`` named when the group was last advanced."""

    def snapshot_of(self, group: Any, last_heartbeat: Mapping[str, int], event_time: int, /) -> GroupSnapshot:
        """Return the group as a restored snapshot of the contract, for people and for other versions to read."""

    def advance(
        self, group: Any, facts: GroupInput, topics: TopicsView, dedup: DedupView, config: CoreConfig, /
    ) -> GroupOutput:
        """Apply all that is due to a group; it is changed in place."""
