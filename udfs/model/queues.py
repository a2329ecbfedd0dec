"""Core: the queues of one topic, in full or only as a count."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from udfs.model.events import QueueInfo, TopicPartitions, TopicQueues

Queues: TypeAlias = tuple[QueueInfo, ...]


def queues_of(event: TopicQueues) -> Queues:
    """Return the queues of an event, by broker and queue id."""
    if event.queues is not None:
        return tuple(sorted(event.queues, key=lambda queue: (queue.broker or "", queue.queue_id)))
    return numbered(event.queue_count or 0)


# Most topics of a fleet have one of few counts, and each decision reads them: so many, of so few queues, are kept.
_KEPT_COUNTS, _KEPT_QUEUES = 256, 1_024


def numbered(count: int) -> Queues:
    """Return this many queues of which only the number is reported."""
    return _kept(count) if count <= _KEPT_QUEUES else _made(count)


def _made(count: int) -> Queues:
    return tuple(map(QueueInfo, range(count)))


_kept = lru_cache(_KEPT_COUNTS)(_made)


def with_count(queues: Queues, number: int, *, per_broker: bool) -> Queues:
    """Return a topic's queues with another number of them, on each broker if they belong to brokers.

    Queues that stay keep their racks, new ones have none.
    """
    there = {(queue.broker, queue.queue_id): queue for queue in queues}
    brokers = sorted({queue.broker for queue in queues}, key=lambda broker: broker or "") if per_broker else [None]
    return tuple(
        there.get((broker, queue_id), QueueInfo(queue_id, broker)) for broker in brokers for queue_id in range(number)
    )


def racks_of(queue: QueueInfo) -> tuple[str, ...]:
    """Return the racks of a queue's replicas."""
    if queue.racks is not None:
        return queue.racks
    return () if queue.rack is None else (queue.rack,)


def shortened(queues: Queues) -> int | Queues:
    """Return queues, or only their count if nothing else was reported."""
    plain = all(queue == QueueInfo(index) for index, queue in enumerate(queues))
    return len(queues) if plain else queues


def spelled(queues: int | Queues | None) -> Queues | None:
    """Return queues in full, even if only their count is stored."""
    return numbered(queues) if isinstance(queues, int) else queues


def ascending(held: Sequence[TopicPartitions]) -> tuple[TopicPartitions, ...]:
    """Return partitions by topic, both in ascending order."""
    return tuple(TopicPartitions(of_topic.topic, tuple(sorted(of_topic.partitions))) for of_topic in sorted(held))
