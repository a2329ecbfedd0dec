"""Core: how RocketMQ's clients allocate: every topic over all ids of the group. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from udfs.jvm.collections import sorted_strings
from udfs.model.errors import StrategyError
from udfs.model.events import QueueRef
from udfs.strategies.problem import Assignment, Problem
from udfs.strategies.subscriptions import subscribers_by_topic, topics_with_queues

# Allocates one topic: takes sorted queues and sorted ids, with repetitions, and returns each id's queues; a missing id
# gets none.
TopicAllocation: TypeAlias = Callable[[Sequence[QueueRef], Sequence[str]], Mapping[str, Sequence[QueueRef]]]


def allocate_each_topic(problem: Problem, allocate: TopicAllocation) -> Assignment:
    """Return each subscribed topic allocated over all members; a non-subscriber's slice has no owner.

    Two connections with one id both take the first of its slices; the second slice has no owner.

    A client without an id fails as soon as it allocates a topic (``AbstractAllocateMessageQueueStrategy#check``).

    Source: rocketmq-client 4.9 and 5.5 ``RebalanceImpl#rebalanceByTopic``.
    """
    ids = sorted_strings(member.name for member in problem.members)
    held: list[list[QueueRef]] = [[] for _ in problem.members]
    subscribers = subscribers_by_topic(problem.members)
    members_by_name: dict[str, list[int]] = {}
    for index, member in enumerate(problem.members):
        members_by_name.setdefault(member.name, []).append(index)
    # Topics with the same subscribers share one list.
    sets = {id(members): frozenset(members) for members in subscribers.values()}
    nameless = members_by_name.get("", ())
    for topic in topics_with_queues(problem, subscribers):
        subscribed = sets[id(subscribers[topic.name])]
        if not subscribed.isdisjoint(nameless):
            raise StrategyError("illegal_argument", "a client has an empty id")
        for name, queues in allocate(topic.by_broker, ids).items():
            for member_index in members_by_name[name]:
                if member_index in subscribed:
                    held[member_index] += queues
    return {member.member_id: queues for member, queues in zip(problem.members, held, strict=True)}
