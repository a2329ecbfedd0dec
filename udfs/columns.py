"""Core: heartbeats and commits of one batch as columns, and how they are packed for the shards. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import msgspec
import numpy as np
import pyarrow as pa

from udfs.events import Heartbeat, Progress
from udfs.packing import (
    SYSTEMS,
    Int64,
    PackedHeartbeats,
    PackedProgress,
    PackedTexts,
    UInt64,
    group_keys,
    hash_texts,
    mix,
    queue_keys,
)


class HeartbeatColumns(msgspec.Struct):
    """Heartbeats that only say "still here": four columns of text, one of times."""

    systems: pa.StringArray
    clusters: pa.StringArray
    groups: pa.StringArray
    member_ids: pa.StringArray
    times: Int64

    def __len__(self) -> int:
        return len(self.times)

    def texts(self) -> tuple[pa.StringArray, ...]:
        """Answer the columns of text."""
        return (self.systems, self.clusters, self.groups, self.member_ids)

    def where(self, kept: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> HeartbeatColumns:
        """Answer only some rows."""
        mask = pa.array(kept)
        systems, clusters, groups, member_ids = (column.filter(mask) for column in self.texts())
        return HeartbeatColumns(systems, clusters, groups, member_ids, self.times[kept])

    @classmethod
    def of(cls, heartbeats: list[Heartbeat]) -> HeartbeatColumns:
        """Make columns of single heartbeats."""
        return cls(
            pa.array([heartbeat.system for heartbeat in heartbeats], pa.string()),
            pa.array([heartbeat.cluster for heartbeat in heartbeats], pa.string()),
            pa.array([heartbeat.group for heartbeat in heartbeats], pa.string()),
            pa.array([heartbeat.member_id for heartbeat in heartbeats], pa.string()),
            np.array([heartbeat.event_time for heartbeat in heartbeats], np.int64),
        )

    @classmethod
    def concat(cls, parts: list[HeartbeatColumns]) -> HeartbeatColumns:
        """Join parts, one after another."""
        if len(parts) == 1:
            return parts[0]
        texts = zip(*(part.texts() for part in parts), strict=True)
        systems, clusters, groups, member_ids = (pa.concat_arrays(arrays) for arrays in texts)
        return cls(systems, clusters, groups, member_ids, np.concatenate([part.times for part in parts]))

    def times_by_cluster(self) -> dict[str, Int64]:
        """Answer the times of each cluster."""
        encoded = self.clusters.dictionary_encode()
        names = encoded.dictionary.to_pylist()
        if len(names) == 1:
            return {names[0]: self.times}
        codes = np.asarray(encoded.indices)
        return {name: self.times[codes == code] for code, name in enumerate(names)}


def pack_heartbeats(columns: HeartbeatColumns, shards: int) -> Iterator[tuple[str, int, PackedHeartbeats]]:
    """Pack heartbeats for each (cluster, shard), in the order that ``PackedHeartbeats`` promises."""
    if not len(columns):
        return
    systems, clusters, groups, members = (column.dictionary_encode() for column in columns.texts())
    # A group is one (cluster, system, name); it is numbered in the order of its shard.
    place = np.asarray(clusters.indices, np.int64) * len(systems.dictionary) + np.asarray(systems.indices)
    named, row_groups = np.unique(place * len(groups.dictionary) + np.asarray(groups.indices), return_inverse=True)
    place_of, name_of = np.divmod(named, len(groups.dictionary))
    cluster_of, system_of = np.divmod(place_of, len(systems.dictionary))
    cluster_names = clusters.dictionary.to_pylist()
    keys = mix(hash_texts(cluster_names)[cluster_of], _hashes(groups.dictionary)[name_of])
    shard_of = (keys % np.uint64(shards)).astype(np.int64)
    order = np.lexsort((shard_of, cluster_of))
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    # Members in the order of their groups, pairs in the order of their members, then of time.
    member_count = len(members.dictionary)
    distinct, row_members = np.unique(
        number[row_groups] * member_count + np.asarray(members.indices), return_inverse=True
    )
    member_groups, member_of = np.divmod(distinct, member_count)
    earliest = int(columns.times.min())
    span = int(columns.times.max()) - earliest + 1
    pair_members, pair_times = _sorted_pairs(row_members, columns.times, earliest, span)
    member_keys = _hashes(members.dictionary)[member_of]
    names = members.dictionary.take(pa.array(member_of))
    group_names = groups.dictionary.take(pa.array(name_of[order]))
    system_bytes = np.array([SYSTEMS.index(name) for name in systems.dictionary.to_pylist()], np.uint8)[
        system_of[order]
    ]
    home = cluster_of[order] * shards + shard_of[order]
    starts = np.flatnonzero(np.diff(home, prepend=-1))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(home)], strict=True):
        first, last = np.searchsorted(member_groups, (start, end))
        pair_first, pair_last = np.searchsorted(pair_members, (first, last))
        packed = PackedHeartbeats(
            system_bytes[start:end].tobytes(),
            keys[order[start:end]].astype("<u8").tobytes(),
            pack_texts(group_names.slice(start, end - start)),
            (member_groups[first:last] - start).astype("<u4").tobytes(),
            member_keys[first:last].astype("<u8").tobytes(),
            pack_texts(names.slice(first, last - first)),
            (pair_members[pair_first:pair_last] - first).astype("<u4").tobytes(),
            pair_times[pair_first:pair_last].astype("<i8").tobytes(),
        )
        cluster, shard = divmod(int(home[start]), shards)
        yield cluster_names[cluster], shard, packed


def _sorted_pairs(members: Int64, times: Int64, earliest: int, span: int) -> tuple[Int64, Int64]:
    """Answer the distinct pairs, sorted by member and time."""
    if (int(members.max()) + 1) * span < 2**63:
        both = np.sort(members * span + (times - earliest))
        both = both[np.diff(both, prepend=-1) != 0]
        pair_members, offsets = np.divmod(both, span)
        return pair_members, offsets + earliest
    pairs = np.unique(np.stack((members, times), axis=1), axis=0)
    return pairs[:, 0], pairs[:, 1]


def pack_texts(texts: pa.StringArray) -> PackedTexts:
    """Pack a column of text without making a Python string of any."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    data = texts.buffers()[2]
    content = data[int(offsets[0]) : int(offsets[-1])].to_pybytes() if data is not None else b""
    return PackedTexts(content, (offsets[1:] - offsets[0]).astype("<u4").tobytes())


