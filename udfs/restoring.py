"""Core: a shard's state as events of the contract, and back: how a checkpoint gets another shard count. No I/O.

Each group, topic and cluster is one event marked ``restored``: readable fields of the contract, and beside them the
state itself, versioned, in base64. Where that is there it is taken as it is, whatever the clock; the readable fields
are for people, and for versions that cannot read it. What waited follows as ordinary events.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, TypeVar

import msgspec
import numpy as np

from udfs.errors import StateVersionError
from udfs.events import AnyEvent, Clock, GroupSnapshot, Heartbeat, TopicQueues
from udfs.facts import GroupLogic
from udfs.packing import CarriedEvent, cluster_key, group_key, read_event, shard_of, topic_key
from udfs.repeats import topic_ledger_key
from udfs.rules import Rules
from udfs.shard_state import Record, ShardState, Written, cut_keys
from udfs.silence import Silence
from udfs.state_codec import STATE_VERSION
from udfs.topics import Topic, spelled

MARK = b'"restored":true'  # in the canonical content of every restored event


class GroupImage(msgspec.Struct, array_like=True):
    """All that a shard's state holds of one group.

    Attributes:
        members: Id, last heartbeat and session timeout of each that lives by heartbeats and has a row.
        topics: Hashes, as the index of topics holds them. repeats, commits: Key and time.
    """

    version: int
    record: Record
    members: list[tuple[str, int, int]]
    wake_at: int | None
    topics: list[int]
    repeats: list[tuple[int, int]]
    commits: list[tuple[int, int]]
    waiting_commits: list[tuple[int, int]]


class TopicImage(msgspec.Struct, array_like=True):
    """All that a cluster's shards hold of one topic."""

    version: int
    topic: Topic
    repeats: list[tuple[int, int]]


class ClusterImage(msgspec.Struct, array_like=True):
    """What a shard holds of the cluster itself.

    Attributes:
        silence: From the cluster's home shard, else None.
        commits: Of groups of which nothing else is known: key of the group, key of the queue, time.
    """

    version: int
    clock: int
    newest: int
    silence: Silence | None
    commits: list[tuple[int, int, int]]


Fault: TypeAlias = tuple[str, str]  # reason, detail
Image = TypeVar("Image", GroupImage, TopicImage, ClusterImage)


def export_shard(cluster: str, number: int, data: bytes, rules: Rules, logic: GroupLogic) -> Iterator[AnyEvent]:
    """Answer one shard's state as events: clock, topics, groups, then what waits.

    What all shards hold comes from its home only, so the events of all shards together are the cluster's state.

    Args:
        rules: With the shard count of the checkpoint that the state is from.
    """
    state = ShardState(cluster, data, rules)
    header = state.header
    system = header.system or "kafka"  # only Kafka's commits come without a word about the system
    if header.clock is None or header.newest is None:
        return
    stamp = header.newest  # a time at which something did come: no gap in the source is filled by the export
    is_home = shard_of(cluster_key(cluster), rules.shards) == number
    commits = state.commits.of_others(state.groups.keys)
    if is_home or commits:
        silence = state.silence if is_home else None
        image = ClusterImage(STATE_VERSION, header.clock, header.newest, silence, commits)
        yield Clock(
            schema_version=1,
            event_time=stamp,
            system=system,
            cluster=cluster,
            restored=True,
            restored_cluster=_pack(image),
        )
    for topic in state.topics.all():
        if shard_of(topic_key(cluster, topic.name), rules.shards) == number:
            repeats = sorted(state.repeats.remembered(topic_ledger_key(topic_key(cluster, topic.name))).items())
            yield TopicQueues(
                schema_version=1,
                event_time=stamp,
                system=system,
                cluster=cluster,
                topic=topic.name,
                queues=spelled(topic.queues) or (),
                topic_id=topic.topic_id,
                restored=True,
                restored_topic=_pack(TopicImage(STATE_VERSION, topic, repeats)),
            )
    for position in range(len(state.groups.keys)):
        yield from _export_group(cluster, state, position, stamp, logic)
    for one in state.strangers:
        yield _heartbeat(cluster, one.system, one.group, one.member_id, one.time)
    for carried in state.events:
        event = read_event(carried)
        if isinstance(event, Clock):
            continue
        if isinstance(event, TopicQueues) and shard_of(topic_key(cluster, event.topic), rules.shards) != number:
            continue
        yield event


def _export_group(
    cluster: str, state: ShardState, position: int, stamp: int, logic: GroupLogic
) -> Iterator[GroupSnapshot | Heartbeat]:
    record, key = state.record(position), int(state.groups.keys[position])
    group = logic.decode_group(record.group)
    live, rows = state.live, state.rows_of(position)
    ids = [] if record.seen is not None else list(logic.members_by_heartbeat(group))
    names = dict(zip(cut_keys(ids).tolist(), ids, strict=True))
    row_names = [names[row_key] for row_key in live.keys[rows].tolist()]
    last, timeouts = live.last[rows].tolist(), live.timeouts[rows].tolist()
    seen = record.seen if record.seen is not None else dict(zip(row_names, last, strict=True))
    image = GroupImage(
        version=STATE_VERSION,
        record=record,
        members=list(zip(row_names, last, timeouts, strict=True)),
        wake_at=state.watch.wake_of(position),
        topics=sorted(state.watch.topics_of(position)),
        repeats=sorted(state.repeats.remembered(key).items()),
        commits=sorted((queue, times[-1]) for queue, times in state.commits.of(key).items()),
        waiting_commits=state.commits.waiting_of(key),
    )
    snapshot = logic.snapshot_of(group, seen, stamp)
    snapshot.system, snapshot.cluster, snapshot.group = record.system, cluster, record.name
    snapshot.event_time, snapshot.restored, snapshot.restored_group = stamp, True, _pack(image)
    yield snapshot
    mine = (live.waiting_members >= rows.start) & (live.waiting_members < rows.stop)
    waiting = zip(live.waiting_members[mine].tolist(), live.waiting_times[mine].tolist(), strict=True)
    for row, at in sorted(waiting):
        yield _heartbeat(cluster, record.system, record.name, row_names[row - rows.start], at)


