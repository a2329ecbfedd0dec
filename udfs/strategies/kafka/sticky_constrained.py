"""Core: the sticky assignors' path for equal subscriptions (KAFKA-9987). No I/O.

The rules for the assignment: of P partitions each of C members gets P div C, its share, and P mod C of them one more.

1. Kept, member by member in the order of the assignor's map: everything that a member owned if that is less than its
   share; otherwise its share, lowest by (partition, topic), and one more while fewer than P mod C members have an
   extra.
2. If racks count, nothing in another rack is kept, and free partitions are given to members of their racks first,
   starting with partitions with few members in their racks: to members below their share in rounds by id, else to those
   that may have one more, first come, first served.
3. The other free partitions are given, by topic and partition, in rounds by id to members below their share until each
   has it; then one each to members with exactly their share: those that kept it by id, then the others in the order in
   which they reached it.

Claims of partitions that no longer exist may leave partitions that no member may take; then the real class fails.

Source: KIP-54, KIP-881, KAFKA-9987; kafka-clients 4.1 ``AbstractStickyAssignor``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from itertools import chain, filterfalse

from udfs.model.errors import StrategyError
from udfs.strategies.kafka.sticky_group import StickyGroup


def assign_constrained(group: StickyGroup) -> tuple[list[list[int]], dict[int, int]]:
    """Return partitions by member; and those that change their owner, with the new one.

    Raises:
        StrategyError: ``illegal_state`` if the real class fails.
    """
    shares = _Shares(group)
    shares.keep()
    free = shares.free()
    if group.rack_consumers is not None:
        free.sort(key=group.rack_consumers.__getitem__)
    if group.partition_racks:
        free = shares.give_near(free)
    shares.give_in_rounds(free)
    held = [kept + given for kept, given in zip(shares.kept, shares.given, strict=True)]
    return held, shares.transferred()


class _Shares:
    """The partitions that each member keeps and gets.

    Attributes:
        extras: How many members may still get one more than their share.
        lacking: Members below their share, with the number they lack.
        exact: Members with exactly their share that may have one more.
        revoked: Partitions taken from their owner, which may get them back.
    """

    def __init__(self, group: StickyGroup) -> None:
        self._group = group
        self._share, self.extras = divmod(group.total, len(group.members))
        self.kept: list[list[int]] = [[] for _ in group.members]
        self.given: list[list[int]] = [[] for _ in group.members]
        self.lacking: dict[int, int] = {}
        self.exact: list[int] = []
        self.revoked: dict[int, int] = {}

    def keep(self) -> None:
        group, share, ranks = self._group, self._share, self._group.ranks
        queues, topic_of = group.queues, group.topic_of
        lacking = {}
        for member, numbers in enumerate(group.owned):
            owned = numbers
            if group.partition_racks:
                elsewhere = dict.fromkeys([number for number in owned if group.mismatch(member, number)], member)
                self.revoked.update(elsewhere)
                owned = [number for number in owned if number not in elsewhere]
            if group.contested:
                owned = [number for number in owned if number not in group.contested]
            if len(owned) < share:
                lacking[member] = share - len(owned)
            elif len(owned) > share:
                if group.library.sorts_owned:
                    owned = sorted(owned, key=lambda number: (queues[number].queue_id, topic_of[number]))
                may_keep = share + (self.extras > 0)
                self.extras -= may_keep > share
                if len(owned) > may_keep:
                    self.revoked.update(dict.fromkeys(owned[may_keep:], member))
                    owned = owned[:may_keep]
            self.kept[member] = owned
        self.lacking = {member: lacking[member] for member in sorted(lacking, key=ranks.__getitem__)}
        if self.extras:
            exact = [member for member, numbers in enumerate(self.kept) if len(numbers) == share]
            self.exact = sorted(exact, key=ranks.__getitem__)

    def free(self) -> list[int]:
        """Return the partitions that are not kept, by topic and partition."""
        group = self._group
        if len(group.queues) > group.total:
            in_order = sorted(
                chain.from_iterable(self.kept), key=lambda number: (group.topic_of[number], group.partition(number))
            )
            return group.rest_after(in_order, range(group.total))
        taken = set(chain.from_iterable(self.kept))
        return list(filterfalse(taken.__contains__, range(group.total)))

    def give_near(self, free: Sequence[int]) -> list[int]:
        """Give partitions to members in one of their racks; return those without such a member."""
        racks, racks_of, given = self._group.racks, self._group.partition_racks, self.given
        ring = list(self.lacking)
        # For each rack: the members' positions in the ring, and in the line of members that may have one more.
        rings: dict[str | None, list[int]] = {rack: [] for rack in racks}
        for place, member in enumerate(ring):
            rings[racks[member]].append(place)
        line = dict(enumerate(self.exact))
        lines: dict[str | None, deque[int]] = {rack: deque() for rack in racks}
        for place, member in line.items():
            lines[racks[member]].append(place)
        came = len(line)
        near_rings = {near: [rings[rack] for rack in near if rack in rings] for near in set(racks_of)}
        left = []
        at = 0
        for partition in free:
            near = racks_of[partition]
            ahead = [_next_place(places, at, len(ring)) for places in near_rings[near] if places]
            if ahead:
                place = min(ahead) % len(ring)
                at = place + 1
                member = ring[place]
                self.lacking[member] -= 1
                if not self.lacking[member]:
                    del self.lacking[member]
                    rings[racks[member]].remove(place)
                    line[came] = member
                    lines[racks[member]].append(came)
                    came += 1
            elif self.extras and (first := [lines[rack][0] for rack in near if lines.get(rack)]):
                member = line.pop(min(first))
                lines[racks[member]].popleft()
                self.extras -= 1
            else:
                left.append(partition)
                continue
            given[member].append(partition)
        self.exact = list(line.values()) if self.extras else []
        return left

    def give_in_rounds(self, free: Sequence[int]) -> None:
        lacking, given = self.lacking, self.given
        # There are always enough, because P is at least C shares, and no member keeps more than a share and its extra.
        takers = list(lacking)
        start = rounds = 0
        for lack in sorted(set(lacking.values())):
            # Up to here all of these n members lack some, so each gets every n-th partition.
            end = start + (lack - rounds) * len(takers)
            for place, member in enumerate(takers):
                given[member] += free[start + place : end : len(takers)]
            start, rounds = end, lack
            takers = [member for member in takers if lacking[member] > lack]
        takers = [*self.exact, *sorted(lacking, key=lacking.__getitem__)]
        if len(free) - start > len(takers):
            raise StrategyError(
                "illegal_state", f"{len(free) - start} partitions are left, {len(takers)} members may have one more"
            )
        for member, number in zip(takers, free[start:], strict=False):
            given[member].append(number)

    def transferred(self) -> dict[int, int]:
        """Return the newly assigned partitions that another member owned, or that two members claimed."""
        revoked, contested = self.revoked, self._group.contested
        if not revoked and not contested:
            return {}
        return {
            number: member
            for member, numbers in enumerate(self.given)
            for number in numbers
            if revoked.get(number, member) != member or number in contested
        }


def _next_place(places: Sequence[int], at: int, around: int) -> int:
    """Return the first of ascending positions from ``at`` on; after the last they repeat, ``around`` higher."""
    following = bisect_left(places, at)
    return places[following] if following < len(places) else places[0] + around
