"""Bench: from a membership change to its row in `rebalances`, a batch of ten events in parts, and what idling costs.

All at the default settings, in three phases of one run of the job: a member joins every quarter of a second (the first
half minute of a new JVM is printed by itself); ten join at once, now and then; nothing but a `clock` comes, every five
seconds. After that a query that does nothing, of the same shape as the job's (the same sources, one Arrow step, one
stateful step over eight keys, a `foreachBatch`), reads the same ten events in the same JVM: what Spark itself needs.
"""

from __future__ import annotations

import datetime
import json
import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from deltalake import DeltaTable

from bench.processes import computed_s, now_ms, seconds_of
from streaming.job import Job
from streaming.machine import logs
from streaming.machine.atomic_file import write_atomically
from streaming.pipeline.sink import Sink
from streaming.pipeline.sources import control_source, folder_source
from streaming.settings.model import Settings, load
from streaming.spark.session import start_session

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.state import GroupState

SECONDS = float(os.environ.get("BENCH_LATENCY_SECONDS", "60"))
IDLE_SECONDS = float(os.environ.get("BENCH_IDLE_SECONDS", "120"))
BATCHES = int(os.environ.get("BENCH_LATENCY_BATCHES", "15"))
EVERY_S = 0.25
CLOCK_EVERY_S = 5.0
_TEN = 10
# A batch of ten events ends long before the next ten come, also on a busy machine.
_APART_S = 3.0
# The first batches load and compile what all others use.
_WARM_UP = 5
_WARM_UP_S = 30.0


