"""A group as the coordinator's assignors see it: Java's sets, topic ids, the target before."""

import base64
import uuid

import msgspec
import pytest

from tests.udfs.strategies.groups import group, queue
from udfs.jvm.collections import hash_map_order
from udfs.model.errors import StrategyError
from udfs.model.events import QueueInfo
from udfs.strategies.kafka.server import (
    MembersPut,
    ServerGroup,
    coordinator_orders,
    copied_set_table,
    integers_in_set_order,
    uuid_hashes,
    uuid_order,
)
from udfs.strategies.problem import Problem, Topic


@pytest.mark.parametrize(("size", "slots"), [(0, 16), (11, 16), (12, 32), (23, 32), (24, 64), (47, 64), (48, 128)])
def test_a_copied_set_has_room_for_a_third_more(size: int, slots: int) -> None:
    # HashMap: max(size / .75 + 1, 16), up to a power of two.
    assert copied_set_table(size) == slots


@pytest.mark.parametrize(
    ("numbers", "order"),
    [
        ([], []),
        ([3, 1, 2], [1, 2, 3]),
        # Sixteen slots: 16 falls into slot 0, 17 into slot 1, each behind what came before.
        ([17, 16, 1], [16, 17, 1]),
        ([1, 17, 16], [16, 1, 17]),
        ([5, 21, 5, 37], [5, 21, 37]),
        # 65536 is spread: 65536 ^ 1 falls into slot 1.
        ([2, 1 << 16, 0], [0, 1 << 16, 2]),
    ],
)
def test_integers_come_by_slot_and_in_a_slot_as_they_were_put(numbers: list[int], order: list[int]) -> None:
    assert integers_in_set_order(numbers) == order


def test_nine_integers_in_one_slot_of_a_small_table_let_it_grow() -> None:
    # Below 64 slots HashMap doubles the table instead of making a tree: of 32 slots 16 takes the odd multiples.
    numbers = [16 * number for number in range(9)]
    assert integers_in_set_order(numbers) == [0, 32, 64, 96, 128, 16, 48, 80, 112]


def test_uuids_hash_and_compare_as_kafkas() -> None:
    negative = uuid.UUID("ffffffff-0000-0000-0000-000000000001").int
    # (high ^ low) folded: 0xffffffff00000001 -> 0xffffffff ^ 0x00000001.
    assert uuid_hashes([0, 1, negative]) == [0, 1, 0xFFFFFFFE]
    # Signed longs: a number whose first bit is set comes before zero.
    assert uuid_order(negative) < uuid_order(0) < uuid_order(1)
    assert uuid_order((1 << 64) - 1) < uuid_order(0)


def with_ids(problem: Problem, ids: dict[str, str | None]) -> Problem:
    topics = {name: msgspec.structs.replace(topic, topic_id=ids.get(name)) for name, topic in problem.topics.items()}
    return msgspec.structs.replace(problem, topics=topics)


def test_a_topic_id_is_read_in_both_ways_of_writing_it_and_is_its_place_where_there_is_none() -> None:
    number = uuid.UUID("8f14e45f-ceea-467f-a0e6-000000000005")
    short = base64.urlsafe_b64encode(number.bytes).decode().rstrip("=")
    problem = group({"a": ["s", "t", "u", "none"]}, {"u": 1, "t": 1, "s": 1, "none": 0})
    assert ServerGroup(with_ids(problem, {"s": short, "t": str(number)})).ids == [number.int, number.int, 2]


def test_any_22_letters_of_base64_are_a_topic_id() -> None:
    problem = with_ids(group({"a": ["t"]}, {"t": 1}), {"t": "_" * 21 + "w"})
    assert ServerGroup(problem).ids == [(1 << 128) - 1]


@pytest.mark.parametrize(
    "text", ["", "abc", "x" * 21, "z" * 36, "é" * 22, base64.urlsafe_b64encode(b"1" * 17).decode()]
)
def test_invalid_topic_ids_are_an_error(text: str) -> None:
    with pytest.raises(StrategyError, match="is not a topic id") as failed:
        ServerGroup(with_ids(group({"a": ["t"]}, {"t": 1}), {"t": text}))
    assert failed.value.code == "illegal_argument"


