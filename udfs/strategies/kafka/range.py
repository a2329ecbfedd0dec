"""Core: Kafka's client-side range assignor, with and without racks. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from udfs.model.events import QueueInfo, QueueRef
from udfs.strategies.kafka.client_library import (
    KAFKA_PYTHON,
    LIBRDKAFKA,
    Library,
    assign_blocks,
    by_hash,
    by_member,
    in_order,
    leader_library,
)
from udfs.strategies.problem import Assignment, Problem, Topic
from udfs.strategies.subscriptions import subscribers_by_topic, topics_with_queues

_UNOWNED = -1


def kafka_range(problem: Problem) -> Assignment:
    """Return each topic in blocks of neighbouring partitions, one block for each subscriber in order.

    With P partitions and C subscribers, the first P mod C get one more than the others. Each topic is even to within
    one queue; over several topics the same members come first each time.

    Known imbalance: with T topics a group may spread by T, and with one partition more than members each topic's extra
    partition goes to the first member.

    Rolling restart: the order is by instance id, else by member id. A dynamic member comes back under a new id and so
    at another position: nearly everything moves, twice. A static member moves nothing.

    Racks (kafka-clients 3.5 and later, KIP-881): a topic is assigned by racks only if some subscriber's rack has a
    replica and not every partition is in every rack. Subscribers then get partitions near them first, as many as the
    blocks would give them, and the rest in blocks. As soon as one topic is assigned by racks, topics with the same
    subscribers and as many partitions are assigned as one: partition p of all of them is given to one member.

    librdkafka uses racks since 2.2; it assigns all topics with the same subscribers and number of partitions as one,
    and there a member without a rack is near to nothing.

    Source: KIP-881; kafka-clients 4.1 ``RangeAssignor``; before 2.4 members by id alone, before 3.5 no racks.
    librdkafka 2.2 ``rd_kafka_range_assignor_assign_cb``. sarama 1.34.0 ``BalanceStrategyRange``: blocks end at rounded
    positions.

    Example: 5 and 3 partitions, two members: {t1: 0–2, t2: 0–1} and {t1: 3–4, t2: 2}.
    """
    library = leader_library(problem)
    if library.name == KAFKA_PYTHON or library.ranges_by_hash:
        return _topic_by_topic(problem, library)
    members = in_order(problem.members, library)
    held: list[list[QueueRef]] = [[] for _ in members]
    subscribers = subscribers_by_topic(members)
    topics = topics_with_queues(problem, subscribers)
    racks = [member.rack or None for member in members]
    by_racks = {}
    if library.uses_racks and any(racks):
        by_racks = _owners_by_racks(topics, subscribers, racks, library)
    for topic in topics:
        owners = by_racks.get(topic.name)
        if owners is None:
            assign_blocks(topic.by_queue_id, subscribers[topic.name], held)
        else:
            for queue, member in zip(topic.by_queue_id, owners, strict=True):
                held[member].append(queue)
    return by_member(problem, members, held)


def _topic_by_topic(problem: Problem, library: Library) -> Assignment:
    """Return the same with each topic's subscribers ordered separately; some of them may be left out."""
    places = {member.member_id: place for place, member in enumerate(problem.members)}
    held: list[list[QueueRef]] = [[] for _ in places]
    subscribers = subscribers_by_topic(problem.members)
    for topic in topics_with_queues(problem, subscribers):
        found = [problem.members[place] for place in subscribers[topic.name]]
        if library.ranges_by_hash:
            takers = [places[member.member_id] for member in by_hash(found, topic.name)]
            _assign_rounded(topic.by_queue_id, takers, held)
        else:
            takers = [places[member.member_id] for member in in_order(found, library)]
            assign_blocks(topic.by_queue_id, takers, held)
    return by_member(problem, problem.members, held)


def _assign_rounded(queues: Sequence[QueueRef], takers: Sequence[int], held: Sequence[list[QueueRef]]) -> None:
    """Add blocks that end at the nearest multiples of queues for each taker, halves rounded up."""
    step = len(queues) / len(takers)
    ends = [int(place * step + 0.5) for place in range(len(takers) + 1)]
    for place, member in enumerate(takers):
        held[member] += queues[ends[place] : ends[place + 1]]


def has_near_queues(problem: Problem) -> bool:
    """Return whether some member's rack has a replica of some queue, so that racks may decide."""
    racks = {member.rack for member in problem.members if member.rack}
    return bool(racks) and any(
        not racks.isdisjoint(replica_racks(queue)) for topic in problem.topics.values() for queue in topic.queues
    )


