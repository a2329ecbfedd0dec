"""Short words for tests of shards: events, and a cluster of shards fed batch by batch through real packets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tests.core_config import core_config
from udfs.ingest.commit_columns import CommitColumns, pack_ends, pack_progress
from udfs.model.config import CoreConfig
from udfs.model.events import (
    AnyEvent,
    Clock,
    GroupDeleted,
    GroupSettings,
    Heartbeat,
    MemberJoined,
    MemberLeft,
    Progress,
    QueueEnd,
    QueueEnds,
    TopicQueues,
)
from udfs.model.group_api import GroupLogic
from udfs.model.journal import ClusterObserved
from udfs.model.systems import SYSTEMS
from udfs.packets.packed_texts import PackedTexts
from udfs.packets.packet import (
    COLLECTOR,
    READ_AFTER_MS,
    PackedHeartbeats,
    Packet,
    carry_event,
    cluster_key,
    decode_packet,
    encode_packet,
    group_key,
    group_keys,
    member_key,
    shard_of,
    two_newest,
)
from udfs.shard.shard import Row, Shard

CLUSTER = "c"
SYSTEM = "kafka"
T0 = 1_700_000_000_000
FAR = T0 + 10**9  # a batch's timestamp well after every event
_CLOCKLESS = (TopicQueues, GroupSettings, GroupDeleted, QueueEnds)  # they speak for no clock


def of_group(at: int, group: str) -> dict[str, Any]:
    """Return the fields that each event of a group has."""
    return {"schema_version": 1, "event_time": T0 + at, "system": SYSTEM, "cluster": CLUSTER, "group": group}


def beat(member_id: str, at: int, group: str = "g", **fields: Any) -> Heartbeat:
    return Heartbeat(**of_group(at, group), member_id=member_id, **fields)


def join(member_id: str, at: int, group: str = "g", **fields: Any) -> MemberJoined:
    return MemberJoined(**of_group(at, group), member_id=member_id, **fields)


def leave(member_id: str, at: int, group: str = "g") -> MemberLeft:
    return MemberLeft(**of_group(at, group), member_id=member_id)


def count(topic: str, queues: int, at: int, **fields: Any) -> TopicQueues:
    return TopicQueues(
        schema_version=1,
        event_time=T0 + at,
        system=SYSTEM,
        cluster=CLUSTER,
        topic=topic,
        queue_count=queues,
        **fields,
    )


def ends(topic: str, at: int, **queues: int) -> QueueEnds:
    """Return where queues of a topic end: ``q0=5`` is queue 0."""
    reported = tuple(QueueEnd(int(name[1:]), end) for name, end in queues.items())
    return QueueEnds(schema_version=1, event_time=T0 + at, system=SYSTEM, cluster=CLUSTER, topic=topic, queues=reported)


def clock(at: int) -> Clock:
    return Clock(schema_version=1, event_time=T0 + at, system=SYSTEM, cluster=CLUSTER)


def packet_for(shard: int, events: Sequence[AnyEvent], config: CoreConfig, batch_ms: int = FAR) -> Packet:
    """Pack the events of one task for one shard, as combine does, one loop for each rule of the contract."""
    packet = Packet(newest_ms=max((event.event_time for event in events), default=None))
    packet.system = min((SYSTEMS[event.system].number for event in events), default=None)
    spoken = [(event.event_time, _producer(event)) for event in events if not isinstance(event, _CLOCKLESS)]
    packet.speakers = two_newest(pair for pair in spoken if pair[0] <= batch_ms + READ_AFTER_MS)
    packet.ahead = two_newest(pair for pair in spoken if pair[0] > batch_ms + READ_AFTER_MS)
    old = [event.event_time for event in events if event.event_time <= batch_ms - config.max_clock_skew_ms]
    packet.recorded_ms = max(old, default=None)
    if shard_of(cluster_key(CLUSTER), config.shards) == shard:
        packet.first_and_last_times = [(event.event_time, event.event_time) for event in events]
    beats: dict[str, dict[str, set[int]]] = {}
    commits: list[Progress] = []
    for event in events:
        if isinstance(event, QueueEnds):
            packet.ends = pack_ends([event for event in events if isinstance(event, QueueEnds)])[CLUSTER]
        elif isinstance(event, TopicQueues | Clock):
            packet.events.append(carry_event(event, "test", ""))
        elif shard_of(group_key(CLUSTER, event.group), config.shards) != shard:
            continue
        elif isinstance(event, Heartbeat) and event == beat(
            event.member_id, event.event_time - T0, event.group, event_id=event.event_id
        ):
            beats.setdefault(event.group, {}).setdefault(event.member_id, set()).add(event.event_time)
        elif isinstance(event, Progress):
            commits.append(event)
        else:
            packet.events.append(carry_event(event, "test", ""))
    if beats:
        packet.heartbeats = pack_beats(beats)
    for _, _, progress in pack_progress(CommitColumns.of(commits), config.shards):
        packet.progress = progress
    return packet


def _producer(event: AnyEvent) -> int:
    if isinstance(event, Clock):
        return COLLECTOR
    member_id = getattr(event, "member_id", None)
    return group_key(CLUSTER, getattr(event, "group", "")) if member_id is None else member_key(member_id)


def pack_beats(beats: dict[str, dict[str, set[int]]]) -> PackedHeartbeats:
    groups = list(beats)
    members = [(index, member) for index, group in enumerate(groups) for member in beats[group]]
    pairs = [
        (index, at) for index, (group, member) in enumerate(members) for at in sorted(beats[groups[group]][member])
    ]
    return PackedHeartbeats.pack(
        bytes(len(groups)),
        (group_keys(CLUSTER, groups), PackedTexts.pack(groups)),
        (
            np.asarray([group for group, _ in members]),
            np.asarray([member_key(member) for _, member in members], np.uint64),
            PackedTexts.pack([member for _, member in members]),
        ),
        (np.asarray([member for member, _ in pairs]), np.asarray([at for _, at in pairs])),
    )


class Cluster:
    """All shards of a cluster; each batch goes through encoded packets and encoded states."""

    def __init__(self, logic: GroupLogic, config: CoreConfig | None = None) -> None:
        self.logic = logic
        self.config = config or core_config(shards=1, allowed_lateness_ms=0)
        self.states: dict[int, bytes | None] = dict.fromkeys(range(self.config.shards))
        self.rows: list[Row] = []
        self.observed: list[ClusterObserved] = []

    def batch(self, *events: AnyEvent, batch_ms: int = FAR, tasks: int = 1, **marks: Any) -> list[Row]:
        """Feed one batch, its events distributed over tasks, and return what it decided."""
        rows: list[Row] = []
        parts: Iterable[Sequence[AnyEvent]] = [events[task::tasks] for task in range(tasks)]
        parts = [part for part in parts if part] or [()]
        for number, state in self.states.items():
            packets = [packet_for(number, part, self.config, batch_ms) for part in parts]
            for name, value in marks.items():
                setattr(packets[0], name, value)
            received = [decode_packet(encode_packet(packet)) for packet in packets]
            shard = Shard(CLUSTER, number, state, self.config, self.logic)
            for row in shard.advance(received, batch_ms):
                (self.observed if isinstance(row, ClusterObserved) else rows).append(row)
            self.states[number] = shard.encode()
        self.rows.extend(rows)
        return rows
