"""Core: RocketMQ's two arithmetic strategies, in blocks and in a circle. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from udfs.model.events import QueueRef
from udfs.strategies.problem import Assignment, Problem
from udfs.strategies.rocketmq.all_members import allocate_each_topic


def rocketmq_avg(problem: Problem) -> Assignment:
    """Return each topic in blocks of neighbours over the group's sorted ids; the first ids get one more.

    Each topic is even to within one queue. Known imbalance: over several topics the same ids come first each time; ids
    beyond the number of queues hold nothing; a member that does not subscribe leaves its block without an owner.

    Rolling restart: ids carry address and process, so a restarted client may come back at another position; every id
    after a changed position gets other queues.

    Source: rocketmq-client 4.9 and 5.5 ``AllocateMessageQueueAveragely``.

    Example: 8 queues, 3 members: 1–3, 4–6, 7–8. 5 queues, 2 members: 3 + 2; with 7 queues: 4 + 3.
    """
    return allocate_each_topic(problem, averagely)


def rocketmq_avg_by_circle(problem: Problem) -> Assignment:
    """Return each topic's queues one by one, in a circle over the group's sorted ids.

    Each topic is even to within one queue, and the queues of each broker are spread over the ids. Known imbalance: as
    with ``AVG``, the same first ids get one more of every topic.

    Rolling restart: a changed position moves nearly every queue.

    Source: rocketmq-client 4.9 and 5.5 ``AllocateMessageQueueAveragelyByCircle``.

    Example: 8 queues, 3 members: 1, 4, 7 / 2, 5, 8 / 3, 6.
    """
    return allocate_each_topic(problem, by_circle)


def averagely(queues: Sequence[QueueRef], ids: Sequence[str]) -> dict[str, Sequence[QueueRef]]:
    """Return the blocks of one topic."""
    size, extra = divmod(len(queues), len(ids))
    blocks: dict[str, Sequence[QueueRef]] = {}
    for place, name in enumerate(ids[: len(queues)]):
        if name not in blocks:
            start = place * size + min(place, extra)
            blocks[name] = queues[start : start + size + (place < extra)]
    return blocks


def by_circle(queues: Sequence[QueueRef], ids: Sequence[str]) -> dict[str, Sequence[QueueRef]]:
    """Return every len(ids)-th queue of one topic."""
    shares: dict[str, Sequence[QueueRef]] = {}
    for place, name in enumerate(ids[: len(queues)]):
        if name not in shares:
            shares[name] = queues[place :: len(ids)]
    return shares