class Source:
    """Writes the events of one cluster, now."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = 0
        self._groups = 0
        folder.mkdir()

    def join(self, groups: int = 1) -> dict[str, int]:
        """Write a join to each of this many new groups; return the event time of each."""
        joins = {}
        for _ in range(groups):
            self._groups += 1
            joins[f"group-{self._groups:05d}"] = now_ms()
        self._write(
            {
                "type": "member_joined",
                "event_time": at,
                "group": group,
                "member_id": f"{group}-a",
                "subscriptions": ["t"],
            }
            for group, at in joins.items()
        )
        return joins

    def clock(self) -> None:
        self._write([{"type": "clock", "event_time": now_ms()}])

    def keep(self, files: int) -> None:
        """Delete all but the newest files, as collectors delete what was read."""
        for number in range(1, self._files - files + 1):
            (self._folder / f"{number:08d}.jsonl").unlink(missing_ok=True)

    def _write(self, events: Iterable[Mapping[str, object]]) -> None:
        self._files += 1
        common = {"schema_version": 1, "system": "kafka", "cluster": "bench"}
        lines = "".join(f"{json.dumps({**common, **event})}\n" for event in events)
        write_atomically(self._folder / f"{self._files:08d}.jsonl", lines.encode())


def main() -> None:
    """Print the figures."""
    logs.configure("warning", "auto")
    work = Path(tempfile.mkdtemp(prefix="rebalance-bench-"))
    settings = load(
        overrides={
            "events.folder": str(work / "events"),
            "job.tables": work / "tables",
            "job.checkpoint": work / "checkpoint",
        }
    )
    source = Source(work / "events")
    job = Job(settings)
    warm = threading.Event()
    job.when_running(warm.set)
    runner = threading.Thread(target=job.run, name="job")
    try:
        source.join()
        runner.start()
        while not warm.wait(1):
            if not runner.is_alive():
                raise RuntimeError("the job did not start")
        with seconds_of(Sink, "_write") as writing:
            early, joined = _steadily(source, settings)
            parts = _ten_at_a_time(source, writing)
            kept = int(settings.event_log.retention_ms / 1000 / CLOCK_EVERY_S)
            share = _idle_share(source, kept)
        job.stop.request()
        runner.join()
        _report_latency(work, early, "in the first half minute of a job")
        _report_latency(work, joined, "after that (goals: 3.0 and 4.0)")
        _report_parts(parts, _bare_batches(settings, work))
        beside = f"beside the {kept} read files that a collector keeps"
        print(f"while only clocks come, {beside}, all processes take {share:.1%} of one core (goal 15 %)")
    finally:
        job.stop.request()
        runner.join()
        shutil.rmtree(work)


def _steadily(source: Source, settings: Settings) -> tuple[dict[str, int], dict[str, int]]:
    """Return the joins of the first half minute, and those after it."""

    def join_for(seconds: float) -> dict[str, int]:
        joined: dict[str, int] = {}
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            joined |= source.join()
            time.sleep(EVERY_S)
        return joined

    early, joined = join_for(_WARM_UP_S), join_for(SECONDS)
    # Not counted: the clock must pass the last change, at the same pace as the others.
    join_for(settings.time.allowed_lateness_ms / 1000 + 1)
    time.sleep(_APART_S)
    return early, joined


def _ten_at_a_time(source: Source, writing: list[tuple[float, float]]) -> list[dict[str, float]]:
    """Return the parts of each batch of ten events, in ms."""
    found = []
    for _ in range(BATCHES):
        before, workers = now_ms(), computed_s(_is_worker)
        source.join(_TEN)
        time.sleep(_APART_S)
        progress = _last_progress()
        if progress is None or progress["numInputRows"] < _TEN or _epoch_ms(progress["timestamp"]) < before:
            continue
        took = progress["durationMs"]
        written = [seconds for at, seconds in writing if at >= before]
        state = progress["stateOperators"][0]
        found.append(
            {
                "waiting for the trigger": _epoch_ms(progress["timestamp"]) - before,
                "listing": took["latestOffset"],
                "planning": took["queryPlanning"] + took.get("getBatch", 0),
                "offsets and commits": took["walCommit"] + took["commitOffsets"],
                "computing by Python's workers": (computed_s(_is_worker) - workers) * 1000,
                # Of all partitions, which do it side by side.
                "state, loaded and committed": (
                    state["commitTimeMs"] + state["customMetrics"].get("rocksdbLoadLatencyMs", 0)
                )
                / max(1, state["numShufflePartitions"]),
                "sink, writing": sum(written) * 1000,
                "stages and all else": took["addBatch"] - sum(written) * 1000,
                "the whole batch": took["triggerExecution"],
            }
        )
    return found


def _idle_share(source: Source, kept: int) -> float:
    source.keep(kept)
    time.sleep(CLOCK_EVERY_S)
    before, begin = computed_s(), time.monotonic()
    while time.monotonic() - begin < IDLE_SECONDS:
        source.clock()
        source.keep(kept)
        time.sleep(CLOCK_EVERY_S)
    return (computed_s() - before) / (time.monotonic() - begin)


def _bare_batches(settings: Settings, work: Path) -> list[float]:
    """Return how long batches of ten events of a query take that does nothing, in ms."""
    spark = start_session(settings, "bare")
    spark.sparkContext.setLogLevel("ERROR")
    try:
        source = Source(work / "bare")
        (work / "control").mkdir()
        query = _bare(spark, work).writeStream.outputMode("append").foreachBatch(_count)
        query = query.option("checkpointLocation", str(work / "bare-checkpoint"))
        running = query.trigger(processingTime=f"{settings.job.trigger_interval_ms} milliseconds").start()
        times = []
        for _ in range(_WARM_UP + BATCHES):
            source.join(_TEN)
            running.processAllAvailable()
            last = running.lastProgress
            assert last is not None
            times.append(float(last["durationMs"]["triggerExecution"]))
        running.stop()
        return times[_WARM_UP:]
    finally:
        spark.stop()


def _bare(spark: SparkSession, work: Path) -> DataFrame:
    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            keys = pa.array([place % 8 for place in range(batch.num_rows)], pa.int32())
            yield pa.record_batch([keys, batch.column("value")], names=["key", "payload"])

    def keep(key: tuple[int], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        rows = list(frames)
        state.update((bytes(key[0]),))
        yield rows[0].head(1)[["payload"]].astype(str)

    raw = control_source(spark, work / "control").unionByName(
        folder_source(spark, work / "bare", max_files_per_batch=1000)
    )
    keyed = raw.mapInArrow(pass_on, "key int, payload binary").groupBy("key")
    return keyed.applyInPandasWithState(keep, "payload string", "state binary", "append", "NoTimeout")


def _count(rows: DataFrame, _batch: int) -> None:
    rows.persist()
    rows.count()
    rows.unpersist()


def _report_latency(work: Path, joined: Mapping[str, int], when: str) -> None:
    committed = commits(work / "tables" / "rebalances" / "_delta_log")
    # Of changes, because Spark keeps no more than its newest batches' offsets.
    changes = DeltaTable(str(work / "tables" / "changes")).to_pyarrow_table(columns=["group_id", "kind", "batch"])
    decided: dict[str, int] = {}
    for row in changes.to_pylist():
        if row["group_id"] in joined and row["kind"] == "group_changed":
            decided[row["group_id"]] = min(row["batch"], decided.get(row["group_id"], row["batch"]))
    seconds = [(committed[batch] - joined[group]) / 1000 for group, batch in decided.items()]
    p99 = statistics.quantiles(seconds, n=100)[98]
    print(
        f"from a change to its row in rebalances, {when}: p50 {statistics.median(seconds):.2f} s, p99 {p99:.2f} s;"
        f" {len(seconds)} of {len(joined)} changes have their row; 2 s of it are the allowed lateness"
    )


def _report_parts(parts: Sequence[Mapping[str, float]], bare: Sequence[float]) -> None:
    print(f"a batch of {_TEN} events, medians of {len(parts)}:")
    for name in parts[0] if parts else ():
        print(f"  {name}: {statistics.median(each[name] for each in parts):.0f} ms")
    if parts and bare:
        whole = statistics.median(each["the whole batch"] for each in parts)
        nothing = statistics.median(bare)
        print(
            f"  a batch of a query that does nothing: {nothing:.0f} ms; the job's is {whole / nothing:.2f} times that"
        )


def _last_progress() -> dict[str, Any] | None:
    """Return the last progress of the job's query with rows in it."""
    from pyspark.sql import SparkSession

    session = SparkSession._instantiatedSession
    for query in session.streams.active if session is not None else ():
        recent = [each for each in query.recentProgress if each["numInputRows"]]
        return dict(json.loads(recent[-1].json) if hasattr(recent[-1], "json") else recent[-1]) if recent else None
    return None


def commits(log: Path) -> dict[int, int]:
    """Return when each batch's rows were committed."""
    found = {}
    for file in log.glob("*.json"):
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        marks = [action["txn"]["version"] for action in actions if "txn" in action]
        times = [action["commitInfo"]["timestamp"] for action in actions if "commitInfo" in action]
        found.update(dict.fromkeys(marks, times[0]))
    return found


def _is_worker(process: psutil.Process) -> bool:
    return process.name().startswith("python") and process.pid != os.getpid()


def _epoch_ms(text: str) -> float:
    return datetime.datetime.fromisoformat(text).timestamp() * 1000
