"""Shell: the Arrow step between the sources and the state, which turns raw rows into packets for the shards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from urllib.parse import unquote

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.pipeline.file_reader import Lines, UnreadableInput, read_whole, why_unreadable
from streaming.stores.places import Place, place_named
from udfs.ingest.combiner import Combiner, FollowedCluster, RawRows, line_position
from udfs.kafka.consumer_offsets import NO_TIMESTAMP, OFFSETS_TOPIC
from udfs.model.config import CoreConfig
from udfs.model.errors import InvariantError
from udfs.model.journal import Rejected
from udfs.model.rejection import Rejection, rejected
from udfs.packets.packet import encode_packet

# ``combine`` takes the columns of every source (streaming/pipeline/sources.py), and the batch's own timestamp.
RAW_SCHEMA = (
    "source string, place string, number bigint, key binary, value binary, timestamp_ms bigint, batch_ms bigint"
)
# It returns one row for each task, cluster and shard.
PACKET_SCHEMA = "cluster string, shard int, payload binary"
_PACKETS = pa.schema([("cluster", pa.string()), ("shard", pa.int32()), ("payload", pa.binary())])

CONTROL = "control"
OFFSETS = "offsets"
# Rows of `__consumer_offsets` are by far the most when a job catches up, and each column that is not null costs as much
# as decoding a commit. So `source` and `place` are null in them, and `number` is partition * PARTITION_STEP + offset.
PARTITION_STEP = 1 << 44
EVENTS = "events"
# Files of the folder of events: ``place`` is a path, ``number`` decides whether to read it or only to check it.
FILES = "files"
READ, CHECK = 1, 0


def combine(
    config: CoreConfig, *, followed: FollowedCluster | None = None, access: Mapping[str, str] | None = None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for ``mapInArrow``.

    Args:
        followed: The cluster of the source ``offsets``; required with that source.
        access: Options for a worker to read files of a store itself, because it lacks the driver's environment.
    """
    return partial(_combine, config, followed, access)


def _combine(
    config: CoreConfig,
    followed: FollowedCluster | None,
    access: Mapping[str, str] | None,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        is_file = pc.equal(batch.column("source"), FILES).fill_null(False)
        if pc.any(is_file).as_py():
            for file in batch.filter(is_file).to_pylist():
                place = place_named(file["place"], access)
                yield from _combine_file(place, file["number"] == READ, file["batch_ms"], config)
            batch = batch.filter(pc.invert(is_file))
        if batch.num_rows:
            yield combine_batch(batch, config, followed)


def _combine_file(path: Place, is_read: bool, batch_ms: int, config: CoreConfig) -> Iterator[pa.RecordBatch]:
    """Combine the lines of a file of which Spark has read only the name, block by block."""
    name = path.name.encode(errors="surrogateescape").decode(errors="backslashreplace")
    if is_read:
        pieces = read_whole(path, longest_bytes=config.max_event_bytes, kept_bytes=config.raw_limit_bytes)
    else:
        pieces = filter(None, [why_unreadable(path)])
    for piece in pieces:
        combiner = Combiner(batch_ms, config)
        if isinstance(piece, Lines):
            _read_lines(combiner, name, piece.lines)
        else:
            combiner.refuse(_unread(piece, name, batch_ms, config))
        yield _packed(combiner)


def _read_lines(combiner: Combiner, name: str, lines: list[bytes]) -> None:
    combiner.read_lines(RawRows(EVENTS, pa.array(lines, pa.binary()), lambda index: line_position(name, lines[index])))


def _unread(piece: UnreadableInput, name: str, batch_ms: int, config: CoreConfig) -> Rejected:
    row = rejected(
        Rejection(piece.reason, piece.detail),
        piece.beginning,
        source=EVENTS,
        position=f"{name}#{piece.sha256[:16]}" if piece.is_line else name,
        seen_at=batch_ms,
        raw_limit_bytes=config.raw_limit_bytes,
    )
    return msgspec.structs.replace(row, raw_length=piece.length, raw_sha256=piece.sha256)


def combine_batch(batch: pa.RecordBatch, config: CoreConfig, followed: FollowedCluster | None = None) -> pa.RecordBatch:
    """Combine one Arrow batch of raw rows of ``RAW_SCHEMA``."""
    combiner = Combiner(batch.column("batch_ms")[0].as_py(), config)
    source = batch.column("source")
    if source.null_count:
        are_all = source.null_count == len(source)
        _read_offsets(combiner, batch if are_all else batch.filter(pc.is_null(source)), followed)
    for name in pc.unique(source.drop_null()).to_pylist():
        mine = pc.equal(source, name).fill_null(False)
        _read(combiner, name, batch if pc.all(mine).as_py() else batch.filter(mine))
    return _packed(combiner)


def _packed(combiner: Combiner) -> pa.RecordBatch:
    packets = combiner.packets()
    return pa.record_batch(
        [
            pa.array([cluster for cluster, _, _ in packets], pa.string()),
            pa.array([shard for _, shard, _ in packets], pa.int32()),
            pa.array([encode_packet(packet) for _, _, packet in packets], pa.binary()),
        ],
        schema=_PACKETS,
    )


def _read(combiner: Combiner, source: str, batch: pa.RecordBatch) -> None:
    places, numbers, values = (batch.column(name) for name in ("place", "number", "value"))

    def position(index: int) -> str:
        place, number = places[index].as_py(), numbers[index].as_py()
        if number is not None:
            return f"{place}:{number}"
        # Spark writes a file's name in URL encoding.
        return line_position(unquote(place), values[index].as_py() or b"")

    rows = RawRows(source, values, position)
    if source == CONTROL:
        combiner.read_marks(rows)
    else:
        combiner.read_lines(rows)


def _read_offsets(combiner: Combiner, batch: pa.RecordBatch, followed: FollowedCluster | None) -> None:
    if followed is None:
        raise InvariantError(f"records of {OFFSETS_TOPIC}", "a followed cluster", None)
    numbers = batch.column("number")

    def position(index: int) -> str:
        partition, offset = divmod(numbers[index].as_py(), PARTITION_STEP)
        return f"{OFFSETS_TOPIC}-{partition}:{offset}"

    timestamps = np.asarray(batch.column("timestamp_ms").fill_null(NO_TIMESTAMP))
    rows = RawRows(OFFSETS, batch.column("value"), position)
    offsets = pc.bit_wise_and(numbers, PARTITION_STEP - 1)
    combiner.read_records(rows, batch.column("key"), timestamps, followed, offsets)
