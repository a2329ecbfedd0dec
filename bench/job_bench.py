"""Bench: a million members: the job's batch over parsing alone, over itself without a sink, its state, its memory.

Four queries read the same heartbeats in turn, batch by batch, in one session: parsing as the job does it, a plain
`from_json`, and the job with its real sink and with one that writes nothing (one query, the sink alternates). Figures
are medians of Spark's own `triggerExecution`, which for all of them holds planning and the write-ahead log; beside
them the computing time of all processes, which other work on the machine disturbs less.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pyarrow as pa

from bench.fleet import SPREAD_MS, FleetShape, write_clock, write_heartbeats, write_seed
from bench.processes import computed_s, is_below
from streaming.pipeline.combine import EVENTS
from streaming.pipeline.query import decisions, packets, start_query
from streaming.pipeline.sink import Sink
from streaming.pipeline.sources import folder_source
from streaming.settings.model import load
from streaming.spark.session import start_session
from streaming.spark.state_reader import read_shards
from streaming.tables.materializer import Materializer
from udfs.ingest.block_parser import parse_uniform_lines
from udfs.ingest.parser import decode_lines
from udfs.model.config import CoreConfig

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery
    from pyspark.sql.streaming.listener import StreamingQueryProgress

HEARTBEATS = int(os.environ.get("BENCH_HEARTBEATS", "333000"))
WARM_UP = 4
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "12"))
MEMORY_BATCHES = int(os.environ.get("BENCH_MEMORY_BATCHES", "200"))
_PLAIN_SCHEMA = (
    "schema_version INT, type STRING, event_time BIGINT, system STRING, cluster STRING, `group` STRING,"
    " member_id STRING"
)
_PARSED = pa.schema(
    [(name, pa.string()) for name in ("system", "cluster", "group", "member_id")] + [("event_time", pa.int64())]
)
_PARSED_SCHEMA = "system string, cluster string, `group` string, member_id string, event_time bigint"


class Alternating:
    """The sink of the job's query: the real one, or one that takes the rows and writes nothing."""

    def __init__(self, real: Sink) -> None:
        self._real = real
        self.writes = False

    def __call__(self, decided: DataFrame, batch_id: int) -> None:
        if self.writes:
            self._real(decided, batch_id)
        else:
            decided.write.format("noop").mode("append").save()


def main() -> None:
    """Print the figures."""
    work = Path(tempfile.mkdtemp(prefix="rebalance-bench-"))
    settings = load(overrides={"spark.driver_memory": "4g", "job.trigger_interval_ms": 0})
    spark = start_session(settings, "bench")
    spark.sparkContext.setLogLevel("ERROR")
    # A query without input looks for some every 10 ms: the two that are not measured would take most of a core.
    spark.conf.set("spark.sql.streaming.pollingDelay", "1000")
    try:
        _measure(spark, settings.core_config(), work)
    finally:
        spark.stop()
        shutil.rmtree(work)


def _measure(spark: SparkSession, config: CoreConfig, work: Path) -> None:
    shape = FleetShape(groups=int(os.environ.get("BENCH_GROUPS", "100000")))
    folders = {name: work / name for name in ("job", "own", "plain")}
    for folder in folders.values():
        folder.mkdir()
    tables = work / "tables"
    sink = Alternating(Sink(tables, "bench", Materializer(tables, 0)))
    write_seed(shape, folders["job"])
    queries = {
        "job": start_query(
            decisions(packets([_input(spark, folders["job"])], config), config),
            sink,
            checkpoint=work / "checkpoint-job",
            once=False,
            trigger_interval_ms=0,
        ),
        "own": _to_nothing(_own_parse(_lines(spark, folders["own"])), work / "checkpoint-own"),
        "plain": _to_nothing(_plain_parse(_lines(spark, folders["plain"])), work / "checkpoint-plain"),
    }
    began = time.monotonic()
    # Heartbeats of everybody, after the ids of the joins are forgotten: what is measured is a settled fleet.
    queries["job"].processAllAvailable()
    now_ms = shape.start_ms + 2 * config.repeat_span_ms
    write_heartbeats(shape, [folders["job"]], "settle", range(shape.members), now_ms)
    queries["job"].processAllAvailable()
    print(f"seeded {shape.members:,} members in {shape.groups:,} groups in {time.monotonic() - began:.0f} s")
    before = _commits(tables)
    times: dict[str, list[float]] = {"job, real sink": [], "job, no-op sink": [], "own": [], "plain": []}
    computing: dict[str, list[float]] = {kind: [] for kind in times}
    spent: dict[str, list[dict[str, float]]] = {kind: [] for kind in times}
    for number in range(2 * (WARM_UP + ROUNDS)):
        now_ms += SPREAD_MS
        chosen = range(number * HEARTBEATS, (number + 1) * HEARTBEATS)
        write_heartbeats(shape, [work], f"beat-{number:06d}", chosen, now_ms)
        sink.writes = number % 2 == 0
        for name, query in queries.items():
            kind = name if name != "job" else f"job, {'real' if sink.writes else 'no-op'} sink"
            for file in work.glob(f"beat-{number:06d}-*"):
                (folders[name] / file.name).hardlink_to(file)
            before_s = computed_s(is_below)
            parts = _batch_parts(query)
            times[kind].append(parts["triggerExecution"])
            spent[kind].append(parts)
            computing[kind].append(computed_s(is_below) - before_s)
    median = {kind: statistics.median(values[WARM_UP:]) for kind, values in times.items()}
    used = {kind: statistics.median(values[WARM_UP:]) for kind, values in computing.items()}
    for kind, value in used.items():
        print(f"median computing of a batch, {kind}: {value:.2f} s")
    print(f"job / parsing alone, by computing: {used['job, real sink'] / min(used['own'], used['plain']):.2f}")
    for kind, values in spent.items():
        medians = {
            part: round(statistics.median(parts[part] for parts in values[WARM_UP:] if part in parts))
            for part in values[-1]
        }
        print(f"median ms of a batch's parts, {kind}: {medians}")
    commits = _commits(tables) - before
    last = queries["job"].lastProgress
    assert last is not None
    # The clock moves past the last heartbeats: nothing waits, all members are silent.
    write_clock(shape, folders["job"], now_ms + 10_000)
    queries["job"].processAllAvailable()
    _report(median, last, shape, commits, _state_bytes(spark, work / "checkpoint-job"))
    for name in ("own", "plain"):
        queries[name].stop()
    sink.writes = True
    _memory(queries["job"], shape, folders["job"], now_ms)
    queries["job"].stop()


