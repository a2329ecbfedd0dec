"""Sources: every line of a folder and every record of a topic once, as the bytes that were written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest
from pyspark.errors import StreamingQueryException

from streaming.collectors.kafka.topic_reader import DATA_LOSS
from streaming.pipeline.combine import CHECK, FILES, PACKET_SCHEMA, PARTITION_STEP, RAW_SCHEMA, READ, combine
from streaming.pipeline.file_reader import LARGEST_FOR_SPARK_BYTES
from streaming.pipeline.sources import RAW_COLUMNS, control_source, folder_source, offsets_rows
from streaming.stores.places import place_named
from tests.core_config import core_config
from tests.udfs.event_lines import VALID, line
from udfs.packets.packet import decode_packet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
from typing import TYPE_CHECKING

from streaming.pipeline.sources import topic_source
from tests.kit.topics import create_topic, delete_records, send

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.kit.brokers import Broker

LONG_AGO = 1_600_000_000_000  # behind any machine's clock

pytestmark = pytest.mark.spark


def drain(frame: DataFrame, checkpoint: Path, after_batch: Callable[[int], None] = lambda _: None) -> list[list[Row]]:
    """Run a query until its input is read; return the rows of each batch."""
    batches: list[list[Row]] = []

    def keep(batch: DataFrame, batch_id: int) -> None:
        batches.append(batch.collect())
        after_batch(batch_id)

    query = (
        frame.writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return batches


def write(path: Path, content: bytes, age: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))


def lines_of(batches: list[list[Row]]) -> list[tuple[str, bytes]]:
    return sorted((row.place, bytes(row.value)) for rows in batches for row in rows if row.value)


def test_a_source_has_the_raw_columns(spark: SparkSession, tmp_path: Path) -> None:
    for source in (folder_source(spark, tmp_path, max_files_per_batch=1), control_source(spark, tmp_path)):
        assert dict(source.dtypes) == RAW_COLUMNS
    assert ", ".join(f"{name} {kind}" for name, kind in [*RAW_COLUMNS.items(), ("batch_ms", "bigint")]) == RAW_SCHEMA


def test_records_of_groups_carry_partition_and_offset_as_one_number(spark: SparkSession) -> None:
    names = ("topic", "partition", "offset", "key", "value", "timestamp")
    records = spark.sql(
        "SELECT '__consumer_offsets', 49, 1234567890123L, X'01', X'02', TIMESTAMP '2026-01-01 00:00:00Z'"
    )
    rows = offsets_rows(records.toDF(*names))
    assert dict(rows.dtypes) == RAW_COLUMNS
    (row,) = rows.collect()
    assert (row.source, row.place, divmod(row.number, PARTITION_STEP)) == (None, None, (49, 1_234_567_890_123))
    assert (bytes(row.key), bytes(row.value), row.timestamp_ms) == (b"\1", b"\2", 1_767_225_600_000)


def test_lines_come_as_the_bytes_that_were_written(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "events"
    long_line = b'{"x":"' + b"a" * 20_000_000 + b'"}'
    write(folder / "bytes.json", b"\xff\xfe\x00\n\x00\nA\rB\r\n\n\nlast without a line feed")
    write(folder / "mark.json", b"\xef\xbb\xbfafter a mark\n")
    write(folder / "long.json", long_line + b"\nafter a long one\n")
    write(folder / "empty.json", b"")
    write(folder / "deeper" / "k=v" / "deep.json", b"deep\n")
    batches = drain(folder_source(spark, folder, max_files_per_batch=100), tmp_path / "checkpoint")
    mark = [(place, value.removeprefix(b"\xef\xbb\xbf")) for place, value in lines_of(batches)]
    assert mark == sorted(
        [
            ("bytes.json", b"\xff\xfe\x00"),
            ("bytes.json", b"\x00"),
            ("bytes.json", b"A\rB\r"),
            ("bytes.json", b"last without a line feed"),
            ("deep.json", b"deep"),
            ("long.json", long_line),
            ("long.json", b"after a long one"),
            ("mark.json", b"after a mark"),
        ]
    )


def test_every_file_is_named_and_what_spark_cannot_read_is_left_to_the_workers(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "events"
    names = ("a b.json", "ü.json", "a#b.json", "a%20b.json", "a?b.json", "[x]{y}*.json", "back\\slash.json")
    to_read = ("03:12.json", "packed.json.gz", "LOUD.ZST", "large.json")
    for name in (*names, *to_read):
        write(folder / name, name.encode())
    write(folder / "large.json", b"large.json" + b" " * LARGEST_FOR_SPARK_BYTES)
    write(folder / "empty.json", b"")
    write(folder / "in.gz" / "folder.json", b"folder.json")
    (batch,) = drain(folder_source(spark, folder, max_files_per_batch=100), tmp_path / "checkpoint")
    assert sorted((unquote(place), value.decode()) for place, value in lines_of([batch])) == sorted(
        (name, name) for name in (*names, "folder.json")
    )
    # Spark does not even list a file of no bytes.
    named = {place_named(row.place): row.number for row in batch if row.source == FILES}
    assert named == {
        **{folder / name: READ for name in to_read},
        **{folder / name: CHECK for name in (*names, "in.gz/folder.json")},
    }


def test_hidden_and_unfinished_files_are_not_read_until_they_are_renamed(spark: SparkSession, tmp_path: Path) -> None:
    folder, checkpoint = tmp_path / "events", tmp_path / "checkpoint"
    folder.mkdir()
    source = folder_source(spark, folder, max_files_per_batch=100)
    for name in (".hidden.json", "_hidden.json", "coming.json.tmp", "x.part", "y._COPYING_", "z.json~"):
        write(folder / name, name.encode() + b"\n")
    write(folder / "there.json", b"there\n")
    assert lines_of(drain(source, checkpoint)) == [("there.json", b"there")]
    (folder / "coming.json.tmp").rename(folder / "coming.json")
    assert lines_of(drain(source, checkpoint)) == [("coming.json", b"coming.json.tmp")]
    assert lines_of(drain(source, checkpoint)) == []


def test_a_file_that_was_deleted_again_stops_nothing(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "events"
    for age, name in ((3, "first"), (2, "second"), (1, "third")):
        write(folder / f"{name}.json", name.encode() + b"\n", age)
    source = folder_source(spark, folder, max_files_per_batch=1)

    def remove_the_second(batch_id: int) -> None:
        if batch_id == 0:
            (folder / "second.json").unlink()

    batches = drain(source, tmp_path / "checkpoint", remove_the_second)
    assert lines_of(batches) == [("first.json", b"first"), ("third.json", b"third")]


def test_files_are_taken_a_few_at_a_time_the_oldest_first(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "events"
    for number in range(5):
        write(folder / f"{number}.json", str(number).encode() + b"\n", age=number)
    batches = drain(folder_source(spark, folder, max_files_per_batch=2), tmp_path / "checkpoint")
    assert [sorted(row.place for row in rows if row.value) for rows in batches] == [
        ["3.json", "4.json"],
        ["1.json", "2.json"],
        ["0.json"],
    ]


def test_a_file_much_older_than_what_was_read_before_is_read_too(spark: SparkSession, tmp_path: Path) -> None:
    folder, checkpoint = tmp_path / "events", tmp_path / "checkpoint"
    folder.mkdir()
    source = folder_source(spark, folder, max_files_per_batch=1)
    write(folder / "a.json", b"a\n")
    write(folder / "b.json", b"b\n", age=-1)
    drain(source, checkpoint)
    write(folder / "old.json", b"old\n", age=1000 * 86_400)
    assert lines_of(drain(source, checkpoint)) == [("old.json", b"old")]


def test_the_name_of_a_folder_is_no_pattern(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "day [1] {a,b}*"
    write(folder / "a.json", b"a\n")
    assert lines_of(drain(folder_source(spark, folder, max_files_per_batch=1), tmp_path / "checkpoint")) == [
        ("a.json", b"a")
    ]


@pytest.mark.broker
def test_every_record_of_a_topic_is_read_once_with_its_place(
    spark: SparkSession, kafka41: Broker, tmp_path: Path
) -> None:
    from pyspark.sql import functions

    create_topic(kafka41, "monitor-events", 2)
    source = topic_source(
        spark, "monitor-events", bootstrap_servers=kafka41.bootstrap, options={}, max_offsets_per_batch=1000
    )
    assert dict(source.dtypes) == RAW_COLUMNS
    packed = source.withColumn("batch_ms", functions.unix_millis(functions.current_timestamp())).mapInArrow(
        combine(core_config(shards=1)), PACKET_SCHEMA
    )
    joined = line({**VALID["member_joined"], "event_time": LONG_AGO})
    left = line({**VALID["member_left"], "event_time": LONG_AGO})
    positions = []
    for records in ([joined, b"\xff not an event", b""], [left, joined + b"\n" + left]):
        send(kafka41, "monitor-events", records, partition=1)
        packets = [decode_packet(bytes(row.payload)) for rows in drain(packed, tmp_path / "checkpoint") for row in rows]
        found = [(event.source, event.position) for packet in packets for event in packet.events]
        found += [(row.source, f"{row.position} {row.reason}") for packet in packets for row in packet.rejected]
        positions.append(found)
    assert positions == [
        [("topic", "monitor-events-1:0"), ("topic", "monitor-events-1:1 not_utf8")],
        [("topic", "monitor-events-1:3"), ("topic", "monitor-events-1:4 trailing_bytes")],
    ]


@pytest.mark.broker
def test_spark_stops_a_query_with_deleted_records_unless_it_may_pass_over_them(
    spark: SparkSession, kafka41: Broker, tmp_path: Path
) -> None:
    topic = "records-that-are-gone"
    create_topic(kafka41, topic, 1)

    def read(*, is_tolerant: bool) -> list[int]:
        source = topic_source(
            spark,
            topic,
            bootstrap_servers=kafka41.bootstrap,
            options={},
            max_offsets_per_batch=1_000,
            is_tolerant=is_tolerant,
        )
        return [row.number for rows in drain(source, tmp_path / "checkpoint") for row in rows]

    send(kafka41, topic, [b"0", b"1"], 0)
    assert read(is_tolerant=False) == [0, 1]
    send(kafka41, topic, [b"2", b"3", b"4"], 0)
    delete_records(kafka41, topic, 4)
    with pytest.raises(StreamingQueryException) as failed:
        read(is_tolerant=False)
    assert DATA_LOSS in str(failed.value)
    assert read(is_tolerant=True) == [4]
    send(kafka41, topic, [b"5"], 0)
    assert read(is_tolerant=False) == [5]
