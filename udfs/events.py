"""Core: the event contract, version 1, as types. Parsing lies in ``parsing``. No I/O.

Every struct is one ``type`` of the contract; the JSON Schema in ``conf/`` is generated from them.
Times are epoch ms once parsed. Fields that an event does not carry are ``None``, which is not the
same as empty: a heartbeat changes the fields that it carries and leaves the others.
"""

from __future__ import annotations

import datetime
from typing import Literal, TypeAlias

import msgspec

System: TypeAlias = Literal["kafka", "rocketmq", "metaq"]
Mode: TypeAlias = Literal["clustering", "broadcasting", "message"]
SCHEMA_VERSION = 1


class QueueRef(msgspec.Struct, frozen=True, order=True):
    """One queue of one topic, as an assignment or a commit names it."""

    topic: str
    queue_id: int
    broker: str | None = None


class QueueOffset(msgspec.Struct, frozen=True):
    """One queue and how far somebody has come in it."""

    topic: str
    queue_id: int
    broker: str | None = None
    offset: int | None = None


class QueueInfo(msgspec.Struct, frozen=True):
    """One queue as a topic has it. ``racks`` (all replicas' racks) goes before ``rack``."""

    queue_id: int
    broker: str | None = None
    rack: str | None = None
    racks: tuple[str, ...] | None = None


class MemberFields(msgspec.Struct, kw_only=True):
    """What may be said about a member, in a join, a heartbeat or a snapshot."""

    client_id: str | None = None
    host: str | None = None
    instance_id: str | None = None
    rack: str | None = None
    client_library: str | None = None  # extra: java-4.1, librdkafka, ...
    subscriptions: tuple[str, ...] | None = None
    strategies: tuple[str, ...] | None = None
    strategy_settings: dict[str, object] | None = None
    session_timeout_ms: int | None = None
    rebalance_timeout_ms: int | None = None
    owned: tuple[QueueRef, ...] | None = None
    owned_generation: int | None = None  # extra: the generation in which ``owned`` was owned


class MemberInfo(MemberFields, kw_only=True):
    """A member inside a snapshot."""

    member_id: str
    # only in restored snapshots:
    joined_at: int | datetime.datetime | None = None
    last_heartbeat_at: int | datetime.datetime | None = None
    lives_by: Literal["heartbeats", "snapshots"] | None = None


class Event(msgspec.Struct, kw_only=True, tag_field="type"):
    """What every event carries."""

    schema_version: Literal[1]
    event_time: int | datetime.datetime
    system: System
    cluster: str
    event_id: str | None = None


class Heartbeat(MemberFields, Event, kw_only=True, tag_field="type", tag="heartbeat"):
    group: str
    member_id: str


class MemberJoined(MemberFields, Event, kw_only=True, tag_field="type", tag="member_joined"):
    group: str
    member_id: str


class MemberLeft(Event, kw_only=True, tag_field="type", tag="member_left"):
    group: str
    member_id: str
    reason: str | None = None


class TopicQueues(Event, kw_only=True, tag_field="type", tag="topic_queues"):
    """Replaces what was known of a topic. One of ``queues``, ``queue_count``; 0 = deleted."""

    topic: str
    queues: tuple[QueueInfo, ...] | None = None
    queue_count: int | None = None
    topic_id: str | None = None  # extra: Kafka's topic UUID


class GroupSettings(Event, kw_only=True, tag_field="type", tag="group_settings"):
    group: str
    mode: Mode | None = None
    strategy: str | None = None
    strategy_settings: dict[str, object] | None = None


class GroupSnapshot(Event, kw_only=True, tag_field="type", tag="group_snapshot"):
    """The whole group as a coordinator or a poll saw it.

    ``state`` ``not_followed`` marks a group of a kind that is not recomputed (KIP-848, share, streams).
    ``restored`` snapshots come from a state export and carry the extra fields below.
    """

    group: str
    generation: int | None = None
    state: str | None = None
    joined_at: int | datetime.datetime | None = None
    strategy: str | None = None
    leader: str | None = None
    members: tuple[MemberInfo, ...] = ()
    assignments: dict[str, tuple[QueueRef, ...]] | None = None
    restored: bool = False
    generation_source: Literal["reported", "counted"] | None = None
    restored_group: str | None = None  # base64 of the group's own encoding: spans, counters, ids


class Clock(Event, kw_only=True, tag_field="type", tag="clock"):
    """The source lives and has told everything up to ``event_time``."""


class Progress(Event, kw_only=True, tag_field="type", tag="progress"):
    group: str
    queues: tuple[QueueOffset, ...]


class GroupDeleted(Event, kw_only=True, tag_field="type", tag="group_deleted"):
    group: str


class AssignmentReported(Event, kw_only=True, tag_field="type", tag="assignment_reported"):
    group: str
    member_id: str
    queues: tuple[QueueRef, ...]
    generation: int | None = None


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

# The order in which events of one moment apply (DESIGN: ruling 18).
ORDER_AT_ONE_MOMENT: dict[type[Event], int] = {
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
