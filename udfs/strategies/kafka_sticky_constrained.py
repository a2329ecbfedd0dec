"""Core: the sticky assignors' path for equal subscriptions (KAFKA-9987). No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from udfs.errors import StrategyError
from udfs.strategies.kafka_sticky_group import StickyGroup


def deal_constrained(group: StickyGroup) -> tuple[list[list[int]], dict[int, int]]:
    """Deal as ``ConstrainedAssignmentBuilder`` does.

    Returns: partitions by member; and those that change their owner, with the new one.
    """
    deal = _Deal(group)
    deal.keep_owned()
    rest = deal.unassigned()
    deal.kept = [len(numbers) for numbers in deal.held]
    deal.under.sort(key=group.ranks.__getitem__)
    deal.exact.sort(key=group.ranks.__getitem__)
    if group.rack_consumers is not None:
        rest.sort(key=group.rack_consumers.__getitem__)
    if group.partition_racks:
        rest = deal.assign_in_racks(rest)
    deal.assign_in_turn(rest)
    deal.verify()
    deal.note_transfers()
    return deal.held, deal.transferred


class _Deal:
    """One assignment while it is made.

    Attributes:
        under: Members with fewer than ``low`` partitions. exact: Members with ``low`` that may get one more.
        over: Members with more than ``low``; ``overs`` of them are expected.
        revoked: Partitions taken from their owner, who may get them back.
        kept: How many partitions each member kept; the others that it holds are given anew.
    """

    def __init__(self, group: StickyGroup) -> None:
        self.group = group
        self.low, self.overs = divmod(group.total, len(group.members))
        self.high = self.low + (self.overs > 0)
        self.over = 0
        self.held: list[list[int]] = [[] for _ in group.members]
        self.under: list[int] = []
        self.exact: list[int] = []
        self.revoked: dict[int, int] = {}
        self.transferred: dict[int, int] = {}
        self.kept: list[int] = []

    def keep_owned(self) -> None:
        group = self.group
        topic_of, queues = group.topic_of, group.queues
        for member, numbers in enumerate(group.owned):
            owned = numbers
            if group.partition_racks:
                for number in owned:
                    if group.mismatch(member, number):
                        self.revoked[number] = member
                owned = [number for number in owned if not group.mismatch(member, number)]
            if group.contested:
                owned = [number for number in owned if number not in group.contested]
            if len(owned) < self.low:
                self.held[member] += owned
                self.under.append(member)
                continue
            if len(owned) > self.low:
                owned = sorted(owned, key=lambda number: (queues[number].queue_id, topic_of[number]))
            if len(owned) >= self.high and self.over < self.overs:
                self.over += 1
                if self.over == self.overs:
                    self.exact.clear()
                quota = self.high
            else:
                quota = self.low
                if self.over < self.overs:
                    self.exact.append(member)
            self.held[member] += owned[:quota]
            for number in owned[quota:]:
                self.revoked[number] = member

    def unassigned(self) -> list[int]:
        """Answer what nobody holds, by topic and partition."""
        group = self.group
        assigned = [number for numbers in self.held for number in numbers]
        if len(group.queues) > group.total:
            assigned.sort(key=lambda number: (group.topic_of[number], group.partition(number)))
            return group.rest_after(assigned, range(group.total))
        if not assigned:
            return list(range(group.total))
        taken = set(assigned)
        return [number for number in range(group.total) if number not in taken]

    def assign_in_racks(self, rest: Sequence[int]) -> list[int]:
        """Give partitions to members in the rack of a replica; answer those that found none."""
        left = []
        turn = 0
        for number in rest:
            place = self._next_in_rack(number, self.under, turn)
            if place >= 0:
                member = self.under[place]
                count = len(self.held[member]) + 1
                if count >= self.low:
                    del self.under[place]
                    if count < self.high and self.over < self.overs:
                        self.exact.append(member)
                else:
                    place += 1
                turn = place % len(self.under) if self.under else 0
            else:
                place = self._next_in_rack(number, self.exact, 0)
                if place < 0:
                    left.append(number)
                    continue
                member = self.exact[place]
                if len(self.held[member]) + 1 == self.high:
                    del self.exact[place]
                    self.over += 1
                    if self.over == self.overs:
                        self.exact.clear()
            self.held[member].append(number)
        return left

    def _next_in_rack(self, number: int, members: Sequence[int], start: int) -> int:
        racks = self.group.partition_racks[number]
        if not racks:
            return -1
        for step in range(len(members)):
            place = (start + step) % len(members)
            if self.group.racks[members[place]] in racks:
                return place
        return -1

    def assign_in_turn(self, rest: Sequence[int]) -> None:
        """Deal round over the members below ``low`` until each has it, then one each to those at ``low``."""
        low, held, under = self.low, self.held, self.under
        next_number = iter(rest).__next__
        left = len(rest)
        while under and left:
            below = []
            for place, member in enumerate(under):
                if not left:
                    below += under[place:]
                    break
                left -= 1
                queues = held[member]
                queues.append(next_number())
                if len(queues) == low:
                    self.exact.append(member)
                else:
                    below.append(member)
            under = below
        self.under = under
        if left > len(self.exact):
            raise StrategyError("illegal_state", "No more unfilled consumers to be assigned.")
        for member in self.exact[:left]:
            held[member].append(next_number())
            self.over += len(held[member]) == self.high

    def note_transfers(self) -> None:
        """Note the partitions given anew that somebody else held, or that two members claimed."""
        if not self.revoked and not self.group.contested:
            return
        for member, numbers in enumerate(self.held):
            for number in numbers[self.kept[member] :]:
                if self.revoked.get(number, member) != member or number in self.group.contested:
                    self.transferred[number] = member

    def verify(self) -> None:
        if not self.under:
            return
        if self.over != self.overs:
            raise StrategyError(
                "illegal_state",
                "We haven't reached the expected number of members with more than the minQuota partitions, "
                "but no more partitions to be assigned",
            )
        for member in self.under:
            if len(self.held[member]) != self.low:
                name = self.group.members[member].member_id
                raise StrategyError(
                    "illegal_state",
                    f"Consumer: [{name}] doesn't reach minQuota partitions, and no more partitions to be assigned",
                )
