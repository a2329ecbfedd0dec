"""Core: the uniform assignor of Kafka's group coordinator (KIP-848), equal subscriptions. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate, chain, filterfalse, pairwise

from udfs.model.errors import StrategyError
from udfs.model.events import QueueRef
from udfs.strategies.kafka.coordinator_release import assigns_in_rounds, keeps_extras
from udfs.strategies.kafka.server import ServerGroup
from udfs.strategies.kafka.server_uniform_early import assign_early
from udfs.strategies.kafka.server_uniform_mixed import assign_mixed
from udfs.strategies.problem import Assignment, Problem


def kafka_server_uniform(problem: Problem) -> Assignment:
    """Spread partitions evenly: counts differ by at most one, and members keep their partitions as far as that allows.

    Equal subscriptions: the spread is at most one, and no partition moves unnecessarily. Members are filled one after
    another, so a newcomer gets whole topics rather than a part of each. Different subscriptions: partitions go to the
    least loaded subscriber, and up to 16 passes even out topic by topic; known imbalance: chains over several topics
    may stay uneven.

    Before 4.0.1 the first members, in the order of a ``HashMap``, get the extra partitions, so partitions move
    unnecessarily. Before 4.0.0 different subscriptions were assigned in another way (``server_uniform_early``). The
    setting ``coordinator`` names the broker's release, such as 4.0.0.

    Rolling restart: the coordinator computes a new target for each change; only the restarted member's partitions
    move, once when it leaves and once when it rejoins (a static member's not at all within its session).

    Source: KIP-848; kafka-group-coordinator 4.1, 4.0.0, 3.9.1 ``UniformAssignor``. The previous target is
    ``Problem.previous``, else the partitions that members report as owned.

    Example: 5 and 3 partitions, three new members: {t1: 0, 1}, {t1: 2, 3, 4}, {t2: 0, 1, 2}.
    """
    if not problem.members:
        return {}
    group = ServerGroup(problem)
    if group.homogeneous:
        return _assign_equal(group, keeps=keeps_extras(problem.settings))
    return group.as_joined((assign_mixed if assigns_in_rounds(problem.settings) else assign_early)(group))


def _assign_equal(group: ServerGroup, *, keeps: bool) -> Assignment:
    """Return the assignment if all members subscribe to the same topics.

    Source: kafka-group-coordinator 4.1 ``UniformHomogeneousAssignmentBuilder``.
    """
    topics = group.first_topics()
    row = _Row(group, topics)
    held = row.targets()
    pool = row.free(topics, held)
    wanting = _keep(row, held, pool, keeps=keeps)
    start = 0
    for member, room in wanting:
        held[member] += pool[start : start + room]
        start += room
    if start < len(pool):
        # Two members had the same partition as their target.
        raise _left_unassigned()
    return group.as_joined(map(row.named, held))


def _keep(row: _Row, held: list[list[int]], pool: list[int], *, keeps: bool) -> list[tuple[int, int]]:
    """Cut each member's partitions to its quota, and add the rest to the pool.

    Args:
        keeps: Members with one more than others keep it; otherwise the first members get it.
    Returns: the members that have room, with how much, in order.
    """
    wanting = []
    size, extras = divmod(row.existing, len(held))
    for member, places in enumerate(held):
        may_have_extra = extras > 0
        room = size + may_have_extra - len(places)
        if room < 0:
            # Only here does the order of Java's sets matter.
            in_order = row.target_in_set_order(member)
            pool += in_order[room:]
            held[member] = in_order[:room]
        elif keeps and room and may_have_extra and len(held) - member > extras:
            # The extra is given up unless this is one of the last members that must take it.
            room -= 1
            may_have_extra = False
        if room > 0:
            wanting.append((member, room))
        extras -= may_have_extra
    return wanting


class _Row:
    """All partitions of the subscribed topics in one row, as in an assignment: topics by name, then by number.

    A partition is identified by its index in the row.

    Attributes:
        existing: The number of existing partitions.
    """

    def __init__(self, group: ServerGroup, topics: Iterable[int]) -> None:
        self._group = group
        self._topics = sorted(topics)
        self._queues = list(chain.from_iterable(map(group.queues.__getitem__, self._topics)))
        self.existing = len(self._queues)
        # Lists share existing ints, whereas a range creates each one again.
        places = list(range(self.existing))
        ends = accumulate(map(group.counts.__getitem__, self._topics), initial=0)
        self._spans = [places[start:end] for start, end in pairwise(ends)]

    def free(self, topics: Sequence[int], held: list[list[int]]) -> list[int]:
        """Return the partitions without a previous target, topics in the given order; clean up ``held``."""
        spans: Iterable[list[int]] = self._spans
        if topics != self._topics:
            by_topic = dict(zip(self._topics, self._spans, strict=True))
            spans = map(by_topic.__getitem__, topics)
        taken = set(chain.from_iterable(held))
        if not taken:
            return list(chain.from_iterable(spans))
        if len(taken) < sum(map(len, held)):
            held[:] = [list(dict.fromkeys(places)) for places in held]
        return list(filterfalse(taken.__contains__, chain.from_iterable(spans)))

    def targets(self) -> list[list[int]]:
        """Return each member's previous target, in no particular order."""
        owned = self._group.owned
        if not any(owned):
            return [[] for _ in owned]
        try:
            return self._places(owned)
        except KeyError:
            # Other topics no longer exist or have no subscriber.
            return self._places([[queue for queue in queues if queue.topic in self._by_name] for queues in owned])

    def _places(self, owned: Sequence[Sequence[QueueRef]]) -> list[list[int]]:
        spans = self._by_name
        try:
            # One pass over all suffices, because there are many members and most hold few.
            places = [spans[queue.topic][queue.queue_id] for queue in chain.from_iterable(owned)]
        except IndexError as error:
            # A nonexistent partition takes the place of an existing one, which then has no owner.
            raise _left_unassigned() from error
        ends = accumulate(map(len, owned), initial=0)
        return [places[start:end] for start, end in pairwise(ends)]

    @cached_property
    def _by_name(self) -> dict[str, list[int]]:
        topics = self._group.topics
        return {topics[topic].name: span for topic, span in zip(self._topics, self._spans, strict=True)}

    def target_in_set_order(self, member: int) -> list[int]:
        """Return a member's previous target in the order of Java's map and sets."""
        topics, spans = self._group.topics, self._by_name
        return [
            spans[topics[topic].name][number]
            for topic, numbers in self._group.target(member).items()
            if topics[topic].name in spans
            for number in numbers
        ]

    def named(self, places: list[int]) -> list[QueueRef]:
        """Return the queues at given indexes, sorted."""
        places.sort()
        if places and places[-1] - places[0] == len(places) - 1:
            return self._queues[places[0] : places[-1] + 1]
        return [self._queues[place] for place in places]


def _left_unassigned() -> StrategyError:
    return StrategyError(
        "partition_assignor",
        "a target names partitions twice or deleted ones; others have no owner",
    )
