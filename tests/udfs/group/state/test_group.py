"""What is remembered of a group: keys of queues, orders, generations."""

import pytest

from udfs.group.batch.sessions import GroupSessions
from udfs.group.state.group import Group, Member, by_place, key_of, keys_of, queue_order
from udfs.model.events import HeldQueue, QueueInfo, QueueRef


@pytest.mark.parametrize(("system", "broker"), [("kafka", None), ("rocketmq", "b"), ("metaq", "b")])
def test_a_partition_of_kafka_is_the_same_whichever_broker_leads_it(system, broker: str | None) -> None:
    for queue in (QueueRef("t", 1, "b"), HeldQueue("t", 1, "b")):
        assert key_of(queue, system) == ("t", broker, 1)
    assert key_of(QueueInfo(1, "b"), system, "t") == ("t", broker, 1)
    assert keys_of([QueueInfo(1, "b"), QueueInfo(0, "b")], system, "t") == [("t", broker, 1), ("t", broker, 0)]


def test_queues_sort_by_topic_broker_and_number_and_those_without_a_broker_first() -> None:
    queues = [("u", None, 0), ("t", "b", 2), ("t", "b", 10), ("t", None, 5), ("t", "a", 11)]
    assert sorted(queues, key=queue_order) == [queues[3], queues[4], queues[1], queues[2], queues[0]]


def test_owners_are_grouped_by_topic_and_broker_in_order() -> None:
    owners = {("u", None, 0): ("a",), ("t", "b", 2): ("a",), ("t", None, 1): ("b",), ("t", "b", 0): ("c",)}
    assert by_place(owners) == [
        ("t", None, {1: ("b",)}),
        ("t", "b", {2: ("a",), 0: ("c",)}),
        ("u", None, {0: ("a",)}),
    ]


@pytest.mark.parametrize(
    ("group", "source", "generation"),
    [
        (Group(), "counted", 0),
        (Group(counted=3), "counted", 3),
        (Group(counted=3, generation=0), "reported", 0),
        (Group(counted=3, generation=9), "reported", 9),
    ],
)
def test_a_reported_generation_takes_the_place_of_a_counted_one(group: Group, source: str, generation: int) -> None:
    assert (group.source, group.current_generation) == (source, generation)


def test_a_group_subscribes_to_the_topics_of_all_of_its_members() -> None:
    topics = {"a": ("u", "t"), "b": None, "c": (), "d": ("t",)}
    members = {
        name: Member(member_id=name, name=name, joined_at=0, subscriptions=names) for name, names in topics.items()
    }
    assert Group(members=members).subscribed_topics() == ["t", "u"]


def test_a_member_forgets_what_it_reported_to_own_and_when_and_nothing_else() -> None:
    member = Member(
        member_id="m",
        name="m",
        joined_at=0,
        owned=(QueueRef("t", 0),),
        owned_generation=3,
        host="h",
        field_times={"owned": 1, "owned_generation": 1, "host": 1},
    )
    GroupSessions.forget_owned(member)
    assert (member.owned, member.owned_generation, member.host, member.field_times) == (None, None, "h", {"host": 1})
