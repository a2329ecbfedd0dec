"""Reading a checkpoint's state and exporting it, through a real state store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from streaming.spark import state_reader
from streaming.spark.state_reader import StoredShard, export_events, read_shards, summarise
from tests.core_config import core_config
from tests.udfs.shard.plain_group import PlainLogic
from tests.udfs.shard.shard_script import CLUSTER, T0, Cluster, beat, clock, count, join, packet_for
from udfs.ingest.parser import parse
from udfs.model.events import AnyEvent, Clock, GroupSnapshot
from udfs.packets.packet import encode_packet
from udfs.stateful import DECIDED_SCHEMA, STATE_SCHEMA, shard_function

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RULES = core_config(shards=3, allowed_lateness_ms=0)
EVENTS: list[AnyEvent] = [
    *(join(member, 0, group) for member in "abc" for group in ("g", "h", "i")),
    count("t", 3, 0),
    beat("a", 900),
    clock(500),
]


def stored() -> list[StoredShard]:
    cluster = Cluster(PlainLogic(), RULES)
    cluster.batch(*EVENTS)
    return [StoredShard(CLUSTER, shard, data) for shard, data in cluster.states.items() if data is not None]


def test_a_summary_counts_groups_members_and_what_waits() -> None:
    reads = [summarise(shard, RULES) for shard in stored()]
    assert {read.clock for read in reads} == {T0 + 900}
    assert (sum(read.groups for read in reads), sum(read.heartbeat_members for read in reads)) == (3, 9)
    assert sum(read.waiting for read in reads) == 1
    assert all(read.bytes > sum(read.bytes_by_section.values()) for read in reads)


def test_every_file_of_an_export_begins_with_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_reader, "_FILE_BYTES", 100)
    files = state_reader.export_to(tmp_path / "out", stored(), RULES, PlainLogic())
    assert len(files) > 2
    for file in files:
        first, *others = [parse_line(line) for line in file.read_bytes().splitlines()]
        assert isinstance(first, Clock)
        assert first.restored
        assert others


def parse_line(line: bytes) -> Any:
    return parse(line, T0 + 10**9, RULES)


def test_a_parsed_export_equals_the_exported_state(tmp_path: Path) -> None:
    shards = stored()
    [file] = state_reader.export_to(tmp_path, shards, RULES, PlainLogic())
    parsed = [parse_line(line) for line in file.read_bytes().splitlines()]
    assert parsed == list(export_events(shards, RULES, PlainLogic()))


@pytest.mark.spark
def test_the_state_is_read_out_of_sparks_own_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    packets = [
        (CLUSTER, shard, bytearray(encode_packet(packet_for(shard, EVENTS, RULES)))) for shard in range(RULES.shards)
    ]
    schema = "cluster string, shard int, payload binary"
    spark.createDataFrame(packets, schema).coalesce(1).write.parquet(str(tmp_path / "packets"))
    frame = spark.readStream.schema(schema).parquet(str(tmp_path / "packets"))
    decided = frame.groupBy("cluster", "shard").applyInPandasWithState(
        shard_function(RULES, PlainLogic()), DECIDED_SCHEMA, STATE_SCHEMA, "append", "NoTimeout"
    )
    query = (
        decided.writeStream.format("noop")
        .outputMode("append")
        .option("checkpointLocation", str(tmp_path / "query"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    shards = list(read_shards(spark, tmp_path / "query"))
    assert [(shard.cluster, shard.shard) for shard in shards] == [(CLUSTER, 0), (CLUSTER, 1), (CLUSTER, 2)]
    assert {summarise(shard, RULES).clock for shard in shards} == {T0 + 900}
    groups = [e.group for e in export_events(shards, RULES, PlainLogic()) if isinstance(e, GroupSnapshot)]
    assert sorted(groups) == ["g", "h", "i"]
