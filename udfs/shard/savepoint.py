"""Core: a shard's state as events of the contract, and back, to change a checkpoint's shard count. No I/O.

Each group, topic and cluster is one event marked ``restored``: readable fields of the contract, and the state itself,
versioned, in base64, with a hash of both. If present, the state is used unchanged, regardless of the clock; the
readable fields are for people, and for versions that cannot read it. Waiting input follows as ordinary events.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Final, TypeAlias, TypeVar

import msgspec
import numpy as np

from udfs.model.config import CoreConfig
from udfs.model.errors import StateDamagedError, StateVersionError
from udfs.model.events import MAX_QUEUE_COUNT, AnyEvent, Clock, GroupSnapshot, Heartbeat, TopicQueues
from udfs.model.group_api import GroupLogic
from udfs.model.queues import spelled
from udfs.model.systems import KAFKA
from udfs.packets.packet import CarriedEvent, cluster_key, group_key, read_event, shard_of, topic_key
from udfs.packets.progress_columns import NamedGroup, PackedEnds
from udfs.shard.cluster_time import ClusterTime
from udfs.shard.deduplication import topic_dedup_key
from udfs.shard.queue_table import QueueRow
from udfs.shard.source_gaps import SourceGaps
from udfs.shard.state import Record, ShardState, Written, cut_keys
from udfs.shard.state_format import STATE_VERSION, must_hold, refusing
from udfs.shard.topics import StoredTopic
from udfs.shard.waiting_progress import Waiting

MARK = b'"restored'  # in the canonical content of every event that is restored or carries a state
# Exported events have this id; an event with it but without a state has lost its state.
EXPORTED: Final = "state-export"
_HASH_BYTES: Final = 16

Key: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]  # 64 bits
TimeMs: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]
_Queues: TypeAlias = tuple[Key, NamedGroup | None, list[QueueRow], list[Waiting]]
TopicHash: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]


class GroupImage(msgspec.Struct, array_like=True):
    """Everything in a shard's state about one group.

    Attributes:
        members: Id, last heartbeat and session timeout of each member that is tracked by heartbeats and has a row.
        topics: Hashes, as in the index of topics. repeats: Key and time. queues, waiting: The state of its queues, and
            their waiting observations.
    """

    version: int
    record: Record
    members: list[tuple[str, TimeMs, TimeMs]]
    wake_at: TimeMs | None
    topics: list[TopicHash]
    repeats: list[tuple[Key, TimeMs]]
    queues: list[QueueRow]
    waiting: list[Waiting]


class TopicImage(msgspec.Struct, array_like=True):
    """Everything in a cluster's shards about one topic."""

    version: int
    topic: StoredTopic
    repeats: list[tuple[Key, TimeMs]]


class ClusterImage(msgspec.Struct, array_like=True):
    """A shard's state of the cluster itself.

    Attributes:
        silence: Set by the cluster's home shard, else None.
        queues: For groups that only commits show: key, name and system, the state of their queues, and waiting
            observations.
        waiting_ends: Waiting end offsets: key of the queue, time, end, start of the log, which 0.2.0 lacks. From
            the home shard.
    """

    version: int
    clock: TimeMs
    newest: TimeMs
    silence: SourceGaps | None
    time: ClusterTime
    queues: list[_Queues]
    waiting_ends: list[tuple[int, ...]]


Violation: TypeAlias = tuple[str, str]  # reason, detail
Image = TypeVar("Image", GroupImage, TopicImage, ClusterImage)


def export_shard(cluster: str, number: int, data: bytes, config: CoreConfig, logic: GroupLogic) -> Iterator[AnyEvent]:
    """Return one shard's state as events: clock, topics, groups, then waiting input.

    State that all shards share comes from its home shard only, so the events of all shards are the cluster's state.

    Args:
        config: With the shard count of the checkpoint that the state comes from.
    """
    state = ShardState(cluster, data, config)
    header = state.header
    system = header.system or KAFKA.name
    if header.clock is None or header.newest is None:
        return
    # An event did arrive at this time, so the export neither fills a gap in the source nor advances the clock.
    stamp = header.newest if state.time.supported is None else min(header.newest, state.time.supported)
    is_home = shard_of(cluster_key(cluster), config.shards) == number
    others = state.commits.others(state.groups.keys)
    if is_home or others:
        image = ClusterImage(
            version=STATE_VERSION,
            clock=header.clock,
            newest=header.newest,
            silence=state.silence if is_home else None,
            time=state.time,
            queues=[(key, *state.commits.rows_of(key), state.commits.waiting_of(key)) for key in others],
            waiting_ends=state.commits.waiting_ends() if is_home else [],
        )
        exported = Clock(
            schema_version=1, event_time=stamp, event_id=EXPORTED, system=system, cluster=cluster, restored=True
        )
        exported.restored_cluster = _pack(exported, image)
        yield exported
    for topic in state.topics.all():
        if shard_of(topic_key(cluster, topic.name), config.shards) == number:
            repeats = sorted(state.dedup.remembered(topic_dedup_key(topic_key(cluster, topic.name))).items())
            described = TopicQueues(
                schema_version=1,
                event_time=stamp,
                event_id=EXPORTED,
                system=system,
                cluster=cluster,
                topic=topic.name,
                queues=spelled(topic.queues) or (),
                topic_id=topic.topic_id,
                restored=True,
            )
            described.restored_topic = _pack(described, TopicImage(STATE_VERSION, topic, repeats))
            yield described
    for position in range(len(state.groups.keys)):
        yield from _export_group(cluster, state, position, stamp, logic)
    for heartbeat in state.unknown_member_heartbeats:
        yield _heartbeat(cluster, heartbeat.system, heartbeat.group, heartbeat.member_id, heartbeat.time)
    for carried in [*state.backlog.events(), *state.events]:
        event = read_event(carried)
        if isinstance(event, Clock):
            continue
        if isinstance(event, TopicQueues) and shard_of(topic_key(cluster, event.topic), config.shards) != number:
            continue
        yield event


