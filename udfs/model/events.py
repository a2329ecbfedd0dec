"""Core: the event contract, version 1, as types. Parsing is in ``udfs.ingest.parser``. No I/O.

Every struct is one ``type`` of the contract; the JSON Schema in ``conf/`` is generated from them. Times are epoch ms
once parsed. A field missing from an event is ``None``, which is not the same as empty: a heartbeat changes the fields
that it carries and leaves the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias, TypedDict

import msgspec

from udfs.model.losses import Loss
from udfs.model.member_fields import MAX_INT32 as MAX_INT32
from udfs.model.member_fields import MAX_INT64 as MAX_INT64
from udfs.model.member_fields import MAX_NAME_LENGTH as MAX_NAME_LENGTH
from udfs.model.member_fields import MAX_SPAN_MS as MAX_SPAN_MS
from udfs.model.member_fields import MemberFields as MemberFields
from udfs.model.member_fields import Name as Name
from udfs.model.member_fields import OwnedGeneration as OwnedGeneration
from udfs.model.member_fields import QueueId as QueueId
from udfs.model.member_fields import QueueRef as QueueRef
from udfs.model.member_fields import SpanMs as SpanMs
from udfs.model.systems import System

Mode: TypeAlias = Literal["clustering", "broadcasting", "message"]
SCHEMA_VERSION: Final = 1

# A count alone creates this many queues in memory; Kafka's largest clusters have fewer partitions in all.
MAX_QUEUE_COUNT = 100_000

Offset: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_INT64)]
Generation: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_INT64)]
QueueCount: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_QUEUE_COUNT)]
Epoch: TypeAlias = Annotated[int, msgspec.Meta(ge=-2, le=MAX_INT32)]
DepartureKind: TypeAlias = Literal["left", "expired", "gone"]
RecordProtocol: TypeAlias = Literal["consumer", "share", "streams"]
RecordKind: TypeAlias = Literal[
    "group", "topics", "pattern", "topology", "member", "target", "member_target", "member_current"
]
MemberState: TypeAlias = Literal["stable", "unrevoked", "unreleased"]

if TYPE_CHECKING:
    Timestamp: TypeAlias = int
else:
    # Epoch ms once parsed; on the wire also RFC 3339 text.
    Timestamp = (
        Annotated[int, msgspec.Meta(description="Epoch milliseconds")]
        | Annotated[str, msgspec.Meta(description="RFC 3339", extra_json_schema={"format": "date-time"})]
    )


class QueueOffset(msgspec.Struct, frozen=True, omit_defaults=True):
    """One queue and the committed offset in it."""

    topic: Name
    queue_id: QueueId
    broker: str | None = None
    offset: Offset | None = None
    end_offset: Offset | None = None  # optional: the queue's end offset then; the difference is the lag
    moved: bool = True  # optional: false if there is no new commit but the lag has changed
    position: Offset | None = None  # optional: the position up to which its owner has read, committed or not
    written_offset: Offset | None = None  # optional: a message at the commit, or just before it, of which brokers know
    written_at: Timestamp | None = None  # with it: when that message was written


class QueueEnd(msgspec.Struct, frozen=True, omit_defaults=True):
    """One queue of a topic and its end offset: the offset of the next message."""

    queue_id: QueueId
    end_offset: Offset
    broker: str | None = None
    start_offset: Offset | None = None  # optional: where its log begins: the offset of the first message that is kept


class HeldQueue(msgspec.Struct, frozen=True, order=True, omit_defaults=True):
    """One queue as a member reports it; fields beyond the queue's name are present if the source has them."""

    topic: Name
    queue_id: QueueId
    broker: str | None = None
    locked: bool | None = None  # optional, with ordered consumption: no other member may consume it
    held_since: Timestamp | None = None  # optional: when it took the queue over, if reported (MetaQ's owner node)
    last_pull_at: Timestamp | None = None  # optional: this member's last pull
    last_consume_at: Timestamp | None = None  # optional


class RevokedQueue(msgspec.Struct, frozen=True, omit_defaults=True):
    """One queue that a cooperative rebalance has revoked and not yet assigned to another member."""

    topic: Name
    queue_id: QueueId
    broker: str | None = None
    revoked_at: Timestamp | None = None  # None if unknown


