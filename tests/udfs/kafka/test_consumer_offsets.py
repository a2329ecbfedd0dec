"""Records of ``__consumer_offsets``; those in consumer_offsets_golden/ were written by Kafka 4.1.1's own classes."""

from __future__ import annotations

import base64
import json
import struct

import msgspec
import pytest

from tests.udfs.kafka.broker_records import CONSTRUCTED, OF_VERSIONS, Line
from tests.udfs.kafka.golden_records import AT, GOLDEN
from udfs.kafka.consumer_offsets import GroupPatterns, events_of, raw_of
from udfs.kafka.group_records import RECORD_TYPES
from udfs.model.events import (
    AnyEvent,
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


def decode(key: str, value: str | None, timestamp_ms: int | None = AT) -> list[AnyEvent | Rejection]:
    return list(events_of(GOLDEN[key], None if value is None else GOLDEN[value], timestamp_ms, "c"))


def snapshot_of(version: int) -> GroupSnapshot:
    (snapshot,) = decode("key-2", f"group-{version}")
    assert isinstance(snapshot, GroupSnapshot)
    return snapshot


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_a_group_record_has_generation_strategy_leader_and_assignments(version: int) -> None:
    snapshot = snapshot_of(version)
    assert (snapshot.group, snapshot.cluster, snapshot.system, snapshot.event_time) == ("g", "c", "kafka", AT)
    assert (snapshot.generation, snapshot.state, snapshot.strategy, snapshot.leader) == (5, "Stable", "range", "b-uuid")
    assert snapshot.joined_at == (1_700_000_000_500 if version >= 2 else None)
    assert snapshot.assignments == {
        "b-uuid": (QueueRef("orders", 1),),
        "static-uuid": (QueueRef("orders", 0), QueueRef("orders", 2)),
    }


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_a_group_record_describes_its_members(version: int) -> None:
    first, second = snapshot_of(version).members
    assert first == MemberInfo(
        member_id="b-uuid",
        client_id="b",
        host="/10.0.0.2",
        rack="rack-a",
        client_library="java-3.4+",
        subscriptions=("bills", "orders"),
        strategies=("range",),
        session_timeout_ms=45_000,
        # Version 0 has one time-out for both.
        rebalance_timeout_ms=300_000 if version >= 1 else 45_000,
        owned=(QueueRef("bills", 0), QueueRef("orders", 1)),
        owned_generation=4,
    )
    assert second == MemberInfo(
        member_id="static-uuid",
        client_id="consumer-g-1",
        host="/10.0.0.1",
        instance_id="static" if version >= 3 else None,
        client_library="sarama|franz-go",
        subscriptions=("orders",),
        strategies=("range",),
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000 if version >= 1 else 10_000,
    )


@pytest.mark.parametrize("version", range(5))
def test_a_group_that_has_emptied_is_a_generation_without_members(version: int) -> None:
    (snapshot,) = decode("key-2", f"empty-{version}")
    assert isinstance(snapshot, GroupSnapshot)
    assert (snapshot.generation, snapshot.state, snapshot.members) == (6, "Empty", ())
    assert (snapshot.strategy, snapshot.leader, snapshot.assignments) == (None, None, None)


@pytest.mark.parametrize("key", ["key-0", "key-1"])
@pytest.mark.parametrize("value", [*(f"commit-{version}" for version in range(5)), "commit-4-bare"])
def test_every_version_of_an_offset_commit_is_progress(key: str, value: str) -> None:
    (progress,) = decode(key, value)
    queue = QueueOffset("orders", 3, offset=42)
    assert progress == Progress(
        schema_version=1, event_time=AT, system="kafka", cluster="c", group="g", queues=(queue,)
    )


def test_records_of_real_brokers_are_what_kafka_shows_of_them() -> None:
    """Of 1.0.2, 3.9.1, 4.1.1 and 4.4.0: versions 1, 3 and 4 of commits, 1 and 3 of groups."""
    kinds = set()
    for broker, line in OF_VERSIONS:
        event = read_as_shown(line)
        kinds.add((broker, type(event), line.value and int.from_bytes(line.value[:2], "big")))
    later = [
        (version, kind, None) for version in ("3.9.1", "4.1.1", "4.4.0") for kind in (CommitsDeleted, GroupDeleted)
    ]
    assert kinds == {
        *(("1.0.2", Progress, 1), ("3.9.1", Progress, 3), ("4.1.1", Progress, 4), ("4.4.0", Progress, 4)),
        *(("1.0.2", GroupSnapshot, 1), *((version, GroupSnapshot, 3) for version in ("3.9.1", "4.1.1", "4.4.0"))),
        *later,
    }


def test_every_version_that_kafka_can_write_is_what_it_shows_of_it() -> None:
    """Of commits with keys of types 0, of brokers before 0.9, and 1; of classic groups with members and without."""
    versions = set()
    for line in CONSTRUCTED:
        key_type = int.from_bytes(line.key[:2], "big")
        if key_type <= 2 and line.value is not None:
            read_as_shown(line)
            versions.add((key_type, int.from_bytes(line.value[:2], "big")))
    assert versions == {(0, 0), *((key_type, version) for key_type in (1, 2) for version in range(5))}


def read_as_shown(line: Line) -> AnyEvent | Rejection:
    """Decode a record about a classic group, or a commit, and compare it with what Kafka shows of it."""
    (event,) = events_of(line.key, line.value, line.at, "c")
    assert event.group == line.key_shown["group"]  # type: ignore[union-attr]
    if isinstance(event, Progress):
        assert line.shown is not None
        queue = QueueOffset(line.key_shown["topic"], line.key_shown["partition"], offset=line.shown["offset"])
        assert event.queues == (queue,)
        # Without a time of its own the record has that of its commit.
        (timeless,) = events_of(line.key, line.value, -1, "c")
        assert isinstance(timeless, Progress)
        assert timeless.event_time == line.shown["commitTimestamp"]
    elif isinstance(event, CommitsDeleted):
        assert event.queues == (QueueRef(line.key_shown["topic"], line.key_shown["partition"]),)
    elif isinstance(event, GroupSnapshot):
        assert line.shown is not None
        assert (event.generation, event.strategy, event.leader) == (
            line.shown["generation"],
            line.shown["protocol"],
            line.shown["leader"],
        )
        assert event.joined_at == line.shown.get("currentStateTimestamp")
        assert [member.member_id for member in event.members] == [
            member["memberId"] for member in line.shown["members"]
        ]
    return event


def test_the_tombstone_of_a_commit_deletes_it() -> None:
    (commit,) = decode("key-1", "commit-3")
    assert isinstance(commit, Progress)
    queues = tuple(QueueRef(queue.topic, queue.queue_id) for queue in commit.queues)
    assert decode("key-1", None) == [
        CommitsDeleted(schema_version=1, event_time=AT, system="kafka", cluster="c", group=commit.group, queues=queues)
    ]


def test_the_tombstone_of_a_classic_group_deletes_it() -> None:
    assert decode("key-2", None) == [
        GroupDeleted(schema_version=1, event_time=AT, system="kafka", cluster="c", group="g")
    ]


def test_groups_that_assign_no_queues_are_listed_as_what_they_are() -> None:
    (snapshot,) = decode("key-2", "connect")
    assert snapshot == GroupSnapshot(
        schema_version=1,
        event_time=AT,
        system="kafka",
        cluster="c",
        group="g",
        generation=1,
        state="not_followed",
        members=(MemberInfo(member_id="w"),),
        protocol="connect",
    )


@pytest.mark.parametrize("key_type", RECORD_TYPES)
def test_a_tombstone_of_a_group_of_a_new_protocol_names_what_it_deletes(key_type: int) -> None:
    (record,) = decode(f"key-{key_type}", None)
    assert isinstance(record, GroupRecord)
    assert (record.protocol, record.record) == RECORD_TYPES[key_type]
    assert (record.deleted, record.group) == (True, "g")


@pytest.mark.parametrize("key_type", [9, 15, 18, 24, 99, 32_767, -1])
def test_unknown_key_types_are_skipped(key_type: int) -> None:
    assert events_of(struct.pack(">h", key_type) + b"\xff\xff anything", b"\x00", AT, "c") == []


def test_a_member_with_an_unreadable_subscription_is_still_a_member() -> None:
    subscription = struct.pack(">hi", 0, 1) + b"\0\6orders"
    broken = GOLDEN["group-3"].replace(subscription, b"\xff" * len(subscription))
    snapshot, rejection = events_of(GOLDEN["key-2"], broken, AT, "c")
    assert isinstance(snapshot, GroupSnapshot)
    assert isinstance(rejection, Rejection)
    assert [member.subscriptions for member in snapshot.members] == [("bills", "orders"), ()]
    assert snapshot.assignments == snapshot_of(3).assignments
    assert (rejection.reason, rejection.group_id) == ("kafka_member_undecodable", "g")
    assert "static-uuid" in rejection.detail


def test_no_assignment_is_reported_if_one_cannot_be_read() -> None:
    assignment = struct.pack(">hi", 1, 1) + b"\0\6orders" + struct.pack(">iii", 2, 0, 2)
    assignment = b"\0\3" + assignment[2:]
    assert assignment in GOLDEN["group-3"]
    broken = GOLDEN["group-3"].replace(assignment, assignment[:2] + b"\xff" * (len(assignment) - 2))
    snapshot, rejection = events_of(GOLDEN["key-2"], broken, AT, "c")
    assert isinstance(snapshot, GroupSnapshot)
    assert (len(snapshot.members), snapshot.assignments) == (2, None)
    assert isinstance(rejection, Rejection)
    assert rejection.reason == "kafka_member_undecodable"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"", None),
        (b"\0", None),
        (GOLDEN["key-2"][:-1], GOLDEN["group-3"]),
        (GOLDEN["key-1"][:-1], GOLDEN["commit-3"]),
        (GOLDEN["key-2"], b""),
        (GOLDEN["key-2"], GOLDEN["group-3"][:-1]),
        (GOLDEN["key-2"], b"\0\5" + GOLDEN["group-4"][2:]),
        (GOLDEN["key-1"], GOLDEN["commit-4"][:-1]),
        (GOLDEN["key-1"], b"\xff\xff"),
        (GOLDEN["key-2"], GOLDEN["group-3"][:2] + b"\0\2\xc3\x28" + GOLDEN["group-3"][12:]),
        # Two thousand million members that are not there.
        (GOLDEN["key-2"], GOLDEN["empty-3"][:-4] + b"\x7f\xff\xff\xff"),
    ],
)
def test_damaged_records_are_values_and_not_errors(key: bytes | None, value: bytes | None) -> None:
    (rejection,) = events_of(key, value, AT, "c")
    assert isinstance(rejection, Rejection)
    assert rejection.reason == "kafka_record_undecodable"


