"""Shell: the Arrow step between the sources and the state: raw rows in, packets for the shards out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from udfs.combining import Combiner, FollowedCluster, Rows, line_position
from udfs.consumer_offsets import NO_TIMESTAMP
from udfs.errors import InvariantError
from udfs.packing import encode_packet
from udfs.rules import Rules

# What ``combine`` takes: the columns of every source (streaming/sources.py), and the batch's own timestamp.
RAW_SCHEMA = (
    "source string, place string, number bigint, key binary, value binary, timestamp_ms bigint, batch_ms bigint"
)
# What it answers: one row for each task, cluster and shard.
PACKET_SCHEMA = "cluster string, shard int, payload binary"
_PACKETS = pa.schema([("cluster", pa.string()), ("shard", pa.int32()), ("payload", pa.binary())])

CONTROL = "control"
OFFSETS = "offsets"


def combine(
    rules: Rules, *, followed: FollowedCluster | None = None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Answer the function for ``mapInArrow``.

    Args:
        followed: The cluster whose records the source ``offsets`` brings; needed when there is that source.
    """
    return partial(_combine, rules, followed)


def _combine(
    rules: Rules, followed: FollowedCluster | None, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.num_rows:
            yield combine_batch(batch, rules, followed)


def combine_batch(batch: pa.RecordBatch, rules: Rules, followed: FollowedCluster | None = None) -> pa.RecordBatch:
    """Combine one Arrow batch of raw rows of ``RAW_SCHEMA``."""
    combiner = Combiner(batch.column("batch_ms")[0].as_py(), rules)
    for source in pc.unique(batch.column("source")).to_pylist():
        _read(combiner, source, batch, followed)
    packets = combiner.packets()
    return pa.record_batch(
        [
            pa.array([cluster for cluster, _, _ in packets], pa.string()),
            pa.array([shard for _, shard, _ in packets], pa.int32()),
            pa.array([encode_packet(packet) for _, _, packet in packets], pa.binary()),
        ],
        schema=_PACKETS,
    )


def _read(combiner: Combiner, source: str, batch: pa.RecordBatch, followed: FollowedCluster | None) -> None:
    mine = pc.equal(batch.column("source"), source)
    if not pc.all(mine).as_py():
        batch = batch.filter(mine)
    places, numbers = batch.column("place"), batch.column("number")
    values = batch.column("value")

    def position(index: int) -> str:
        place, number = places[index].as_py(), numbers[index].as_py()
        if number is not None:
            return f"{place}:{number}"
        # Spark writes a file's name as in a URL.
        return line_position(unquote(place), values[index].as_py() or b"")

    rows = Rows(source, values, position)
    if source == CONTROL:
        combiner.read_marks(rows)
    elif source == OFFSETS:
        if followed is None:
            raise InvariantError("records of __consumer_offsets", "a followed cluster", None)
        timestamps = batch.column("timestamp_ms").fill_null(NO_TIMESTAMP)
        combiner.read_records(rows, batch.column("key"), np.asarray(timestamps), followed)
    else:
        combiner.read_lines(rows)
