"""Core: the sticky assignors' path for different subscriptions (KIP-54). No I/O."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence

from udfs.errors import StrategyError
from udfs.strategies.kafka_sticky_group import StickyGroup
from udfs.strategies.kafka_sticky_movements import Movements

# Behind so many passes the real class has not been seen to end; each pass that changes nothing ends it.
_MAX_PASSES = 10_000


def deal_general(group: StickyGroup) -> list[list[int]]:
    """Deal as ``GeneralAssignmentBuilder`` does; answer partitions by member.

    Raises:
        StrategyError: ``does_not_end``, ``null_pointer``.
    """
    deal = _Deal(group)
    deal.read_previous()
    rest = deal.keep_owned()
    deal.balance(rest)
    return deal.held


class _Deal:
    """One assignment while it is made.

    Attributes:
        potential: Subscribers of each topic. topics: Topics of each member. most: How many partitions those have.
        sorted_all: All partitions by (number of subscribers, topic, partition).
        owner: The member that holds each partition now, or held it when it was read.
        previous: For partitions claimed in an older generation: that member, and that generation.
        beyond: Partitions are claimed that are no more: then the real class may give one to two members.
        line: Members in the order (partitions held, id), as numbers ``held * M + rank``.
    """

    def __init__(self, group: StickyGroup) -> None:
        self.group = group
        self.potential: list[list[int]] = [[] for _ in group.topics]
        self.topics: list[list[int]] = [[] for _ in group.members]
        self.subscribed: list[frozenset[int]] = [frozenset() for _ in group.members]
        self.most = [0] * len(group.members)
        members_of_kind: list[list[int]] = [[] for _ in group.subscriptions]
        for member in group.reading_order:
            members_of_kind[group.kinds[member]].append(member)
        for names, members in zip(group.subscriptions, members_of_kind, strict=True):
            topics = [group.place_of_topic[name] for name in names if name in group.place_of_topic]
            counted = sum(group.counts[topic] for topic in topics)
            most = group.total if len(topics) == len(group.topics) else counted
            subscribed = frozenset(topics)
            for member in members:
                self.topics[member], self.subscribed[member], self.most[member] = topics, subscribed, most
            for topic in topics:
                self.potential[topic] += members
        self.held = [list(numbers) for numbers in group.owned]
        self.owner = {number: member for member, numbers in enumerate(self.held) for number in numbers}
        by_subscribers = sorted(range(len(group.topics)), key=lambda topic: (len(self.potential[topic]), topic))
        self.sorted_all = [
            number
            for topic in by_subscribers
            for number in range(group.first[topic], group.first[topic] + group.counts[topic])
        ]
        self.previous: dict[int, tuple[int, int]] = {}
        self.revocation_required = False
        self.beyond = len(group.queues) > group.total
        self.line: list[int] = []
        self.fixed: dict[int, list[int]] = {}
        self.movements = Movements(group)
        self._witness: tuple[int, int] | None = None

    def read_previous(self) -> None:
        generations = self.group.generations
        newest = max(generations)
        for member in self.group.reading_order:
            if generations[member] < newest:
                for number in self.group.claims[member]:
                    known = self.previous.get(number)
                    if known is None or generations[member] > known[1]:
                        self.previous[number] = (member, generations[member])

    def keep_owned(self) -> list[int]:
        """Drop what a member may not hold any more; answer the partitions that nobody holds, sorted."""
        group = self.group
        assigned: list[int] = []
        for member, numbers in enumerate(self.held):
            kept = [
                number
                for number in numbers
                if group.topic_of[number] in self.subscribed[member] and not group.mismatch(member, number)
            ]
            if len(kept) < len(numbers):
                self.revocation_required = True
            self.held[member] = kept
            assigned += kept
        if self.beyond:
            assigned.sort(
                key=lambda number: (
                    len(self.potential[group.topic_of[number]]),
                    group.topic_of[number],
                    group.partition(number),
                )
            )
            return group.rest_after(assigned, self.sorted_all)
        taken = set(assigned)
        return [number for number in self.sorted_all if number not in taken]

    def balance(self, rest: list[int]) -> None:
        group = self.group
        members = len(group.members)
        self.line = sorted(len(numbers) * members + group.ranks[member] for member, numbers in enumerate(self.held))
        initializing = not self.held[group.by_rank[self.line[-1] % members]]
        to_assign = rest
        if group.partition_racks:
            to_assign = [number for number in rest if not self._assign_to_first(number, in_rack=True)]
        for number in to_assign:
            self._assign_to_first(number, in_rack=False)
        movable = [len(potential) >= 2 for potential in self.potential]
        topic_of = group.topic_of
        everything = [number for number in self.sorted_all if movable[topic_of[number]]]
        rest = [number for number in rest if movable[topic_of[number]]]
        self._fix_members(movable)
        before = [list(numbers) for numbers in self.held]
        if not self.revocation_required:
            self._reassign(rest)
        changed = self._reassign(everything)
        if not initializing and changed and self._score(self.held) >= self._score(before):
            self.held = before
        for member, numbers in self.fixed.items():
            self.held[member] = numbers

    def _assign_to_first(self, number: int, *, in_rack: bool) -> bool:
        """Give a partition to the least loaded member that may have it."""
        group, members = self.group, len(self.group.members)
        topic = group.topic_of[number]
        subscribed, by_rank = self.subscribed, group.by_rank
        for place, key in enumerate(self.line):
            member = by_rank[key % members]
            if topic in subscribed[member] and not (in_rack and group.mismatch(member, number)):
                del self.line[place]
                self.held[member].append(number)
                self.owner[number] = member
                insort(self.line, key + members)
                return True
        return False

    def _fix_members(self, movable: Sequence[bool]) -> None:
        """Take members that can neither give nor get out of the line."""
        group = self.group
        for member, numbers in enumerate(self.held):
            if len(numbers) < self.most[member] or any(movable[group.topic_of[number]] for number in numbers):
                continue
            self._leave_line(member)
            self.fixed[member] = numbers
            self.held[member] = []

    def _reassign(self, numbers: Sequence[int]) -> bool:
        """Move single partitions while that improves the balance; answer whether any moved.

        Raises:
            StrategyError: ``does_not_end`` when a pass over all partitions leaves everything as an earlier one did.
        """
        performed = False
        seen: set[int] = set()
        for _ in range(_MAX_PASSES):
            modified = False
            for number in numbers:
                if self._is_balanced():
                    break
                modified |= self._improve(number)
            if not modified:
                return performed
            performed = True
            state = self._state()
            if state in seen:
                break
            seen.add(state)
        raise StrategyError(
            "does_not_end", "the sticky assignor moves partitions to and fro for ever; the last assignment stands"
        )

    def _state(self) -> int:
        return hash((tuple(sorted(self.owner.items())), self.movements.state()))

    def _improve(self, number: int) -> bool:
        group, held = self.group, self.held
        member = self.owner[number]
        size = len(held[member])
        if number in self.previous:
            before = self.previous[number][0]
            if before in self.fixed:
                raise StrategyError("null_pointer", "a previous owner takes no part in the reassignment")
            if size > len(held[before]) + 1:
                self._move(number, before)
                return True
        candidates = self.potential[group.topic_of[number]]
        if self.beyond and not self.fixed.keys().isdisjoint(candidates):
            return self._improve_past_fixed(number)
        least = self.line[0] // len(group.members)
        if size <= least + 1:
            return False
        fixed = self.fixed
        if any(size > len(held[other]) + 1 for other in candidates if other not in fixed):
            self._move(number, self._first_subscriber(number))
            return True
        return False

    def _improve_past_fixed(self, number: int) -> bool:
        """Look at the candidates one by one: the real class trips over one that takes no part, if it comes that far."""
        size = len(self.held[self.owner[number]])
        for other in self.potential[self.group.topic_of[number]]:
            if other in self.fixed:
                raise StrategyError("null_pointer", "a candidate takes no part in the reassignment")
            if size > len(self.held[other]) + 1:
                self._move(number, self._first_subscriber(number))
                return True
        return False

    def _first_subscriber(self, number: int) -> int:
        topic, members = self.group.topic_of[number], len(self.group.members)
        by_rank, subscribed = self.group.by_rank, self.subscribed
        return next(by_rank[key % members] for key in self.line if topic in subscribed[by_rank[key % members]])

    def _move(self, number: int, taker: int) -> None:
        moved = self.movements.to_be_moved(number, self.owner[number], taker)
        giver = self.owner[moved]
        self._leave_line(giver)
        if taker != giver:
            self._leave_line(taker)
        self.movements.move(moved, giver, taker)
        self.held[giver].remove(moved)
        self.held[taker].append(moved)
        self.owner[moved] = taker
        for member in {giver, taker}:
            insort(self.line, len(self.held[member]) * len(self.group.members) + self.group.ranks[member])

    def _leave_line(self, member: int) -> None:
        key = len(self.held[member]) * len(self.group.members) + self.group.ranks[member]
        place = bisect_left(self.line, key)
        if place < len(self.line) and self.line[place] == key:
            del self.line[place]

    def _is_balanced(self) -> bool:
        """Whether no member could take a partition from one that holds at least two more."""
        members = len(self.group.members)
        if not self.line or self.line[0] // members >= self.line[-1] // members - 1:
            return True
        if self.beyond:
            return self._is_balanced_partition_by_partition()
        held, owner = self.held, self.owner
        if self._witness is not None:
            member, number = self._witness
            if len(held[member]) != self.most[member] and len(held[member]) + 1 < len(held[owner[number]]):
                return False
        largest, of_largest = self._largest_owners()
        for key in self.line:
            size = key // members
            member = self.group.by_rank[key % members]
            if size == self.most[member]:
                # As many as its topics have, though they need not be of its topics: the real class looks no further.
                continue
            for topic in self.topics[member]:
                if size + 1 < largest[topic]:
                    self._witness = (member, of_largest[topic])
                    return False
        return True

    def _is_balanced_partition_by_partition(self) -> bool:
        """Answer the same where a partition may have two owners: of those the last one in the map's order counts."""
        group, held = self.group, self.held
        owner = {number: member for member, numbers in enumerate(held) for number in numbers}
        for key in self.line:
            size, rank = divmod(key, len(group.members))
            member = group.by_rank[rank]
            if size == self.most[member]:
                continue
            own = set(held[member])
            for topic in self.topics[member]:
                for number in range(group.first[topic], group.first[topic] + group.counts[topic]):
                    if number in own:
                        continue
                    if number not in owner:
                        raise StrategyError("null_pointer", "an owner takes no part in the reassignment")
                    if size + 1 < len(held[owner[number]]):
                        return False
        return True

    def _largest_owners(self) -> tuple[list[int], list[int]]:
        """Answer for each topic the most that an owner of one of its partitions holds, and such a partition."""
        largest = [0] * len(self.group.topics)
        partition = [0] * len(self.group.topics)
        topic_of, total = self.group.topic_of, self.group.total
        for numbers in self.held:
            size = len(numbers)
            for number in numbers:
                if size > largest[topic_of[number]] and number < total:
                    largest[topic_of[number]] = size
                    partition[topic_of[number]] = number
        return largest, partition

    def _score(self, held: Iterable[Sequence[int]]) -> int:
        """Answer the sum of the differences of all pairs of members that take part."""
        sizes = sorted(len(numbers) for member, numbers in enumerate(held) if member not in self.fixed)
        return sum(size * (2 * place - len(sizes) + 1) for place, size in enumerate(sizes))
