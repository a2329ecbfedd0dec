"""Core: the uniform assignor of Kafka's group coordinator (KIP-848), equal subscriptions. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from udfs.errors import StrategyError
from udfs.strategies.kafka_server import Partitions, ServerGroup
from udfs.strategies.kafka_server_uniform_mixed import deal_mixed
from udfs.strategies.problem import Assignment, Problem


def kafka_server_uniform(problem: Problem) -> Assignment:
    """Give every member as many partitions as the others, to one, and leave each what it held as far as that allows.

    Equal subscriptions: the spread is at most one, and no partition moves that need not. Members are filled one after
    another, so a newcomer gets whole topics rather than a part of each. Different subscriptions: partitions go to the
    least loaded subscriber, and up to 16 passes even out topic by topic; known imbalance: chains over several topics
    may stay uneven.

    Rolling restart: the coordinator computes a new target for each change; only the restarted member's partitions
    move, once when it goes and once when it is back (a static member's not at all within its session).

    Source: kafka-group-coordinator 4.1 ``UniformAssignor``. The target before is ``Problem.previous``, else what
    members say they own.

    Example: 5 and 3 partitions, three new members: {t1: 0, 1}, {t1: 2, 3, 4}, {t2: 0, 1, 2}.
    """
    if not problem.members:
        return {}
    group = ServerGroup(problem)
    held = _deal_equal(group) if group.homogeneous else deal_mixed(group)
    return group.answer(held)


def _deal_equal(group: ServerGroup) -> list[dict[int, list[int]]]:
    """Deal as ``UniformHomogeneousAssignmentBuilder`` does; answer partitions by member and topic."""
    topics = group.topics_in_set_order(group.first_names(), group.subscriptions[0])
    if not topics:
        return [{} for _ in group.members]
    pool = _free(group, topics)
    size, extras = divmod(sum(group.counts[topic] for topic in topics), len(group.members))
    held, unfilled = _keep(group, set(topics), size, extras, pool)
    left = _hand_out(pool, unfilled, held)
    if left:
        raise StrategyError("partition_assignor", "Partitions were left unassigned")
    return held


def _hand_out(
    pool: Sequence[Partitions], unfilled: Sequence[tuple[int, int]], held: Sequence[dict[int, list[int]]]
) -> bool:
    """Fill the members from the pool, each to its quota in one go; answer whether something is left."""
    wanting = iter(unfilled)
    member, quota = next(wanting, (0, 0))
    for topic, numbers in pool:
        start = 0
        while start < len(numbers):
            if not quota:
                member, quota = next(wanting, (0, 0))
                if not quota:
                    return True
            taken = numbers[start : start + quota]
            held[member].setdefault(topic, []).extend(taken)
            start += len(taken)
            quota -= len(taken)
    return False


def _free(group: ServerGroup, topics: Sequence[int]) -> list[Partitions]:
    """Answer the partitions that nobody was to hold, topics in the order given."""
    taken = {topic: bytearray(group.counts[topic]) for topic in topics}
    for target in group.targets:
        for topic, numbers in target.items():
            flags = taken.get(topic)
            if flags is not None:
                for number in numbers:
                    if number < len(flags):
                        flags[number] = 1
    return [
        (topic, [number for number, flag in enumerate(flags) if not flag] if any(flags) else list(range(len(flags))))
        for topic, flags in taken.items()
    ]


def _keep(
    group: ServerGroup, topics: set[int], size: int, extras: int, pool: list[Partitions]
) -> tuple[list[dict[int, list[int]]], list[tuple[int, int]]]:
    """Keep what was held up to each member's quota; what is above it goes to the pool.

    Returns: what each member keeps, and the members that have room with how much, in order.
    """
    held: list[dict[int, list[int]]] = []
    unfilled = []
    count = len(group.members)
    for member, target in enumerate(group.targets):
        may_have_extra = extras > 0
        quota = size + may_have_extra
        kept = {}
        for topic, numbers in target.items():
            if topic not in topics:
                continue
            kept_numbers = numbers[:quota]
            if kept_numbers:
                kept[topic] = kept_numbers
            if len(numbers) > quota:
                pool.append((topic, numbers[quota:]))
            quota -= len(kept_numbers)
        # The extra is given up unless this is one of the last members that must take it.
        if quota > 0 and may_have_extra and count - member > extras:
            quota -= 1
            may_have_extra = False
        if quota > 0:
            unfilled.append((member, quota))
        extras -= may_have_extra
        held.append(kept)
    return held, unfilled
