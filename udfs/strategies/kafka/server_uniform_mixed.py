"""Core: the uniform assignor of Kafka's group coordinator (KIP-848), different subscriptions. No I/O.

The rules for the target, topic by topic, first topics with many partitions for each subscriber, then those with few
subscribers, then by id:

1. Each member keeps its previous target, as far as it still subscribes to the topic. A partition that two members had
   counts for both.
2. Free partitions are assigned to subscribers in rounds. A round has a level, a number of partitions: at first that of
   the least loaded subscriber, and one more in each following round. In a round each subscriber that had no more than
   that at the start of the topic gets one, the least loaded first.
3. At most 16 times, until no topic changes any more, givers are paired with takers. Takers come as in 2. The rounds of
   givers count down from the load of the most loaded subscriber; the most loaded come first, and each gives its last
   partition of the topic. It ends when the two levels differ by at most one.

A giver without any partition of the topic left drops out of the rounds, and the one that led the round takes its
position.

Source: KIP-848; kafka-group-coordinator 4.1 ``UniformHeterogeneousAssignmentBuilder``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, cycle, islice
from typing import Final

from udfs.model.errors import StrategyError
from udfs.model.events import QueueRef
from udfs.strategies.kafka.server import ServerGroup, uuid_order
from udfs.strategies.subscriptions import subscribers_by_topic

_MOST_PASSES: Final = 16
_UNOWNED: Final = -1


def assign_mixed(group: ServerGroup) -> list[list[QueueRef]]:
    """Return each member's queues, sorted."""
    target = _Target(group)
    target.keep()
    target.assign_free()
    target.even_out()
    return target.queues()


def _rising(loads: Sequence[int], members: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the level and the next taker, without end.

    Args:
        loads: Loads of members already yielded may change in between.
    """
    line = sorted(members, key=loads.__getitem__)
    joined = 0
    for level in count(loads[line[0]]):
        for member in line[:joined]:
            yield level, member
        while joined < len(line) and loads[line[joined]] == level:
            joined += 1
            yield level, line[joined - 1]


def _falling(
    loads: Sequence[int], members: Sequence[int], left: Mapping[int, Sequence[int]]
) -> Iterator[tuple[int, int]]:
    """Yield the level and the next giver, until no member has anything left.

    Args:
        left: The partitions that each member has to give, reduced with every giver that was yielded.
    """
    line = sorted(members, key=loads.__getitem__)
    levels = [loads[member] for member in line]
    in_round: list[int] = []
    level = levels[-1]
    while True:
        while levels and levels[-1] == level:
            in_round.append(line[len(levels) - 1])
            levels.pop()
        place = 0
        while place < len(in_round):
            giver = in_round[place]
            if left.get(giver):
                yield level, giver
                place += 1
            else:
                in_round[place] = in_round[0]
                del in_round[0]
        if in_round:
            level -= 1
        elif levels:
            level = levels[-1]
        else:
            return


class _Target:
    """The target assignment under construction.

    Attributes:
        _owners: The member of each partition, by topic.
        _loads: The number of partitions of each member.
        _doubles: Partitions that were also another member's target: (partition, that member) by topic.
    """

    def __init__(self, group: ServerGroup) -> None:
        self._group = group
        places = {topic.name: place for place, topic in enumerate(group.topics)}
        self._subscribers = {
            places[name]: members for name, members in subscribers_by_topic(group.members).items() if name in places
        }
        self._owners = {topic: [_UNOWNED] * group.counts[topic] for topic in self._subscribers}
        self._loads = [0] * len(group.members)
        self._doubles: dict[int, set[tuple[int, int]]] = {}

    def keep(self) -> None:
        for member, subscribed in enumerate(self._group.subscriptions):
            for topic, numbers in self._group.target(member).items():
                if topic not in subscribed:
                    continue
                owners = self._owners[topic]
                self._loads[member] += len(numbers)
                for number in numbers:
                    if number >= len(owners):
                        raise StrategyError(
                            "array_index_out_of_bounds",
                            f"partition {number} was assigned before, and now there are only {len(owners)} of "
                            f"{self._group.topics[topic].name!r}",
                        )
                    if owners[number] != _UNOWNED:
                        self._doubles.setdefault(topic, set()).add((number, owners[number]))
                    owners[number] = member

    def assign_free(self) -> None:
        for topic in self._in_order([topic for topic, owners in self._owners.items() if _UNOWNED in owners]):
            owners, loads = self._owners[topic], self._loads
            takers = _rising(loads, self._subscribers[topic])
            for number, owner in enumerate(owners):
                if owner == _UNOWNED:
                    _, taker = next(takers)
                    owners[number] = taker
                    loads[taker] += 1

    def even_out(self) -> None:
        topics = self._in_order([topic for topic, members in self._subscribers.items() if len(members) > 1])
        unchanged = 0
        for topic in islice(cycle(topics), _MOST_PASSES * len(topics)):
            if unchanged == len(topics):
                break
            # The last topic that changed counts, because only another topic's change can unsettle it.
            unchanged = 1 if self._even_out_topic(topic) else unchanged + 1

    def _even_out_topic(self, topic: int) -> bool:
        """Even out one topic; return whether any partition moved."""
        owners, loads, members = self._owners[topic], self._loads, self._subscribers[topic]
        of_topic = list(map(loads.__getitem__, members))
        if max(of_topic) - min(of_topic) <= 1:
            return False
        left: dict[int, list[int]] = {}
        for number, owner in enumerate(owners):
            left.setdefault(owner, []).append(number)
        moved = False
        for (high, giver), (low, taker) in zip(_falling(loads, members, left), _rising(loads, members), strict=False):
            if high - low <= 1:
                break
            number = left[giver].pop()
            owners[number] = taker
            loads[giver] -= 1
            loads[taker] += 1
            self._doubles.get(topic, set()).discard((number, giver))
            moved = True
        return moved

    def _in_order(self, topics: Sequence[int]) -> list[int]:
        counts, subscribers, ids = self._group.counts, self._subscribers, self._group.ids
        return sorted(
            topics,
            key=lambda topic: (
                -counts[topic] / len(subscribers[topic]),
                len(subscribers[topic]),
                uuid_order(ids[topic]),
            ),
        )

    def queues(self) -> list[list[QueueRef]]:
        """Return each member's queues by topic and number."""
        held: list[list[QueueRef]] = [[] for _ in self._loads]
        for topic in sorted(self._owners):
            queues, owners = self._group.queues[topic], self._owners[topic]
            if topic in self._doubles:
                for number, member in sorted({*enumerate(owners), *self._doubles[topic]}):
                    held[member].append(queues[number])
            else:
                for queue, member in zip(queues, owners, strict=True):
                    held[member].append(queue)
        return held
