"""Bench: a batch with ten changes in ten groups until every table tells it, over one append of ten rows by Spark.

Each of ten groups of ten members takes in one more: ten rebalances, and all that follows from them in the tables,
materialised at once. The append is Delta's own, with `txnAppId`, ten rows into one table. Both alternate in one
session. Twice: on tables that hold only these groups, and on tables of 10,000 groups with 100,000 members. What a
reading command takes on tables of 1,000 rebalances, Python's start included, is printed beside.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import msgspec
from pyspark.sql import DataFrame, SparkSession

from streaming.pipeline.sink import Sink
from streaming.settings.model import load
from streaming.spark.session import start_session
from streaming.tables.delta_rs import DeltaRsTable
from streaming.tables.materializer import Materializer
from streaming.tables.schema import TABLES
from udfs.model import journal

_T0 = 1_767_225_600_000
_ROUNDS = 15
_WARM_UP = 4
_GROUPS = 10
_MEMBERS = 10
_DECIDED = "kind string, cluster string, body string"


class Fleet:
    """Groups whose members hold one queue each; every rebalance takes one queue from the first member."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = defaultdict(int)
        self._members: dict[str, int] = defaultdict(int)
        self._generations: dict[str, int] = defaultdict(int)

    def join(self, group: str, members: int, at: int) -> Iterator[tuple[str, str, str]]:
        """Return what one rebalance decides in which so many members join."""
        before = self._members[group]
        self._members[group] += members
        self._generations[group] += 1
        generation, after = self._generations[group], self._members[group]
        rebalance_id = f"{group}-{generation}"
        causes = [
            journal.Trigger(kind="member_joined", member_id=f"{group}-m{number}", event_id=f"{group}-e{number}")
            for number in range(before, after)
        ]
        rebalance = journal.Rebalance(
            rebalance_id=rebalance_id,
            cluster="c1",
            system="kafka",
            group_id=group,
            generation=generation,
            generation_source="counted",
            event_time=at,
            detected_at=at + 3_000,
            trigger="member_joined",
            triggers=causes,
            strategy="kafka.range",
            members_before=before,
            members_after=after,
            queues_assigned=members,
        )
        yield "rebalance", "c1", msgspec.json.encode(rebalance).decode()
        bodies: list[journal.Body] = []
        for number in range(before, after):
            member = f"{group}-m{number}"
            bodies.append(
                journal.MemberOpened(
                    member_id=member, joined_at=at, client_id=member, host="/10.0.0.1", subscriptions=("orders",)
                )
            )
            bodies.append(self._assigned(number, member, generation, rebalance_id, at))
        if before:
            owner = f"{group}-m{before - 1}"
            queue = before - 1
            bodies.append(
                journal.QueueReleased(
                    topic="orders", broker=None, queue_id=queue, member_id=owner, origin="computed", valid_to=at
                )
            )
            bodies.append(self._assigned(queue, f"{group}-m{after - 1}", generation, rebalance_id, at))
        bodies.append(
            journal.Rebalanced(
                rebalance_id=rebalance_id,
                members=after,
                queues_moved=1,
                queue_pause_ms=None,
                idle_members=0,
                unassigned_queues=0,
                spread=1,
            )
        )
        bodies.append(
            journal.GroupChanged(
                system="kafka",
                state="stable",
                mode="clustering",
                strategy="kafka.range",
                generation=generation,
                generation_source="counted",
                members=after,
                queues=after,
                last_rebalance_at=at,
                last_rebalance_id=rebalance_id,
            )
        )
        for body in bodies:
            self._numbers[group] += 1
            change = journal.Change(
                cluster="c1", group_id=group, subject=None, number=self._numbers[group], event_time=at, body=body
            )
            yield "change", "c1", msgspec.json.encode(change).decode()

    @staticmethod
    def _assigned(queue: int, member: str, generation: int, rebalance_id: str, at: int) -> journal.QueueAssigned:
        return journal.QueueAssigned(
            topic="orders",
            broker=None,
            queue_id=queue,
            member_id=member,
            origin="computed",
            generation=generation,
            rebalance_id=rebalance_id,
            valid_from=at,
        )


@contextmanager
def _timed(kind: str, times: dict[str, list[float]]) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    times[kind].append(time.perf_counter() - begin)


