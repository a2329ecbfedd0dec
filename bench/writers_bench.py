"""Bench: both writers on both stores, side by side in one run; ratios are to delta-rs on a disk.

Two parts. In this process, the four alternating: ten changes in ten groups until all tables have them, and ten rows of
`assignments` ended and begun anew among a million open ones. Then the job of each, a process as its users run it, one
after another: a batch of a fleet's heartbeats; as many members again that join at once, until all tables have them; and
the time from a change to its row in `rebalances`. The S3 protocol is spoken by a server on this machine.

`BENCH_GROUPS` (30,000), `BENCH_ROWS` (1,000,000), `BENCH_ROUNDS` (15) and `BENCH_LATENCY_SECONDS` (60) make it smaller;
`BENCH_WRITERS="delta-rs disk,delta-rs S3"` leaves some out.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from bench.fleet import SPREAD_MS, FleetShape, write_clock, write_heartbeats, write_seed
from bench.job_process import JobProcess, running_job
from bench.merge_bench import Spans
from bench.sink_bench import Fleet, rows_of
from streaming.machine.atomic_file import write_atomically
from streaming.settings.locations import Location
from streaming.settings.model import load
from streaming.spark.session import start_session
from streaming.tables.engine import DELTA_RS, DELTA_SPARK, DeltaRsEngine, DeltaSparkEngine, Engine
from streaming.tables.materializer import Materializer
from streaming.tables.schema import ASSIGNMENTS, CHANGES, REBALANCES
from streaming.tables.writer import Mark

GROUPS = int(os.environ.get("BENCH_GROUPS", "30000"))
ROWS = int(os.environ.get("BENCH_ROWS", "1000000"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "15"))
SECONDS = float(os.environ.get("BENCH_LATENCY_SECONDS", "60"))
_FIRST = f"{DELTA_RS} disk"
_ALL = (_FIRST, f"{DELTA_RS} S3", f"{DELTA_SPARK} disk", f"{DELTA_SPARK} S3")
WRITERS = tuple(os.environ.get("BENCH_WRITERS", ",".join(_ALL)).split(","))
_T0 = 1_767_225_600_000
_WARM_UP = 3
_TEN = 10
_BEATS = 6
_QUEUES = 2
_EVERY_S = 0.25
_FOLLOWING = ("assignments", "members", "group_minutes", "groups")


class Side:
    """One of the writers that alternate; each of its methods returns how long something took, in ms.

    Args:
        engine: Which.
        root: Where its tables are made.
    """

    def __init__(self, engine: Engine, root: Location) -> None:
        self._tables = [engine.table(below(root, "ten"), table) for table in (REBALANCES, CHANGES)]
        self._following = Materializer(below(root, "ten"), 0, engine=engine)
        self._spans = Spans(engine.table(below(root, "merge"), ASSIGNMENTS), ROWS)

    def ten_changes(self, parts: Sequence[pa.Table], number: int) -> float:
        """Append rows of ``rebalances`` and ``changes`` and have all tables follow."""
        begin = time.perf_counter()
        for table, rows in zip(self._tables, parts, strict=True):
            table.append(rows, Mark("bench", number))
        self._following.run()
        return _ms_since(begin)

    def merge(self, *, scattered: bool) -> float:
        """End and begin anew ten spans of neighbouring groups, or of groups far apart."""
        chosen = self._spans.scattered() if scattered else self._spans.neighbours()
        begin = time.perf_counter()
        self._spans.change(chosen)
        return _ms_since(begin)


class Figures(NamedTuple):
    """What one job took, in ms or seconds."""

    heartbeats_ms: float
    first_sight_s: float
    meanwhile_ms: float
    changes_s: Sequence[float]


def main() -> None:
    """Measure and print."""
    root = Path(tempfile.mkdtemp(prefix="writers-bench-"))
    print(f"{GROUPS * _TEN:,} members in {GROUPS:,} groups, {ROWS:,} open spans, {ROUNDS} rounds, {SECONDS:.0f} s")
    try:
        with import_module("tests.kit.s3").running_s3(root / "s3") as server:
            os.environ.update(server.options)
            _alternating(root, server.uri)
            _jobs(root, server.uri)
    finally:
        shutil.rmtree(root)


def _alternating(root: Path, store: str) -> None:
    spark = start_session(load(None, {"spark.master": "local[2]", "events.folder": f"{store}/events"}), name="bench")
    spark.sparkContext.setLogLevel("ERROR")
    try:
        sides: dict[str, Side] = {}
        for name in WRITERS:
            engine = DeltaSparkEngine(spark) if name.startswith(DELTA_SPARK) else DeltaRsEngine()
            place = root if name.endswith("disk") else store
            sides[name] = Side(engine, below(place, name.replace(" ", "-")))
        _ten_changes(sides, 100)
        for scattered in (False, True):
            took = _rounds(sides, lambda side, _number, s=scattered: side.merge(scattered=s))  # type: ignore[misc]
            groups = "far apart" if scattered else "next to each other"
            _table(f"ten rows of groups {groups} among {ROWS:,}, p50 ms", took, statistics.median)
    finally:
        spark.stop()


def _ten_changes(sides: dict[str, Side], groups: int) -> None:
    fleet, names = Fleet(), [f"group-{number:06d}" for number in range(groups)]
    rows = [row for name in names for row in fleet.join(name, _TEN, _T0)]
    for side in sides.values():
        side.ten_changes(rows_of(rows, 0), 0)

    def change(side: Side, number: int) -> float:
        return side.ten_changes(prepared[number], number)

    prepared = {}
    for number in range(1, _WARM_UP + ROUNDS + 1):
        chosen = [names[(index * groups // _TEN + number) % groups] for index in range(_TEN)]
        rows = [row for name in chosen for row in fleet.join(name, 1, _T0 + number * 7_000)]
        prepared[number] = rows_of(rows, number)
    took = _rounds(sides, change)
    _table("ten changes in ten groups, all tables, p50 ms", took, statistics.median)
    _table("ten changes in ten groups, all tables, p99 ms", took, _p99)


def _rounds(sides: dict[str, Side], measured: Callable[[Side, int], float]) -> dict[str, list[float]]:
    took: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(1, _WARM_UP + ROUNDS + 1):
        for name, side in sides.items():
            took[name].append(measured(side, number))
    return {name: each[_WARM_UP:] for name, each in took.items()}


def _jobs(root: Path, store: str) -> None:
    figures = {}
    for name in WRITERS:
        settings = f'[tables]\nwriter = "{name.partition(" ")[0]}"\n'
        work = root / f"job-{name.replace(' ', '-')}"
        tables = below(store, work.name) if name.endswith("S3") else work / "tables"
        with running_job(work, tables, settings) as job:
            figures[name] = _measured(job)
        print(f"  {name}: {figures[name].first_sight_s:.1f} s to first sight; load {os.getloadavg()[0]:.1f}")
        shutil.rmtree(work)
    columns = {name: [each.heartbeats_ms] for name, each in figures.items()}
    _table(f"a batch of {GROUPS * _TEN:,} heartbeats, ms", columns, statistics.median)
    columns = {name: [each.first_sight_s] for name, each in figures.items()}
    _table(f"{GROUPS * _TEN:,} members join at once, until all tables have them, s", columns, statistics.median)
    columns = {name: [each.meanwhile_ms / each.heartbeats_ms] for name, each in figures.items()}
    _table("heartbeats while they come, over those before", columns, statistics.median, compared=False)
    changes = {name: each.changes_s for name, each in figures.items()}
    _table("from a change to its row in rebalances, p50 s", changes, statistics.median)
    _table("from a change to its row in rebalances, p99 s", changes, _p99)


def _measured(job: JobProcess) -> Figures:
    shape = FleetShape(groups=GROUPS, queues_per_topic=_QUEUES)
    write_seed(shape, job.events)
    job.batch_ms("seed-020-members.jsonl")
    write_clock(shape, job.events, shape.start_ms + 60_000)
    job.wait_for_rows(_expected(1), lambda: time.sleep(0.5))
    number, now_ms = 0, shape.start_ms + 2 * load().core_config().repeat_span_ms

    def heartbeat_ms() -> float:
        nonlocal number, now_ms
        now_ms += SPREAD_MS
        chosen = range(number * shape.members, (number + 1) * shape.members)
        write_heartbeats(shape, [job.events], f"beat-{number:06d}", chosen, now_ms)
        number += 1
        return job.batch_ms(f"beat-{number - 1:06d}-1.jsonl")

    quiet = [heartbeat_ms() for _ in range(_WARM_UP + _BEATS)][_WARM_UP:]
    new = dataclasses.replace(shape, cluster="new", start_ms=now_ms)
    aside = job.events.parent / "new"
    aside.mkdir()
    write_seed(new, aside)
    begin_ms = time.time() * 1_000
    for file in sorted(aside.iterdir()):
        (job.events / f"new-{file.name}").hardlink_to(file)
    write_clock(new, job.events, new.start_ms + 60_000)
    job.batch_ms(f"clock-{new.start_ms + 60_000}.jsonl")
    meanwhile: list[float] = []
    job.wait_for_rows(_expected(2), lambda: meanwhile.append(heartbeat_ms()))
    first_sight_s = (job.last_commit_ms(*_FOLLOWING) - begin_ms) / 1_000
    return Figures(statistics.median(quiet), first_sight_s, statistics.median(meanwhile), _changes(job))


def _expected(fleets: int) -> dict[str, int]:
    """Return how many rows the tables have once they have so many fleets; queues are as many as the topics'."""
    groups = fleets * GROUPS
    return {"members": groups * _TEN, "assignments": groups * _QUEUES, "group_minutes": groups, "groups": groups}


