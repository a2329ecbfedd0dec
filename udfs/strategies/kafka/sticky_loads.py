"""Core: the partitions of each member, and their numbers, while the general sticky path assigns them. No I/O."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence

from udfs.model.errors import StrategyError
from udfs.strategies.kafka.client_library import JAVA, LIBRDKAFKA
from udfs.strategies.kafka.sticky_group import StickyGroup


class StickyLoads:
    """Partitions by member, and the members in a line by (partitions held, id).

    Attributes:
        subscribers: The subscribers of each topic.
        held: The partitions of each member.
        owner: The member that holds each partition now, or owned it before.
        settled: Members that can neither give nor take.
    """

    def __init__(self, group: StickyGroup) -> None:
        self._group = group
        self.subscribers: list[list[int]] = [[] for _ in group.topics]
        # Each member's topics in its own order, and the total number of their partitions.
        self._topics: list[dict[int, None]] = [{} for _ in group.members]
        self._most = [0] * len(group.members)
        members_of_kind: list[list[int]] = [[] for _ in group.subscriptions]
        for member in group.reading_order:
            members_of_kind[group.kinds[member]].append(member)
        for names, members in zip(group.subscriptions, members_of_kind, strict=True):
            topics = [group.place_of_topic[name] for name in names if name in group.place_of_topic]
            in_order = dict.fromkeys(topics)
            most = group.total if len(topics) == len(group.topics) else sum(map(group.counts.__getitem__, topics))
            for member in members:
                self._topics[member], self._most[member] = in_order, most
            for topic in topics:
                self.subscribers[topic] += members
        self.held = [list(numbers) for numbers in group.owned]
        self.owner = {number: member for member, numbers in enumerate(self.held) for number in numbers}
        self.settled: set[int] = set()
        # Members as numbers: partitions held × members + rank of the id.
        self._line: list[int] = []
        # A member and a partition that it could take; it stays valid while that is so.
        self._could_take: tuple[int, int] | None = None

    def drop_lost(self) -> bool:
        """Remove partitions that members may no longer hold; return whether there were any."""
        dropped = False
        for member, numbers in enumerate(self.held):
            kept = [number for number in numbers if self._may_hold(member, number)]
            dropped |= len(kept) < len(numbers)
            self.held[member] = kept
        return dropped

    def _may_hold(self, member: int, number: int) -> bool:
        group = self._group
        return group.topic_of[number] in self._topics[member] and not group.mismatch(member, number)

    def all_in_order(self) -> list[int]:
        """Return all partitions, those of topics with few subscribers first, then by topic and number."""
        group = self._group
        by_subscribers = sorted(range(len(group.topics)), key=lambda topic: len(self.subscribers[topic]))
        return [
            number
            for topic in by_subscribers
            for number in range(group.first[topic], group.first[topic] + group.counts[topic])
        ]

    def are_taken_from_the_fullest(self) -> bool:
        """Return whether partitions come in KIP-54's first order for equal subscriptions, see ``from_the_fullest``."""
        library = self._group.library
        if library.name == JAVA or library.lists_differ or not any(self.held):
            return False
        return all(list(topics) == list(self._topics[0]) for topics in self._topics)

    def from_the_fullest(self) -> list[int]:
        """Return all partitions: first owned ones, always from the member with the most left; then the rest.

        Among a member's partitions, those that another one claimed before come first; otherwise the last one that it
        names (with librdkafka the first).
        """
        group, members = self._group, len(self.held)
        place = 0 if group.library.name == LIBRDKAFKA else -1
        left = [list(numbers) for numbers in self.held]
        line = sorted(map(self._key, range(members)))
        taken: dict[int, None] = {}
        while line:
            member = group.by_rank[line.pop() % members]
            if left[member]:
                before = [number for number in left[member] if number in group.claimed_before]
                number = (before or left[member])[place]
                left[member].remove(number)
                taken[number] = None
                insort(line, len(left[member]) * members + group.ranks[member])
        rest = [number for number in self.all_in_order() if number not in taken]
        return [*taken, *(reversed(rest) if group.library.name == LIBRDKAFKA else rest)]

    def free(self, numbers: Sequence[int]) -> list[int]:
        """Return the partitions without an owner, in their order."""
        group = self._group
        taken = [number for held in self.held for number in held]
        if len(group.queues) > group.total:
            topic_of, subscribers = group.topic_of, self.subscribers
            taken.sort(
                key=lambda number: (len(subscribers[topic_of[number]]), topic_of[number], group.partition(number))
            )
            return group.rest_after(taken, numbers)
        held_by_somebody = set(taken)
        return [number for number in numbers if number not in held_by_somebody]

    def line_up(self) -> None:
        """Put the members in line."""
        self._line = sorted(map(self._key, range(len(self.held))))

    def _key(self, member: int) -> int:
        return len(self.held[member]) * len(self.held) + self._group.ranks[member]

    def give(self, number: int, *, near: bool) -> bool:
        """Give a free partition to the first subscriber in line; return whether there is one.

        Args:
            near: Only to a subscriber without a rack, or with the rack of a replica.
        """
        group, by_rank, members = self._group, self._group.by_rank, len(self.held)
        topic = group.topic_of[number]
        for place, key in enumerate(self._line):
            member = by_rank[key % members]
            if topic in self._topics[member] and not (near and group.mismatch(member, number)):
                del self._line[place]
                self.held[member].append(number)
                self.owner[number] = member
                insort(self._line, key + members)
                return True
        return False

    def first_subscriber(self, topic: int) -> int:
        """Return the first subscriber in line."""
        by_rank, members = self._group.by_rank, len(self.held)
        in_line = (by_rank[key % members] for key in self._line)
        return next(member for member in in_line if topic in self._topics[member])

    def least(self) -> int:
        """Return the number of partitions that the first member in line holds."""
        return self._line[0] // len(self.held)

    def move(self, number: int, giver: int, taker: int) -> None:
        """Move a partition, and both members in the line."""
        for member in {giver, taker}:
            self._leave_line(member)
        self.held[giver].remove(number)
        self.held[taker].append(number)
        self.owner[number] = taker
        for member in {giver, taker}:
            insort(self._line, self._key(member))

    def _leave_line(self, member: int) -> None:
        key = self._key(member)
        place = bisect_left(self._line, key)
        if place < len(self._line) and self._line[place] == key:
            del self._line[place]

    def remove_full_members(self, is_shared: Sequence[bool]) -> None:
        """Remove members from the line that own all partitions of their topics, none of them shared.

        Args:
            is_shared: For each topic, whether it has more than one subscriber.
        """
        topic_of = self._group.topic_of
        for member, numbers in enumerate(self.held):
            if len(numbers) >= self._most[member] and not any(is_shared[topic_of[number]] for number in numbers):
                self._leave_line(member)
                self.settled.add(member)

    def is_even(self) -> bool:
        """Return whether no member in line could take a partition from a member that holds at least two more.

        A member that holds as many partitions as its topics have counts as one that could not, even if they belong to
        other topics.
        """
        members, held = len(self.held), self.held
        if not self._line or self._line[-1] // members - self._line[0] // members <= 1:
            return True
        if len(self._group.queues) > self._group.total:
            return self._is_even_by_partitions()
        if self._could_take is not None:
            member, number = self._could_take
            if len(held[member]) != self._most[member] and len(held[self.owner[number]]) - len(held[member]) > 1:
                return False
        largest = self._largest_owners()
        for key in self._line:
            member = self._group.by_rank[key % members]
            for topic in self._topics[member] if key // members != self._most[member] else ():
                most, number = largest.get(topic, (0, 0))
                if most - key // members > 1:
                    self._could_take = (member, number)
                    return False
        return True

    def _largest_owners(self) -> dict[int, tuple[int, int]]:
        """Return for each topic the most partitions that one of its partitions' owners holds, and such a partition."""
        largest: dict[int, tuple[int, int]] = {}
        topic_of = self._group.topic_of
        for numbers in sorted(self.held, key=len):
            size = len(numbers)
            for number in numbers:
                largest[topic_of[number]] = (size, number)
        return largest

    def _is_even_by_partitions(self) -> bool:
        """Return the same if a partition may have two owners, of which the last one in the map's order counts."""
        group, held, members = self._group, self.held, len(self.held)
        owner = {
            number: member for member, numbers in enumerate(held) if member not in self.settled for number in numbers
        }
        for key in self._line:
            member = group.by_rank[key % members]
            if len(held[member]) == self._most[member]:
                continue
            for topic in self._topics[member]:
                for number in range(group.first[topic], group.first[topic] + group.counts[topic]):
                    if number in held[member]:
                        continue
                    if number not in owner:
                        raise StrategyError("null_pointer", "an owner takes no part in the reassignment")
                    if len(held[owner[number]]) - len(held[member]) > 1:
                        return False
        return True

    def unevenness(self, held: Iterable[Sequence[int]]) -> int:
        """Return the sum of the differences between any two members that are not settled."""
        sizes = sorted(len(numbers) for member, numbers in enumerate(held) if member not in self.settled)
        return sum(size * (2 * place - len(sizes) + 1) for place, size in enumerate(sizes))
