"""Core: Kafka's client-side round robin assignor. No I/O."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from udfs.jvm.collections import string_order
from udfs.model.events import QueueRef
from udfs.strategies.kafka.client_library import JAVA, SARAMA, by_hash, by_member, in_order, leader_library
from udfs.strategies.problem import Assignment, Problem, Topic
from udfs.strategies.subscriptions import subscribers_by_topic, topics_with_queues


def kafka_roundrobin(problem: Problem) -> Assignment:
    """Return all partitions of all subscribed topics one by one, each for the next member in order.

    Topics by name, partitions ascending, one pointer over the members; a member that does not subscribe to the topic
    is skipped, and the pointer continues from there.

    With equal subscriptions the group spreads by at most one. Known imbalance: with unequal subscriptions a member of
    many topics gets partitions of all of them, even of topics that are the only ones of other members.

    Rolling restart: as with range, a dynamic member comes back at another position and nearly everything moves.

    Source: kafka-clients 4.1 ``RoundRobinAssignor``, librdkafka ``rd_kafka_roundrobin_assignor_assign_cb``; sarama 1.27
    ``BalanceStrategyRoundRobin``, which alternates within each topic separately.

    Example: t0 and t1 of 3 partitions, C0 and C1: C0 {t0: 0, 2; t1: 1}, C1 {t0: 1; t1: 0, 2}.
    """
    library = leader_library(problem)
    members = in_order(problem.members, library)
    held: list[list[QueueRef]] = [[] for _ in members]
    subscribers = subscribers_by_topic(members)
    topics = topics_with_queues(problem, subscribers)
    if not all(topic.name.isascii() for topic in topics):
        topics.sort(key=lambda topic: topic.name.encode() if library.name != JAVA else string_order(topic.name))
    if library.alternates_by_hash:
        places = {member.member_id: place for place, member in enumerate(members)}
        for topic in topics:
            ordered = by_hash([members[place] for place in subscribers[topic.name]], topic.name)
            for first, participant in enumerate(ordered):
                held[places[participant.member_id]] += topic.by_queue_id[first :: len(ordered)]
        return by_member(problem, members, held)
    if library.name == SARAMA:
        _by_names(topics, subscribers, held)
        return by_member(problem, members, held)
    pointer = 0
    for topic in topics:
        takers = subscribers[topic.name]
        queues = topic.by_queue_id
        first = bisect_left(takers, pointer) % len(takers)
        owners = takers[first : first + len(queues)]
        owners += takers[: min(first, len(queues) - len(owners))]
        for place, member in enumerate(owners):
            held[member] += queues[place :: len(takers)]
        last = takers[(first + len(queues) - 1) % len(takers)]
        pointer = (last + 1) % len(members)
    return by_member(problem, members, held)


def _by_names(topics: Sequence[Topic], subscribers: Mapping[str, list[int]], held: Sequence[list[QueueRef]]) -> None:
    """Assign partitions one by one as sarama does: in the order of their names as texts, ``t-10`` before ``t-2``."""
    queues = [queue for topic in topics for queue in topic.by_queue_id]
    queues.sort(key=lambda queue: f"{queue.topic}-{queue.queue_id}")
    pointer = 0
    for queue in queues:
        takers = subscribers[queue.topic]
        member = takers[bisect_left(takers, pointer) % len(takers)]
        held[member].append(queue)
        pointer = (member + 1) % len(held)