def _changes(job: JobProcess) -> list[float]:
    """Have a member join a group of its own every quarter of a second; return seconds until its row was committed."""
    joined: dict[str, int] = {}
    # The clock must pass the last one, so some more join.
    for number in range(int((SECONDS + 5) / _EVERY_S)):
        at, group = time.time_ns() // 1_000_000, f"live-{number:05d}"
        event = {"schema_version": 1, "system": "kafka", "cluster": "live", "type": "member_joined", "event_time": at}
        event |= {"group": group, "member_id": f"{group}-a", "subscriptions": ["t"]}
        write_atomically(job.events / f"{group}.jsonl", f"{json.dumps(event)}\n".encode())
        if number < SECONDS / _EVERY_S:
            joined[group] = at
        time.sleep(_EVERY_S)
    job.batch_ms(f"{group}.jsonl")
    committed = job.committed_ms("rebalances", "live")
    return [(committed[group] - at) / 1_000 for group, at in joined.items()]


def _p99(values: Sequence[float]) -> float:
    """Return the 99th percentile: of few the largest."""
    return sorted(values)[min(len(values) - 1, round(len(values) * 0.99))]


def _table(
    what: str,
    took: dict[str, list[float]] | dict[str, Sequence[float]],
    figure: Callable[[Sequence[float]], float],
    *,
    compared: bool = True,
) -> None:
    """Print a line of the table: each writer's figure, and over that of delta-rs on a disk where that was measured."""
    values = {name: figure(each) for name, each in took.items()}
    shown = []
    for name, value in values.items():
        text = f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
        if compared and name != _FIRST and _FIRST in values:
            text += f", ratio {value / values[_FIRST]:.2f}"
        shown.append(f"    {name}: {text}")
    print(f"{what}; load {os.getloadavg()[0]:.1f}", *shown, sep="\n")


def below(place: Location, name: str) -> Location:
    """Return the location of something in a folder."""
    return place / name if isinstance(place, Path) else f"{place}/{name}"


def _ms_since(begin: float) -> float:
    return (time.perf_counter() - begin) * 1_000
