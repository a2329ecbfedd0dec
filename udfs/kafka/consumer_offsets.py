"""Core: records of Kafka's ``__consumer_offsets``, decoded into events of the contract. No I/O.

Event time is the record's timestamp: the coordinator's clock when it wrote. The content of a record about a group:

==================  =================================  ====================================================
key type            value                              event
==================  =================================  ====================================================
0, 1                an offset commit                   ``progress``; its tombstone is nothing
2                   a classic group                    ``group_snapshot``; its tombstone ``group_deleted``
3, 11, 17           a consumer (KIP-848), share or     ``group_snapshot`` with state ``not_followed``; its
                    streams group                      tombstone ``group_deleted``
other               details of those, or unknown       nothing
==================  =================================  ====================================================

Classic groups that assign something other than queues (Kafka Connect's workers, for one) are ``not_followed`` too.

Source: kafka-group-coordinator 4.1.1 ``GroupMetadataValue.json``, ``OffsetCommitValue.json``,
``CoordinatorRecordType``; Kafka 1.0.2 ``GroupMetadataManager``.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from udfs.kafka.consumer_protocol import guess_library, read_assignment, read_subscription
from udfs.kafka.wire import WireError, WireReader
from udfs.model.events import (
    MAX_NAME_LENGTH,
    SCHEMA_VERSION,
    GroupDeleted,
    GroupSnapshot,
    MemberInfo,
    Progress,
    QueueOffset,
    QueueRef,
)
from udfs.model.rejection import Rejection
from udfs.model.timestamps import EARLIEST_MS, LATEST_MS

OffsetEvent: TypeAlias = GroupSnapshot | GroupDeleted | Progress
Outcome: TypeAlias = OffsetEvent | Rejection

COMMIT_TYPES = (0, 1)
CLASSIC_GROUP_TYPE = 2
# Consumer (KIP-848), share (KIP-932) and streams (KIP-1071) groups: the record that each such group has once.
OTHER_GROUP_TYPES = (3, 11, 17)
NOT_FOLLOWED = "not_followed"
STABLE = "Stable"
EMPTY = "Empty"

NEWEST_VERSION = 4  # of the values of types 1 and 2
FIRST_FLEXIBLE_VERSION = 4
NO_TIMESTAMP = -1  # kafka-clients RecordBatch#NO_TIMESTAMP
# A group made by committing alone has "", before anybody joined.
_FOLLOWED_PROTOCOL_TYPES = ("consumer", "")

UNDECODABLE = "kafka_record_undecodable"
MEMBER_UNDECODABLE = "kafka_member_undecodable"
WITHOUT_TIME = "kafka_record_without_time"


class GroupPatterns:
    """Which groups are followed: those that some included pattern matches whole, and no excluded one."""

    def __init__(self, include: Sequence[str], exclude: Sequence[str] = ()) -> None:
        # A group id may hold any character, a line feed too.
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
) -> list[Outcome]:
    """Decode one record.

    Args:
        timestamp_ms: The record's own; none or -1 (message format 0): the time inside the value, where there is one.
        latest_ms: A later time is rejected.
    Returns: at most one event; and what could not be decoded, beside the event when only a member's own bytes
        could not.
    """
    group = None
    try:
        if key is None:
            raise WireError("the key is null")
        reader = WireReader(key)
        key_type = reader.int16()
        if key_type not in COMMIT_TYPES and key_type != CLASSIC_GROUP_TYPE and key_type not in OTHER_GROUP_TYPES:
            return []
        group = reader.string()
        # The empty group id is for committing alone, and deprecated (KIP-289): no member can join it.
        if not group or not patterns.follow(group):
            return []
        if key_type in COMMIT_TYPES:
            outcomes = _commit(reader, group, value, timestamp_ms, cluster)
        elif value is None:
            time_ms = _time(timestamp_ms, NO_TIMESTAMP)
            outcomes = [
                GroupDeleted(
                    schema_version=SCHEMA_VERSION, event_time=time_ms, system="kafka", cluster=cluster, group=group
                )
            ]
        elif key_type == CLASSIC_GROUP_TYPE:
            outcomes = _classic_group(value, group, timestamp_ms, cluster)
        else:
            outcomes = [_not_followed(group, _time(timestamp_ms, NO_TIMESTAMP), cluster)]
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
    """Read the key of an offset commit: group, topic, partition.

    Raises:
        WireError: It is none.
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
    if value is None:
        return []
    commit = _read_commit(value)
    queue = QueueOffset(topic, partition, offset=commit.offset if commit.offset >= 0 else None)
    time_ms = _time(timestamp_ms, commit.committed_at)
    return [
        Progress(
            schema_version=SCHEMA_VERSION,
            event_time=time_ms,
            system="kafka",
            cluster=cluster,
            group=group,
            queues=(queue,),
        )
    ]


def _read_commit(value: bytes) -> _Commit:
    reader, version = _open(value)
    offset = reader.int64()
    if version >= 3:
        reader.int32()  # leader epoch
    reader.nullable_string()  # the client's own metadata
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
    if protocol_type not in _FOLLOWED_PROTOCOL_TYPES:
        return [_not_followed(group, time_ms, cluster)]
    members = reader.array(lambda: _read_member(reader, version))
    reader.skip_tagged_fields()
    if generation < 0:
        raise WireError(f"generation {generation}")
    if len({member.member_id for member in members}) != len(members):
        raise WireError("a member id occurs twice")

    described: list[MemberInfo] = []
    assignments: dict[str, tuple[QueueRef, ...]] | None = {}
    undecodable: list[Outcome] = []
    # In the coordinator's own order, in which the leader received them too.
    for member in members:
        try:
            described.append(_describe(member, strategy))
        except WireError as error:
            described.append(_without_subscription(member, strategy))
            undecodable.append(_member_rejection(member, "subscription", error, cluster, group))
        try:
            if assignments is not None:
                assignments[member.member_id] = read_assignment(member.assignment)
        except WireError as error:
            # One member's assignment is unknown: so are the members without partitions.
            assignments = None
            undecodable.append(_member_rejection(member, "assignment", error, cluster, group))
    snapshot = GroupSnapshot(
        schema_version=SCHEMA_VERSION,
        event_time=time_ms,
        system="kafka",
        cluster=cluster,
        group=group,
        generation=generation,
        state=STABLE if members else EMPTY,
        joined_at=state_since if EARLIEST_MS <= state_since <= LATEST_MS else None,
        strategy=strategy or None,
        leader=leader or None,
        members=tuple(described),
        assignments=assignments if members else None,
    )
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
        # Before version 1 one time-out was both (Kafka GroupMetadataManager#readGroupMessageValue).
        rebalance_timeout_ms=session_timeout_ms if rebalance_timeout_ms < 0 else rebalance_timeout_ms,
        session_timeout_ms=session_timeout_ms,
        subscription=subscription,
        assignment=assignment,
    )


def _describe(member: _RawMember, strategy: str | None) -> MemberInfo:
    described = _without_subscription(member, strategy)
    if not member.subscription:
        return described
    subscription = read_subscription(member.subscription, strategy)
    described.rack = subscription.rack or None
    described.subscriptions = subscription.topics
    described.owned = subscription.owned
    described.owned_generation = subscription.owned_generation
    described.client_library = guess_library(member.client_id, subscription.version)
    return described


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


def _not_followed(group: str, time_ms: int, cluster: str) -> GroupSnapshot:
    return GroupSnapshot(
        schema_version=SCHEMA_VERSION,
        event_time=time_ms,
        system="kafka",
        cluster=cluster,
        group=group,
        state=NOT_FOLLOWED,
    )
