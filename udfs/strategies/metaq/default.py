"""Core: MetaQ's default strategy, and how its clients name partitions. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from udfs.jvm.collections import sorted_strings
from udfs.model.events import QueueRef
from udfs.strategies.problem import Assignment, Problem
from udfs.strategies.subscriptions import subscribers_by_topic, topics_with_queues

# Allocates one topic: takes sorted partition names and sorted subscribers' ids, returns each id's partition names.
Allocation: TypeAlias = Callable[[Sequence[str], Sequence[str]], Mapping[str, Sequence[str]]]


def metaq_default(problem: Problem) -> Assignment:
    """Return each topic in blocks of neighbours over its subscribers' sorted ids; the first ids get one more.

    Partitions are sorted as strings: 0-0, 0-1, 0-10, 0-11, 0-2. Each topic is even to within one queue. Known
    imbalance: the same first ids get one more of every topic.

    Rolling restart: ids carry address, process and time, so every restart moves blocks.

    Source: metamorphosis-client 1.4.6.2 ``DefaultLoadBalanceStrategy``.

    Example: broker 0 with 12 partitions, two members: 0-0, 0-1, 0-10, 0-11, 0-2, 0-3 and 0-4 to 0-9.
    """
    return allocate_each_topic(problem, _blocks)


def allocate_each_topic(problem: Problem, allocate: Allocation) -> Assignment:
    """Return each topic allocated over the members that subscribe to it.

    Source: metamorphosis-client 1.4.6.2 ``ConsumerZooKeeper.ZKLoadRebalanceListener``.
    """
    held: list[list[QueueRef]] = [[] for _ in problem.members]
    subscribers = subscribers_by_topic(problem.members)
    for topic in topics_with_queues(problem, subscribers):
        # A master and its slaves name the same partitions.
        queues = {
            f"{queue.broker or ''}-{queue.queue_id}": QueueRef(
                topic=topic.name, queue_id=queue.queue_id, broker=queue.broker
            )
            for queue in topic.queues
        }
        members = subscribers[topic.name]
        names = sorted_strings(problem.members[member].name for member in members)
        allocated = allocate(sorted_strings(queues), names)
        for member in members:
            held[member] += [queues[partition] for partition in allocated.get(problem.members[member].name, ())]
    return {member.member_id: refs for member, refs in zip(problem.members, held, strict=True)}


def _blocks(partitions: Sequence[str], ids: Sequence[str]) -> dict[str, Sequence[str]]:
    size, extra = divmod(len(partitions), len(ids))
    blocks: dict[str, Sequence[str]] = {}
    for place, name in enumerate(ids[: len(partitions)]):
        if name not in blocks:
            start = place * size + min(place, extra)
            blocks[name] = partitions[start : start + size + (place < extra)]
    return blocks
