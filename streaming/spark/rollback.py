"""Shell: rolls a checkpoint's last batch back, so that it is computed again from the state before it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from streaming.spark.checkpoint import Checkpoint, CheckpointError
from streaming.spark.root_cause import reason
from streaming.spark.state_reader import StoredShard, read_shards
from streaming.stores.places import Place, place_named
from udfs.model.errors import StateDamagedError
from udfs.shard.state_format import unpack_state

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SOURCES_FROM = 2  # the line of an offset file from which on each line is the offset of one source


def read_whole(spark: SparkSession, checkpoint: Checkpoint, batch_id: int | None = None) -> list[StoredShard]:
    """Read the state of every shard, each checked against its checksum.

    Raises:
        CheckpointError: A shard's state is damaged, with the remedy; or Spark keeps none of that batch.
    """
    try:
        shards = list(read_shards(spark, checkpoint.query, batch_id))
    except PySparkException as error:
        raise CheckpointError(
            f"{checkpoint.root} has no state of batch {batch_id}, or none that can be read: {reason(error)}"
        ) from error
    for stored in shards:
        try:
            unpack_state(stored.data)
        except StateDamagedError as error:
            place = f"checkpoint {checkpoint.root}, cluster {stored.cluster!r}, shard {stored.shard}"
            raise CheckpointError(f"{place}: {error}. {_way_back(spark, checkpoint)}") from error
    return shards


def roll_back(spark: SparkSession, checkpoint: Checkpoint) -> int:
    """Roll the last batch back, and return its number.

    The next start reads exactly the input of that batch, from the state before it; its rows in the tables already exist
    and are not written again. No job may run on the checkpoint.

    Raises:
        CheckpointError: Its state is intact; or it cannot be computed again, with the remedy.
    """
    last = max(_batches(checkpoint))
    if _is_whole(spark, checkpoint, last):
        raise CheckpointError(f"{checkpoint.root}: the state of the last batch, {last}, is intact: it is left as it is")
    if last and not _is_whole(spark, checkpoint, last - 1):
        raise CheckpointError(f"the state before batch {last} is damaged, too. {_way_back(spark, checkpoint)}")
    deleted = [file for file in _files_of(checkpoint, last) if not file.exists()]
    if deleted:
        raise CheckpointError(
            f"batch {last} cannot be computed again: {len(deleted)} of the files that it read are deleted, such as "
            f"{deleted[0]}. " + _way_back(spark, checkpoint, can_roll_back=False)
        )
    for folder, first in (("offsets", last + 1), ("commits", last)):
        for file in (checkpoint.query / folder).iterdir():
            number = file.name.removeprefix(".").removesuffix(".crc")
            if number.isdecimal() and int(number) >= first:
                file.unlink()
    return last


def _way_back(spark: SparkSession, checkpoint: Checkpoint, *, can_roll_back: bool = True) -> str:
    """Return what to do when the newest state is damaged."""
    last, *older = sorted(_batches(checkpoint), reverse=True)
    for batch_id in older:
        if _is_whole(spark, checkpoint, batch_id):
            rollback = (
                "`state rollback` and start the job again; or else: " if can_roll_back and batch_id == last - 1 else ""
            )
            return (
                f"Remedy: {rollback}export the state of batch {batch_id}, the newest intact one, with `state export "
                f"--batch {batch_id}`, and start from it with a new --checkpoint and new --tables; events after "
                "that batch are read again"
            )
    return (
        "Spark keeps no older intact state: restore checkpoint and tables from one backup, or start with "
        "a new --checkpoint and new --tables"
    )


def _batches(checkpoint: Checkpoint) -> list[int]:
    return [int(file.name) for file in (checkpoint.query / "commits").glob("[0-9]*") if file.name.isdecimal()]


def _is_whole(spark: SparkSession, checkpoint: Checkpoint, batch_id: int) -> bool:
    try:
        for stored in read_shards(spark, checkpoint.query, batch_id):
            unpack_state(stored.data)
    except (StateDamagedError, PySparkException):
        return False
    return True


def _files_of(checkpoint: Checkpoint, batch_id: int) -> Iterator[Place]:
    """Return the files that a batch read, as recorded by Spark's file sources."""
    ends, starts = _log_offsets(checkpoint, batch_id), _log_offsets(checkpoint, batch_id - 1)
    for number, end in ends.items():
        log = checkpoint.query / "sources" / str(number)
        for entry in range(starts.get(number, -1) + 1, end + 1):
            whole = log / f"{entry}.compact"
            lines = (whole if whole.exists() else log / str(entry)).read_text().splitlines()
            for file in map(json.loads, lines[1:]):
                if file["batchId"] == entry:
                    yield place_named(file["path"])


def _log_offsets(checkpoint: Checkpoint, batch_id: int) -> dict[int, int]:
    """Return, for each file source by its number, how far its log had been read at the end of a batch."""
    file = checkpoint.query / "offsets" / str(batch_id)
    lines = file.read_text().splitlines()[_SOURCES_FROM:] if file.exists() else []
    offsets = {number: json.loads(line) for number, line in enumerate(lines) if line.startswith("{")}
    return {number: int(offset["logOffset"]) for number, offset in offsets.items() if "logOffset" in offset}