def restore(
    state: ShardState, arrived: Sequence[CarriedEvent], is_mine: Callable[[int], bool]
) -> tuple[list[CarriedEvent], list[tuple[AnyEvent, CarriedEvent, Fault]]]:
    """Take in what was exported elsewhere, before everything else and whatever its time.

    Args:
        is_mine: Whether a key of a cluster or group is this shard's.
    Returns: the other events, those without the state itself among them; and what was not taken in.
    """
    others: list[CarriedEvent] = []
    marked: list[tuple[AnyEvent, CarriedEvent]] = []
    for carried in arrived:
        event = read_event(carried) if MARK in carried.content else None
        match event:
            case Clock(restored=True, restored_cluster=str()):
                marked.insert(0, (event, carried))
            case TopicQueues(restored=True, restored_topic=str()) | GroupSnapshot(restored=True, restored_group=str()):
                marked.append((event, carried))
            case _:
                others.append(carried)
    refused: list[tuple[AnyEvent, CarriedEvent, Fault]] = []
    groups: dict[int, Written] = {}
    for event, carried in marked:
        try:
            taken = _restore_one(state, event, groups, is_mine)
        except StateVersionError as error:
            refused.append((event, carried, ("restored_unreadable", str(error))))
            continue
        if not taken:
            detail = "what the event restores is known already: it is left as it is"
            refused.append((event, carried, ("restored_known_already", detail)))
    state.write(groups)
    return others, refused


def _restore_one(
    state: ShardState, event: AnyEvent, groups: dict[int, Written], is_mine: Callable[[int], bool]
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
    """Set the clock as it stood elsewhere; again is harmless."""
    image = _unpack(event.restored_cluster, ClusterImage)
    header = state.header
    header.newest = max(image.newest, image.newest if header.newest is None else header.newest)
    header.clock = max(image.clock, image.clock if header.clock is None else header.clock)
    state.set_clock_before(header.clock)
    if is_mine(cluster_key(event.cluster)) and image.silence is not None and state.silence == Silence():
        state.silence = image.silence
    commits = [row for row in image.commits if is_mine(row[0])]
    if commits:
        groups, queues, times = zip(*commits, strict=True)
        state.commits.take(
            np.asarray(groups, dtype=np.uint64), np.asarray(queues, dtype=np.uint64), np.asarray(times, dtype=np.int64)
        )


def _restore_topic(state: ShardState, event: TopicQueues) -> bool:
    """Put a topic in as it stood elsewhere; False when it is known already."""
    image = _unpack(event.restored_topic, TopicImage)
    if image.topic.name != event.topic:
        raise StateVersionError(f"the state of topic {image.topic.name} came under the name {event.topic}")
    if not state.topics.restore(image.topic):
        return False
    if image.repeats:
        state.repeats.remember(topic_ledger_key(topic_key(event.cluster, event.topic)), dict(image.repeats))
    return True


def _restored_group(state: ShardState, event: GroupSnapshot) -> tuple[int, Written] | None:
    """Answer a group as it stood elsewhere, ready to be written; None when it is known already."""
    image = _unpack(event.restored_group, GroupImage)
    if image.record.name != event.group:
        raise StateVersionError(f"the state of group {image.record.name} came under the name {event.group}")
    key = group_key(event.cluster, event.group)
    if int(state.find(np.asarray([key], dtype=np.uint64))[0]) >= 0:
        return None
    if image.repeats:
        state.repeats.remember(key, dict(image.repeats))
    state.commits.restore(key, image.commits)
    if image.waiting_commits:
        queues, times = zip(*image.waiting_commits, strict=True)
        keys = np.full(len(times), key, dtype=np.uint64)
        state.commits.take(keys, np.asarray(queues, dtype=np.uint64), np.asarray(times, dtype=np.int64))
    return key, Written(
        record=msgspec.msgpack.encode(image.record),
        last_seen={member_id: last for member_id, last, _ in image.members},
        session_timeouts_ms={member_id: timeout for member_id, _, timeout in image.members},
        wake_at=image.wake_at,
        topics=image.topics,
    )


def _heartbeat(cluster: str, system: str, group: str, member_id: str, at: int) -> Heartbeat:
    return msgspec.convert(
        {
            "type": "heartbeat",
            "schema_version": 1,
            "event_time": at,
            "system": system,
            "cluster": cluster,
            "group": group,
            "member_id": member_id,
        },
        Heartbeat,
    )


def _pack(image: GroupImage | TopicImage | ClusterImage) -> str:
    return base64.b64encode(msgspec.msgpack.encode(image)).decode()


def _unpack(text: str | None, kind: type[Image]) -> Image:
    try:
        data = base64.b64decode(text or "", validate=True)
        fields = msgspec.msgpack.decode(data, type=list)
        if fields and isinstance(fields[0], int) and fields[0] > STATE_VERSION:
            raise StateVersionError(f"written in encoding {fields[0]}, this version reads up to {STATE_VERSION}")
        return msgspec.msgpack.decode(data, type=kind)
    except (binascii.Error, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StateVersionError(f"cannot be read: {error}") from error