def _report(median: dict[str, float], last: StreamingQueryProgress, shape: FleetShape, commits: int, size: int) -> None:
    parse = min(median["own"], median["plain"])
    state = last["stateOperators"][0]
    for kind, value in median.items():
        print(f"median batch, {kind}: {value:.0f} ms")
    print(f"job / parsing alone (the faster of the two): {median['job, real sink'] / parse:.2f} (goal 1.4)")
    print(f"job / the same with a no-op sink: {median['job, real sink'] / median['job, no-op sink']:.2f} (goal 1.2)")
    print(f"commits of tables in batches of mere heartbeats: {commits} (goal 0)")
    print(f"state operator: updates {state['allUpdatesTimeMs']} ms, commit {state['commitTimeMs']} ms")
    print(f"state bytes for each silent member: {size / shape.members:.1f} (goal 32, aim 16)")


def _memory(job: StreamingQuery, shape: FleetShape, folder: Path, now_ms: int) -> None:
    """Print the memory of all processes of the job over many batches."""
    sizes = []
    for number in range(MEMORY_BATCHES):
        now_ms += SPREAD_MS
        chosen = range(number * HEARTBEATS, (number + 1) * HEARTBEATS)
        write_heartbeats(shape, [folder], f"long-{number:06d}", chosen, now_ms)
        _batch_parts(job)
        for file in folder.glob(f"long-{number - 5:06d}-*"):
            file.unlink()
        sizes.append(_resident_mb())
    if sizes:
        quarter = max(1, len(sizes) // 4)
        early, late = statistics.median(sizes[quarter : 2 * quarter] or sizes), statistics.median(sizes[-quarter:])
        print(
            f"memory over {len(sizes)} batches: second quarter {early:.0f} MB, last {late:.0f} MB ({late / early:.2f})"
        )


def _resident_mb() -> float:
    """Return the memory of this process, Spark's and the Python workers', without what they share."""
    here = psutil.Process()
    return sum(_own_mb(process) for process in [here, *here.children(recursive=True)])


def _own_mb(process: psutil.Process) -> float:
    try:
        return float(process.memory_full_info().uss) / 1e6
    except psutil.NoSuchProcess:
        return 0.0


def _state_bytes(spark: SparkSession, checkpoint: Path) -> int:
    """Return the sum of the shards' values, read from the state store."""
    return sum(len(stored.data) for stored in read_shards(spark, checkpoint))


def _input(spark: SparkSession, folder: Path) -> DataFrame:
    return folder_source(spark, folder, max_files_per_batch=2)


def _lines(spark: SparkSession, folder: Path) -> DataFrame:
    # The names of the files, which the job has beside them, are nothing to parse.
    return _input(spark, folder).where(f"source = '{EVENTS}'")


def _own_parse(lines: DataFrame) -> DataFrame:
    """Parse as the job does, into columns, and pack nothing."""
    return lines.mapInArrow(_parse, _PARSED_SCHEMA)


def _parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        lines = batch.column("value")
        uniform, others = parse_uniform_lines(lines)
        for part in uniform:
            rows = len(part.rows)
            names = [pa.repeat(part.system, rows), pa.repeat(part.cluster, rows), part.groups, part.member_ids]
            yield pa.record_batch([*names, pa.array(part.times)], schema=_PARSED)
        events = [event for event in decode_lines(lines.take(pa.array(others)).to_pylist()) if event is not None]
        yield pa.record_batch(
            [pa.array([getattr(event, field.name) for event in events], field.type) for field in _PARSED],
            schema=_PARSED,
        )


def _plain_parse(lines: DataFrame) -> DataFrame:
    from pyspark.sql import functions

    return lines.select(functions.from_json(lines["value"].cast("string"), _PLAIN_SCHEMA).alias("e")).select("e.*")


def _to_nothing(frame: DataFrame, checkpoint: Path) -> StreamingQuery:
    return (
        frame.writeStream.format("noop")
        .outputMode("append")
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime="0 seconds")
        .start()
    )


def _batch_parts(query: StreamingQuery) -> dict[str, float]:
    """Wait for the batch with what was just written; return how long each of its parts took, in ms."""
    query.processAllAvailable()
    last = [progress for progress in query.recentProgress if progress["numInputRows"] > 0][-1]
    return {part: float(took) for part, took in last["durationMs"].items()}


def _commits(tables: Path) -> int:
    return sum(1 for _ in tables.glob("*/_delta_log/*.json"))
