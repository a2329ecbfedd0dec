"""Core: the queues of a cluster's topics, as every shard keeps them. No I/O.

Topics lie in cold blocks. A batch opens those of which an event is due, or which a group asks for; what a topic
was before the batch and became within it is kept until the batch ends, so that a group that is told late in the
batch still sees each moment as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec
import numpy as np

from udfs.cold import ColdBlocks
from udfs.events import QueueInfo, TopicQueues
from udfs.journal import Change, TopicChanged
from udfs.packing import CarriedEvent, order_of, topic_key
from udfs.repeats import Repeats, topic_ledger_key
from udfs.state_codec import Buffer

Queues: TypeAlias = tuple[QueueInfo, ...]
Told: TypeAlias = tuple[TopicQueues, CarriedEvent]


class Topic(msgspec.Struct, array_like=True):
    """One topic.

    Attributes:
        as_of: Time of the newest event applied, changed or not. number: Changes written so far of its history.
        queues: As they stand: their count where nothing else is known of them, None while the topic is unknown.
        first: As they were first known, where that differs.
    """

    name: str
    as_of: int
    number: int = 0
    queues: int | Queues | None = None
    first: int | Queues | None = None
    topic_id: str | None = None


class Topics:
    """The topics of one cluster, and what this batch does to them."""

    def __init__(self, cluster: str, data: Buffer) -> None:
        self._cluster = cluster
        self._data = data
        self._blocks: ColdBlocks | None = None
        self._read: dict[str, Topic | None] = {}
        self._written: set[str] = set()
        self._history: dict[str, list[tuple[int, Queues]]] = {}
        self._before: dict[str, Queues | None] = {}

    def at(self, topic: str, time_ms: int) -> Queues | None:
        """Answer the topic's queues as known at that time; None when not known yet."""
        known = self._before[topic] if topic in self._before else self._standing(topic)
        for moment, queues in self._history.get(topic, ()):
            if moment > time_ms:
                break
            known = queues
        return known

    def first_known(self, topic: str) -> Queues | None:
        """Answer the first queues ever known of the topic."""
        record = self._record(topic)
        if record is None:
            return None
        return spelled(record.queues if record.first is None else record.first)

    def topic_id(self, topic: str) -> str | None:
        """Answer Kafka's UUID of the topic where it was told."""
        record = self._record(topic)
        return None if record is None else record.topic_id

    def apply(self, due: Sequence[Told], repeats: Repeats) -> tuple[list[Told], list[Told], list[Change]]:
        """Apply ``TopicQueues`` that are due.

        Returns: those that changed something; those older than what was known; the changes, to be written by
            each topic's home only. All in the order in which they applied.
        """
        moves: list[Told] = []
        late: list[Told] = []
        changes: list[Change] = []
        for one in sorted(due, key=lambda told: order_of(told[1])):
            event, carried = one
            ledger = repeats.of(topic_ledger_key(topic_key(self._cluster, event.topic)))
            if ledger.is_repeat(carried.event_id, event.event_time):
                continue
            record = self._record(event.topic)
            if record is not None and event.event_time < record.as_of:
                late.append(one)
                continue
            change = self._set(event, record)
            if change is not None:
                moves.append(one)
                changes.append(change)
        return moves, late, changes

    def restore(self, record: Topic) -> bool:
        """Put a topic in as it stood elsewhere; False when it is known already."""
        if self._record(record.name) is not None:
            return False
        self._read[record.name] = record
        self._written.add(record.name)
        return True

    def all(self) -> list[Topic]:
        """Answer every topic, by key."""
        blocks = self._decoded()
        return [_DECODER.decode(blocks.read(position)) for position in range(len(blocks.keys))]

    def encode(self) -> Buffer:
        """Answer the bytes from which the same topics are read."""
        if not self._written:
            return self._data
        blocks = self._decoded()
        values: dict[int, bytes] = {}
        for name in sorted(self._written):
            record = self._read[name]
            if record is not None:
                values[topic_key(self._cluster, name)] = msgspec.msgpack.encode(record)
        blocks.write(values)
        return blocks.encode()

    def _set(self, event: TopicQueues, record: Topic | None) -> Change | None:
        if record is None:
            record = Topic(event.topic, event.event_time)
            self._read[event.topic] = record
        known = self._standing(event.topic)
        self._written.add(event.topic)
        record.as_of = event.event_time
        if event.topic_id is not None:
            record.topic_id = event.topic_id
        queues = queues_of(event)
        if queues == (known or ()):
            return None
        self._before.setdefault(event.topic, known)
        self._history.setdefault(event.topic, []).append((event.event_time, queues))
        short = _shortened(queues)
        if known is not None and record.first is None:
            record.first = record.queues
        record.queues = short
        record.number += 1
        return Change(
            cluster=self._cluster,
            group_id=None,
            subject=event.topic,
            number=record.number,
            event_time=event.event_time,
            body=TopicChanged(
                topic=event.topic,
                queue_count=len(queues),
                queues=[
                    {"broker": queue.broker, "queue_id": queue.queue_id, "racks": list(racks_of(queue))}
                    for queue in queues
                ],
                valid_from=event.event_time,
            ),
        )

    def _standing(self, topic: str) -> Queues | None:
        record = self._record(topic)
        return None if record is None else spelled(record.queues)

    def _record(self, topic: str) -> Topic | None:
        if topic not in self._read:
            blocks = self._decoded()
            key = np.asarray([topic_key(self._cluster, topic)], dtype=np.uint64)
            position = int(blocks.find(key)[0])
            self._read[topic] = _DECODER.decode(blocks.read(position)) if position >= 0 else None
        return self._read[topic]

    def _decoded(self) -> ColdBlocks:
        if self._blocks is None:
            self._blocks = ColdBlocks(self._data)
        return self._blocks


_DECODER = msgspec.msgpack.Decoder(Topic)


def queues_of(event: TopicQueues) -> Queues:
    """Answer the queues that an event tells, by broker and queue id."""
    if event.queues is not None:
        return tuple(sorted(event.queues, key=lambda queue: (queue.broker or "", queue.queue_id)))
    return tuple(QueueInfo(queue_id) for queue_id in range(event.queue_count or 0))


def racks_of(queue: QueueInfo) -> tuple[str, ...]:
    """Answer the racks of a queue's replicas."""
    if queue.racks is not None:
        return queue.racks
    return () if queue.rack is None else (queue.rack,)


def _shortened(queues: Queues) -> int | Queues:
    plain = all(queue == QueueInfo(index) for index, queue in enumerate(queues))
    return len(queues) if plain else queues


def spelled(queues: int | Queues | None) -> Queues | None:
    """Answer queues as they are, where only their count is stored."""
    return tuple(QueueInfo(index) for index in range(queues)) if isinstance(queues, int) else queues
