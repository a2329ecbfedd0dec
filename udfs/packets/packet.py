"""Core: the packets that travel from combine to the shards, and the stable hashes behind them. No I/O.

One packet is everything that one task read for one shard of one cluster. Heartbeats without a description and commits
travel as packed columns of distinct (member or queue, time); everything else travels as whole events. A shard may get
several packets in a batch, one from each task; their contents add up.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeAlias

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa

from udfs.model.arrays import Int64, UInt64
from udfs.model.errors import PacketDamagedError
from udfs.model.events import AnyEvent, CommitsDeleted, Progress
from udfs.model.journal import Change, Rejected
from udfs.model.losses import Loss
from udfs.model.systems import SYSTEMS
from udfs.packets.packed_texts import PackedTexts
from udfs.packets.progress_columns import PackedEnds, PackedProgress

# Its packets become rows at once: inputs that could not be read, and annotations. No cluster has this name.
STATELESS = ""
Spoken: TypeAlias = tuple[int, int]  # an event time, and the key of its producer
COLLECTOR = 0  # the key of the sender of ``clock``
# A batch's timestamp is taken before its newest events are read, so an event later than this comes from a clock that is
# ahead.
READ_AFTER_MS = 1_000

_KEYS_KEPT = 4_096  # keys of clusters, groups and topics; hashing one text costs as much as hashing a thousand
_CHECKSUM_BYTES = 4  # CRC-32 of everything after it in an encoded packet
_event = msgspec.json.Decoder(AnyEvent)  # made once, because a decoder of many types is slow to build
_MIX = np.uint64(0x9E3779B97F4A7C15)


def hash_texts(texts: Sequence[str]) -> UInt64:
    """Hash each text to 64 bits (SipHash-2-4 as ``pandas.util.hash_array`` fixes it), the same on every machine."""
    if not len(texts):
        return np.zeros(0, np.uint64)
    return pd.util.hash_array(np.asarray(texts, dtype=object), categorize=False)


def hash_column(texts: pa.StringArray) -> UInt64:
    """Return the result of ``hash_texts`` in half the time, because the bytes are not decoded and encoded again."""
    if not len(texts):
        return np.zeros(0, np.uint64)
    return pd.util.hash_array(texts.cast(pa.binary()).to_numpy(zero_copy_only=False), categorize=False)


def mix(left: UInt64, right: UInt64) -> UInt64:
    """Fold two hashes into one (order matters)."""
    with np.errstate(over="ignore"):
        mixed = (left * _MIX) ^ (right + _MIX + (left << np.uint64(6)) + (left >> np.uint64(2)))
        mixed ^= mixed >> np.uint64(29)
        return np.asarray(mixed * np.uint64(0xBF58476D1CE4E5B9), dtype=np.uint64)


def group_keys(cluster: str, groups: Sequence[str]) -> UInt64:
    """Return the 64-bit keys of groups within their cluster."""
    return mix(np.asarray([cluster_key(cluster)], np.uint64), hash_texts(groups))


@lru_cache(_KEYS_KEPT)
def group_key(cluster: str, group: str) -> int:
    """Return the 64-bit key of a group within its cluster."""
    return int(group_keys(cluster, [group])[0])


def topic_key(cluster: str, topic: str) -> int:
    """Return the 64-bit key of a topic within its cluster; its shard is the topic's home."""
    return group_key(cluster, topic)


@lru_cache(_KEYS_KEPT)
def cluster_key(cluster: str) -> int:
    """Return the 64-bit key of a cluster; its shard is the cluster's home."""
    return int(hash_texts([cluster])[0])


def shard_of(key: int, shards: int) -> int:
    """Return the shard of a group, topic or cluster key."""
    return key % shards


def member_key(member_id: str) -> int:
    """Return the 64-bit key of a member within its group."""
    return int(hash_texts([member_id])[0])


def queue_key(topic: str, broker: str | None, queue_id: int) -> int:
    """Return the 64-bit key of a queue within its group."""
    return int(queue_keys([(topic, broker, queue_id)])[0])


