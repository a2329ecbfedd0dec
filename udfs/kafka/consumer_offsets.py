"""Core: records of Kafka's ``__consumer_offsets``, decoded into events of the contract. No I/O.

Event time is the record's timestamp: the coordinator's clock when it wrote. The content of a record about a group:

==================  =================================  ====================================================
key type            value                              event
==================  =================================  ====================================================
0, 1                an offset commit                   ``progress``; its tombstone ``commits_deleted``
2                   a classic group                    ``group_snapshot``; its tombstone ``group_deleted``
3 to 8, 10 to 14,   a consumer (KIP-848), share or     ``group_record``
16, 17, 19 to 23    streams group, or details of one
other               unknown                            nothing
==================  =================================  ====================================================

Classic groups that assign something other than queues (Kafka Connect's workers, for example) are ``not_followed``, too.

Source: kafka-group-coordinator 4.1.1 ``GroupMetadataValue.json``, ``OffsetCommitValue.json``,
``CoordinatorRecordType``; Kafka 1.0.2 ``GroupMetadataManager``.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

import msgspec

from udfs.kafka.consumer_protocol import ConsumerSubscription, read_assignment, read_subscription
from udfs.kafka.group_records import RECORD_TYPES, read_group_record
from udfs.kafka.library_evidence import libraries_of, text_of
from udfs.kafka.wire_reader import WireError, WireReader
from udfs.model.events import (
    MAX_NAME_LENGTH,
    SCHEMA_VERSION,
    CommitsDeleted,
    GroupDeleted,
    GroupRecord,
    GroupSnapshot,
    MemberInfo,
    Progress,
    QueueOffset,
    QueueRef,
)
from udfs.model.rejection import Rejection
from udfs.model.timestamps import EARLIEST_MS, LATEST_MS

OffsetEvent: TypeAlias = GroupSnapshot | GroupDeleted | GroupRecord | Progress | CommitsDeleted
Outcome: TypeAlias = OffsetEvent | Rejection

COMMIT_TYPES = (0, 1)
CLASSIC_GROUP_TYPE = 2
NOT_FOLLOWED = "not_followed"
STABLE = "Stable"
EMPTY = "Empty"

NEWEST_VERSION = 4  # for values of types 1 and 2
FIRST_FLEXIBLE_VERSION = 4
OFFSETS_TOPIC = "__consumer_offsets"
NO_TIMESTAMP = -1  # kafka-clients RecordBatch#NO_TIMESTAMP
# A group created only by commits has "" until a member joins.
_FOLLOWED_PROTOCOL_TYPES = ("consumer", "")

UNDECODABLE = "kafka_record_undecodable"
MEMBER_UNDECODABLE = "kafka_member_undecodable"
WITHOUT_TIME = "kafka_record_without_time"


class GroupPatterns:
    """The choice of followed groups: those that an included pattern matches as a whole, and no excluded one."""

    def __init__(self, include: Sequence[str], exclude: Sequence[str] = ()) -> None:
        # A group id may contain any character, even a line feed.
        self._include = [re.compile(pattern, re.DOTALL) for pattern in include]
        self._exclude = [re.compile(pattern, re.DOTALL) for pattern in exclude]

    def follow(self, group: str) -> bool:
        """Return whether a group is followed."""
        return any(pattern.fullmatch(group) for pattern in self._include) and not any(
            pattern.fullmatch(group) for pattern in self._exclude
        )


EVERY_GROUP = GroupPatterns((".*",))


class _Commit(msgspec.Struct, frozen=True):
    offset: int
    committed_at: int


def events_of(
    key: bytes | None,
    value: bytes | None,
    timestamp_ms: int | None,
    cluster: str,
    patterns: GroupPatterns = EVERY_GROUP,
    latest_ms: int = LATEST_MS,
    offset: int | None = None,
) -> list[Outcome]:
    """Decode one record.

    Args:
        timestamp_ms: The record's own timestamp; if there is none or it is -1 (message format 0), the time inside the
            value counts, if any.
        latest_ms: Later times are rejected.
        offset: The record's own offset; None if unknown.
    Returns: at most one event; and the undecodable part, along with the event if only a member's own bytes could not be
        decoded.
    """
    group = None
    try:
        if key is None:
            raise WireError("the key is null")
        reader = WireReader(key)
        key_type = reader.int16()
        if key_type not in COMMIT_TYPES and key_type != CLASSIC_GROUP_TYPE and key_type not in RECORD_TYPES:
            return []
        group = reader.string()
        # The empty group id can only be used for commits and is deprecated (KIP-289): no member can join it.
        if not group or not patterns.follow(group):
            return []
        if key_type in COMMIT_TYPES:
            outcomes = _commit(reader, group, value, timestamp_ms, cluster)
        elif key_type in RECORD_TYPES:
            time_ms = _time(timestamp_ms, NO_TIMESTAMP)
            outcomes = [read_group_record(key_type, group, reader, value, time_ms, cluster, offset)]
        elif value is None:
            time_ms = _time(timestamp_ms, NO_TIMESTAMP)
            outcomes = [
                GroupDeleted(
                    schema_version=SCHEMA_VERSION, event_time=time_ms, system="kafka", cluster=cluster, group=group
                )
            ]
        else:
            outcomes = _classic_group(value, group, timestamp_ms, cluster)
    except WireError as error:
        return [Rejection(UNDECODABLE, str(error), cluster, group)]
    except _WithoutTimeError:
        return [Rejection(WITHOUT_TIME, "neither the record nor its value has a timestamp", cluster, group)]
    return [_in_time(outcome, latest_ms) for outcome in outcomes]


def raw_of(key: bytes | None, value: bytes | None) -> bytes:
    """Return a record as text for ``rejected_events``: JSON with key and value in base64."""
    return msgspec.json.encode(
        {
            "key": None if key is None else base64.b64encode(key).decode(),
            "value": None if value is None else base64.b64encode(value).decode(),
        }
    )


def read_commit_key(key: bytes) -> tuple[str, str, int]:
    """Parse the key of an offset commit: group, topic, partition.

    Raises:
        WireError: It is not such a key.
    """
    reader = WireReader(key)
    if reader.int16() not in COMMIT_TYPES:
        raise WireError("not the key of an offset commit")
    group = reader.string()
    return (group, *_queue_of(reader))


class _WithoutTimeError(Exception):
    pass


def _time(timestamp_ms: int | None, otherwise: int) -> int:
    if timestamp_ms is not None and timestamp_ms != NO_TIMESTAMP:
        return timestamp_ms
    if otherwise == NO_TIMESTAMP:
        raise _WithoutTimeError
    return otherwise


def _in_time(outcome: Outcome, latest_ms: int) -> Outcome:
    if isinstance(outcome, Rejection):
        return outcome
    time_ms = outcome.event_time
    if time_ms < EARLIEST_MS:
        return Rejection("event_time_before_2000", f"{time_ms} ms is before 2000-01-01", outcome.cluster, outcome.group)
    if time_ms > LATEST_MS:
        return Rejection("event_time_after_2100", f"{time_ms} ms is after 2100-01-01", outcome.cluster, outcome.group)
    if time_ms > latest_ms:
        ahead = f"{time_ms} ms is later than {latest_ms} ms, the latest that is read"
        return Rejection("event_time_ahead_of_clock", ahead, outcome.cluster, outcome.group)
    return outcome


def _queue_of(key: WireReader) -> tuple[str, int]:
    topic, partition = key.string(), key.int32()
    if not topic or partition < 0:
        raise WireError(f"topic {topic!r:.100}, partition {partition}")
    return topic, partition


def _commit(key: WireReader, group: str, value: bytes | None, timestamp_ms: int | None, cluster: str) -> list[Outcome]:
    topic, partition = _queue_of(key)
    event: partial[CommitsDeleted] | partial[Progress]
    if value is None:
        if timestamp_ms is None or timestamp_ms == NO_TIMESTAMP:
            return []
        time_ms, event = timestamp_ms, partial(CommitsDeleted, queues=(QueueRef(topic, partition),))
    else:
        commit = _read_commit(value)
        queue = QueueOffset(topic, partition, offset=commit.offset if commit.offset >= 0 else None)
        time_ms, event = _time(timestamp_ms, commit.committed_at), partial(Progress, queues=(queue,))
    return [event(schema_version=SCHEMA_VERSION, event_time=time_ms, system="kafka", cluster=cluster, group=group)]


def _read_commit(value: bytes) -> _Commit:
    reader, version = _open(value)
    offset = reader.int64()
    if version >= 3:
        reader.int32()  # leader epoch
    reader.skip_string()  # the client's own metadata: any bytes
    committed_at = reader.int64()
    if version == 1:
        reader.int64()  # when it expires
    reader.skip_tagged_fields()
    return _Commit(offset, committed_at)


def _open(value: bytes) -> tuple[WireReader, int]:
    version = WireReader(value).int16()
    if not 0 <= version <= NEWEST_VERSION:
        raise WireError(f"version {version} of the value; 0 to {NEWEST_VERSION} are supported")
    reader = WireReader(value, flexible=version >= FIRST_FLEXIBLE_VERSION)
    reader.int16()
    return reader, version


def _classic_group(value: bytes, group: str, timestamp_ms: int | None, cluster: str) -> list[Outcome]:
    reader, version = _open(value)
    protocol_type = reader.string()
    generation = reader.int32()
    strategy = reader.nullable_string()
    leader = reader.nullable_string()
    state_since = reader.int64() if version >= 2 else NO_TIMESTAMP
    time_ms = _time(timestamp_ms, state_since)
    members = reader.array(lambda: _read_member(reader, version))
    reader.skip_tagged_fields()
    if generation < 0:
        raise WireError(f"generation {generation}")
    if len({member.member_id for member in members}) != len(members):
        raise WireError("a member id occurs twice")
    snapshot = GroupSnapshot(
        schema_version=SCHEMA_VERSION,
        event_time=time_ms,
        system="kafka",
        cluster=cluster,
        group=group,
        generation=generation,
    )
    if protocol_type not in _FOLLOWED_PROTOCOL_TYPES:
        # The bytes of their members describe neither subscriptions nor queues.
        snapshot.state, snapshot.protocol = NOT_FOLLOWED, protocol_type
        snapshot.members = tuple(
            unread_member(member.member_id, member.client_id, member.host, member.instance_id) for member in members
        )
        return [snapshot]

    described: list[MemberInfo] = []
    assignments: dict[str, tuple[QueueRef, ...]] | None = {}
    undecodable: list[Outcome] = []
    # The order is the coordinator's, in which the leader also received them.
    for member in members:
        written = [other.assignment for other in members] if member.member_id == leader else []
        try:
            described.append(_describe(member, strategy, written))
        except WireError as error:
            described.append(_without_subscription(member, strategy))
            if written:
                described[-1].client_library = _library(member, None, strategy, written)
            undecodable.append(_member_rejection(member, "subscription", error, cluster, group))
        try:
            if assignments is not None:
                assignments[member.member_id] = read_assignment(member.assignment)
        except WireError as error:
            # If one member's assignment is unknown, it is also unknown whether members without partitions have none.
            assignments = None
            undecodable.append(_member_rejection(member, "assignment", error, cluster, group))
    snapshot.state = STABLE if members else EMPTY
    snapshot.joined_at = state_since if EARLIEST_MS <= state_since <= LATEST_MS else None
    snapshot.strategy, snapshot.leader = strategy or None, leader or None
    snapshot.members = tuple(described)
    snapshot.assignments = assignments if members else None
    return [snapshot, *undecodable]


class _RawMember(msgspec.Struct, frozen=True, kw_only=True):
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


def _read_member(reader: WireReader, version: int) -> _RawMember:
    member_id = reader.string()
    if not member_id or len(member_id) > MAX_NAME_LENGTH:
        raise WireError("a member without a name, or with too long a one")
    instance_id = reader.nullable_string() if version >= 3 else None
    client_id, host = reader.string(), reader.string()
    rebalance_timeout_ms = reader.int32() if version >= 1 else NO_TIMESTAMP
    session_timeout_ms = reader.int32()
    subscription, assignment = reader.data(), reader.data()
    reader.skip_tagged_fields()
    return _RawMember(
        member_id=member_id,
        instance_id=instance_id,
        client_id=client_id,
        host=host,
        # Before version 1, one timeout served as both (Kafka GroupMetadataManager#readGroupMessageValue).
        rebalance_timeout_ms=session_timeout_ms if rebalance_timeout_ms < 0 else rebalance_timeout_ms,
        session_timeout_ms=session_timeout_ms,
        subscription=subscription,
        assignment=assignment,
    )


def _describe(member: _RawMember, strategy: str | None, written: Sequence[bytes]) -> MemberInfo:
    described = _without_subscription(member, strategy)
    if not member.subscription:
        return described
    subscription = read_subscription(member.subscription, strategy)
    described.rack = subscription.rack or None
    described.subscriptions = subscription.topics
    described.owned = subscription.owned
    described.owned_generation = subscription.owned_generation
    described.client_library = _library(member, subscription, strategy, written)
    return described


def _library(
    member: _RawMember, subscription: ConsumerSubscription | None, strategy: str | None, written: Sequence[bytes]
) -> str:
    one_timeout = 0 < member.rebalance_timeout_ms == member.session_timeout_ms
    return text_of(libraries_of(subscription, strategy, member.client_id, one_timeout=one_timeout, assignments=written))


def _without_subscription(member: _RawMember, strategy: str | None) -> MemberInfo:
    return MemberInfo(
        member_id=member.member_id,
        client_id=member.client_id or None,
        host=member.host or None,
        instance_id=member.instance_id or None,
        subscriptions=(),
        strategies=(strategy,) if strategy else (),
        session_timeout_ms=max(0, member.session_timeout_ms),
        rebalance_timeout_ms=max(0, member.rebalance_timeout_ms),
    )


def _member_rejection(member: _RawMember, what: str, error: WireError, cluster: str, group: str) -> Rejection:
    return Rejection(MEMBER_UNDECODABLE, f"{what} of {member.member_id!r:.200}: {error}", cluster, group)


def unread_member(member_id: str, client_id: str, host: str, instance_id: str | None) -> MemberInfo:
    """Return a member of a group that is not followed, whose own bytes are not decoded."""
    return MemberInfo(
        member_id=member_id, client_id=client_id or None, host=host or None, instance_id=instance_id or None
    )


def polled_member(
    member_id: str, client_id: str, host: str, instance_id: str | None, subscription: bytes, strategy: str | None
) -> MemberInfo:
    """Return a classic member whose bytes do not come from its group's record, so without timeouts.

    Raises:
        WireError: The bytes are not a subscription.
    """
    raw = _RawMember(
        member_id=member_id,
        instance_id=instance_id,
        client_id=client_id,
        host=host,
        rebalance_timeout_ms=0,
        session_timeout_ms=0,
        subscription=subscription,
        assignment=b"",
    )
    described = _describe(raw, strategy, [])
    described.session_timeout_ms = described.rebalance_timeout_ms = None
    return described
