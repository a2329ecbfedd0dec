"""Core: the uniform assignor of Kafka's group coordinator (KIP-848), different subscriptions. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from udfs.errors import StrategyError
from udfs.strategies.kafka_server import ServerGroup, uuid_order
from udfs.strategies.subscriptions import subscribers_by_topic

_MAX_ITERATION_COUNT: Final = 16
_NOBODY: Final = -1


def deal_mixed(group: ServerGroup) -> list[dict[int, list[int]]]:
    """Deal as ``UniformHeterogeneousAssignmentBuilder`` does; answer partitions by member and topic."""
    deal = _Deal(group)
    if not deal.subscribers:
        return [{} for _ in group.members]
    deal.keep()
    deal.assign_rest()
    deal.balance()
    return [{topic: list(numbers) for topic, numbers in held.items()} for held in deal.held]


def _least_loaded_in_turn(sizes: Sequence[int], members: Sequence[int]) -> Iterator[int]:
    """Answer members as ``_Balancer.next_least`` does where nobody gives: round over those who have come up so far.

    Args:
        sizes: Grows by one for each member as it is answered.
    """
    line = sorted(members, key=sizes.__getitem__)
    load = sizes[line[0]]
    end = 0
    while True:
        yield from line[:end]
        while end < len(line) and sizes[line[end]] == load:
            end += 1
            yield line[end - 1]
        load += 1


class _Balancer:
    """The subscribers of one topic from least to most loaded, walked from both ends.

    The loads are those of the start: a range of equally loaded members is used up before the next load is looked at.
    """

    def __init__(self, sizes: Sequence[int], members: Sequence[int]) -> None:
        self._sizes = sizes
        # Members come ascending, and the sort is stable: by load, then by index.
        self._sorted = sorted(members, key=sizes.__getitem__)
        least, most = sizes[self._sorted[0]], sizes[self._sorted[-1]]
        self._least_end = 0
        self._least_load = least - 1
        self._next_least = 0
        self._most_start = self._most_end = len(self._sorted)
        self._most_load = most + 1
        self._next_most = len(self._sorted) - 1

    def next_least(self) -> int:
        if self._next_least >= self._least_end:
            self._least_load += 1
            while (
                self._least_end < len(self._sorted) and self._sizes[self._sorted[self._least_end]] == self._least_load
            ):
                self._least_end += 1
            self._next_least = 0
        self._next_least += 1
        return self._sorted[self._next_least - 1]

    def next_most(self) -> int:
        """Answer the next member to take from, or nobody."""
        if self._next_most < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                self._most_load = self._sizes[self._sorted[self._most_start - 1]]
            else:
                self._most_load -= 1
            while self._most_start > 0 and self._sizes[self._sorted[self._most_start - 1]] == self._most_load:
                self._most_start -= 1
            self._next_most = self._most_end - 1
        if self._next_most < 0:
            return _NOBODY
        self._next_most -= 1
        return self._sorted[self._next_most + 1]

    def exclude_most(self) -> None:
        """Take the member just answered out of the range; it has nothing to give."""
        place, last = self._next_most + 1, self._most_end - 1
        self._sorted[place], self._sorted[last] = self._sorted[last], self._sorted[place]
        self._most_end -= 1

    def is_balanced(self) -> bool:
        return self._most_load - self._least_load <= 1


class _Deal:
    """One assignment while it is made."""

    def __init__(self, group: ServerGroup) -> None:
        self.group = group
        places = {topic.name: place for place, topic in enumerate(group.topics)}
        self.subscribers = {
            places[name]: members for name, members in subscribers_by_topic(group.members).items() if name in places
        }
        self.owners = {topic: [_NOBODY] * group.counts[topic] for topic in self.subscribers}
        self.sizes = [0] * len(group.members)
        self.held: list[dict[int, dict[int, None]]] = [{} for _ in group.members]

    def keep(self) -> None:
        for member, subscribed in enumerate(self.group.subscriptions):
            for topic, numbers in self.group.target(member).items():
                if topic not in subscribed:
                    continue
                owners = self.owners[topic]
                self.sizes[member] += len(numbers)
                for number in numbers:
                    if number >= len(owners):
                        raise StrategyError(
                            "array_index_out_of_bounds", f"Index {number} out of bounds for length {len(owners)}"
                        )
                    owners[number] = member
                self.held[member][topic] = dict.fromkeys(numbers)

    def assign_rest(self) -> None:
        rest = {
            topic: [number for number, owner in enumerate(owners) if owner == _NOBODY]
            for topic, owners in self.owners.items()
        }
        for topic in self._sorted_topics([topic for topic, numbers in rest.items() if numbers]):
            takers = _least_loaded_in_turn(self.sizes, self.subscribers[topic])
            for number in rest[topic]:
                self._assign(topic, number, next(takers))

    def balance(self) -> None:
        topics = self._sorted_topics([topic for topic, members in self.subscribers.items() if len(members) > 1])
        last_changed = -1
        for _ in range(_MAX_ITERATION_COUNT):
            for place, topic in enumerate(topics):
                if place == last_changed:
                    return
                if self._balance_topic(topic) or last_changed == -1:
                    last_changed = place

    def _balance_topic(self, topic: int) -> bool:
        """Move partitions from the most to the least loaded subscribers; answer whether any moved."""
        loads = list(map(self.sizes.__getitem__, self.subscribers[topic]))
        if max(loads) - min(loads) <= 1:
            return False
        balancer = _Balancer(self.sizes, self.subscribers[topic])
        to_give: dict[int, list[int]] = {}
        for number, owner in enumerate(self.owners[topic]):
            to_give.setdefault(owner, []).append(number)
        moved = False
        while not balancer.is_balanced():
            giver = balancer.next_most()
            while giver != _NOBODY and not to_give.get(giver):
                balancer.exclude_most()
                giver = balancer.next_most()
            if giver == _NOBODY:
                break
            number = to_give[giver].pop()
            taker = balancer.next_least()
            if balancer.is_balanced():
                break
            self._assign(topic, number, taker)
            moved = True
        return moved

    def _assign(self, topic: int, number: int, member: int) -> None:
        owners = self.owners[topic]
        before = owners[number]
        if before != _NOBODY:
            numbers = self.held[before].get(topic)
            if numbers is not None:
                numbers.pop(number, None)
                if not numbers:
                    del self.held[before][topic]
            self.sizes[before] -= 1
        self.held[member].setdefault(topic, {})[number] = None
        owners[number] = member
        self.sizes[member] += 1

    def _sorted_topics(self, topics: Sequence[int]) -> list[int]:
        counts, subscribers, ids = self.group.counts, self.subscribers, self.group.ids
        return sorted(
            topics,
            key=lambda topic: (
                -counts[topic] / len(subscribers[topic]),
                len(subscribers[topic]),
                uuid_order(ids[topic]),
            ),
        )
