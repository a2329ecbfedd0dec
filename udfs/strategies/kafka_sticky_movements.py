"""Core: the moves that the general sticky path remembers, so that it swaps partitions rather than move two. No I/O."""

from __future__ import annotations

from udfs.java import INITIAL_CAPACITY, string_hash
from udfs.strategies.kafka_sticky_group import StickyGroup

_Pair = tuple[int, int]  # (from, to), members


class _HashSet:
    """A ``HashSet<TopicPartition>`` as far as its first element goes."""

    __slots__ = ("slots", "table")

    def __init__(self) -> None:
        self.slots: dict[int, int] = {}  # partition -> spread hash, in the order of insertion
        self.table = INITIAL_CAPACITY

    def add(self, number: int, spread: int) -> None:
        self.slots[number] = spread
        while len(self.slots) > self.table * 3 // 4:
            self.table *= 2

    def first(self) -> int:
        mask = self.table - 1
        return min(self.slots, key=lambda number: self.slots[number] & mask)


class Movements:
    """``PartitionMovements``: for each partition that moved, from whom to whom, in all.

    A set that has grown keeps its table, and a set that has become empty is dropped, as in Java.
    """

    def __init__(self, group: StickyGroup) -> None:
        self._group = group
        self._pairs: dict[int, _Pair] = {}
        self._by_topic: dict[int, dict[_Pair, _HashSet]] = {}
        self._topic_hashes: dict[int, int] = {}

    def state(self) -> int:
        """Answer a number that is the same where the same moves are remembered in the same order."""
        return hash(
            (
                tuple(sorted(self._pairs.items())),
                tuple(
                    sorted(
                        (topic, pair, tuple(found.slots), found.table)
                        for topic, by_pair in self._by_topic.items()
                        for pair, found in by_pair.items()
                    )
                ),
            )
        )

    def to_be_moved(self, number: int, giver: int, taker: int) -> int:
        """Answer a partition of the same topic that moved the other way before, else the partition itself."""
        by_pair = self._by_topic.get(self._group.topic_of[number])
        if by_pair is None:
            return number
        if number in self._pairs:
            giver = self._pairs[number][0]
        reverse = by_pair.get((taker, giver))
        return number if reverse is None else reverse.first()

    def move(self, number: int, giver: int, taker: int) -> None:
        """Remember a move; one that leads back to where the partition came from is forgotten with it."""
        if number not in self._pairs:
            self._add(number, (giver, taker))
            return
        start = self._remove(number)[0]
        if start != taker:
            self._add(number, (start, taker))

    def _add(self, number: int, pair: _Pair) -> None:
        self._pairs[number] = pair
        by_pair = self._by_topic.setdefault(self._group.topic_of[number], {})
        by_pair.setdefault(pair, _HashSet()).add(number, self._spread(number))

    def _remove(self, number: int) -> _Pair:
        pair = self._pairs.pop(number)
        topic = self._group.topic_of[number]
        by_pair = self._by_topic[topic]
        del by_pair[pair].slots[number]
        if not by_pair[pair].slots:
            del by_pair[pair]
        if not by_pair:
            del self._by_topic[topic]
        return pair

    def _spread(self, number: int) -> int:
        """Answer ``TopicPartition.hashCode`` as HashMap spreads it."""
        topic = self._group.topic_of[number]
        if topic not in self._topic_hashes:
            self._topic_hashes[topic] = string_hash(self._group.topics[topic])
        hash_ = (31 * (31 + self._group.partition(number)) + self._topic_hashes[topic]) & 0xFFFFFFFF
        return hash_ ^ (hash_ >> 16)