def _hashes(texts: pa.StringArray) -> UInt64:
    return hash_texts(texts.to_numpy(zero_copy_only=False))


class CommitColumns(msgspec.Struct):
    """Commits of one cluster: who, which queue, when; keys as ``packing.group_keys`` and ``queue_keys`` make them."""

    cluster: str
    group_keys: UInt64
    queue_keys: UInt64
    times: Int64

    @classmethod
    def of(cls, events: list[Progress]) -> list[CommitColumns]:
        """Make columns of single events, one for each cluster; an event that names no queue has no row."""
        rows: dict[str, list[tuple[str, tuple[str, str | None, int], int]]] = {}
        for event in events:
            of_cluster = rows.setdefault(event.cluster, [])
            for queue in event.queues:
                of_cluster.append((event.group, (queue.topic, queue.broker, queue.queue_id), event.event_time))
        return [
            cls(
                cluster,
                group_keys(cluster, [group for group, _, _ in of_cluster]),
                queue_keys([queue for _, queue, _ in of_cluster]),
                np.array([time for _, _, time in of_cluster], np.int64),
            )
            for cluster, of_cluster in rows.items()
        ]


def pack_progress(parts: list[CommitColumns], shards: int) -> Iterator[tuple[str, int, PackedProgress]]:
    """Pack commits for each (cluster, shard), in the order that ``PackedProgress`` promises."""
    for cluster in sorted({part.cluster for part in parts}):
        mine = [part for part in parts if part.cluster == cluster]
        groups = np.concatenate([part.group_keys for part in mine])
        queues = np.concatenate([part.queue_keys for part in mine])
        times = np.concatenate([part.times for part in mine])
        shard_of = groups % np.uint64(shards)
        order = np.lexsort((times, queues, groups, shard_of))
        shard_of, groups, queues, times = shard_of[order], groups[order], queues[order], times[order]
        fresh = np.ones(len(order), np.bool_)
        fresh[1:] = (groups[1:] != groups[:-1]) | (queues[1:] != queues[:-1]) | (times[1:] != times[:-1])
        shard_of, groups, queues, times = shard_of[fresh], groups[fresh], queues[fresh], times[fresh]
        bounds = np.searchsorted(shard_of, np.arange(shards + 1, dtype=np.uint64))
        for shard, (start, end) in enumerate(pairwise(bounds.tolist())):
            if start < end:
                yield (
                    cluster,
                    shard,
                    PackedProgress(
                        groups[start:end].astype("<u8").tobytes(),
                        queues[start:end].astype("<u8").tobytes(),
                        times[start:end].astype("<i8").tobytes(),
                    ),
                )
