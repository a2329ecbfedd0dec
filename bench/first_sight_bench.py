"""Bench: 300,000 members join in 30,000 groups at one event time, until all tables have them; heartbeats meanwhile.

A fleet of the same size is there already and sends heartbeats, a batch after another. Then the joins come as one more
batch. Printed are the times from the files of the joins until they are decided, until the journal has them, and until
all tables have them, over what writing the same rows of all tables from Arrow takes in the same run (each table in one
commit of delta-rs); and the batches of heartbeats while the tables follow, over those before. `BENCH_GROUPS` makes it
smaller, `BENCH_WRITER=delta-spark` has Spark write the tables.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from deltalake import DeltaTable

from bench.fleet import SPREAD_MS, FleetShape, write_clock, write_heartbeats, write_seed
from streaming.pipeline.query import decisions, packets, start_query
from streaming.pipeline.sink import Sink
from streaming.pipeline.sources import folder_source
from streaming.settings.model import load
from streaming.spark.session import start_session
from streaming.tables.arrow_rows import as_schema
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.engine import DELTA_RS, DELTA_SPARK, DeltaRsEngine, DeltaSparkEngine
from streaming.tables.materializer import Materializer
from streaming.tables.schema import TABLES, Table
from streaming.tables.writer import Mark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

GROUPS = int(os.environ.get("BENCH_GROUPS", "30000"))
_BEFORE = 6
_WARM_UP = 2
_QUIET_BATCHES = 4
_INTERVAL_MS = 1_000
_QUEUES = 2


class Fleet:
    """Members that send heartbeats, batch by batch, into the folder of a running query."""

    def __init__(self, shape: FleetShape, folder: Path, query: StreamingQuery, now_ms: int) -> None:
        self._shape = shape
        self._folder = folder
        self._query = query
        self._number = 0
        self.now_ms = now_ms

    def batch_ms(self) -> float:
        """Write a heartbeat of each member; return how long their batch took, in ms."""
        self.now_ms += SPREAD_MS
        chosen = range(self._number * self._shape.members, (self._number + 1) * self._shape.members)
        write_heartbeats(self._shape, [self._folder], f"beat-{self._number:06d}", chosen, self.now_ms)
        self._number += 1
        self._query.processAllAvailable()
        last = [progress for progress in self._query.recentProgress if progress["numInputRows"] > 0][-1]
        return float(last["durationMs"]["triggerExecution"])


def main() -> None:
    """Print the figures."""
    work = Path(tempfile.mkdtemp(prefix="first-sight-bench-"))
    spark = start_session(load(overrides={"spark.driver_memory": "4g", "job.trigger_interval_ms": 0}), "bench")
    spark.sparkContext.setLogLevel("ERROR")
    try:
        _measure(spark, work)
    finally:
        spark.stop()
        shutil.rmtree(work)


class TimedSink:
    """The job's sink, and when each batch was decided: Spark computes it in the sink's first pass over it."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.decided_at = 0.0

    def __call__(self, decided: DataFrame, batch_id: int) -> None:
        decided.persist()
        decided.count()
        self.decided_at = time.perf_counter()
        self._sink(decided, batch_id)