def replica_racks(queue: QueueInfo) -> frozenset[str]:
    """Return the racks in which a queue has a replica."""
    if queue.racks is not None:
        return frozenset(queue.racks)
    return frozenset() if queue.rack is None else frozenset((queue.rack,))


def _owners_by_racks(
    topics: Iterable[Topic], subscribers: dict[str, list[int]], racks: Sequence[str | None], library: Library
) -> dict[str, list[int]]:
    """Return the owner of each partition of the topics that are not simply cut into blocks."""
    replicas = {
        topic.name: [replica_racks(queue) for queue in sorted(topic.queues, key=lambda queue: queue.queue_id)]
        for topic in topics
    }
    rack_counts = {
        name: _rack_counts(replicas[name], {racks[member] for member in subscribers[name]}) for name in replicas
    }
    is_java = library.name != LIBRDKAFKA
    if is_java and not any(rack_counts.values()):
        return {}
    by_subscribers: dict[tuple[int, int], list[str]] = {}
    for name, of_topic in replicas.items():
        by_subscribers.setdefault((id(subscribers[name]), len(of_topic)), []).append(name)
    owners = {}
    for names in by_subscribers.values():
        if len(names) > 1 or rack_counts[names[0]]:
            # A partition is near a rack that has a replica of it in each of the topics.
            near = [frozenset.intersection(*of_all) for of_all in zip(*map(replicas.__getitem__, names), strict=True)]
            together = len(names) > 1
            owned = _owners(near, subscribers[names[0]], racks, together=together, with_rackless=is_java)
            owners.update(dict.fromkeys(names, owned))
    return owners


def _rack_counts(replicas: Sequence[frozenset[str]], racks: set[str | None]) -> bool:
    """Return whether these members' racks give a reason to prefer one partition over another."""
    everywhere = frozenset[str]().union(*replicas)
    return not racks.isdisjoint(everywhere) and any(of_partition != everywhere for of_partition in replicas)


def _owners(
    near: Sequence[frozenset[str]],
    takers: Sequence[int],
    racks: Sequence[str | None],
    *,
    together: bool,
    with_rackless: bool,
) -> list[int]:
    shares = _Shares(near, [racks[member] for member in takers])
    if together:
        shares.give_partition_by_partition(with_rackless=with_rackless)
    else:
        shares.give_taker_by_taker(shares.racks)
    shares.give_taker_by_taker([None] * len(takers))
    return [takers[owner] for owner in shares.owners]


class _Shares:
    """The partitions of a topic, or of topics that are assigned as one, and how many each taker may have.

    Every taker may have ``P div C``, and the first ``P mod C`` takers to come one more.

    Attributes:
        racks: Racks by taker; None is near to everything.
        owners: The owner of each partition, as an index into the takers.
    """

    def __init__(self, near: Sequence[frozenset[str]], racks: Sequence[str | None]) -> None:
        self.racks = racks
        self.owners = [_UNOWNED] * len(near)
        self._near = near
        size, self._extras = divmod(len(near), len(racks))
        self._room = [size] * len(racks)  # −1: it has taken one more

    def give_partition_by_partition(self, *, with_rackless: bool) -> None:
        """Give each partition to the first taker near to it that has room.

        Args:
            with_rackless: Whether a taker without a rack is near to everything.
        """
        lines: dict[str | None, list[int]] = {}
        for taker in reversed(range(len(self.racks))):
            if with_rackless or self.racks[taker] is not None:
                lines.setdefault(self.racks[taker], []).append(taker)
        for partition, racks in enumerate(self._near):
            first = []
            for line in filter(None, map(lines.get, (None, *racks))):
                # Room is never given back, so a member without room is not considered again.
                while line and not self._has_room(line[-1]):
                    line.pop()
                first += line[-1:]
            if first:
                self._give(partition, min(first))

    def give_taker_by_taker(self, racks: Sequence[str | None]) -> None:
        """Give each taker in order the first free partitions near to it, as many as it has room for."""
        free = [partition for partition, owner in enumerate(self.owners) if owner == _UNOWNED][::-1]
        lines = {
            rack: free if rack is None else [partition for partition in free if rack in self._near[partition]]
            for rack in dict.fromkeys(racks)
        }
        for taker, rack in enumerate(racks):
            line = lines[rack]
            while line and self._has_room(taker):
                partition = line.pop()
                if self.owners[partition] == _UNOWNED:
                    self._give(partition, taker)

    def _has_room(self, taker: int) -> bool:
        return self._room[taker] + (self._extras > 0) > 0

    def _give(self, partition: int, taker: int) -> None:
        self.owners[partition] = taker
        self._room[taker] -= 1
        self._extras -= self._room[taker] < 0