def progress_queues(event: Progress | CommitsDeleted) -> list[tuple[str, str | None, int]]:
    """Return the queues of an event for ``queue_keys``; a partition of Kafka is the same whichever broker leads it."""
    brokers = SYSTEMS[event.system].counts_queues_per_broker
    return [(queue.topic, queue.broker if brokers else None, queue.queue_id) for queue in event.queues]


def queue_keys(queues: Sequence[tuple[str, str | None, int]]) -> UInt64:
    """Return the 64-bit keys of queues, given as (topic, broker, queue id), within their group."""
    return hash_texts([f"{topic}\x00{broker or ''}\x00{queue_id}" for topic, broker, queue_id in queues])


def two_newest(spoken: Iterable[Spoken]) -> list[Spoken]:
    """Return the two newest times by different producers, newest first; fewer if there are fewer producers."""
    latest: dict[int, int] = {}
    for time, producer in spoken:
        latest[producer] = max(time, latest.get(producer, time))
    return sorted(((time, producer) for producer, time in latest.items()), reverse=True)[:2]


def content_id(content: bytes) -> str:
    """Return the id of an event without one: a hash of its canonical content."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


class PackedHeartbeats(msgspec.Struct, array_like=True):
    """Distinct (group, member, time), as columns, little-endian. P pairs, M distinct members, G groups.

    A group is named once for each system that its heartbeats claim (in practice one).

    Attributes:
        systems: One byte per group: ``SystemProfile.number``.
        group_keys: uint64[G], the results of ``group_key``, ascending except where a group is named twice. group_names:
            G names.
        group_members: uint32[G], the number of its members, which are ordered by group. member_keys: uint64[M], the
            results of ``member_key``. member_names: M ids.
        pair_members: uint32[P], index into the members, ascending; empty if each member has one pair.
        earliest_ms: The earliest of all times. pair_times: The offset of each time from it, ascending within a member;
            uint16[P], or uint32[P] or uint64[P] if they do not fit.
    """

    systems: bytes
    group_keys: bytes
    group_names: PackedTexts
    group_members: bytes
    member_keys: bytes
    member_names: PackedTexts
    pair_members: bytes
    earliest_ms: int
    pair_times: bytes

    @classmethod
    def pack(
        cls,
        systems: bytes,
        groups: tuple[UInt64, PackedTexts],
        members: tuple[Int64, UInt64, PackedTexts],
        pairs: tuple[Int64, Int64],
    ) -> PackedHeartbeats:
        """Pack columns.

        Args:
            groups: Keys and names. members: For each member, ascending: the index of its group, its key, its name.
            pairs: For each pair, ascending: the index of its member, its time. There is at least one.
        """
        group_keys, group_names = groups
        member_groups, member_keys, member_names = members
        pair_members, times = pairs
        earliest = int(times.min())
        later = times - earliest
        return cls(
            systems,
            group_keys.astype("<u8", copy=False).tobytes(),
            group_names,
            np.bincount(member_groups, minlength=len(group_keys)).astype("<u4").tobytes(),
            member_keys.astype("<u8", copy=False).tobytes(),
            member_names,
            # There are as many pairs as members and at least one each, so each member has exactly one.
            b"" if len(times) == len(member_keys) else pair_members.astype("<u4").tobytes(),
            earliest,
            later.astype(next(f"<u{width}" for width in (2, 4, 8) if int(later.max()) < 256**width)).tobytes(),
        )

    def columns(self) -> tuple[UInt64, Int64, UInt64, Int64, Int64]:
        """Return the keys of the groups; each member's group and key; each pair's member and time."""
        group_keys = np.frombuffer(self.group_keys, "<u8").astype(np.uint64, copy=False)
        member_keys = np.frombuffer(self.member_keys, "<u8").astype(np.uint64, copy=False)
        member_groups = np.repeat(np.arange(len(group_keys)), np.frombuffer(self.group_members, "<u4"))
        if self.pair_members:
            pair_members = np.frombuffer(self.pair_members, "<u4").astype(np.int64)
        else:
            pair_members = np.arange(len(member_keys))
        return group_keys, member_groups, member_keys, pair_members, self.times()

    def times(self) -> Int64:
        """Return the timestamp of each heartbeat."""
        pairs = len(self.pair_members) // 4 or len(self.member_keys) // 8
        return np.frombuffer(self.pair_times, f"<u{len(self.pair_times) // pairs}").astype(np.int64) + self.earliest_ms


class CarriedEvent(msgspec.Struct, array_like=True):
    """One whole event in transit: canonical JSON of the parsed struct, with times in epoch ms.

    ``event_id`` is the event's own id, else ``content_id`` of the content.
    """

    content: bytes
    event_time: int
    event_id: str
    source: str
    position: str


class Packet(msgspec.Struct, array_like=True, kw_only=True):
    """Everything that one task read for one shard of one cluster.

    Attributes:
        newest_ms: The cluster's newest event time in this task, whatever shard the event belongs to; None if there were
            only control marks.
        first_and_last_times: Only for the cluster's home shard: for each span of ``CoreConfig.source_silent_after_ms``
            of event time (span number = time // span) with events, its first and last event time, ascending; enough to
            find every gap exactly.
        events: ``TopicQueues`` and ``Clock`` of the cluster in every shard, the others in the shard of their group.
        flush: Advance the clock past the newest event. tick_ms: Advance it to this time (silence = "expire").
        losses: Input that was deleted before it was read.
        speakers: The cluster's two newest event times by different producers in this task, newest first, without times
            ahead of the batch. ahead: The same for times ahead of it.
        recorded_ms: The newest event time that is further behind the batch than a clock may be ahead.
        rejected: Only for ``STATELESS``: inputs that could not be read. annotations: Only there: annotations.
        ends: End offsets of the cluster's queues, in every shard.
        system: The number of the cluster's system (``SystemProfile.number``); None if there were only control marks.
    """

    newest_ms: int | None = None
    first_and_last_times: list[tuple[int, int]] = msgspec.field(default_factory=list)
    heartbeats: PackedHeartbeats | None = None
    progress: PackedProgress | None = None
    events: list[CarriedEvent] = msgspec.field(default_factory=list)
    rejected: list[Rejected] = msgspec.field(default_factory=list)
    flush: bool = False
    tick_ms: int | None = None
    speakers: list[Spoken] = msgspec.field(default_factory=list)
    ahead: list[Spoken] = msgspec.field(default_factory=list)
    recorded_ms: int | None = None
    losses: list[Loss] = msgspec.field(default_factory=list)
    ends: PackedEnds | None = None
    system: int | None = None
    annotations: list[Change] = msgspec.field(default_factory=list)


def encode_packet(packet: Packet) -> bytes:
    """Encode a packet for the shuffle."""
    content = msgspec.msgpack.encode(packet)
    return zlib.crc32(content).to_bytes(_CHECKSUM_BYTES, "little") + content


def decode_packet(payload: bytes) -> Packet:
    """Decode what ``encode_packet`` made.

    Raises:
        PacketDamagedError: The payload differs from what was sent.
    """
    content = memoryview(payload)[_CHECKSUM_BYTES:]
    if zlib.crc32(content).to_bytes(_CHECKSUM_BYTES, "little") != payload[:_CHECKSUM_BYTES]:
        raise PacketDamagedError(
            f"a packet of {len(payload)} bytes does not match its checksum: it was damaged between two processes of "
            "the job; it was not used, and the same command reads its batch again"
        )
    return msgspec.msgpack.decode(content, type=Packet)


def carry_event(event: AnyEvent, source: str, position: str) -> CarriedEvent:
    """Pack one whole event; equal content gives the same id, whatever the order of keys or format of times."""
    content = msgspec.json.encode(event, order="sorted")
    event_id = event.event_id if event.event_id is not None else content_id(content)
    return CarriedEvent(content, event.event_time, event_id, source, position)


def order_of(carried: CarriedEvent) -> tuple[int, str, bytes]:
    """Return a sort key for events that does not depend on tasks or batches: time, id, content."""
    return carried.event_time, carried.event_id, carried.content


def read_event(carried: CarriedEvent) -> AnyEvent:
    """Unpack the event that ``carry_event`` packed."""
    event: AnyEvent = _event.decode(carried.content)
    return event
