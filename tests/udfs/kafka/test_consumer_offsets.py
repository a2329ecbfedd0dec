"""Records of ``__consumer_offsets``; those in consumer_offsets_golden/ were written by Kafka 4.1.1's own classes."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from udfs.kafka.consumer_offsets import GroupPatterns, events_of, raw_of
from udfs.kafka.consumer_offsets_batch import read_offsets
from udfs.kafka.consumer_protocol import guess_library, read_assignment, read_subscription
from udfs.model.events import AnyEvent, GroupDeleted, GroupSnapshot, MemberInfo, Progress, QueueOffset, QueueRef
from udfs.model.rejection import Rejection
from udfs.packets.packet import group_key, queue_key

GOLDEN = {
    name: bytes.fromhex(hexadecimal)
    for name, hexadecimal in (
        line.split("\t")
        for line in (Path(__file__).parent / "consumer_offsets_golden" / "records.tsv").read_text().splitlines()
    )
}
AT = 1_700_000_001_000
DETAILS = (4, 5, 6, 7, 8, 10, 12, 13, 14, 15, 16, 19, 20, 21, 22, 23)


def decode(key: str, value: str | None, timestamp_ms: int | None = AT) -> list[AnyEvent | Rejection]:
    return list(events_of(GOLDEN[key], None if value is None else GOLDEN[value], timestamp_ms, "c"))


def snapshot_of(version: int) -> GroupSnapshot:
    (snapshot,) = decode("key-2", f"group-{version}")
    assert isinstance(snapshot, GroupSnapshot)
    return snapshot


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_a_group_record_tells_generation_strategy_leader_and_assignments(version: int) -> None:
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
        client_library="java-2.3",
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


def test_the_tombstone_of_a_commit_is_nothing() -> None:
    assert decode("key-1", None) == []


@pytest.mark.parametrize("key", ["key-2", "key-3", "key-11", "key-17"])
def test_the_tombstone_of_a_group_deletes_it(key: str) -> None:
    assert decode(key, None) == [GroupDeleted(schema_version=1, event_time=AT, system="kafka", cluster="c", group="g")]


@pytest.mark.parametrize(
    ("key", "value"),
    [("key-3", "consumer-group"), ("key-11", "share-group"), ("key-17", "streams-group"), ("key-2", "connect")],
)
def test_groups_of_other_kinds_are_listed_and_not_followed(key: str, value: str) -> None:
    (snapshot,) = decode(key, value)
    assert snapshot == GroupSnapshot(
        schema_version=1, event_time=AT, system="kafka", cluster="c", group="g", state="not_followed"
    )


@pytest.mark.parametrize("key_type", DETAILS)
def test_the_details_of_other_groups_say_nothing(key_type: int) -> None:
    key = f"key-{key_type}"
    assert decode(key, "commit-3") == decode(key, None) == []


@pytest.mark.parametrize("key_type", [9, 18, 24, 99, 32_767, -1])
def test_unknown_key_types_are_skipped(key_type: int) -> None:
    assert events_of(struct.pack(">h", key_type) + b"\xff\xff anything", b"\x00", AT, "c") == []


@pytest.mark.parametrize("version", range(4))
def test_every_version_of_a_subscription(version: int) -> None:
    subscription = read_subscription(GOLDEN[f"subscription-{version}"], "range")
    assert subscription.topics == ("bills", "orders")
    owned = (QueueRef("bills", 0), QueueRef("orders", 1))
    assert subscription.owned == (owned if version >= 1 else None)
    assert subscription.owned_generation == (4 if version >= 2 else None)
    assert subscription.rack == ("rack-a" if version >= 3 else None)


@pytest.mark.parametrize("version", range(4))
def test_every_version_of_an_assignment(version: int) -> None:
    given_queues = (QueueRef("bills", 0), QueueRef("orders", 0), QueueRef("orders", 2))
    assert read_assignment(GOLDEN[f"assignment-{version}"]) == given_queues


def test_versions_above_the_newest_are_read_as_the_newest_and_what_follows_is_ignored() -> None:
    newer = b"\x00\x09" + GOLDEN["subscription-3"][2:] + b"more"
    subscription = read_subscription(newer, "range")
    assert (subscription.version, subscription.rack, subscription.owned_generation) == (9, "rack-a", 4)
    assert read_assignment(b"\x00\x09" + GOLDEN["assignment-3"][2:] + b"more") == read_assignment(
        GOLDEN["assignment-3"]
    )


def test_sticky_tells_what_it_held_in_its_user_data() -> None:
    subscription = read_subscription(GOLDEN["sticky-1"], "sticky")
    assert set(subscription.owned or ()) == {QueueRef("orders", 1), QueueRef("orders", 3)}
    assert subscription.owned_generation == 7
    assert read_subscription(GOLDEN["sticky-1"], "range").owned == ()


def test_sticky_that_has_held_nothing_owns_nothing() -> None:
    subscription = read_subscription(GOLDEN["sticky-none"], "sticky")
    assert (subscription.owned, subscription.owned_generation) == ((), None)


def test_stickys_user_data_of_version_0_have_no_generation() -> None:
    user_data = b"\0\0\0\1" + b"\0\6orders" + b"\0\0\0\1" + b"\0\0\0\3"
    data = b"\0\0" + b"\0\0\0\1" + b"\0\6orders" + struct.pack(">i", len(user_data)) + user_data
    subscription = read_subscription(data, "sticky")
    assert (subscription.owned, subscription.owned_generation) == ((QueueRef("orders", 3),), None)


def test_cooperative_sticky_tells_its_generation_in_its_user_data_where_the_version_has_no_field_for_it() -> None:
    subscription = read_subscription(GOLDEN["cooperative-1"], "cooperative-sticky")
    assert (subscription.owned, subscription.owned_generation) == ((QueueRef("orders", 3),), 9)


@pytest.mark.parametrize(
    ("client_id", "version", "library"),
    [
        ("rdkafka", 1, "librdkafka"),
        ("kafka-python-3.0.12", 0, "kafka-python"),
        ("aiokafka-0.14.0", 0, "aiokafka"),
        ("consumer-billing-1", 0, "java-2.3"),
        ("consumer-billing-1", 1, "java-2.4"),
        ("consumer-billing-1", 3, "java-3.5"),
        ("consumer-billing-1", 7, "java-3.5"),
        ("billing", 0, "java-2.3"),
        ("billing", 3, None),
    ],
)
def test_the_client_library_is_guessed(client_id: str, version: int, library: str | None) -> None:
    assert guess_library(client_id, version) == library


def test_a_member_whose_subscription_cannot_be_read_is_still_a_member() -> None:
    subscription = struct.pack(">hi", 0, 1) + b"\0\6orders"
    broken = GOLDEN["group-3"].replace(subscription, b"\xff" * len(subscription))
    snapshot, rejection = events_of(GOLDEN["key-2"], broken, AT, "c")
    assert isinstance(snapshot, GroupSnapshot)
    assert isinstance(rejection, Rejection)
    assert [member.subscriptions for member in snapshot.members] == [("bills", "orders"), ()]
    assert snapshot.assignments == snapshot_of(3).assignments
    assert (rejection.reason, rejection.group_id) == ("kafka_member_undecodable", "g")
    assert "static-uuid" in rejection.detail


def test_where_one_assignment_cannot_be_read_none_is_reported() -> None:
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


def test_what_is_decoded_fits_the_contract() -> None:
    for value in ("group-0", "group-4", "empty-3", "connect"):
        (event,) = decode("key-2", value)
        assert msgspec.json.decode(msgspec.json.encode(event), type=AnyEvent) == event


# -- columns ----------------------------------------------------------------------------------------------------

Record = tuple[bytes | None, bytes | None, int]
TIMES = st.sampled_from([AT, AT + 1, AT + 60_001, -1, 0, 946_684_800_000])
KEYS = st.sampled_from([GOLDEN[name] for name in GOLDEN if name.startswith("key-")])
VALUES = st.sampled_from([GOLDEN[name] for name in GOLDEN if not name.startswith("key-")])


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes | None:
    data = draw(whole)
    match draw(st.sampled_from(["whole", "whole", "null", "cut", "changed", "longer", "random"])):
        case "null":
            return None
        case "cut":
            return data[: draw(st.integers(0, len(data)))]
        case "changed":
            place = draw(st.integers(0, len(data) - 1))
            return data[:place] + bytes([draw(st.integers(0, 255))]) + data[place + 1 :]
        case "longer":
            return data + draw(st.binary(max_size=20))
        case "random":
            return draw(st.binary(max_size=40))
    return data


def columns_of(records: list[Record]) -> tuple[pa.BinaryArray, pa.BinaryArray, np.ndarray]:
    keys, values, times = zip(*records, strict=True) if records else ((), (), ())
    return pa.array(keys, pa.binary()), pa.array(values, pa.binary()), np.array(times, np.int64)


@given(st.lists(st.tuples(damaged(KEYS), damaged(VALUES), TIMES), max_size=12))
@example([])
@example([(None, None, AT)])
@example([(GOLDEN["key-1"], GOLDEN["commit-4"], AT), (GOLDEN["key-1"], None, AT), (GOLDEN["key-0"], b"", AT)])
def test_columns_say_the_same_as_records_one_by_one(records: list[Record]) -> None:
    commits, others = [], []
    for row, (key, value, timestamp_ms) in enumerate(records):
        for outcome in events_of(key, value, timestamp_ms, "c", latest_ms=AT + 60_000):
            if isinstance(outcome, Progress):
                (queue,) = outcome.queues
                hashes = (group_key("c", outcome.group), queue_key(queue.topic, None, queue.queue_id))
                commits.append((*hashes, outcome.event_time))
            else:
                others.append((row, outcome))
    read = read_offsets(*columns_of(records), cluster="c", latest_ms=AT + 60_000)
    found = zip(read.group_keys.tolist(), read.queue_keys.tolist(), read.times.tolist(), strict=True)
    assert sorted(found) == sorted(commits)
    assert read.others == others


def test_columns_that_are_a_slice_of_longer_ones_are_read_as_such() -> None:
    records: list[Record] = [
        (GOLDEN["key-2"], None, AT),
        (GOLDEN["key-1"], GOLDEN["commit-3"], AT + 1),
        (GOLDEN["key-2"], None, AT),
    ]
    keys, values, times = columns_of(records)
    read = read_offsets(keys.slice(1, 1), values.slice(1, 1), times[1:2], cluster="c")
    assert (read.times.tolist(), read.others) == ([AT + 1], [])


def test_columns_leave_out_what_is_not_followed() -> None:
    keys, values, times = columns_of([(GOLDEN["key-1"], GOLDEN["commit-3"], AT)] * 3)
    read = read_offsets(keys, values, times, cluster="c", patterns=GroupPatterns(("other",)))
    assert (len(read.times), read.others) == (0, [])