def _export_group(
    cluster: str, state: ShardState, position: int, stamp: int, logic: GroupLogic
) -> Iterator[GroupSnapshot | Heartbeat]:
    record, key = state.record(position), int(state.groups.keys[position])
    group = logic.decode_group(record.group)
    live, rows = state.live, state.rows_of(position)
    ids = [] if record.last_heartbeats is not None else list(logic.members_by_heartbeat(group))
    names = dict(zip(cut_keys(ids).tolist(), ids, strict=True))
    row_names = [names[row_key] for row_key in live.keys[rows].tolist()]
    last, timeouts = live.last[rows].tolist(), live.timeouts[rows].tolist()
    last_heartbeats = record.last_heartbeats
    if last_heartbeats is None:
        last_heartbeats = dict(zip(row_names, last, strict=True))
    image = GroupImage(
        version=STATE_VERSION,
        record=record,
        members=list(zip(row_names, last, timeouts, strict=True)),
        wake_at=state.wake_index.wake_of(position),
        topics=sorted(state.wake_index.topics_of(position)),
        repeats=sorted(state.dedup.remembered(key).items()),
        queues=state.commits.rows_of(key)[1],
        waiting=state.commits.waiting_of(key),
    )
    snapshot = logic.snapshot_of(group, last_heartbeats, stamp)
    snapshot.system, snapshot.cluster, snapshot.group = record.system, cluster, record.name
    snapshot.event_time, snapshot.event_id, snapshot.restored = stamp, EXPORTED, True
    snapshot.restored_group = _pack(snapshot, image)
    yield snapshot
    mine = (live.waiting_members >= rows.start) & (live.waiting_members < rows.stop)
    waiting = zip(live.waiting_members[mine].tolist(), live.waiting_times[mine].tolist(), strict=True)
    heartbeats = {(row_names[row - rows.start], at) for row, at in waiting}
    heartbeats.update(heartbeat for held in state.backlog.of(key) for heartbeat in held.heartbeats)
    for member_id, at in sorted(heartbeats):
        yield _heartbeat(cluster, record.system, record.name, member_id, at)


def restore(
    state: ShardState, arrived: Sequence[CarriedEvent], is_mine: Callable[[int], bool]
) -> tuple[list[CarriedEvent], list[tuple[AnyEvent, CarriedEvent, Violation]]]:
    """Restore the exported state of another checkpoint, before all other events and regardless of its time.

    Args:
        is_mine: Whether a key of a cluster or group belongs to this shard.
    Returns: the other events, including restored ones without a state; and the events that were rejected.
    """
    others: list[CarriedEvent] = []
    marked: list[tuple[AnyEvent, CarriedEvent]] = []
    for carried in arrived:
        event = read_event(carried) if MARK in carried.content else None
        match event:
            case Clock() | TopicQueues() | GroupSnapshot() if _text_of(event) is not None or event.event_id == EXPORTED:
                marked.insert(0 if isinstance(event, Clock) else len(marked), (event, carried))
            case _:
                others.append(carried)
    refused: list[tuple[AnyEvent, CarriedEvent, Violation]] = []
    groups: dict[int, Written] = {}
    for event, carried in marked:
        try:
            taken = _restore_one(state, event, groups, is_mine)
        except StateVersionError as error:
            refused.append((event, carried, ("restored_unreadable", str(error))))
            continue
        if not taken:
            detail = "the state to restore exists already: it stays unchanged"
            refused.append((event, carried, ("restored_known_already", detail)))
    state.write(groups)
    return others, refused


def _restore_one(
    state: ShardState,
    event: AnyEvent,
    groups: dict[int, Written],
    is_mine: Callable[[int], bool],
) -> bool:
    if isinstance(event, Clock):
        _restore_cluster(state, event, is_mine)
        return True
    if isinstance(event, TopicQueues):
        return _restore_topic(state, event)
    if not isinstance(event, GroupSnapshot) or group_key(event.cluster, event.group) in groups:
        return False
    restored = _restored_group(state, event)
    if restored is None:
        return False
    groups[restored[0]] = restored[1]
    return True