def _measure(spark: SparkSession, work: Path) -> None:
    config = load().core_config()
    folder, tables = work / "events", work / "tables"
    folder.mkdir()
    writer = os.environ.get("BENCH_WRITER", DELTA_RS)
    engine = DeltaSparkEngine(spark) if writer == DELTA_SPARK else DeltaRsEngine()
    following = Materializer(tables, _INTERVAL_MS, engine=engine)
    following.start()
    sink = TimedSink(Sink(tables, "bench", following, engine=engine))
    query = start_query(
        decisions(packets([folder_source(spark, folder, max_files_per_batch=64)], config), config),
        sink,
        checkpoint=work / "checkpoint",
        once=False,
        trigger_interval_ms=0,
    )
    old = FleetShape(groups=GROUPS, queues_per_topic=_QUEUES)
    write_seed(old, folder)
    query.processAllAvailable()
    _wait(following)
    fleet = Fleet(old, folder, query, old.start_ms + 2 * config.repeat_span_ms)
    quiet = [fleet.batch_ms() for _ in range(_WARM_UP + _BEFORE)][_WARM_UP:]
    print(f"heartbeats of {old.members:,} members: {statistics.median(quiet):,.0f} ms a batch; writer {writer}")
    times, meanwhile = _first_sight(fleet, work, folder, query, following, sink)
    rows_s, rows = _from_arrow(tables, work / "from-arrow")
    print(f"{old.members:,} members join in {old.groups:,} groups: {rows:,} rows; from Arrow {rows_s:.1f} s")
    print(f"  decided after {times.decided_s:.1f} s, in the journal after {times.journal_s:.1f} s")
    print(f"  in all tables after {times.tables_s:.1f} s; ratio {times.tables_s / rows_s:.1f} (goal 5)")
    behind_s = times.tables_s - times.decided_s
    print(f"  of it, from decided to all tables {behind_s:.1f} s; ratio {behind_s / rows_s:.1f}")
    slower = statistics.median(meanwhile) / statistics.median(quiet)
    shown = ", ".join(f"{took_ms:,.0f}" for took_ms in meanwhile)
    print(f"heartbeats while the tables follow: {shown} ms; ratio {slower:.2f} (goal 1.3)")
    print(f"load {os.getloadavg()[0]:.1f}")
    query.stop()
    following.stop()


class Times(NamedTuple):
    """Seconds since the joins came."""

    decided_s: float
    journal_s: float
    tables_s: float


def _first_sight(
    fleet: Fleet, work: Path, folder: Path, query: StreamingQuery, following: Materializer, sink: TimedSink
) -> tuple[Times, list[float]]:
    """Have a second fleet join at once; return until when all tables have it, and the batches meanwhile."""
    shape = FleetShape(groups=GROUPS, queues_per_topic=_QUEUES)
    new = dataclasses.replace(shape, cluster="new", start_ms=fleet.now_ms)
    (work / "new").mkdir()
    write_seed(new, work / "new")
    begin = time.perf_counter()
    for file in sorted((work / "new").iterdir()):
        (folder / f"new-{file.name}").hardlink_to(file)
    query.processAllAvailable()
    # A clock applies the joins, without a batch of their parsing in between.
    write_clock(new, folder, new.start_ms + 60_000)
    query.processAllAvailable()
    decided_at, journal_at = sink.decided_at, time.perf_counter()
    ended: list[float] = []

    def wait() -> None:
        _wait(following)
        ended.append(time.perf_counter())

    waiting = threading.Thread(target=wait)
    waiting.start()
    meanwhile: list[float] = []
    while waiting.is_alive() or not meanwhile:
        meanwhile.append(fleet.batch_ms())
    waiting.join()
    return Times(decided_at - begin, journal_at - begin, ended[0] - begin), meanwhile


def _wait(following: Materializer) -> None:
    while not following.wait_until_idle(timeout=600):
        pass


def _from_arrow(tables: Path, root: Path) -> tuple[float, int]:
    """Write the new fleet's rows of all tables, each table in one commit; return seconds and rows."""
    rows = {name: _rows(tables / name, table) for name, table in TABLES.items()}
    begin = time.perf_counter()
    for name, found in rows.items():
        DeltaRsTable(root, TABLES[name]).append(found, Mark("bench", 0))
    return time.perf_counter() - begin, sum(found.num_rows for found in rows.values())


def _rows(uri: Path, table: Table) -> pa.Table:
    where = "cluster = 'new'" if "cluster" in table.names else None
    return as_schema(pa.table(DeltaTable(uri).scan(predicate=where)), table.schema)


if __name__ == "__main__":
    main()
