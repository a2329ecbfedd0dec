"""Core: the packets that travel from combine to the shards, and the stable hashes behind them. No I/O.

One packet is all that one task read for one shard of one cluster. Heartbeats that say only "still here" and
commits travel as packed columns of distinct (who, when); everything else travels as whole events.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd

from udfs.journal import Rejected

UInt64 = npt.NDArray[np.uint64]
Int64 = npt.NDArray[np.int64]

_MIX = np.uint64(0x9E3779B97F4A7C15)


def hash_texts(texts: Sequence[str]) -> UInt64:
    """Hash each text to 64 bits (SipHash-2-4 as ``pandas.util.hash_array`` fixes it), the same on every machine."""
    return pd.util.hash_array(np.asarray(texts, dtype=object), categorize=False)


def mix(left: UInt64, right: UInt64) -> UInt64:
    """Fold two hashes into one (order matters)."""
    with np.errstate(over="ignore"):
        mixed = (left * _MIX) ^ (right + _MIX + (left << np.uint64(6)) + (left >> np.uint64(2)))
        mixed ^= mixed >> np.uint64(29)
        return np.asarray(mixed * np.uint64(0xBF58476D1CE4E5B9), dtype=np.uint64)


def group_key(cluster: str, group: str) -> int:
    """Answer the 64-bit key of a group within its cluster."""
    both = hash_texts([cluster, group])
    return int(mix(both[:1], both[1:])[0])


def shard_of(key: int, shards: int) -> int:
    """Answer the shard of a group or topic key."""
    return key % shards


def member_key(member_id: str) -> int:
    """Answer the 64-bit key of a member within its group."""
    return int(hash_texts([member_id])[0])


def queue_key(topic: str, broker: str | None, queue_id: int) -> int:
    """Answer the 64-bit key of a queue within its group."""
    return int(hash_texts([f"{topic}\x00{broker or ''}\x00{queue_id}"])[0])


def content_id(content: bytes) -> str:
    """Answer the id of an event that carries none: a hash of its canonical content."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


class PackedHeartbeats(msgspec.Struct, array_like=True):
    """Distinct (group, member, time), as columns. P pairs, G distinct groups, M distinct members.

    Attributes:
        systems: One byte per group: index into ("kafka", "rocketmq", "metaq").
        group_keys: uint64[G] little-endian; ``group_names`` the G names, JSON-free, joined by ``\\n``-safe msgpack.
        member_groups: uint32[M], index into the groups; member_keys: uint64[M]; ``member_names`` M ids.
        pair_members: uint32[P]; pair_times: int64[P].
    """

    systems: bytes
    group_keys: bytes
    group_names: list[str]
    member_groups: bytes
    member_keys: bytes
    member_names: bytes  # UTF-8 of all ids, one after another
    member_name_ends: bytes  # uint32[M], end of each id in ``member_names``
    pair_members: bytes
    pair_times: bytes


class PackedProgress(msgspec.Struct, array_like=True):
    """Distinct (group, queue, newest times): uint64[P] keys of groups, uint64[P] of queues, int64[P] times."""

    group_keys: bytes
    queue_keys: bytes
    times: bytes


class CarriedEvent(msgspec.Struct, array_like=True):
    """One whole event on its way: JSON of the parsed struct with times in epoch ms."""

    content: bytes
    event_time: int
    event_id: str
    source: str
    position: str


class Packet(msgspec.Struct, array_like=True, kw_only=True):
    """What one task read for one shard of one cluster.

    Attributes:
        newest_ms: The cluster's newest event time in this task, whatever shard the event belongs to; None when
            only control marks came.
        times_seen: Only for the cluster's home shard: for each span of ``Rules.source_silent_after_ms`` of event
            time in which something came, its first and last event time; enough to find every gap exactly.
        flush: Move the clock past the newest event. tick_ms: Move it to here (silence = "expire").
        silence: A silence mark of the driver.
        rejected: Only for the cluster "": inputs that were rejected before they had a cluster.
    """

    newest_ms: int | None = None
    times_seen: list[tuple[int, int]] = msgspec.field(default_factory=list)
    heartbeats: PackedHeartbeats | None = None
    progress: PackedProgress | None = None
    events: list[CarriedEvent] = msgspec.field(default_factory=list)
    rejected: list[Rejected] = msgspec.field(default_factory=list)
    flush: bool = False
    tick_ms: int | None = None


REJECTED_CLUSTER = ""
