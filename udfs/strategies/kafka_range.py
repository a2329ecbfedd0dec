"""Core: Kafka's client-side range assignor, with and without racks. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from udfs.events import QueueInfo, QueueRef
from udfs.strategies.kafka_clients import by_member, deal_blocks, in_order, leader_library
from udfs.strategies.problem import Assignment, Problem, Topic
from udfs.strategies.subscriptions import known_topics, subscribers_by_topic


def kafka_range(problem: Problem) -> Assignment:
    """Deal each topic by itself: blocks of neighbouring partitions to its subscribers in order.

    Of P partitions and C subscribers the first P mod C get one more than the others. Each topic is even to one
    queue; over several topics the same members come first each time.

    Known imbalance: with T topics a group may spread by T, and with one partition more than members each extra of
    every topic falls on the first member.

    Rolling restart: the order is by instance id, else by member id. A dynamic member comes back under a new id and so
    at another place: nearly everything moves, twice. A static member moves nothing.

    Racks (kafka-clients 3.5 and later, KIP-881): used for a topic only if members' and replicas' racks meet and not
    every partition is in every rack. Topics with the same subscribers and as many partitions stay together.

    Source: kafka-clients 4.1 ``RangeAssignor``; before 2.4 members by id alone, before 3.5 no racks.

    Example: 5 and 3 partitions, two members: {t1: 0–2, t2: 0–1} and {t1: 3–4, t2: 2}.
    """
    library = leader_library(problem)
    members = in_order(problem.members, library)
    held: list[list[QueueRef]] = [[] for _ in members]
    subscribers = subscribers_by_topic(members)
    topics = known_topics(problem, subscribers)
    racks = [member.rack or None for member in members]
    if library.racks_in_range and any(racks):
        _deal_with_racks(topics, subscribers, racks, held)
    else:
        for topic in topics:
            deal_blocks(topic.by_queue_id, subscribers[topic.name], held)
    return by_member(problem, members, held)


def replica_racks(queue: QueueInfo) -> frozenset[str]:
    """Answer the racks in which a queue has a replica."""
    if queue.racks is not None:
        return frozenset(queue.racks)
    return frozenset() if queue.rack is None else frozenset((queue.rack,))


class _TopicShare:
    """One topic while it is dealt (``RangeAssignor.TopicAssignmentState``)."""

    def __init__(self, topic: Topic, subscribers: list[int], racks: Sequence[str | None]) -> None:
        self.subscribers = subscribers
        self.racks = racks
        self.queues = topic.by_queue_id
        # Insertion order is the order of partitions.
        self.unassigned = dict.fromkeys(self.queues)
        self.taken = dict.fromkeys(subscribers, 0)
        self.size, self.extras_left = divmod(len(self.queues), len(subscribers))
        member_racks = {rack for rack in (racks[member] for member in subscribers) if rack}
        self.queue_racks: dict[QueueRef, frozenset[str]] = {}
        all_racks: frozenset[str] = frozenset()
        if member_racks:
            by_id = sorted(topic.queues, key=lambda queue: queue.queue_id)
            self.queue_racks = {ref: replica_racks(queue) for ref, queue in zip(self.queues, by_id, strict=True)}
            all_racks = all_racks.union(*self.queue_racks.values())
        self.needs_racks = not member_racks.isdisjoint(all_racks) and any(
            queue_racks != all_racks for queue_racks in self.queue_racks.values()
        )

    def matches(self, member: int, queue: QueueRef) -> bool:
        rack = self.racks[member]
        return not rack or rack in self.queue_racks.get(queue, ())

    def room(self, member: int) -> int:
        return max(0, self.size + (self.extras_left > 0) - self.taken[member])

    def give(self, member: int, queues: Iterable[QueueRef]) -> None:
        for queue in queues:
            del self.unassigned[queue]
            self.taken[member] += 1
        if self.taken[member] > self.size:
            self.extras_left -= 1


def _deal_with_racks(
    topics: Sequence[Topic], subscribers: dict[str, list[int]], racks: Sequence[str | None], held: list[list[QueueRef]]
) -> None:
    shares = [_TopicShare(topic, subscribers[topic.name], racks) for topic in topics]
    if any(share.needs_racks for share in shares):
        alike: dict[tuple[int, int], list[_TopicShare]] = {}
        for share in shares:
            alike.setdefault((id(share.subscribers), len(share.queue_racks)), []).append(share)
        for group in alike.values():
            if len(group) > 1:
                _deal_together(group, held)
            elif group[0].needs_racks:
                _deal_ranges(group[0], group[0].matches, held)
    for share in shares:
        _deal_ranges(share, lambda _member, _queue: True, held)
    for queues in held:
        queues.sort(key=lambda queue: (queue.topic, queue.queue_id))


def _deal_ranges(share: _TopicShare, may_take: Callable[[int, QueueRef], bool], held: list[list[QueueRef]]) -> None:
    for member in share.subscribers:
        if not share.unassigned:
            break
        room = share.room(member)
        if not room:
            continue
        taken = []
        for queue in share.unassigned:
            if may_take(member, queue):
                taken.append(queue)
                if len(taken) == room:
                    break
        if taken:
            held[member] += taken
            share.give(member, taken)


def _deal_together(shares: Sequence[_TopicShare], held: list[list[QueueRef]]) -> None:
    """Partition p of all topics goes to the first member that matches, and has room, in all of them."""
    waiting = dict.fromkeys(shares[0].subscribers)
    for number in range(len(shares[0].queue_racks)):
        for member in waiting:
            if all(share.matches(member, share.queues[number]) and share.room(member) for share in shares):
                break
        else:
            continue
        for share in shares:
            held[member].append(share.queues[number])
            share.give(member, (share.queues[number],))
        if not any(share.room(member) for share in shares):
            del waiting[member]
            if not waiting:
                break
