"""Core: records about groups of the new protocols in ``__consumer_offsets``, decoded into events. No I/O.

Consumer groups (KIP-848), share groups (KIP-932) and streams groups (KIP-1071) have a record for the group, and several
for each member: its description, its target and its current assignment. Each becomes one ``group_record``.

Source: kafka-group-coordinator 4.1.1 ``ConsumerGroup*.json``, ``ShareGroup*.json``, ``StreamsGroup*.json``. All values
are flexible and have version 0; tagged fields that later versions add are skipped.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from udfs.kafka.wire_reader import WireError, WireReader
from udfs.model.events import (
    MAX_NAME_LENGTH,
    SCHEMA_VERSION,
    GroupRecord,
    MemberInfo,
    MemberState,
    RecordKind,
    RecordProtocol,
    TopicPartitions,
)
from udfs.model.queues import ascending

# The type of a key, with the group protocol and the kind of the record.
RECORD_TYPES: dict[int, tuple[RecordProtocol, RecordKind]] = {
    3: ("consumer", "group"),
    4: ("consumer", "topics"),
    5: ("consumer", "member"),
    6: ("consumer", "target"),
    7: ("consumer", "member_target"),
    8: ("consumer", "member_current"),
    10: ("share", "member"),
    11: ("share", "group"),
    12: ("share", "target"),
    13: ("share", "member_target"),
    14: ("share", "member_current"),
    16: ("consumer", "pattern"),
    17: ("streams", "group"),
    19: ("streams", "member"),
    20: ("streams", "target"),
    21: ("streams", "member_target"),
    22: ("streams", "member_current"),
    23: ("streams", "topology"),
}
# An assignor of the coordinator may share its name with a client's.
SERVER_SIDE = "server."
_OF_MEMBERS = ("member", "member_target", "member_current")
_VERSION = 0
_UUID_BYTES = 16
_VERSION_AND_TIME_BYTES = 16
# kafka-group-coordinator ``modern/MemberState``, ``streams/MemberState``.
_STATES: dict[int, MemberState] = {0: "stable", 1: "unrevoked", 2: "unreleased"}
_STREAMS_STATES: dict[int, MemberState] = {1: "stable", 2: "unrevoked", 3: "unreleased"}

Fields: TypeAlias = dict[str, Any]


def read_group_record(
    key_type: int, group: str, key: WireReader, value: bytes | None, time_ms: int, cluster: str, offset: int | None
) -> GroupRecord:
    """Decode one record.

    Args:
        key_type: One of ``RECORD_TYPES``. key: The rest of the key after the group's name.
    Raises:
        WireError: The bytes are not such a record.
    """
    protocol, kind = RECORD_TYPES[key_type]
    fields: Fields = {}
    if kind in _OF_MEMBERS:
        fields["member_id"] = _name(key)
    elif kind == "pattern":
        fields["pattern"] = key.string()
    if value is None:
        fields["deleted"] = True
    else:
        fields |= _read_value(protocol, kind, fields, value)
    return GroupRecord(
        schema_version=SCHEMA_VERSION,
        event_time=time_ms,
        system="kafka",
        cluster=cluster,
        group=group,
        protocol=protocol,
        record=kind,
        offset=offset,
        **fields,
    )


def _read_value(protocol: RecordProtocol, kind: RecordKind, key_fields: Fields, value: bytes) -> Fields:
    reader = WireReader(value, flexible=True)
    version = reader.int16()
    if version != _VERSION:
        raise WireError(f"version {version} of the value; {_VERSION} is supported")
    fields = _read_fields(protocol, kind, key_fields, reader)
    if protocol == "consumer" and kind != "member":
        reader.skip_tagged_fields()  # the other protocols have further fields, which differ between releases
    return fields


def _read_fields(protocol: RecordProtocol, kind: RecordKind, key_fields: Fields, reader: WireReader) -> Fields:
    if kind == "member":
        return _MEMBERS[protocol](reader, key_fields["member_id"])
    if kind in ("group", "target"):
        return {"epoch": reader.int32()}
    if kind == "pattern":
        topics = reader.array(lambda: _name(reader))
        reader.raw(_VERSION_AND_TIME_BYTES)
        return {"topics": tuple(topics)}
    if kind == "topics":
        return _topics(reader)
    if kind == "topology":
        return _topology(reader)
    if protocol == "streams":
        return _streams_target(reader) if kind == "member_target" else _streams_current(reader)
    if kind == "member_target":
        # The iteration order of the coordinator's sets depends on this order.
        return {"partitions": _partitions_as_written(reader, _topic_id)}
    return _current(reader, may_revoke=protocol == "consumer")


def _name(reader: WireReader) -> str:
    name = reader.string()
    if not name or len(name) > MAX_NAME_LENGTH:
        raise WireError("an empty name, or too long a one")
    return name


# ---- members


def _consumer_member(reader: WireReader, member_id: str) -> Fields:
    instance_id, rack = reader.nullable_string(), reader.nullable_string()
    client_id, host = reader.string(), reader.string()
    topics = _names(reader)
    pattern = reader.nullable_string()
    rebalance_timeout_ms = reader.int32()
    assignor = reader.nullable_string()
    classic: list[tuple[int, tuple[str, ...]]] = []
    reader.tagged_fields({0: lambda: classic.extend(_classic(reader))})
    info = MemberInfo(
        member_id=member_id,
        client_id=client_id or None,
        host=host or None,
        instance_id=instance_id or None,
        rack=rack or None,
        subscriptions=topics,
        strategies=(SERVER_SIDE + assignor,) if assignor else (),
        rebalance_timeout_ms=max(0, rebalance_timeout_ms),
        session_timeout_ms=max(0, classic[0][0]) if classic else None,
        protocol="classic" if classic else "consumer",
    )
    return {"member": info, "pattern": pattern or None, "classic_strategies": classic[0][1] if classic else None}


def _classic(reader: WireReader) -> list[tuple[int, tuple[str, ...]]]:
    """Parse session timeout and strategies of a member that uses the classic protocol; none for other members."""
    if not reader.uvarint():  # a nullable struct inside a tagged field
        return []
    timeout = reader.int32()

    def strategy() -> str:
        name = reader.string()
        reader.data()  # its subscription
        reader.skip_tagged_fields()
        return name

    names = tuple(reader.array(strategy))
    reader.skip_tagged_fields()
    return [(timeout, names)]


def _share_member(reader: WireReader, member_id: str) -> Fields:
    rack, client_id, host = reader.nullable_string(), reader.string(), reader.string()
    topics = _names(reader)
    return {
        "member": MemberInfo(
            member_id=member_id,
            rack=rack or None,
            client_id=client_id or None,
            host=host or None,
            subscriptions=topics,
            protocol="share",
        )
    }


def _streams_member(reader: WireReader, member_id: str) -> Fields:
    instance_id, rack = reader.nullable_string(), reader.nullable_string()
    client_id, host = reader.string(), reader.string()
    rebalance_timeout_ms, topology_epoch, process_id = reader.int32(), reader.int32(), reader.string()
    info = MemberInfo(
        member_id=member_id,
        instance_id=instance_id or None,
        rack=rack or None,
        client_id=client_id or None,
        host=host or None,
        rebalance_timeout_ms=max(0, rebalance_timeout_ms),
        protocol="streams",
        process_id=process_id or None,
    )
    return {"member": info, "epoch": topology_epoch}


_MEMBERS: dict[RecordProtocol, Callable[[WireReader, str], Fields]] = {
    "consumer": _consumer_member,
    "share": _share_member,
    "streams": _streams_member,
}


def _names(reader: WireReader) -> tuple[str, ...]:
    return tuple(sorted(set(reader.array(lambda: _name(reader)))))


# ---- assignments


def _current(reader: WireReader, *, may_revoke: bool) -> Fields:
    fields = _epochs(reader, _STATES)
    fields["partitions"] = _partitions(reader, _topic_id)
    if may_revoke:
        fields["revoking"] = _partitions(reader, _topic_id)
    return fields


def _epochs(reader: WireReader, states: Mapping[int, MemberState]) -> Fields:
    epoch, previous, state = reader.int32(), reader.int32(), reader.int8()
    if state not in states:
        raise WireError(f"state {state} of a member")
    return {"epoch": epoch, "previous_epoch": previous, "state": states[state]}


def _streams_target(reader: WireReader) -> Fields:
    return {name: _partitions(reader, _name) for name in ("partitions", "standby", "warmup")}


def _streams_current(reader: WireReader) -> Fields:
    fields = _epochs(reader, _STREAMS_STATES) | _streams_target(reader)
    # These are active, standby and warm-up tasks; tasks being revoked are still held, whatever their kind.
    fields["revoking"] = tuple(partitions for _ in range(3) for partitions in _partitions(reader, _name))
    return fields


def _partitions(reader: WireReader, name: Callable[[WireReader], str]) -> tuple[TopicPartitions, ...]:
    """Parse partitions by topic or subtopology, both sorted and distinct."""
    return ascending(_partitions_as_written(reader, name))


def _partitions_as_written(reader: WireReader, name: Callable[[WireReader], str]) -> tuple[TopicPartitions, ...]:
    """Parse partitions by topic or subtopology, distinct, in the record's order.

    That is the order of the coordinator's map, in which topics that share a slot keep the order of insertion.
    """

    def topic_partitions() -> tuple[str, tuple[int, ...]]:
        found = name(reader), reader.int32_array()
        reader.skip_tagged_fields()
        return found

    held: dict[str, dict[int, None]] = {}
    for topic, numbers in reader.array(topic_partitions):
        if any(number < 0 for number in numbers):
            raise WireError("a partition below 0")
        held.setdefault(topic, {}).update(dict.fromkeys(numbers))
    return tuple(TopicPartitions(topic, tuple(numbers)) for topic, numbers in held.items() if numbers)


def _topic_id(reader: WireReader) -> str:
    """Return a UUID in Kafka's text form.

    Source: kafka-clients ``Uuid#toString``: URL-safe base64 without padding.
    """
    return base64.urlsafe_b64encode(reader.raw(_UUID_BYTES)).decode().rstrip("=")


# ---- topics


def _topics(reader: WireReader) -> Fields:
    """Parse the topics of a group, with their ids, as written by brokers up to 4.0."""

    def rack_list() -> None:
        reader.int32()
        reader.array(reader.string)
        reader.skip_tagged_fields()

    def topic() -> tuple[str, str]:
        found = _topic_id(reader), _name(reader)
        reader.int32()  # partitions, which metadata has as well
        reader.array(rack_list)
        reader.skip_tagged_fields()
        return found

    return {"topic_ids": dict(sorted(reader.array(topic)))}


def _topology(reader: WireReader) -> Fields:
    """Parse the source topics that the subtopologies of a streams group consume."""
    epoch = reader.int32()

    def setting() -> None:
        reader.string()
        reader.string()
        reader.skip_tagged_fields()

    def internal_topic() -> str:
        name = _name(reader)
        reader.int32()
        reader.int16()
        reader.array(setting)
        reader.skip_tagged_fields()
        return name

    def copartitioned() -> None:
        for _ in range(3):
            reader.array(reader.int16)
        reader.skip_tagged_fields()

    def subtopology() -> tuple[str, tuple[str, ...]]:
        name, sources = _name(reader), reader.array(lambda: _name(reader))
        reader.array(reader.string)  # patterns
        reader.array(internal_topic)  # changelogs
        reader.array(reader.string)  # sink topics
        sources += reader.array(internal_topic)  # topics repartitioned by another subtopology
        reader.array(copartitioned)
        reader.skip_tagged_fields()
        return name, tuple(sorted(set(sources)))

    return {"epoch": epoch, "subtopologies": dict(sorted(reader.array(subtopology)))}