def _measure(spark: SparkSession, root: Path, groups: int) -> None:
    fleet = Fleet()
    names = [f"group-{number:06d}" for number in range(groups)]
    materialiser = Materializer(root / "tables", 0)
    sink = Sink(root / "tables", "bench", materialiser)
    begin = time.perf_counter()
    sink(_frame(spark, [row for name in names for row in fleet.join(name, _MEMBERS, _T0)]), 0)
    took = time.perf_counter() - begin
    _print(f"\n{groups:,} groups, {groups * _MEMBERS:,} members; their first batch took {took:.1f} s")

    times: dict[str, list[float]] = defaultdict(list)
    parts: dict[str, list[float]] = defaultdict(list)
    ten_rows = (
        spark.range(_GROUPS).selectExpr("id", "cast(id AS string) AS name", "current_timestamp() AS at").coalesce(1)
    )
    ten_rows.write.format("delta").save(str(root / "one"))
    step = max(1, groups // _GROUPS)
    with _parts(parts):
        for number in range(1, _WARM_UP + _ROUNDS + 1):
            at = _T0 + number * 7_000
            chosen = [names[(index * step + number) % groups] for index in range(_GROUPS)]
            frame = _frame(spark, [row for name in chosen for row in fleet.join(name, 1, at)])
            with _timed("ten changes, all tables", times):
                sink(frame, number)
            with _timed("one append of ten rows by Spark", times):
                append = ten_rows.write.format("delta").mode("append")
                append.option("txnAppId", "bench").option("txnVersion", number).save(str(root / "one"))
            with _timed("a batch without decisions", times):
                sink(_frame(spark, []), number)
            with _timed("the same, into nothing", times):
                _frame(spark, []).write.format("noop").mode("overwrite").save()
    median = {kind: statistics.median(each[_WARM_UP:]) for kind, each in times.items()}
    for kind, seconds in median.items():
        _print(f"  {kind}: {seconds * 1_000:.0f} ms (median of {_ROUNDS})")
    for part, each in parts.items():
        shown = each[-_ROUNDS:]
        _print(f"    of it {part}: {statistics.median(shown) * 1_000:.0f} ms")
    ratio = median["ten changes, all tables"] / median["one append of ten rows by Spark"]
    _print(f"  ten changes / one append: {ratio:.2f} (goal 5, aim 3)")
    # Asked of the log: every one of these batches committed once to each table that it concerns.
    versions = {path.name: DeltaRsTable(root / "tables", TABLES[path.name]).version for path in _tables(root)}
    _print(f"  versions: {versions}")


def _tables(root: Path) -> list[Path]:
    return sorted(path for path in (root / "tables").iterdir() if (path / "_delta_log").is_dir())


@contextmanager
def _parts(parts: dict[str, list[float]]) -> Iterator[None]:
    """Measure each table's part of the batches beside the whole."""

    def timed(real: Callable[..., bool]) -> Callable[..., bool]:
        def wrapped(files: DeltaRsTable, *args: object, **more: object) -> bool:
            with _timed(files.table.name, parts):
                return real(files, *args, **more)

        return wrapped

    with (
        patch.object(DeltaRsTable, "append", timed(DeltaRsTable.append)),
        patch.object(DeltaRsTable, "merge", timed(DeltaRsTable.merge)),
    ):
        yield


def _frame(spark: SparkSession, rows: list[tuple[str, str, str]]) -> DataFrame:
    return spark.createDataFrame(rows, _DECIDED).coalesce(2)


def _reading(tables: Path) -> None:
    _print("\nreading commands on tables of 1,000 rebalances, Python's start included:")
    command = [str(Path(sys.executable).with_name("rebalance-monitor"))]
    first = "group-000000"
    asked = {
        "show groups": ["show", "groups"],
        "show group": ["show", "group", first],
        "show rebalances": ["show", "rebalances"],
        "who-owned --at": ["who-owned", "orders", "3", "--group", first, "--at", str(_T0 + 1)],
        "explain": ["explain", f"{first}-1"],
    }
    for name, arguments in asked.items():
        times: dict[str, list[float]] = defaultdict(list)
        for _ in range(5):
            with _timed(name, times):
                done = subprocess.run([*command, *arguments, "--tables", str(tables)], capture_output=True, check=False)
            if done.returncode:
                raise RuntimeError(done.stderr.decode())
        _print(f"  {name}: {statistics.median(times[name]) * 1_000:.0f} ms (goal 1,000)")


def _print(line: str) -> None:
    print(line, flush=True)


def main() -> None:
    """Measure and print."""
    spark = start_session(load(None, {"spark.master": "local[2]"}), name="sink-bench")
    spark.sparkContext.setLogLevel("ERROR")
    root = Path(tempfile.mkdtemp(prefix="sink-bench-"))
    try:
        _measure(spark, root / "small", _GROUPS)
        _measure(spark, root / "large", 10_000)
        fleet = Fleet()
        rows = [
            row
            for number in range(1_000)
            for row in fleet.join(f"group-{number % 50:06d}", _MEMBERS if number < 50 else 1, _T0 + number * 1_000)
        ]
        Sink(root / "reading", "bench", Materializer(root / "reading", 0))(_frame(spark, rows), 0)
        _reading(root / "reading")
    finally:
        spark.stop()
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