def test_a_record_is_kept_whole_in_base64() -> None:
    kept = json.loads(raw_of(b"\x00\x02k", b"\xff"))
    assert {name: base64.b64decode(text) for name, text in kept.items()} == {"key": b"\x00\x02k", "value": b"\xff"}
    assert json.loads(raw_of(None, None)) == {"key": None, "value": None}


@pytest.mark.parametrize(
    ("timestamp_ms", "reason"),
    [
        (946_684_799_999, "event_time_before_2000"),
        (4_102_444_800_001, "event_time_after_2100"),
        (AT + 1, "event_time_ahead_of_clock"),
    ],
)
def test_a_record_of_an_absurd_time_is_rejected(timestamp_ms: int, reason: str) -> None:
    for key, value in (("key-1", "commit-3"), ("key-2", "group-3"), ("key-2", None), ("key-3", "consumer-group")):
        (rejection,) = events_of(GOLDEN[key], None if value is None else GOLDEN[value], timestamp_ms, "c", latest_ms=AT)
        assert isinstance(rejection, Rejection)
        assert (rejection.reason, rejection.group_id) == (reason, "g")


def test_a_record_without_a_timestamp_takes_the_time_inside_its_value() -> None:
    (commit,) = decode("key-1", "commit-1", -1)
    (snapshot,) = decode("key-2", "group-3", None)
    (rejection,) = decode("key-2", None, -1)
    assert (commit.event_time, snapshot.event_time) == (1_700_000_000_123, 1_700_000_000_500)  # type: ignore[union-attr]
    assert isinstance(rejection, Rejection)
    assert rejection.reason == "kafka_record_without_time"


@pytest.mark.parametrize(
    ("group", "followed"),
    [
        ("billing", True),
        ("billing-2", False),
        ("spark-kafka-source-1a-driver-0", False),
        ("spark-kafka-relation-7", False),
        ("spark", True),
        ("a\nb", True),
    ],
)
def test_patterns_match_whole_groups_and_excluded_ones_are_left_out(group: str, followed: bool) -> None:
    patterns = GroupPatterns((".*",), ("billing-.", "spark-kafka-source-.*", "spark-kafka-relation-.*"))
    name = group.encode()
    key = b"\0\2" + struct.pack(">h", len(name)) + name
    assert patterns.follow(group) is followed
    assert len(events_of(key, GOLDEN["group-3"], AT, "c", patterns)) == int(followed)


def test_the_group_without_a_name_is_nobodys() -> None:
    assert events_of(b"\0\1\0\0\0\6orders\0\0\0\3", GOLDEN["commit-3"], AT, "c") == []


def test_decoded_events_match_the_contract() -> None:
    for value in ("group-0", "group-4", "empty-3", "connect"):
        (event,) = decode("key-2", value)
        assert msgspec.json.decode(msgspec.json.encode(event), type=AnyEvent) == event
