"""The protocol of Kafka's classic consumers, in bytes that Kafka 4.1.1 wrote, and damaged."""

import struct

import pytest

from tests.udfs.kafka.golden_records import GOLDEN
from udfs.kafka.consumer_protocol import read_assignment, read_subscription
from udfs.kafka.wire_reader import WireError
from udfs.model.events import QueueRef


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


def test_sticky_reports_what_it_held_in_its_user_data() -> None:
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


def test_cooperative_sticky_reports_its_generation_in_its_user_data_where_the_version_has_no_field_for_it() -> None:
    subscription = read_subscription(GOLDEN["cooperative-1"], "cooperative-sticky")
    assert (subscription.owned, subscription.owned_generation) == ((QueueRef("orders", 3),), 9)


def test_kafka_pythons_user_data_begin_with_a_version() -> None:
    user_data = b"\0\1" + b"\0\0\0\1" + b"\0\6orders" + b"\0\0\0\1" + b"\0\0\0\3" + b"\0\0\0\7"
    data = b"\0\0" + b"\0\0\0\1" + b"\0\6orders" + struct.pack(">i", len(user_data)) + user_data
    subscription = read_subscription(data, "sticky")
    assert (subscription.owned, subscription.owned_generation) == ((QueueRef("orders", 3),), 7)


def test_librdkafka_writes_with_cooperative_sticky_what_others_write_with_sticky() -> None:
    user_data = b"\0\0\0\1" + b"\0\6orders" + b"\0\0\0\1" + b"\0\0\0\3" + b"\0\0\0\7"
    data = b"\0\1" + b"\0\0\0\1" + b"\0\6orders" + struct.pack(">i", len(user_data)) + user_data + b"\0\0\0\0"
    assert read_subscription(data, "cooperative-sticky").owned_generation == 7


def subscription(version: int, *parts: bytes) -> bytes:
    return struct.pack(">h", version) + b"".join(parts)


TOPICS = struct.pack(">ih6s", 1, 6, b"orders")
NO_DATA = struct.pack(">i", -1)


def owned(*partitions: int) -> bytes:
    return struct.pack(f">ih6si{len(partitions)}i", 1, 6, b"orders", len(partitions), *partitions)


def test_queues_are_named_once_in_the_reported_order_and_topics_sorted() -> None:
    twice = struct.pack(">ih1sh1sh1s", 3, 1, b"b", 1, b"a", 1, b"b")
    found = read_subscription(subscription(1, twice, NO_DATA, owned(3, 1, 3)), "range")
    assert found.topics == ("a", "b")
    assert found.owned == (QueueRef("orders", 3), QueueRef("orders", 1))
    assert read_assignment(subscription(0, owned(3, 1, 3), NO_DATA)) == (QueueRef("orders", 1), QueueRef("orders", 3))


def test_no_bytes_are_no_queues() -> None:
    assert read_assignment(b"") == ()


def test_a_generation_below_zero_is_none() -> None:
    found = read_subscription(subscription(2, TOPICS, NO_DATA, owned(1), struct.pack(">i", -1)), "range")
    assert (found.owned, found.owned_generation) == ((QueueRef("orders", 1),), None)


@pytest.mark.parametrize(
    "data",
    [
        subscription(-1, TOPICS, NO_DATA),
        subscription(0, struct.pack(">ih", 1, 0), NO_DATA),
        subscription(1, TOPICS, NO_DATA, owned(-1)),
        subscription(1, TOPICS, NO_DATA),
        subscription(2, TOPICS, NO_DATA, owned(1)),
        b"",
    ],
)
def test_bytes_that_are_no_subscription_are_an_error(data: bytes) -> None:
    with pytest.raises(WireError):
        read_subscription(data, "range")


def with_user_data(version: int, user_data: bytes, *rest: bytes) -> bytes:
    return subscription(version, TOPICS, struct.pack(">i", len(user_data)) + user_data, *rest)


@pytest.mark.parametrize(
    ("user_data", "queues", "generation"),
    [
        (b"", (), None),
        (owned(3), (QueueRef("orders", 3),), None),
        (owned(3) + b"\0\0\0", (QueueRef("orders", 3),), None),
        (owned(3) + struct.pack(">i", 7), (QueueRef("orders", 3),), 7),
        # The real class takes what it cannot read for nothing, of no generation.
        (owned(3) + struct.pack(">i", -9), (QueueRef("orders", 3),), -1),
        (owned(3)[:-1], (), -1),
        (owned(-3), (), -1),
    ],
)
def test_sticky_takes_what_it_held_from_its_user_data_alone(
    user_data: bytes, queues: tuple[QueueRef, ...], generation: int | None
) -> None:
    found = read_subscription(with_user_data(1, user_data, owned(1)), "sticky")
    assert (found.owned, found.owned_generation) == (queues, generation)


@pytest.mark.parametrize(
    ("user_data", "generation"), [(struct.pack(">i", 9), 9), (struct.pack(">i", -9), -1), (b"\0\0", -1)]
)
def test_cooperative_stickys_user_data_count_only_where_the_subscription_has_no_generation(
    user_data: bytes, generation: int
) -> None:
    older = read_subscription(with_user_data(1, user_data, owned(1)), "cooperative-sticky")
    assert (older.owned, older.owned_generation) == ((QueueRef("orders", 1),), generation)
    newer = read_subscription(with_user_data(2, user_data, owned(1), struct.pack(">i", 4)), "cooperative-sticky")
    assert newer.owned_generation == 4
    other = read_subscription(with_user_data(1, user_data, owned(1)), "range")
    assert other.owned_generation is None
