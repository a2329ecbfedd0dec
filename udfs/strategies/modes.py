"""Core: the two modes without an allocation of queues: broadcasting and message. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from udfs.jvm.collections import sorted_strings
from udfs.model.events import QueueRef
from udfs.strategies.problem import Assignment, Problem
from udfs.strategies.rocketmq.all_members import TopicAllocation, allocate_each_topic
from udfs.strategies.rocketmq.averagely import averagely
from udfs.strategies.subscriptions import distinct_queues, subscribers_by_topic, topics_with_queues

# Stands for "all queues of this broker" if queues are shared by message (RocketMQ 5, code 400).
WHOLE_BROKER = -1


def broadcasting(problem: Problem) -> Assignment:
    """Return every queue of its topics for every subscriber."""
    held: list[list[QueueRef]] = [[] for _ in problem.members]
    subscribers = subscribers_by_topic(problem.members)
    for topic in topics_with_queues(problem, subscribers):
        queues = topic.by_broker
        for member in subscribers[topic.name]:
            held[member] += queues
    return {member.member_id: queues for member, queues in zip(problem.members, held, strict=True)}


def message(problem: Problem) -> Assignment:
    """Return queue −1 of each broker for every subscriber: messages are shared, and no queue has an owner."""
    held: list[list[QueueRef]] = [[] for _ in problem.members]
    subscribers = subscribers_by_topic(problem.members)
    for topic in topics_with_queues(problem, subscribers):
        brokers = distinct_queues(
            QueueRef(topic=topic.name, queue_id=WHOLE_BROKER, broker=queue.broker) for queue in topic.by_broker
        )
        for member in subscribers[topic.name]:
            held[member] += brokers
    return {member.member_id: queues for member, queues in zip(problem.members, held, strict=True)}


def message_shared(problem: Problem, share_number: int, allocate: TopicAllocation = averagely) -> Assignment:
    """Return each member's own slice and those of the next ``share_number`` members.

    With fewer queues than members each takes from one queue; a share number of 0 or less, or one that covers all other
    members, gives ``message``.

    Args:
        allocate: The broker's strategy for the topic: ``averagely`` or ``by_circle``.

    Source: RocketMQ 5.5 broker ``QueryAssignmentProcessor#allocate4Pop``.

    Example: 4 queues, 3 members, share number 1: {0, 1, 2}, {2, 3}, {3, 0, 1}.
    """
    ids = sorted_strings(member.name for member in problem.members)
    if share_number <= 0 or share_number >= len(ids) - 1:
        return message(problem)

    def slices(queues: Sequence[QueueRef], names: Sequence[str]) -> dict[str, list[QueueRef]]:
        firsts = {name: place for place, name in reversed(list(enumerate(names)))}
        if len(names) > len(queues):
            return {name: [queues[place % len(queues)]] for name, place in firsts.items()}
        own = allocate(queues, names)
        return {
            name: distinct_queues(
                queue for step in range(share_number + 1) for queue in own.get(names[(place + step) % len(names)], ())
            )
            for name, place in firsts.items()
        }

    return allocate_each_topic(problem, slices)
