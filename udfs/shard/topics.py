"""Core: the queues of a cluster's topics, as every shard keeps them. No I/O.

Topics are in cold blocks. A batch decompresses the blocks of topics with a due event or that a group needs. A topic's
queues before the batch and each change within it are kept until the batch ends, so that every group sees them as of
each event time. The newest changes stay with the topic, because a generation's metadata may be needed batches later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec
import numpy as np

from udfs.model.errors import StateVersionError
from udfs.model.events import TopicQueues
from udfs.model.journal import Change, TopicChanged
from udfs.model.queues import Queues, queues_of, racks_of, shortened, spelled
from udfs.packets.packet import CarriedEvent, order_of, topic_key
from udfs.shard.block_store import BlockStore
from udfs.shard.deduplication import DedupStore, topic_dedup_key
from udfs.shard.state_format import Buffer

CarriedTopic: TypeAlias = tuple[TopicQueues, CarriedEvent]
# Since when the name has referred to which topic id; None for a topic without an id, "" for no topic.
Life: TypeAlias = tuple[int, str | None]

MAX_LIVES = 16  # deletions and re-creations of one topic that are remembered
MAX_FORMER = 8  # remembered changes of one topic's queues; an earlier time gets the queues before the oldest change
_DELETED = ""


class StoredTopic(msgspec.Struct, array_like=True):
    """One topic.

    Attributes:
        as_of: Time of the newest event applied, whether it changed anything or not. number: Changes of its history
            written so far.
        queues: The current queues, only their count if nothing else is reported; None while the topic is unknown.
        first: The queues as first reported, if different.
        former: The newest changes: the time of each, and the queues before it; None if the topic was unknown.
        topic_id: The current id. lives: The newest deletions and re-creations, and the state before them; none while
            the topic is as first reported.
    """

    name: str
    as_of: int
    number: int = 0
    queues: int | Queues | None = None
    first: int | Queues | None = None
    topic_id: str | None = None
    lives: list[Life] = msgspec.field(default_factory=list)
    former: list[tuple[int, int | Queues | None]] = msgspec.field(default_factory=list)

    def begin(self, time_ms: int, topic_id: str | None, *, exists: bool) -> None:
        """Record which topic has the name from a time on; the first topic has it for all earlier times."""
        life = topic_id if exists else _DELETED
        former = self.lives[-1][1] if self.lives else self.topic_id
        if self.queues is None or life == former:
            pass
        elif former is None and exists:  # its id was not reported before
            self.lives = [*self.lives[:-1], (self.lives[-1][0], life)] if self.lives else []
        else:
            self.lives = [*(self.lives or [(self.as_of, former)]), (time_ms, life)][-MAX_LIVES:]
        self.topic_id = topic_id if exists else None


class TopicChange(msgspec.Struct, array_like=True):
    """One batch's changes of one topic: its queues before, and its queues from each time on."""

    batch: int
    before: int | Queues | None
    history: list[tuple[int, int | Queues]]


class TopicsAtBatch:
    """The topics as of an earlier batch, for a group whose input from that batch is applied only now."""

    def __init__(self, topics: Topics, batch: int) -> None:
        self._topics = topics
        self._batch = batch

    def at(self, topic: str, time_ms: int) -> Queues | None:
        """Return the topic's queues as of that time."""
        return self._topics.at_batch(self._batch, topic, time_ms)

    def first_description(self, topic: str) -> Queues | None:
        """Return the first queues that the topic had."""
        return self._topics.first_description(topic)

    def before(self, topic: str, time_ms: int) -> Queues | None:
        """Return the topic's queues right before a time, whichever batch that was in."""
        return self._topics.before(topic, time_ms)

    def has_any(self, time_ms: int) -> bool:
        """Return whether any topic had been reported by then."""
        return self._topics.has_any(self._batch, time_ms)

    def topic_id(self, topic: str, time_ms: int) -> str | None:
        """Return the Kafka UUID of the topic that had this name at that time, if reported."""
        return self._topics.topic_id(topic, time_ms)

    def renewed_at(self, topic: str, time_ms: int) -> int | None:
        """Return when the name last changed to another topic, or to none, up to then."""
        return self._topics.renewed_at(topic, time_ms)

    def appeared_at(self, topic: str, time_ms: int) -> int | None:
        """Return when the topic was last reported after it was unknown or deleted, up to then; None if not kept."""
        return self._topics.appeared_at(topic, time_ms)


