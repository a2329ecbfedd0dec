"""Shell: reads a checkpoint's state, and exports it as events from which another checkpoint starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from streaming.stores.places import Place, hadoop_uri, write_whole
from udfs.packets.packet import STATELESS, cluster_key, shard_of
from udfs.shard.savepoint import export_shard
from udfs.shard.state import ShardState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from udfs.model.config import CoreConfig
    from udfs.model.events import AnyEvent
    from udfs.model.group_api import GroupLogic

_FILE_BYTES = 64 * 1024 * 1024  # of one file of an export


class StoredShard(NamedTuple):
    """One shard's state as a checkpoint holds it."""

    cluster: str
    shard: int
    data: bytes


class ShardSummary(msgspec.Struct, kw_only=True):
    """A summary of one shard that needs no group decoded. Times in epoch ms.

    Attributes:
        heartbeat_members: Members that live by their own heartbeats; snapshots show others.
        waiting: Events and heartbeats at or after the clock. late: All late events so far.
        bytes_by_section: The size of each section of the state.
    """

    cluster: str
    shard: int
    clock: int | None
    newest: int | None
    batches: int
    groups: int
    heartbeat_members: int
    waiting: int
    late: int
    bytes: int
    bytes_by_section: dict[str, int]


def read_shards(spark: SparkSession, query: Place, batch_id: int | None = None) -> Iterator[StoredShard]:
    """Read the state of every shard, as of the last finished batch or of an earlier one.

    Args:
        query: Spark's own checkpoint folder. The job that writes it need not stop.
    """
    # Accessing the queries starts their manager, without whose coordinator no state store loads.
    _ = spark.streams.active
    reader = spark.read.format("statestore")
    if batch_id is not None:
        reader = reader.option("batchId", batch_id)
    stored = reader.load(hadoop_uri(query)).selectExpr("key.cluster", "key.shard", "value.groupState.state")
    for row in stored.orderBy("cluster", "shard").toLocalIterator():
        if row["cluster"] != STATELESS and row["state"]:
            yield StoredShard(row["cluster"], int(row["shard"]), bytes(row["state"]))


def summarise(stored: StoredShard, config: CoreConfig) -> ShardSummary:
    """Return the summary of one shard."""
    state = ShardState(stored.cluster, stored.data, config)
    header = state.header
    return ShardSummary(
        cluster=stored.cluster,
        shard=stored.shard,
        clock=header.clock,
        newest=header.newest,
        batches=header.batches,
        groups=header.groups,
        heartbeat_members=header.members,
        waiting=len(state.events) + len(state.unknown_member_heartbeats) + len(state.live.waiting_times),
        late=header.late + header.late_topics,
        bytes=len(stored.data),
        bytes_by_section=dict(header.sections),
    )


def export_events(shards: Iterable[StoredShard], config: CoreConfig, logic: GroupLogic) -> Iterator[AnyEvent]:
    """Return the state as events; a cluster's clock comes before everything else of the cluster.

    Args:
        config: With the shard count of the checkpoint that the state comes from.
    """
    clusters: dict[str, list[StoredShard]] = {}
    for stored in shards:
        clusters.setdefault(stored.cluster, []).append(stored)
    for cluster in sorted(clusters):
        home = shard_of(cluster_key(cluster), config.shards)
        for stored in sorted(clusters[cluster], key=lambda stored: (stored.shard != home, stored.shard)):
            yield from export_shard(cluster, stored.shard, stored.data, config, logic)


def write_export(events: Iterable[AnyEvent], folder: Place) -> list[Place]:
    """Write an export as files of JSON lines, each with its cluster's clock first.

    So a new checkpoint may read the files in any order and in several batches.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files: list[Place] = []
    cluster, clock = None, b""
    lines: list[bytes] = []
    size = 0

    def close() -> None:
        nonlocal lines, size
        if lines:
            file = folder / f"state-{len(files) + 1:05d}.jsonl"
            write_whole(file, b"\n".join(lines) + b"\n")
            files.append(file)
        lines, size = [], 0

    for event in events:
        line = msgspec.json.encode(event)
        if event.cluster != cluster:
            close()
            cluster, clock = event.cluster, line
        if size > _FILE_BYTES:
            close()
        if not lines and line != clock:
            lines.append(clock)
        lines.append(line)
        size += 0 if line == clock else len(line)
    close()
    return files


def export_to(folder: Place, shards: Sequence[StoredShard], config: CoreConfig, logic: GroupLogic) -> list[Place]:
    """Export the state of a checkpoint into a folder that ``run --events`` reads."""
    return write_export(export_events(shards, config, logic), folder)


def clusters_of(spark: SparkSession, checkpoint: Place) -> list[str]:
    """Return the clusters in a checkpoint's state, including those without any decision yet."""
    if next((checkpoint / "commits").glob("[0-9]*"), None) is None:
        return []  # Spark cannot read the state of a query without a batch.
    # Accessing the queries starts their manager, without whose coordinator no state store loads.
    _ = spark.streams.active
    keys = spark.read.format("statestore").load(hadoop_uri(checkpoint)).selectExpr("key.cluster AS cluster").distinct()
    return sorted(row["cluster"] for row in keys.collect() if row["cluster"])
