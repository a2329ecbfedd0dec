"""The modes without an allocation: broadcasting, and sharing by message."""

import functools

import msgspec
import pytest

from tests.udfs.strategies.groups import as_text, group
from udfs.model.events import QueueInfo
from udfs.strategies import allocate as allocation
from udfs.strategies.modes import message, message_shared
from udfs.strategies.problem import Topic
from udfs.strategies.rocketmq.averagely import by_circle

# No member votes in these modes.
allocate = functools.partial(allocation.allocate, tie_order="4.x")


def test_broadcasting_gives_every_subscriber_every_queue() -> None:
    problem = group({"a": ["t"], "b": ["t"], "c": []}, {"t": 2})
    allocated = allocate(system="rocketmq", mode="broadcasting", strategy=None, problem=problem, tie_order="4.x")
    assert as_text(allocated.assignment) == {"a": "t-0 t-1", "b": "t-0 t-1", "c": ""}
    assert allocated.strategy is None


def test_message_mode_gives_every_subscriber_queue_minus_one_of_each_broker() -> None:
    problem = group({"a": ["t"], "b": ["t"], "c": []}, {"t": 2}, broker="x")
    held = allocate(system="rocketmq", mode="message", strategy="AVG", problem=problem, tie_order="4.x").assignment
    assert {member: [(queue.broker, queue.queue_id) for queue in queues] for member, queues in held.items()} == {
        "a": [("x", -1)],
        "b": [("x", -1)],
        "c": [],
    }


@pytest.mark.parametrize(
    ("share_number", "queues"),
    # Seen on a broker of 5.5.0: 4 queues, 3 members.
    [(-1, ["-1"] * 3), (0, ["-1"] * 3), (1, ["0 1 2", "2 3", "3 0 1"]), (2, ["-1"] * 3), (3, ["-1"] * 3)],
)
def test_message_mode_with_a_share_number_adds_the_slices_of_the_next_members(
    share_number: int, queues: list[str]
) -> None:
    problem = group({member: ["t"] for member in "abc"}, {"t": 4}, settings={"share_number": share_number})
    held = allocate(system="rocketmq", mode="message", strategy="AVG", problem=problem, tie_order="4.x").assignment
    assert [" ".join(str(queue.queue_id) for queue in held[member]) for member in "abc"] == queues


def test_message_mode_with_fewer_queues_than_members_gives_each_one_queue() -> None:
    problem = group({member: ["t"] for member in "abcd"}, {"t": 2}, settings={"share_number": 1})
    held = allocate(system="rocketmq", mode="message", strategy=None, problem=problem, tie_order="4.x").assignment
    assert as_text(held) == {"a": "t-0", "b": "t-1", "c": "t-0", "d": "t-1"}


def test_a_share_number_that_reaches_all_others_shares_every_message() -> None:
    problem = group({member: ["t"] for member in "abc"}, {"t": 6}, broker="x")
    assert message_shared(problem, 2) == message(problem) == message_shared(problem, 0)
    assert message_shared(problem, 1) != message(problem)


def test_the_brokers_strategy_for_the_topic_makes_the_slices_that_are_shared() -> None:
    problem = group({member: ["t"] for member in "abcd"}, {"t": 8})
    assert as_text(message_shared(problem, 1, by_circle))["a"] == "t-0 t-4 t-1 t-5"
    assert as_text(message_shared(problem, 1))["a"] == "t-0 t-1 t-2 t-3"


def test_message_mode_names_each_broker_once_and_skips_topics_without_queues() -> None:
    brokers = ("y", "x", "y")
    queues = tuple(QueueInfo(queue_id=number, broker=broker) for number, broker in enumerate(brokers))
    problem = group({"a": ["t", "empty", "missing"]}, {"empty": 0})
    topics = {**problem.topics, "t": Topic(name="t", queues=queues)}
    held = message(msgspec.structs.replace(problem, topics=topics))
    assert [(queue.topic, queue.broker, queue.queue_id) for queue in held["a"]] == [("t", "x", -1), ("t", "y", -1)]
