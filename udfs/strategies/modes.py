"""Core: the two modes in which queues are not dealt out: broadcasting and message. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from udfs.events import QueueRef
from udfs.java import sorted_strings
from udfs.strategies.problem import Assignment, Problem
from udfs.strategies.rocketmq_averagely import averagely
from udfs.strategies.rocketmq_clients import Allocation, deal_each_topic
from udfs.strategies.subscriptions import distinct_queues, known_topics, subscribers_by_topic

# What stands for "all queues of this broker" where queues are shared by message (RocketMQ 5, code 400).
WHOLE_BROKER = -1


def broadcasting(problem: Problem) -> Assignment:
    """Give every subscriber every queue of its topics."""
    held: list[list[QueueRef]] = [[] for _ in problem.members]
    subscribers = subscribers_by_topic(problem.members)
    for topic in known_topics(problem, subscribers):
        queues = topic.by_broker
        for member in subscribers[topic.name]:
            held[member] += queues
    return {member.member_id: queues for member, queues in zip(problem.members, held, strict=True)}


def message(problem: Problem) -> Assignment:
    """Share queues by message: every subscriber takes from queue −1 of each broker, nobody owns one."""
    held: list[list[QueueRef]] = [[] for _ in problem.members]
    subscribers = subscribers_by_topic(problem.members)
    for topic in known_topics(problem, subscribers):
        brokers = distinct_queues(
            QueueRef(topic=topic.name, queue_id=WHOLE_BROKER, broker=queue.broker) for queue in topic.by_broker
        )
        for member in subscribers[topic.name]:
            held[member] += brokers
    return {member.member_id: queues for member, queues in zip(problem.members, held, strict=True)}


def message_shared(problem: Problem, share_number: int, allocate: Allocation = averagely) -> Assignment:
    """Let each member take messages from its own slice and those of the next ``share_number`` members.

    With fewer queues than members each takes from one queue; with a share number of 0 or less, or one that reaches
    all others, it is ``message``.

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

    return deal_each_topic(problem, slices)
