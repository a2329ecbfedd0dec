"""Core: the range assignor of Kafka's group coordinator (KIP-848). No I/O."""

from __future__ import annotations

from udfs.model.events import QueueRef
from udfs.strategies.kafka.client_library import Library, assign_blocks, by_member, in_order
from udfs.strategies.problem import Assignment, Problem
from udfs.strategies.subscriptions import subscribers_by_topic, topics_with_queues


def kafka_server_range(problem: Problem) -> Assignment:
    """Return each topic in blocks of neighbours: static members by instance id first, then the others by id.

    Each topic is even to within one queue. It remembers nothing: it is sticky only as far as the order of members is.
    Known imbalance: the first subscribers get one more of every topic. Racks are not used.

    Rolling restart: a dynamic member comes back under a new id at another position; a static one moves nothing.

    Source: KIP-848; kafka-group-coordinator 4.1 ``RangeAssignor``.

    Example: 5 and 3 partitions, two members: {t1: 0–2, t2: 0–1} and {t1: 3–4, t2: 2}.
    """
    members = in_order(problem.members, Library(name="java"))
    held: list[list[QueueRef]] = [[] for _ in members]
    subscribers = subscribers_by_topic(members)
    for topic in topics_with_queues(problem, subscribers):
        assign_blocks(topic.by_queue_id, subscribers[topic.name], held)
    return by_member(problem, members, held)
