"""Core: the event contract, version 1, as types. Parsing is in ``udfs.ingest.parser``. No I/O.

Every struct is one ``type`` of the contract; the JSON Schema in ``conf/`` is generated from them.
Times are epoch ms once parsed. Fields that an event does not carry are ``None``, which is not the
same as empty: a heartbeat changes the fields that it carries and leaves the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

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

# A count alone creates as many queues in memory; Kafka's largest clusters have fewer partitions in all.
MAX_QUEUE_COUNT = 100_000

Offset: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_INT64)]
Generation: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_INT64)]
QueueCount: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_QUEUE_COUNT)]

if TYPE_CHECKING:
    Moment: TypeAlias = int
else:
    # Epoch ms once parsed; on the wire RFC 3339 text as well.
    Moment = (
        Annotated[int, msgspec.Meta(description="Epoch milliseconds")]
        | Annotated[str, msgspec.Meta(description="RFC 3339", extra_json_schema={"format": "date-time"})]
    )


class QueueOffset(msgspec.Struct, frozen=True, omit_defaults=True):
    """One queue and the committed offset in it."""

    topic: Name
    queue_id: QueueId
    broker: str | None = None
    offset: Offset | None = None
    end_offset: Offset | None = None  # extra: the end of the queue then: the difference is the lag
    moved: bool = True  # extra: false: no new commit; the lag has changed


class HeldQueue(msgspec.Struct, frozen=True, order=True, omit_defaults=True):
    """One queue as a member reports it; fields beyond the queue's name are present where the source has them."""

    topic: Name
    queue_id: QueueId
    broker: str | None = None
    locked: bool | None = None  # extra: of ordered consumption: no other member may consume it
    held_since: Moment | None = None  # extra: when it took the queue over, where that is reported (MetaQ's owner node)
    last_pull_at: Moment | None = None  # extra: of this member
    last_consume_at: Moment | None = None  # extra


class QueueInfo(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One queue as a topic has it. ``racks`` (all replicas' racks) goes before ``rack``."""

    queue_id: QueueId
    broker: str | None = None
    rack: str | None = None
    racks: tuple[str, ...] | None = None


class MemberInfo(MemberFields, kw_only=True):
    """A member inside a snapshot."""

    member_id: Name
    # only in restored snapshots:
    joined_at: Moment | None = None
    last_heartbeat_at: Moment | None = None
    lives_by: Literal["heartbeats", "snapshots"] | None = None


class Departure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a member departed that a snapshot lacks, as far as its source knows.

    Attributes:
        kind: ``gone``: left or expired, unknown; the evidence describes what was observed.
        host: Distinguishes two connections of one id. at: When, if observed; never after the snapshot.
        evidence: What was observed, as text. inferred: Concluded from the evidence, not reported.
    """

    member_id: Name
    kind: Literal["left", "expired", "gone"]
    host: str | None = None
    at: Moment | None = None
    evidence: str | None = None
    inferred: bool = True


class Observation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something wrong with a group that only its source can see; ``findings`` knows the kinds.

    A snapshot that carries observations carries all current ones: those of the snapshot before that are missing in it
    are over.
    """

    kind: Name
    detail: str | None = None


class Event(msgspec.Struct, kw_only=True, omit_defaults=True, tag_field="type"):
    """What every event carries."""

    schema_version: Literal[1]
    event_time: Moment
    system: System
    cluster: Name
    event_id: Name | None = None


class MemberEvent(MemberFields, kw_only=True, tag_field="type"):
    """What an event carries that may describe a member: the fields of ``Event``, too, for one struct has one base."""

    schema_version: Literal[1]
    event_time: Moment
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


class TopicQueues(Event, kw_only=True, tag_field="type", tag="topic_queues"):
    """Replaces the known queues of a topic. One of ``queues``, ``queue_count``; 0 = deleted."""

    topic: Name
    queues: tuple[QueueInfo, ...] | None = None
    queue_count: QueueCount | None = None
    topic_id: str | None = None  # extra: Kafka's topic UUID
    restored: bool = False  # from a state export: no change
    restored_topic: str | None = None  # base64 of the topic as the state held it


class GroupSettings(Event, kw_only=True, tag_field="type", tag="group_settings"):
    group: Name
    mode: Mode | None = None
    strategy: str | None = None
    strategy_settings: dict[str, object] | None = None
    inferred: bool = False  # extra: concluded from the members' queues, not reported


class GroupSnapshot(Event, kw_only=True, tag_field="type", tag="group_snapshot"):
    """The whole group as a coordinator or a poll saw it.

    ``state`` ``not_followed`` marks a group of a kind that is not recomputed (KIP-848, share, streams).
    ``restored`` snapshots come from a state export and carry the extra fields below.
    """

    group: Name
    generation: Generation | None = None
    state: str | None = None
    joined_at: Moment | None = None
    strategy: str | None = None
    leader: str | None = None
    members: tuple[MemberInfo, ...] = ()
    assignments: dict[str, tuple[QueueRef, ...]] | None = None
    departures: tuple[Departure, ...] | None = None  # extra
    observations: tuple[Observation, ...] | None = None  # extra
    restored: bool = False
    generation_source: Literal["reported", "counted"] | None = None
    last_rebalance_id: str | None = None
    restored_group: str | None = None  # base64 of the group's own encoding: spans, counters, ids


class Clock(Event, kw_only=True, tag_field="type", tag="clock"):
    """The source is alive and has reported everything up to ``event_time``."""

    restored: bool = False  # from a state export
    restored_cluster: str | None = None  # base64 of the cluster's clock and silence as the state held them
    lost: tuple[Loss, ...] | None = None  # extra: what was deleted before the collector could read it


class Progress(Event, kw_only=True, tag_field="type", tag="progress"):
    group: Name
    queues: tuple[QueueOffset, ...]


class GroupDeleted(Event, kw_only=True, tag_field="type", tag="group_deleted"):
    group: Name


class AssignmentReported(Event, kw_only=True, tag_field="type", tag="assignment_reported"):
    group: Name
    member_id: Name
    queues: tuple[HeldQueue, ...]
    generation: Generation | None = None
    host: str | None = None  # extra: distinguishes two connections of one id


AnyEvent: TypeAlias = (
    Heartbeat
    | MemberJoined
    | MemberLeft
    | TopicQueues
    | GroupSettings
    | GroupSnapshot
    | Clock
    | Progress
    | GroupDeleted
    | AssignmentReported
)

# The order in which events of one event time apply.
ORDER_AT_ONE_MOMENT: dict[type[Event] | type[MemberEvent], int] = {
    TopicQueues: 0,
    GroupSettings: 1,
    GroupDeleted: 2,
    GroupSnapshot: 3,
    MemberLeft: 4,
    MemberJoined: 5,
    Heartbeat: 6,
    Progress: 7,
    AssignmentReported: 8,
    Clock: 9,
}
