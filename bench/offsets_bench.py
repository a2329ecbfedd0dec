"""Bench: catching up with `__consumer_offsets`: the job over Spark's own Kafka source into a no-op sink, in one run.

A real broker holds a topic of the same shape: groups by the hash of their names in partitions, offset commits, and now
and then the record of a new generation of a group with members. Four queries read all of it in turn, several times,
in one session: Spark's source into nothing; the same handed to Python workers that only count; the job's source and
ingest (its packets into nothing); the whole job with its state and tables. Rates are records over the sum of Spark's
`triggerExecution`; the ratio is of medians.

Sizes are by environment variables: BENCH_OFFSETS_GROUPS (full size 10000), BENCH_OFFSETS_COMMITS (20000000),
BENCH_OFFSETS_PARTITIONS (50), BENCH_OFFSETS_ROUNDS.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from confluent_kafka import Producer

from streaming.pipeline.query import decisions, packets
from streaming.pipeline.sink import Sink
from streaming.pipeline.sources import offsets_rows
from streaming.settings.model import Settings, load
from streaming.spark.session import start_session
from streaming.tables.materializer import Materializer
from tests.kit.brokers import Broker, kafka_41
from tests.kit.topics import create_topic
from udfs.ingest.combiner import FollowedCluster

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GROUPS = int(os.environ.get("BENCH_OFFSETS_GROUPS", "2000"))
COMMITS = int(os.environ.get("BENCH_OFFSETS_COMMITS", "4000000"))
PARTITIONS = int(os.environ.get("BENCH_OFFSETS_PARTITIONS", "50"))
ROUNDS = int(os.environ.get("BENCH_OFFSETS_ROUNDS", "3"))
_GOAL = 0.7
_TOPIC = "offsets-like"
_QUEUES = 10  # of a group's topic
_MEMBERS = 5
_COMMITS_A_GENERATION = 1_800  # of one group: a rebalance in a quarter of an hour, ten queues every five seconds
_COMMITTED_EVERY_MS = 500  # by one group
_CLUSTER = "bench"


def main() -> None:
    """Print the figures."""
    work = Path(tempfile.mkdtemp(prefix="rebalance-bench-"))
    settings = load(overrides={"spark.driver_memory": "3g"})
    try:
        with kafka_41(work / "broker", {"log.segment.bytes": "1073741824"}) as broker:
            create_topic(broker, _TOPIC, PARTITIONS)
            began = time.monotonic()
            records = fill(broker)
            print(
                f"{records:,} records of {GROUPS:,} groups in {PARTITIONS} partitions, written in"
                f" {time.monotonic() - began:.0f} s"
            )
            spark = start_session(settings, "bench")
            spark.sparkContext.setLogLevel("ERROR")
            try:
                _measure(spark, settings, broker, work, records)
            finally:
                spark.stop()
    finally:
        shutil.rmtree(work, ignore_errors=True)


def fill(broker: Broker) -> int:
    """Write the records; return how many they are."""
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "linger.ms": 50,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 1_000_000,
            "compression.type": "none",
            "acks": 1,
        }
    )
    start_ms = int(time.time() * 1_000) - COMMITS // GROUPS * _COMMITTED_EVERY_MS
    names = [f"group-{number:05d}" for number in range(GROUPS)]
    places = [java_hash(name) % PARTITIONS for name in names]
    keys = [[_commit_key(name, f"topic-{name}", queue) for queue in range(_QUEUES)] for name in names]
    written = 0
    for number in range(COMMITS):
        # Members commit all their queues in turn; groups take turns, so that a partition holds many of them.
        lap, group = divmod(number, GROUPS)
        at_ms = start_ms + lap * _COMMITTED_EVERY_MS
        if lap % _COMMITS_A_GENERATION == 0:
            generation = 1 + lap // _COMMITS_A_GENERATION
            value = _generation(names[group], generation, at_ms)
            _send(producer, places[group], struct.pack(">h", 2) + _text(names[group]), value, at_ms)
            written += 1
        value = struct.pack(">hqihqh", 3, lap, -1, 0, at_ms, 0)[:-2]
        _send(producer, places[group], keys[group][lap % _QUEUES], value, at_ms)
        written += 1
    if producer.flush(120):
        raise RuntimeError("the broker did not take all records")
    return written


def _send(producer: Producer, partition: int, key: bytes, value: bytes, at_ms: int) -> None:
    while True:
        try:
            producer.produce(_TOPIC, value, key, partition, timestamp=at_ms)
            return
        except BufferError:
            producer.poll(0.1)


def java_hash(text: str) -> int:
    """Return `abs(String.hashCode)`, by which a group's partition is chosen."""
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    signed = value - (1 << 32) if value & 0x80000000 else value
    return abs(signed)


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def _data(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def _commit_key(group: str, topic: str, partition: int) -> bytes:
    return struct.pack(">h", 1) + _text(group) + _text(topic) + struct.pack(">i", partition)


def _generation(group: str, generation: int, at_ms: int) -> bytes:
    """Return a group's record of version 3, of range over its topic; every second generation lacks the last member."""
    members = _MEMBERS - generation % 2
    topic = f"topic-{group}"
    subscription = struct.pack(">hi", 1, 1) + _text(topic) + struct.pack(">ii", -1, 0)
    value = struct.pack(">h", 3) + _text("consumer") + struct.pack(">i", generation) + _text("range")
    ids = [f"{group}-{number}" for number in range(members)]
    value += _text(ids[0]) + struct.pack(">qi", at_ms - 5, members)
    for number, member_id in enumerate(ids):
        first = number * (_QUEUES // members) + min(number, _QUEUES % members)
        held = range(first, first + _QUEUES // members + (number < _QUEUES % members))
        assignment = struct.pack(">hi", 1, 1) + _text(topic)
        assignment += struct.pack(f">i{len(held)}ii", len(held), *held, -1)
        value += _text(member_id) + struct.pack(">h", -1) + _text("consumer") + _text("/10.0.0.1")
        value += struct.pack(">ii", 300_000, 45_000) + _data(subscription) + _data(assignment)
    return value


def _measure(spark: SparkSession, settings: Settings, broker: Broker, work: Path, records: int) -> None:
    config = settings.core_config()
    followed = FollowedCluster(_CLUSTER)

    def source() -> DataFrame:
        reader = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", broker.bootstrap)
            .option("assign", json.dumps({_TOPIC: list(range(PARTITIONS))}))
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", settings.job.max_offsets_per_batch)
            .option("kafka.isolation.level", "read_committed")
        )
        return offsets_rows(reader.load())

    def to_nothing(frame: DataFrame) -> Any:
        return frame.writeStream.format("noop")

    def whole(name: str) -> Any:
        tables = work / f"tables-{name}"
        sink = Sink(tables, name, Materializer(tables, 0))
        decided = decisions(packets([source()], config, followed=followed), config)
        return decided.writeStream.outputMode("append").foreachBatch(sink)

    kinds: dict[str, Callable[[str], Any]] = {
        "Spark's source alone": lambda _: to_nothing(source()),
        "source and Python that counts": lambda _: to_nothing(source().mapInArrow(_count, "rows bigint")),
        "source and ingest": lambda _: to_nothing(packets([source()], config, followed=followed)),
        "the whole job": whole,
    }
    rates: dict[str, list[float]] = {kind: [] for kind in kinds}
    for lap in range(ROUNDS + 1):  # the first one warms up
        for number, (kind, writer) in enumerate(kinds.items()):
            name = f"{lap}-{number}"
            query = writer(name).option("checkpointLocation", str(work / f"checkpoint-{name}"))
            query = query.trigger(availableNow=True).start()
            query.awaitTermination()
            done = [progress for progress in query.recentProgress if progress["numInputRows"] > 0]
            read = sum(progress["numInputRows"] for progress in done)
            if read != records:
                raise RuntimeError(f"{kind}: {read} of {records} records were read")
            took_s = sum(progress["durationMs"]["triggerExecution"] for progress in done) / 1_000
            print(f"round {lap}, {kind}: {records / took_s:,.0f} records a second in {len(done)} batches")
            if lap:
                rates[kind].append(records / took_s)
    medians = {kind: statistics.median(values) for kind, values in rates.items()}
    alone = medians.pop("Spark's source alone")
    print(f"Spark's source alone: {alone:,.0f} records a second")
    for kind, rate in medians.items():
        print(f"{kind}: {rate:,.0f} records a second; {rate / alone:.2f} of Spark's source (goal {_GOAL})")


def _count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch([pa.array([sum(batch.num_rows for batch in batches)])], names=["rows"])
