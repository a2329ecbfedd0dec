"""Core: RocketMQ's consistent hashing. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from udfs.model.errors import StrategyError
from udfs.model.events import QueueRef
from udfs.strategies.hash_ring import HashRing, md5
from udfs.strategies.problem import Assignment, Problem
from udfs.strategies.rocketmq.all_members import TopicAllocation, allocate_each_topic
from udfs.strategies.settings import whole_number

_VIRTUAL_NODES: Final = 10  # AllocateMessageQueueConsistentHash()
# The real class would create all of them again for each topic, and no client has so large a group.
_MOST_POINTS: Final = 1_000_000


def rocketmq_consistent_hash(problem: Problem) -> Assignment:
    """Return each queue for the id whose point on a ring of MD5 hashes comes first at or after the queue's own.

    Each id has ``virtual_nodes`` points (10). When a member leaves, only its queues move; when one joins, queues move
    only to it. Known imbalance: nothing bounds the spread; with 10 points an id easily holds twice its share or none.
    With 0 virtual nodes no id gets anything.

    Rolling restart: a client that comes back under its old id gets its old queues; under a new id it gets others, and
    only queues of the old and the new id move.

    Source: rocketmq-client 4.9 and 5.5 ``AllocateMessageQueueConsistentHash``, ``ConsistentHashRouter``.

    Example: TopicA, queues a0–a5 of broker room1@broker-a and b0–b5 of room2@broker-b; 10.0.0.10@3 has a2, b1;
        10.0.0.1@1 b0; 10.0.0.1@12 a4, b2–b5; 10.0.0.2@2 a0, a1, a3, a5.
    """
    return allocate_each_topic(problem, consistent_hash(problem.settings))


def consistent_hash(settings: Mapping[str, object]) -> TopicAllocation:
    """Return the allocation of one topic under these settings.

    Raises:
        StrategyError: ``illegal_argument`` for a negative number of virtual nodes, ``illegal_setting``; from the
            allocation ``illegal_setting`` for more points than fit into memory.
    """
    virtual_nodes = whole_number(settings, "virtual_nodes", _VIRTUAL_NODES)
    if virtual_nodes < 0:
        raise StrategyError("illegal_argument", f"virtual_nodes must not be negative, not {virtual_nodes}")
    rings: dict[tuple[str, ...], HashRing] = {}

    def allocate(queues: Sequence[QueueRef], ids: Sequence[str]) -> dict[str, list[QueueRef]]:
        key = tuple(ids)
        if key not in rings:
            if virtual_nodes * len(ids) > _MOST_POINTS:
                raise StrategyError(
                    "illegal_setting", f"virtual_nodes: {len(ids)} ids may have {_MOST_POINTS} points together"
                )
            rings[key] = _ring(ids, virtual_nodes)
        shares: dict[str, list[QueueRef]] = {}
        for queue in queues:
            point = f"MessageQueue [topic={queue.topic}, brokerName={queue.broker or ''}, queueId={queue.queue_id}]"
            owner = rings[key].owner(_hash(point))
            if owner is not None:
                shares.setdefault(owner, []).append(queue)
        return shares

    return allocate


def _ring(ids: Sequence[str], virtual_nodes: int) -> HashRing:
    owners: dict[int, str] = {}
    placed: set[str] = set()
    for name in ids:
        # An id that is listed twice continues after the points that it already has on the ring.
        before = sum(owner == name for owner in owners.values()) if name in placed else 0
        placed.add(name)
        for number in range(before, before + virtual_nodes):
            owners[_hash(f"{name}-{number}")] = name
    return HashRing(owners)


def _hash(text: str) -> int:
    return int.from_bytes(md5(text)[:4], "big")