def _restore_cluster(state: ShardState, event: Clock, is_mine: Callable[[int], bool]) -> None:
    """Restore the clock of another state; repeating it is harmless."""
    image = _unpack(event, ClusterImage)
    header = state.header
    header.newest = max(image.newest, image.newest if header.newest is None else header.newest)
    header.clock = max(image.clock, image.clock if header.clock is None else header.clock)
    state.set_clock_before(header.clock)
    state.time = image.time
    if is_mine(cluster_key(event.cluster)) and image.silence is not None and state.silence == SourceGaps():
        state.silence = image.silence
    for group, named, rows, waiting in image.queues:
        if is_mine(group):
            state.commits.restore(group, named, rows, waiting)
    if image.waiting_ends:
        queues, *others = zip(*image.waiting_ends, strict=True)
        columns = [np.asarray(column, np.int64) for column in others]
        state.commits.add_ends(PackedEnds.pack(np.asarray(queues, np.uint64), *columns))


def _restore_topic(state: ShardState, event: TopicQueues) -> bool:
    """Restore a topic from another state; False when it exists already."""
    image = _unpack(event, TopicImage)
    if image.topic.name != event.topic:
        raise StateDamagedError(f"the event names topic {event.topic}, its state topic {image.topic.name}")
    for queues in (image.topic.queues, image.topic.first, *(queues for _, queues in image.topic.former)):
        must_hold(not isinstance(queues, int) or 0 <= queues <= MAX_QUEUE_COUNT, "a topic has too many queues")
    if not state.topics.restore(image.topic):
        return False
    if image.repeats:
        state.dedup.remember(topic_dedup_key(topic_key(event.cluster, event.topic)), dict(image.repeats))
    return True


def _restored_group(state: ShardState, event: GroupSnapshot) -> tuple[int, Written] | None:
    """Return a group of another state, ready to be stored; None when it exists already."""
    image = _unpack(event, GroupImage)
    if image.record.name != event.group:
        raise StateDamagedError(f"the event names group {event.group}, its state group {image.record.name}")
    key = group_key(event.cluster, event.group)
    if int(state.find(np.asarray([key], dtype=np.uint64))[0]) >= 0:
        return None
    if image.repeats:
        state.dedup.remember(key, dict(image.repeats))
    state.commits.restore(key, NamedGroup(event.group, image.record.system), image.queues, image.waiting)
    return key, Written(
        record=msgspec.msgpack.encode(image.record),
        last_heartbeat={member_id: last for member_id, last, _ in image.members},
        session_timeouts_ms={member_id: timeout for member_id, _, timeout in image.members},
        wake_at=image.wake_at,
        topics=image.topics,
    )


def _heartbeat(cluster: str, system: str, group: str, member_id: str, event_time: int) -> Heartbeat:
    return Heartbeat(
        schema_version=1, event_time=event_time, system=system, cluster=cluster, group=group, member_id=member_id
    )


def _pack(event: Clock | TopicQueues | GroupSnapshot, image: GroupImage | TopicImage | ClusterImage) -> str:
    """Encode a state as the text that its event carries.

    Args:
        event: Complete except for that text.
    """
    data = msgspec.msgpack.encode(image)
    return base64.b64encode(_hash_of(event, data) + data).decode()


def _unpack(event: Clock | TopicQueues | GroupSnapshot, kind: type[Image]) -> Image:
    """Return the state that an event carries.

    Raises:
        StateDamagedError: The state is damaged; the event's other fields are not used either. StateVersionError: It is
            newer.
    """
    with refusing("it"):
        sealed = base64.b64decode(_text_of(event) or "", validate=True)
        data = sealed[_HASH_BYTES:]
        must_hold(sealed[:_HASH_BYTES] == _hash_of(event, data), "the event differs from what was exported")
        must_hold(event.restored, "the event has a state, but is not marked as restored")
        fields = msgspec.msgpack.decode(data, type=list)
        version = fields[0] if fields else None
        if isinstance(version, int) and version > STATE_VERSION:
            raise StateVersionError(f"written in encoding {version}, this version reads up to {STATE_VERSION}")
        return msgspec.msgpack.decode(data, type=kind)


def _text_of(event: Clock | TopicQueues | GroupSnapshot) -> str | None:
    match event:
        case Clock():
            return event.restored_cluster
        case TopicQueues():
            return event.restored_topic
        case GroupSnapshot():
            return event.restored_group


def _hash_of(event: Clock | TopicQueues | GroupSnapshot, data: bytes) -> bytes:
    """Return the hash of a state and of its event's other fields, except for an id from an envelope."""
    plain = msgspec.structs.replace(event, event_id=None)
    match plain:
        case Clock():
            plain.restored_cluster = None
        case TopicQueues():
            plain.restored_topic = None
        case GroupSnapshot():
            plain.restored_group = None
    digest = hashlib.blake2b(msgspec.json.encode(plain, order="sorted"), digest_size=_HASH_BYTES)
    digest.update(data)
    return digest.digest()
