"""Core: the moves of partitions in the general sticky path, so that it can reverse a move instead. No I/O.

A way leads from the member that held a partition first to the member that holds it now. A partition that is back with
its first member has no way. This has two consequences:

- If partition p is to move from A to B, and another partition of its topic has moved from B to A, then that one moves
  back to B and p stays. If p has moved before, A is the member that held p first, not the one that holds it.
- If there are several such partitions, it is the first in a Java ``HashSet`` of them: by slot, and in a slot by when
  the partition set out. The set's table grows with the most partitions that were on the way together and never shrinks;
  when the last one has left, the next begins with a table of the initial size.

Source: KIP-54; kafka-clients 4.1 ``AbstractStickyAssignor.PartitionMovements``.
"""

from __future__ import annotations

from typing import TypeAlias

from udfs.jvm.collections import INITIAL_CAPACITY, LOAD_DENOMINATOR, LOAD_NUMERATOR, string_hash
from udfs.model.comparability import NOT_RECOMPUTABLE
from udfs.model.errors import StrategyError
from udfs.strategies.kafka.sticky_group import StickyGroup

# Topic, the member that a partition came from, the member that holds it.
_Way: TypeAlias = tuple[int, int, int]


class StickyMovements:
    """The way of each partition that has moved."""

    def __init__(self, group: StickyGroup) -> None:
        self._group = group
        self._way_of: dict[int, _Way] = {}
        # The partitions on each way in the order of their moves, with their spread hashes; and the most at any one
        # time.
        self._on_way: dict[_Way, dict[int, int]] = {}
        self._most: dict[_Way, int] = {}
        self._topic_hashes: dict[int, int] = {}

    def state(self) -> int:
        """Return a number that is equal if the same ways are remembered in the same order."""
        return hash(tuple((way, tuple(self._on_way[way]), self._most[way]) for way in sorted(self._on_way)))

    def instead_of(self, number: int, giver: int, taker: int) -> int:
        """Return the partition to move in place of this one, or itself if there is none to take back.

        Raises:
            StrategyError: ``not_recomputable`` if the library takes any of several.
        """
        topic = self._group.topic_of[number]
        _, start, _ = self._way_of.get(number, (topic, giver, taker))
        back = (topic, taker, start)
        hashes = self._on_way.get(back)
        if hashes is None:
            return number
        if len(hashes) > 1 and self._group.library.any_taken_back:
            raise StrategyError(
                NOT_RECOMPUTABLE, "which of several partitions is taken back depends on Python's hashes"
            )
        last_slot = _table(self._most[back]) - 1
        return min(hashes, key=lambda other: hashes[other] & last_slot)

    def move(self, number: int, giver: int, taker: int) -> None:
        """Extend a partition's way to ``taker``."""
        topic = self._group.topic_of[number]
        before = self._way_of.pop(number, None)
        if before is not None:
            giver = before[1]
            del self._on_way[before][number]
            if not self._on_way[before]:
                del self._on_way[before], self._most[before]
            if giver == taker:
                return
        way = self._way_of[number] = (topic, giver, taker)
        hashes = self._on_way.setdefault(way, {})
        hashes[number] = self._spread_hash(number)
        self._most[way] = max(len(hashes), self._most.get(way, 0))

    def _spread_hash(self, number: int) -> int:
        """Return ``TopicPartition.hashCode`` as HashMap spreads it."""
        topic = self._group.topic_of[number]
        if topic not in self._topic_hashes:
            self._topic_hashes[topic] = string_hash(self._group.topics[topic])
        hash_ = (31 * (31 + self._group.partition(number)) + self._topic_hashes[topic]) & 0xFFFFFFFF
        return hash_ ^ (hash_ >> 16)


def _table(most: int) -> int:
    """Return the slots of a HashMap that has held this many keys."""
    table = INITIAL_CAPACITY
    while most * LOAD_DENOMINATOR > table * LOAD_NUMERATOR:
        table *= 2
    return table
