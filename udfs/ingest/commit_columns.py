"""Core: commits and end offsets of one batch as columns, and their packing for the shards. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec
import numpy as np

from udfs.model.arrays import distinct
from udfs.model.events import Progress, QueueEnds, QueueOffset
from udfs.model.observations import UNKNOWN
from udfs.model.systems import SYSTEMS
from udfs.packets.packet import group_keys, progress_queues, queue_keys
from udfs.packets.progress_columns import (
    NamedGroup,
    NamedQueue,
    PackedEnds,
    PackedNames,
    PackedProgress,
    ProgressColumns,
)


class CommitColumns(msgspec.Struct):
    """The progress of one cluster's groups; ``groups`` and ``queues`` name the keys in it."""

    cluster: str
    columns: ProgressColumns
    groups: dict[int, NamedGroup]
    queues: dict[int, NamedQueue]

    @classmethod
    def of(cls, events: Sequence[Progress]) -> list[CommitColumns]:
        """Make columns of single events, one set for each cluster."""
        by_cluster: dict[str, list[Progress]] = {}
        for event in events:
            by_cluster.setdefault(event.cluster, []).append(event)
        return [cls._of_cluster(cluster, of_cluster) for cluster, of_cluster in by_cluster.items()]

    @classmethod
    def _of_cluster(cls, cluster: str, events: Sequence[Progress]) -> CommitColumns:
        rows = [(event, queue) for event in events for queue in event.queues]
        named = [queue for event in events for queue in progress_queues(event)]
        groups, queues = group_keys(cluster, [event.group for event, _ in rows]), queue_keys(named)
        carried = np.array([_carried(queue) for _, queue in rows], np.int64).reshape(-1, 5).T
        times = np.array([event.event_time for event, _ in rows], np.int64)
        commits = np.array([queue.moved for _, queue in rows], np.bool_)
        columns = ProgressColumns._make([groups, queues, times, *carried[:3], commits, *carried[3:]])
        return cls(
            cluster,
            columns,
            dict(zip(groups.tolist(), (NamedGroup(event.group, event.system) for event, _ in rows), strict=True)),
            dict(zip(queues.tolist(), named, strict=True)),
        )


def _carried(queue: QueueOffset) -> list[int]:
    is_dated = queue.written_offset is not None and queue.written_at is not None
    written = (queue.written_offset, queue.written_at) if is_dated else (None, None)
    return [_offset(value) for value in (queue.offset, queue.end_offset, queue.position, *written)]


def _offset(offset: int | None) -> int:
    return UNKNOWN if offset is None else offset


def pack_progress(parts: Sequence[CommitColumns], shards: int) -> Iterator[tuple[str, int, PackedProgress]]:
    """Pack the groups' progress for each (cluster, shard), in the order that ``PackedProgress`` requires."""
    for cluster in sorted({part.cluster for part in parts}):
        mine = [part for part in parts if part.cluster == cluster]
        groups = {key: group for part in mine for key, group in part.groups.items()}
        queues = {key: name for part in mine for key, name in part.queues.items()}
        columns = ProgressColumns.concat([part.columns for part in mine])
        columns = columns.distinct(columns.groups % np.uint64(shards))
        bounds = np.searchsorted(columns.groups % np.uint64(shards), np.arange(shards + 1, dtype=np.uint64))
        for shard, (start, end) in enumerate(pairwise(bounds.tolist())):
            if start < end:
                rows = columns.where(slice(start, end))
                names = PackedNames.pack(
                    {key: groups[key] for key in distinct(rows.groups).tolist()},
                    {key: queues[key] for key in distinct(rows.queues).tolist()},
                )
                yield cluster, shard, PackedProgress.pack(rows, names)


def pack_ends(events: Sequence[QueueEnds]) -> dict[str, PackedEnds]:
    """Pack the end offsets of queues, by cluster."""
    rows: dict[str, list[tuple[NamedQueue, int, int, int]]] = {}
    for event in events:
        brokers = SYSTEMS[event.system].counts_queues_per_broker
        rows.setdefault(event.cluster, []).extend(
            (
                (event.topic, queue.broker if brokers else None, queue.queue_id),
                event.event_time,
                queue.end_offset,
                _offset(queue.start_offset),
            )
            for queue in event.queues
        )
    return {
        cluster: PackedEnds.pack(
            queue_keys([queue for queue, *_ in of_cluster]),
            *np.array([observed for _, *observed in of_cluster], np.int64).reshape(-1, 3).T,
        )
        for cluster, of_cluster in rows.items()
    }