class Topics:
    """The topics of one cluster, with the changes of this batch."""

    def __init__(self, cluster: str, data: Buffer, changed_before: Buffer = b"", batch: int = 0) -> None:
        self._cluster = cluster
        self._data = data
        self._batch = batch
        self._changed_before = _decode_changes(changed_before)
        self._blocks: BlockStore | None = None
        self._read: dict[str, StoredTopic | None] = {}
        self._owners: dict[int, str] = {}  # names of the requested keys
        self._written: set[str] = set()
        self._history: dict[str, list[tuple[int, Queues]]] = {}
        self._before: dict[str, Queues | None] = {}

    def at(self, topic: str, time_ms: int) -> Queues | None:
        """Return the topic's queues as of that time; None if it has no metadata yet."""
        found = self._before[topic] if topic in self._before else self._current(topic)
        for since, queues in self._history.get(topic, ()):
            if since > time_ms:
                break
            found = queues
        return found

    def at_batch(self, batch: int, topic: str, time_ms: int) -> Queues | None:
        """Return the result of ``at`` in an earlier batch, as far back as ``encode_changes`` keeps."""
        if batch == self._batch:
            return self.at(topic, time_ms)
        for change in self._changed_before.get(topic, ()):
            if change.batch > batch:
                return spelled(change.before)
            if change.batch == batch:
                found = spelled(change.before)
                for since, queues in change.history:
                    if since > time_ms:
                        break
                    found = spelled(queues)
                return found
        return self._before[topic] if topic in self._before else self._current(topic)

    def has_any(self, batch: int, time_ms: int) -> bool:
        """Return whether any topic had been reported by then, as an earlier batch knew it."""
        known = len(self._decoded().keys)  # before this batch
        if batch == self._batch:
            return known > 0 or any(history[0][0] <= time_ms for history in self._history.values())
        changes = (
            next((change for change in some if change.batch >= batch), None) for some in self._changed_before.values()
        )
        new = [change for change in changes if change is not None and change.before is None]
        return known > sum(change.batch > batch or change.history[0][0] > time_ms for change in new)

    def first_description(self, topic: str) -> Queues | None:
        """Return the first queues that the topic had."""
        record = self._record(topic)
        if record is None:
            return None
        return spelled(record.queues if record.first is None else record.first)

    def before(self, topic: str, time_ms: int) -> Queues | None:
        """Return the topic's queues right before a time, whichever batch that was in; None if it was unknown."""
        record = self._record(topic)
        if record is None:
            return None
        return spelled(next((queues for at, queues in record.former if at >= time_ms), record.queues))

    def topic_id(self, topic: str, time_ms: int) -> str | None:
        """Return the Kafka UUID of the topic that had this name at that time, if reported."""
        record = self._record(topic)
        if record is None or not record.lives:
            return None if record is None else record.topic_id
        past = [life for life in record.lives if life[0] <= time_ms]
        return (past[-1] if past else record.lives[0])[1] or None

    def renewed_at(self, topic: str, time_ms: int) -> int | None:
        """Return when the name last changed to another topic, or to none, up to then; None if it never did."""
        record = self._record(topic)
        later = [] if record is None else [life for life in record.lives[1:] if life[0] <= time_ms]
        return later[-1][0] if later else None

    def appeared_at(self, topic: str, time_ms: int) -> int | None:
        """Return when the topic was last reported after it was unknown or deleted, up to then; None if not kept."""
        record = self._record(topic)
        former = [] if record is None else record.former
        return max((at for at, queues in former if not queues and at <= time_ms), default=None)

    def apply(
        self, due: Sequence[CarriedTopic], repeats: DedupStore
    ) -> tuple[list[CarriedTopic], list[CarriedTopic], list[tuple[CarriedTopic, str]], list[Change]]:
        """Apply due ``TopicQueues`` events.

        Returns: the events that changed a topic; those older than the current queues; those of topics whose key belongs
            to another topic, with its name; the changes, written by each topic's home shard only. All in the order of
            application.
        """
        collided: list[tuple[CarriedTopic, str]] = []
        moves: list[CarriedTopic] = []
        late: list[CarriedTopic] = []
        changes: list[Change] = []
        newest: dict[tuple[str, int], CarriedTopic] = {}
        for due_topic in sorted(due, key=lambda due_topic: order_of(due_topic[1])):
            event, carried = due_topic
            key = topic_key(self._cluster, event.topic)
            record = self._record(event.topic)
            owner = self._owners.setdefault(key, event.topic)
            if owner != event.topic:
                collided.append((due_topic, owner))
                continue
            dedup = repeats.of(topic_dedup_key(key))
            if dedup.is_repeat(carried.event_id, event.event_time):
                continue
            if record is not None and event.event_time < record.as_of:
                late.append(due_topic)
            else:
                # If several events describe a topic at one event time, only the last counts.
                former = newest.get((event.topic, event.event_time))
                if event.topic_id is None and former is not None and former[0].topic_id is not None:
                    due_topic = (msgspec.structs.replace(event, topic_id=former[0].topic_id), carried)
                newest[event.topic, event.event_time] = due_topic
        for due_topic in newest.values():
            record = self._record(due_topic[0].topic)
            former_id = None if record is None else record.topic_id
            is_none = self._current(due_topic[0].topic) is None  # whether or not it was ever reported
            change = self._set(due_topic[0], record)
            if change is not None:
                changes.append(change)
            if change is not None or is_none or due_topic[0].topic_id not in (None, former_id):
                moves.append(due_topic)  # a re-created topic has another id, even if its queues are the same
        return moves, late, collided, changes

    def restore(self, record: StoredTopic) -> bool:
        """Restore a topic from another state; return False if it exists already."""
        key = topic_key(self._cluster, record.name)
        if self._record(record.name) is not None or self._owners.setdefault(key, record.name) != record.name:
            return False
        self._read[record.name] = record
        self._written.add(record.name)
        return True

    def all(self) -> list[StoredTopic]:
        """Return every topic, by key."""
        blocks = self._decoded()
        return [_DECODER.decode(blocks.read(position)) for position in range(len(blocks.keys))]

    def encode(self) -> Buffer:
        """Return the encoded topics; unchanged data is reused as is."""
        if not self._written:
            return self._data
        blocks = self._decoded()
        values: dict[int, bytes] = {}
        for name in sorted(self._written):
            record = self._read[name]
            if record is not None:
                record.former = record.former[-MAX_FORMER:]
                values[topic_key(self._cluster, name)] = msgspec.msgpack.encode(record)
        blocks.write(values)
        return blocks.encode()

    def encode_changes(self, oldest: int | None) -> Buffer:
        """Encode the changes of batches, including this one, from the oldest batch still needed."""
        if oldest is None:
            return b""
        kept = [
            (topic, [change for change in changes if change.batch >= oldest])
            for topic, changes in self._changed_before.items()
        ]
        found = {topic: changes for topic, changes in kept if changes}
        for topic, before in self._before.items():
            history = [(at, shortened(queues)) for at, queues in self._history[topic]]
            short = None if before is None else shortened(before)
            found.setdefault(topic, []).append(TopicChange(self._batch, short, history))
        return msgspec.msgpack.encode(sorted(found.items(), key=lambda item: item[0])) if found else b""

    def _set(self, event: TopicQueues, record: StoredTopic | None) -> Change | None:
        if record is None:
            record = StoredTopic(event.topic, event.event_time)
            self._read[event.topic] = record
        before = self._current(event.topic)
        self._written.add(event.topic)
        queues, former_id = queues_of(event), record.topic_id
        record.begin(event.event_time, event.topic_id or record.topic_id, exists=bool(queues))
        record.as_of = event.event_time
        if queues != (before or ()):
            self._before.setdefault(event.topic, before)
            self._history.setdefault(event.topic, []).append((event.event_time, queues))
            record.former.append((event.event_time, record.queues))
            short = shortened(queues)
            if before is not None and record.first is None:
                record.first = record.queues
            record.queues = short
        elif not queues or record.topic_id == former_id:
            return None
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
                topic_id=record.topic_id,
            ),
        )

    def _current(self, topic: str) -> Queues | None:
        record = self._record(topic)
        return None if record is None else spelled(record.queues)

    def _record(self, topic: str) -> StoredTopic | None:
        if topic not in self._read:
            blocks = self._decoded()
            key = topic_key(self._cluster, topic)
            position = int(blocks.find(np.asarray([key], dtype=np.uint64))[0])
            found = _DECODER.decode(blocks.read(position)) if position >= 0 else None
            if found is not None:
                self._owners[key] = found.name
            self._read[topic] = found if found is not None and found.name == topic else None
        return self._read[topic]

    def _decoded(self) -> BlockStore:
        if self._blocks is None:
            self._blocks = BlockStore(self._data)
        return self._blocks


_DECODER = msgspec.msgpack.Decoder(StoredTopic)


def _decode_changes(data: Buffer) -> dict[str, list[TopicChange]]:
    if not len(data):
        return {}
    try:
        return dict(msgspec.msgpack.decode(data, type=list[tuple[str, list[TopicChange]]]))
    except msgspec.MsgspecError as error:
        raise StateVersionError(f"the state's changes of topics cannot be read: it is damaged ({error})") from error