def test_members_are_homogeneous_by_the_names_that_they_list_whether_or_not_the_topics_exist() -> None:
    assert ServerGroup(group({"a": ["t", "u"], "b": ["u", "t", "t"]}, {"t": 1})).homogeneous
    assert not ServerGroup(group({"a": ["t", "missing"], "b": ["t"]}, {"t": 1})).homogeneous


def test_only_existing_topics_of_a_member_count() -> None:
    server = ServerGroup(group({"a": ["u", "missing", "none"], "b": ["t", "u"]}, {"u": 1, "t": 1, "none": 0}))
    found = {member.member_id: topics for member, topics in zip(server.members, server.subscriptions, strict=True)}
    assert [topic.name for topic in server.topics] == ["t", "u"]
    assert found == {"a": {1}, "b": {0, 1}}


def test_a_target_before_is_grouped_by_topic_without_deleted_ones() -> None:
    problem = group({"a": ["t", "u"]}, {"t": 40, "u": 1}, owned={"a": ["t-17", "v-0", "u-0", "t-16", "t-1"]})
    # Of the topics as of numbers: the places 0 and 1 are their hashes.
    assert ServerGroup(problem).target(0) == {0: [16, 17, 1], 1: [0]}
    assert list(ServerGroup(problem).target(0)) == [0, 1]


def test_the_target_before_overrides_what_members_own_also_where_it_names_no_queues() -> None:
    problem = group({"a": ["t"], "b": ["t"]}, {"t": 2}, owned={"a": ["t-0"], "b": ["t-1"]})
    assert ServerGroup(problem).owned == [(queue("t-0"),), (queue("t-1"),)]
    before = msgspec.structs.replace(problem, previous={"b": (queue("t-0"),)})
    assert ServerGroup(before).owned == [(), (queue("t-0"),)]


def test_the_first_members_topics_come_in_the_order_of_a_set_of_their_ids() -> None:
    problem = group({"a": ["t", "u", "missing"]}, {"t": 1, "u": 1})
    ids = {"t": str(uuid.UUID(int=5)), "u": str(uuid.UUID(int=3))}
    server = ServerGroup(with_ids(problem, ids))
    assert [server.topics[place].name for place in server.first_topics()] == ["u", "t"]


def test_partitions_are_those_of_the_topic_by_number() -> None:
    topic = Topic(name="t", queues=(QueueInfo(queue_id=1), QueueInfo(queue_id=0)))
    server = ServerGroup(msgspec.structs.replace(group({"a": ["t"]}, {}), topics={"t": topic}))
    assert server.counts == [2]
    assert [ref.queue_id for ref in server.queues[0]] == [0, 1]


def test_the_coordinator_puts_members_in_the_order_of_its_own_map_and_the_requesting_one_last() -> None:
    # "Aa", "BB" and "C#" have one hash code: in its map the newest of a slot comes first.
    joined = ["Aa", "BB", "C#"]
    assert next(coordinator_orders(joined)) == MembersPut(["C#", "BB", "Aa"])
    assert next(coordinator_orders(joined, ["C#"])) == MembersPut(["BB", "Aa", "C#"])
    assert MembersPut(["C#", "BB", "Aa"]) in list(coordinator_orders(joined, ["C#"]))


@pytest.mark.parametrize(("count", "slots"), [(11, {16}), (12, {16, 32}), (13, {16}), (24, {16, 64}), (48, {16, 128})])
def test_a_map_that_was_full_when_a_static_member_took_anothers_place_has_grown(count: int, slots: set[int]) -> None:
    joined = [f"member-{number * 7919}" for number in range(count)]
    assert {put.slots for put in coordinator_orders(joined)} == slots


def test_all_tried_orders_are_different() -> None:
    members = [f"{start}{number}" for number in range(6) for start in ("Aa", "BB", "C#")]
    orders = [tuple(hash_map_order(put.members, put.slots)) for put in coordinator_orders(members, members[-1:])]
    assert len(orders) == len(set(orders))
    assert 24 <= len(orders) <= 24 + 2 * 4
    assert all(sorted(order) == sorted(members) for order in orders)