class QueueInfo(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One queue in a topic's metadata. ``racks`` (all replicas' racks) precedes ``rack``."""

    queue_id: QueueId
    broker: str | None = None
    rack: str | None = None
    racks: tuple[str, ...] | None = None


class MemberInfo(MemberFields, kw_only=True):
    """A member inside a snapshot."""

    member_id: Name
    # only in restored snapshots:
    joined_at: Timestamp | None = None
    last_heartbeat_at: Timestamp | None = None
    lives_by: Literal["heartbeats", "snapshots"] | None = None


class Departure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a member that is missing from a snapshot departed, as far as its source knows.

    Attributes:
        kind: ``gone`` if it is unknown whether the member left or expired; the evidence describes what was observed.
        host: Distinguishes two connections with the same id. at: When, if observed; never after the snapshot.
        evidence: The observation, as text. inferred: Concluded from the evidence, not reported.
    """

    member_id: Name
    kind: DepartureKind
    host: str | None = None
    at: Timestamp | None = None
    evidence: str | None = None
    inferred: bool = True


class Observation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A problem of a group that only its source can see; ``findings`` knows the kinds.

    A snapshot with observations carries all current ones: earlier observations that are missing from it are over.
    """

    kind: Name
    detail: str | None = None
    members: tuple[Name, ...] = ()


class Event(msgspec.Struct, kw_only=True, omit_defaults=True, tag_field="type"):
    """The base of every event."""

    schema_version: Literal[1]
    event_time: Timestamp
    system: System
    cluster: Name
    event_id: Name | None = None


class EventFields(TypedDict):
    """The fields that any event has."""

    schema_version: Literal[1]
    event_time: int
    system: System
    cluster: str


def event_fields(system: System, cluster: str, event_time: int) -> EventFields:
    """Return the fields that every event of a cluster has; ``event_time`` in epoch ms."""
    return {"schema_version": SCHEMA_VERSION, "event_time": event_time, "system": system, "cluster": cluster}


class MemberEvent(MemberFields, kw_only=True, tag_field="type"):
    """An event that may describe a member; it repeats the fields of ``Event``, because a struct has only one base."""

    schema_version: Literal[1]
    event_time: Timestamp
    system: System
    cluster: Name
    event_id: Name | None = None
    group: Name
    member_id: Name


class Heartbeat(MemberEvent, kw_only=True, tag_field="type", tag="heartbeat"):
    """The member is alive; with more fields, its new description."""


class MemberJoined(MemberEvent, kw_only=True, tag_field="type", tag="member_joined"):
    """Begins a session, or updates the description of a member."""


class MemberLeft(Event, kw_only=True, tag_field="type", tag="member_left"):
    group: Name
    member_id: Name
    reason: str | None = None
    how: Literal["left", "expired", "fenced"] = "left"  # optional: whether the coordinator removed it, and why


class TopicQueues(Event, kw_only=True, tag_field="type", tag="topic_queues"):
    """Replaces the queues of a topic. One of ``queues``, ``queue_count``; 0 = deleted."""

    topic: Name
    queues: tuple[QueueInfo, ...] | None = None
    queue_count: QueueCount | None = None
    topic_id: str | None = None  # optional: Kafka's topic UUID
    restored: bool = False  # from a state export: no change
    restored_topic: str | None = None  # base64 of the topic in the exported state


class GroupSettings(Event, kw_only=True, tag_field="type", tag="group_settings"):
    group: Name
    mode: Mode | None = None
    strategy: str | None = None
    strategy_settings: dict[str, object] | None = None
    inferred: bool = False  # optional: concluded from the members' queues, not reported


class GroupSnapshot(Event, kw_only=True, tag_field="type", tag="group_snapshot"):
    """The whole group as a coordinator or a poll shows it.

    ``state`` ``not_followed`` marks a group of a kind that is not recomputed (share, streams, Kafka Connect).
    ``generation_source`` ``counted`` without a ``generation`` means that a coordinator assigns but only polls show its
    generations, so the monitor counts them (Kafka's admin calls). ``restored`` snapshots come from a state export and
    carry the extra fields below.
    """

    group: Name
    generation: Generation | None = None
    state: str | None = None
    joined_at: Timestamp | None = None
    strategy: str | None = None
    leader: str | None = None
    members: tuple[MemberInfo, ...] = ()
    assignments: dict[str, tuple[QueueRef, ...]] | None = None
    departures: tuple[Departure, ...] | None = None  # optional
    observations: tuple[Observation, ...] | None = None  # optional
    reason: str | None = None  # optional, with the state PreparingRebalance: the reason that the coordinator logs
    restored: bool = False
    generation_source: Literal["reported", "counted"] | None = None
    last_rebalance_id: str | None = None
    protocol: str | None = None  # optional: the kind of a group that is not followed: connect, sr, ...
    restored_group: str | None = None  # base64 of the group's own encoding: spans, counters, ids
    revoked: tuple[RevokedQueue, ...] | None = None  # in the middle of a cooperative rebalance
    logical_id: str | None = None  # the rebalance that began it


class Clock(Event, kw_only=True, tag_field="type", tag="clock"):
    """The source is alive and has reported everything up to ``event_time``."""

    restored: bool = False  # from a state export
    restored_cluster: str | None = None  # base64 of the cluster's clock and silence in the exported state
    lost: tuple[Loss, ...] | None = None  # optional: input that was deleted before the collector could read it


class Progress(Event, kw_only=True, tag_field="type", tag="progress"):
    group: Name
    queues: tuple[QueueOffset, ...]


class QueueEnds(Event, kw_only=True, tag_field="type", tag="queue_ends"):
    """Optional event: end offsets of a topic's queues, shared by all groups; queues not named are unchanged."""

    topic: Name
    queues: tuple[QueueEnd, ...]


class GroupDeleted(Event, kw_only=True, tag_field="type", tag="group_deleted"):
    group: Name


class CommitsDeleted(Event, kw_only=True, tag_field="type", tag="commits_deleted"):
    """Optional event: the group's commits of these queues were deleted, with their topic or because they expired."""

    group: Name
    queues: tuple[QueueRef, ...]


class AssignmentReported(Event, kw_only=True, tag_field="type", tag="assignment_reported"):
    group: Name
    member_id: Name
    queues: tuple[HeldQueue, ...]
    generation: Generation | None = None
    host: str | None = None  # optional: distinguishes two connections with the same id


class TopicPartitions(msgspec.Struct, frozen=True, order=True):
    """Partitions of a topic, here with its id (KIP-516), or tasks of a subtopology."""

    topic: Name
    partitions: tuple[QueueId, ...]


class GroupRecord(Event, kw_only=True, tag_field="type", tag="group_record"):
    """One record of Kafka's coordinator about a consumer (KIP-848), share or streams group.

    Records with the same event time apply in the order of their offsets. If any of them has no offset, they apply in
    the order of their kinds, then of their epochs; a tombstone (``deleted``) comes last among those with its key.

    Attributes:
        record: ``group``: its epoch. ``topics``: the names of topics by id. ``pattern``: the topics that a pattern
            matches. ``topology``: the topics that the subtopologies of a streams group consume. ``member``: a
            description. ``target``: the epoch of the target assignment; ``member_target``: a member's target.
            ``member_current``: the partitions that it owns, or has yet to give up (``revoking``).
        epoch: The epoch of the group, the target or the member; -2 for a static member that is away.
        classic_strategies: Strategies of a member that uses the classic protocol.
        partitions: In a streams group, the active tasks.
        offset: The record's offset in its partition of ``__consumer_offsets``; all records of a group are in one
            partition.
    """

    group: Name
    protocol: RecordProtocol
    record: RecordKind
    deleted: bool = False
    member_id: Name | None = None
    epoch: Epoch | None = None
    previous_epoch: Epoch | None = None
    state: MemberState | None = None
    member: MemberInfo | None = None
    pattern: str | None = None
    classic_strategies: tuple[str, ...] | None = None
    topics: tuple[Name, ...] | None = None
    topic_ids: dict[str, Name] | None = None
    partitions: tuple[TopicPartitions, ...] | None = None
    revoking: tuple[TopicPartitions, ...] | None = None
    standby: tuple[TopicPartitions, ...] | None = None
    warmup: tuple[TopicPartitions, ...] | None = None
    subtopologies: dict[str, tuple[Name, ...]] | None = None
    offset: Offset | None = None


# All events except heartbeats, which have a fast path of their own.
NoHeartbeat: TypeAlias = (
    MemberJoined
    | MemberLeft
    | TopicQueues
    | GroupSettings
    | GroupSnapshot
    | Clock
    | Progress
    | GroupDeleted
    | CommitsDeleted
    | AssignmentReported
    | QueueEnds
    | GroupRecord
)
AnyEvent: TypeAlias = Heartbeat | NoHeartbeat

# The order in which events with the same event time apply. Records of Kafka's newer protocols are collected, and apply
# after all other events with their timestamp; so do reports without a generation in groups with counted generations.
ORDER_AT_ONE_TIME: dict[type[Event] | type[MemberEvent], int] = {
    TopicQueues: 0,
    GroupSettings: 1,
    GroupRecord: 2,
    GroupDeleted: 3,
    CommitsDeleted: 4,
    GroupSnapshot: 5,
    MemberLeft: 6,
    MemberJoined: 7,
    Heartbeat: 8,
    Progress: 9,
    AssignmentReported: 10,
    QueueEnds: 11,
    Clock: 12,
}
