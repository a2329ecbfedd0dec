"""Bench: a batch with ten changes in ten groups until all tables have it, over one append of ten rows by Spark.

Each of ten groups of ten members takes in one more: ten rebalances, and all that follows from them in the tables,
applied at once by delta-rs. The append is Delta's own, with `txnAppId`, ten rows into one table. Both alternate in one
session, on tables of 100 and of 10,000 groups. `bench writers` compares writers and stores.
`BENCH_GROUPS=100` leaves out the large tables.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from streaming.pipeline.decided_rows import change_row, rebalance_row
from streaming.pipeline.sink import Sink
from streaming.settings.model import load
from streaming.spark.session import start_session
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.materializer import Materializer
from streaming.tables.schema import CHANGES, REBALANCES
from udfs.model import journal
from udfs.model.spans import AssignedRun, QueuesReassigned, ReassignedTopic, ReleasedRun

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
            bodies.append(self._assigned(queue, f"{group}-m{after - 1}", generation, rebalance_id, at, former=owner))
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
    def _assigned(
        queue: int, member: str, generation: int, rebalance_id: str, at: int, former: str | None = None
    ) -> QueuesReassigned:
        return QueuesReassigned(
            origin="computed",
            at=at,
            generation=generation,
            rebalance_id=rebalance_id,
            members=[(member, None), *([] if former is None else [(former, None)])],
            topics=[
                ReassignedTopic(
                    topic="orders",
                    broker=None,
                    released=[] if former is None else [ReleasedRun(queue, queue, 1)],
                    assigned=[AssignedRun(queue, queue, 0)],
                )
            ],
        )


@contextmanager
def _timed(kind: str, times: dict[str, list[float]]) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    times[kind].append(time.perf_counter() - begin)


def rows_of(decided: Iterable[tuple[str, str, str]], number: int) -> tuple[pa.Table, pa.Table]:
    """Return what was decided as rows of ``rebalances`` and ``changes``."""
    rows = list(decided)
    rebalances = [rebalance_row(body) for kind, _, body in rows if kind == "rebalance"]
    changes = [change_row(body, number) for kind, _, body in rows if kind == "change"]
    return to_arrow(REBALANCES, rebalances), to_arrow(CHANGES, changes)


def _spread(times_ms: Sequence[float]) -> str:
    """Return median and 99th percentile: of so few rounds the largest."""
    return f"p50 {statistics.median(times_ms):.0f} ms, p99 {max(times_ms):.0f} ms"


def _measure(spark: SparkSession, work: Path, groups: int) -> None:
    tables = work / "tables"
    fleet = Fleet()
    names = [f"group-{number:06d}" for number in range(groups)]
    sink = Sink(tables, "bench", Materializer(tables, 0))
    begin = time.perf_counter()
    sink(_frame(spark, [row for name in names for row in fleet.join(name, _MEMBERS, _T0)]), 0)
    took = time.perf_counter() - begin
    print(f"\n{groups:,} groups, {groups * _MEMBERS:,} members; their first batch took {took:.1f} s")

    times: dict[str, list[float]] = defaultdict(list)
    ten_rows = (
        spark.range(_GROUPS).selectExpr("id", "cast(id AS string) AS name", "current_timestamp() AS at").coalesce(1)
    )
    ten_rows.write.format("delta").save(str(work / "one"))
    step = max(1, groups // _GROUPS)
    for number in range(1, _WARM_UP + _ROUNDS + 1):
        at = _T0 + number * 7_000
        chosen = [names[(index * step + number) % groups] for index in range(_GROUPS)]
        frame = _frame(spark, [row for name in chosen for row in fleet.join(name, 1, at)])
        with _timed("ten changes, all tables", times):
            sink(frame, number)
        with _timed("one append of ten rows by Spark", times):
            append = ten_rows.write.format("delta").mode("append")
            append.option("txnAppId", "bench").option("txnVersion", number).save(str(work / "one"))
        with _timed("a batch without decisions", times):
            sink(_frame(spark, []), number)
        with _timed("the same, into nothing", times):
            _frame(spark, []).write.format("noop").mode("overwrite").save()
    median = {kind: statistics.median(each[_WARM_UP:]) for kind, each in times.items()}
    for kind, each in times.items():
        print(f"  {kind}: {_spread([seconds * 1_000 for seconds in each[_WARM_UP:]])} ({_ROUNDS} rounds)")
    ratio = median["ten changes, all tables"] / median["one append of ten rows by Spark"]
    print(f"  ten changes / one append: {ratio:.2f} (goal 5, aim 3)")


def _frame(spark: SparkSession, rows: list[tuple[str, str, str]]) -> DataFrame:
    return spark.createDataFrame(rows, _DECIDED).coalesce(2)


def main() -> None:
    """Measure and print."""
    spark = start_session(load(None, {"spark.master": "local[2]"}), name="sink-bench")
    spark.sparkContext.setLogLevel("ERROR")
    root = Path(tempfile.mkdtemp(prefix="sink-bench-"))
    try:
        for groups in (_GROUPS, int(os.environ.get("BENCH_GROUPS", "10000"))):
            print(f"\nload {os.getloadavg()[0]:.1f}")
            _measure(spark, root / f"{groups}", groups)
    finally:
        spark.stop()
        shutil.rmtree(root)
