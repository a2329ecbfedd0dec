"""Core: the sticky assignors' path for different subscriptions (KIP-54). No I/O.

The rules for the assignment:

1. A member keeps the partitions it owned of topics that it still subscribes to; if racks count, only those near it.
2. Free partitions are given to the least loaded subscriber, then by id: topics with few subscribers first, then by
   name. If racks count, subscribers near a partition come first.
3. Partitions of topics with more than one subscriber move one by one, in passes, until a pass moves none: first those
   that were free, unless a member had to give something up, then all. In a pass each partition in order moves back to
   the member that claimed it last in an older generation, if that member holds at least two fewer than its owner; else,
   if any subscriber holds at least two fewer, to the least loaded subscriber. A partition that moved the other way may
   move instead. A pass is over once no member could take any more.
4. If any member owned something, and the passes over all partitions moved some, but the sum of differences between
   members is no smaller than before 3, then 3 is undone.

Members that hold all of their topics, none of them shared, do not take part in 3 and 4.

Source: KIP-54, KIP-881; kafka-clients 4.1 ``AbstractStickyAssignor``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from udfs.model.errors import StrategyError
from udfs.strategies.kafka.sticky_group import StickyGroup
from udfs.strategies.kafka.sticky_loads import StickyLoads
from udfs.strategies.kafka.sticky_movements import StickyMovements

# The real class was never observed to end after this many passes.
_MOST_PASSES: Final = 10_000


def assign_general(group: StickyGroup) -> list[list[int]]:
    """Return partitions by member.

    Raises:
        StrategyError: ``does_not_end``, ``null_pointer``.
    """
    loads = StickyLoads(group)
    somebody_gave_up = loads.drop_lost()
    in_order = loads.from_the_fullest() if loads.are_taken_from_the_fullest() else loads.all_in_order()
    free = loads.free(in_order)
    somebody_owned = any(loads.held)
    loads.line_up()
    _assign(group, loads, free)
    is_shared = [len(members) > 1 for members in loads.subscribers]
    loads.remove_full_members(is_shared)
    before = [list(numbers) for numbers in loads.held]
    passes = _Passes(group, loads)
    if not somebody_gave_up:
        passes.run([number for number in free if is_shared[group.topic_of[number]]])
    moved = passes.run([number for number in in_order if is_shared[group.topic_of[number]]])
    if somebody_owned and moved and loads.unevenness(loads.held) >= loads.unevenness(before):
        return before
    return loads.held


def _assign(group: StickyGroup, loads: StickyLoads, free: Sequence[int]) -> None:
    if group.partition_racks:
        free = [number for number in free if not loads.give(number, near=True)]
    for number in free:
        loads.give(number, near=False)


class _Passes:
    """Single moves, partition by partition, that even out the loads."""

    def __init__(self, group: StickyGroup, loads: StickyLoads) -> None:
        self._group = group
        self._loads = loads
        self._claimed = group.claimed_before
        self._movements = StickyMovements(group)
        # Claims of deleted partitions may leave a partition with two owners.
        self._beyond = len(group.queues) > group.total

    def run(self, numbers: Sequence[int]) -> bool:
        """Run the passes; return whether any partition moved.

        Raises:
            StrategyError: ``does_not_end`` if a pass leaves everything as an earlier one did.
        """
        states: set[int] = set()
        while self._run_once(numbers):
            state = hash((tuple(sorted(self._loads.owner.items())), self._movements.state()))
            if state in states or len(states) == _MOST_PASSES:
                raise StrategyError(
                    "does_not_end",
                    "the sticky assignor moves partitions back and forth without end; the last assignment is kept",
                )
            states.add(state)
        return bool(states)

    def _run_once(self, numbers: Sequence[int]) -> bool:
        loads, moved = self._loads, False
        for number in numbers:
            if loads.is_even():
                break
            taker = self._taker(number)
            if taker is not None:
                instead = self._movements.instead_of(number, loads.owner[number], taker)
                giver = loads.owner[instead]
                self._movements.move(instead, giver, taker)
                loads.move(instead, giver, taker)
                moved = True
        return moved

    def _taker(self, number: int) -> int | None:
        """Return the member that a partition should go to; None if it should stay.

        Raises:
            StrategyError: ``null_pointer`` if the real class reaches a member without an assignment.
        """
        loads, held = self._loads, self._loads.held
        topic = self._group.topic_of[number]
        few = len(held[loads.owner[number]]) - 2
        before = self._claimed.get(number)
        if before is not None:
            if before in loads.settled:
                raise StrategyError("null_pointer", "a previous owner takes no part in the reassignment")
            if len(held[before]) <= few:
                return before
        if not self._beyond and loads.least() > few:
            return None
        for member in loads.subscribers[topic]:
            if member in loads.settled:
                if self._beyond:
                    raise StrategyError("null_pointer", "a candidate takes no part in the reassignment")
            elif len(held[member]) <= few:
                return loads.first_subscriber(topic)
        return None
