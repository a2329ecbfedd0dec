"""Core: the uniform assignor of Kafka 3.7 to 3.9's group coordinator (KIP-848), different subscriptions. No I/O.

The rules for the target:

1. Each member keeps its previous target, as far as it still subscribes to the topic.
2. Free partitions go to the least loaded subscriber, then by id: first those of topics with many partitions for each
   subscriber, then of topics with few subscribers, then by number; ties are in the iteration order of a Java
   ``HashSet`` of all partitions.
3. Partitions of topics with more than one subscriber move one by one in the order of 2, each at most once: to the least
   loaded subscriber, if that holds at least two fewer than its owner. It ends if, after a move, no two members differ
   by more than one, or after a pass without moves.

Members that after 2 hold all partitions to which they subscribe are not compared at the end of 3, unless they give or
take one in between. So the others may be even while such a member has far more, which is the known imbalance of this
release.

Source: KIP-848; kafka-group-coordinator 3.9.1 ``UniformHeterogeneousAssignmentBuilder``, as observed.
"""

from __future__ import annotations

from collections import Counter
from heapq import heapify, heappop, heappush

from udfs.jvm.collections import hashed_order, sorted_strings
from udfs.model.comparability import NOT_RECOMPUTABLE
from udfs.model.errors import StrategyError
from udfs.model.events import QueueRef
from udfs.strategies.kafka.server import ServerGroup, uuid_hashes
from udfs.strategies.subscriptions import subscribers_by_topic


def assign_early(group: ServerGroup) -> list[list[QueueRef]]:
    """Return each member's queues, sorted.

    Raises:
        StrategyError: ``not_recomputable`` if a previous target names a partition twice, or one that no longer exists.
    """
    target = _Target(group)
    target.keep()
    target.assign_free()
    target.even_out()
    return target.queues()


class _Target:
    """The target assignment under construction.

    Attributes:
        _owners: The member of each partition, by topic.
        _loads: The number of partitions of each member.
        _lines: The subscribers of each topic as heaps of (load, rank of the id, member); outdated entries are left in.
    """

    def __init__(self, group: ServerGroup) -> None:
        self._group = group
        places = {topic.name: place for place, topic in enumerate(group.topics)}
        self._subscribers = {
            places[name]: members for name, members in subscribers_by_topic(group.members).items() if name in places
        }
        self._owners: dict[int, list[int | None]] = {topic: [None] * group.counts[topic] for topic in self._subscribers}
        self._loads = [0] * len(group.members)
        ids = [member.member_id for member in group.members]
        ranks = {member_id: rank for rank, member_id in enumerate(sorted_strings(ids))}
        self._ranks = [ranks[member_id] for member_id in ids]
        self._lines: dict[int, list[tuple[int, int, int]]] = {}

    def keep(self) -> None:
        for member, subscribed in enumerate(self._group.subscriptions):
            for topic, numbers in self._group.target(member).items():
                if topic not in subscribed:
                    continue
                owners = self._owners[topic]
                for number in numbers:
                    if number >= len(owners) or owners[number] is not None:
                        name = self._group.topics[topic].name
                        raise StrategyError(NOT_RECOMPUTABLE, f"two targets name {name!r}-{number}, or it is no more")
                    owners[number] = member
                self._loads[member] += len(numbers)

    def assign_free(self) -> None:
        self._in_order = self._ordered()
        self._line_up()
        for topic, number in self._in_order:
            if self._owners[topic][number] is None:
                taker = self._least(topic)
                self._owners[topic][number] = taker
                self._loads[taker] += 1

    def even_out(self) -> None:
        group, loads = self._group, self._loads
        whole = [sum(map(group.counts.__getitem__, topics)) for topics in group.subscriptions]
        self._line_up()
        compared = {member for member, load in enumerate(loads) if load < whole[member]}
        sizes = Counter(map(loads.__getitem__, compared))
        waiting = [partition for partition in self._in_order if len(self._subscribers[partition[0]]) > 1]
        has_moved = True
        while has_moved:
            has_moved, left = False, []
            for topic, number in waiting:
                giver, taker = self._owners[topic][number], self._least(topic)
                assert giver is not None
                if loads[taker] + 1 >= loads[giver]:
                    left.append((topic, number))
                    continue
                for member in {giver, taker} & compared:
                    sizes[loads[member]] -= 1
                self._move(topic, number, giver, taker)
                compared |= {giver, taker}
                sizes.update((loads[giver], loads[taker]))
                sizes = +sizes
                if max(sizes) - min(sizes) <= 1:
                    return
                has_moved = True
            waiting = left

    def _move(self, topic: int, number: int, giver: int, taker: int) -> None:
        self._owners[topic][number] = taker
        self._loads[giver] -= 1
        self._loads[taker] += 1
        for other in self._group.subscriptions[giver]:
            heappush(self._lines[other], (self._loads[giver], self._ranks[giver], giver))

    def _line_up(self) -> None:
        for topic, members in self._subscribers.items():
            line = self._lines[topic] = [(self._loads[member], self._ranks[member], member) for member in members]
            heapify(line)

    def _least(self, topic: int) -> int:
        """Return the least loaded subscriber, with ties by id."""
        line = self._lines[topic]
        while line[0][0] != self._loads[line[0][2]]:
            _, rank, member = heappop(line)
            heappush(line, (self._loads[member], rank, member))
        return line[0][2]

    def _ordered(self) -> list[tuple[int, int]]:
        """Return all partitions, as (topic, number), in the order in which they are assigned."""
        counts, subscribers = self._group.counts, self._subscribers
        hashes = uuid_hashes(self._group.ids)
        topics = sorted(subscribers)
        topics = [topics[place] for place in hashed_order([hashes[topic] for topic in topics])] if topics else []
        partitions = [(topic, number) for topic in topics for number in range(counts[topic])]
        # Objects.hash(topic id, number)
        codes = [31 * (31 + hashes[topic]) + number & 0xFFFFFFFF for topic, number in partitions]
        iterated = [partitions[place] for place in hashed_order(codes)] if partitions else []
        ranks = {topic: (-counts[topic] / len(members), len(members)) for topic, members in subscribers.items()}
        return sorted(iterated, key=lambda partition: (ranks[partition[0]], partition[1]))

    def queues(self) -> list[list[QueueRef]]:
        """Return each member's queues by topic and number."""
        held: list[list[QueueRef]] = [[] for _ in self._loads]
        for topic in sorted(self._owners):
            for queue, member in zip(self._group.queues[topic], self._owners[topic], strict=True):
                if member is not None:
                    held[member].append(queue)
        return held
