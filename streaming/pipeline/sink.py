"""Shell: writes one batch of decisions into the tables, each exactly once: rebalances, journal, progress, rejected.

A few rows come to the driver in the one job that also computes them. Many come in slices, as Arrow columns made by
Spark on the executors, and are written as they come, so that the driver holds one slice. Tables that Spark writes get
theirs from the executors. A batch that decided nothing costs only that job and commits nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec
import pyarrow as pa

from streaming.pipeline.batch_clock import BatchClock
from streaming.pipeline.decided_rows import change_row, progress_rows, rebalance_row, rejected_row, rows_frame
from streaming.settings.locations import Location
from streaming.stores.locks import Guard
from streaming.tables.arrow_rows import as_schema, to_arrow
from streaming.tables.delta_spark_table import DeltaSparkTable
from streaming.tables.engine import DeltaRsEngine, Engine
from streaming.tables.schema import CHANGES, QUEUE_PROGRESS, REBALANCES, REJECTED_EVENTS, Row
from streaming.tables.writer import Mark, TableRows, TableWriter
from udfs.model.annotations import NO_CLUSTER
from udfs.model.journal import ClusterBegun, ClusterObserved, Unfinished

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from streaming.tables.materializer import Materializer

# More rows than this come in slices. A rejected input may be long, so fewer of them; one decided row of progress is up
# to a hundred rows of the table.
DRIVER_ROWS = 20_000
DRIVER_REJECTED = 500
DRIVER_PROGRESS = 500
# The size of a slice of decided rows, as text. Each slice is a Spark job over all of them.
SLICE_BYTES = 32_000_000
# Up to this many rows come to the driver with the job that computes the batch.
FIRST_ROWS = 2_000
# At most this many rebalances of one batch are listed in the live view.
NEWEST_REBALANCES = 200


_begun = msgspec.json.Decoder(ClusterBegun)
_observed = msgspec.json.Decoder(ClusterObserved)
_unfinished = msgspec.json.Decoder(Unfinished)

# A decided row has a kind and a body; a rejected input has no body.
_Decision: TypeAlias = tuple[str, str]


class Decided(NamedTuple):
    """What one batch wrote, for the live view: no more than is shown, however large the batch.

    Attributes:
        newest: Rows of the newest rebalances, at most ``NEWEST_REBALANCES``.
        changed_ms: Cluster -> event time of its newest change.
    """

    rebalances: int
    newest: Sequence[Row]
    changed_ms: Mapping[str, int]
    rejected: int


# Called once a batch is written.
Report: TypeAlias = Callable[[Decided], None]
Observed: TypeAlias = Callable[[Sequence[ClusterObserved]], None]


class Sink:
    """The function that ``foreachBatch`` calls.

    Args:
        app_id: Marks this checkpoint's commits; each checkpoint has its own.
        materializer: Is notified of new changes.
        report: Called with each batch's decisions, once it is written.
        resume: Called with the clusters whose groups have more work: another batch must follow, even without new input.
        begun: Called with the clusters for which a shard has its first state.
        observed: Called with the clusters from which events came, once a batch is written.
        large_above: Number of rows of one batch above which they come in slices.
        engine: The engine that writes the tables; None for delta-rs. Tables of Spark are written by the executors.
        guard: Called before a batch is written; raises an error if another job may write instead.
        clock: Gets the duration of writing; its times of earlier batches are part of the journal's commit.
    """

    def __init__(
        self,
        root: Location,
        app_id: str,
        materializer: Materializer | None = None,
        *,
        large_above: int = DRIVER_ROWS,
        report: Report | None = None,
        resume: Callable[[Sequence[str]], None] | None = None,
        begun: Callable[[Sequence[str]], None] | None = None,
        observed: Observed | None = None,
        engine: Engine | None = None,
        guard: Guard = lambda: None,
        clock: BatchClock | None = None,
    ) -> None:
        self._clock = clock or BatchClock()
        self._app_id = app_id
        self._materializer = materializer
        self._large_above = large_above
        self._report = report
        self._resume = resume
        self._begun = begun
        self._observed = observed
        self._guard = guard
        engine = engine or DeltaRsEngine()
        self._rebalances, self._changes, self._rejected, self._progress = (
            engine.table(root, table) for table in (REBALANCES, CHANGES, REJECTED_EVENTS, QUEUE_PROGRESS)
        )

    def __call__(self, decided: DataFrame, batch_id: int) -> None:
        """Write one batch of (kind, cluster, body); a repeated batch adds nothing."""
        decided.persist()
        try:
            if isinstance(self._changes, DeltaSparkTable):
                self._notice(self._write_large(decided, batch_id))
                return
            # One job over the whole frame, in one stage, completes all work on the batch's state.
            few = _first(decided, min(FIRST_ROWS, self._large_above) + 1)
            if few:
                self._guard()
                self._write(decided, few, batch_id)
        finally:
            decided.unpersist()

    def _write(self, decided: DataFrame, few: Sequence[_Decision], batch_id: int) -> None:
        """Write a batch; ``few`` is all of it if it has fewer rows than requested."""
        if len(few) > min(FIRST_ROWS, self._large_above):
            rows = decided.count()
            few = _first(decided, rows) if rows <= self._large_above else ()
        self._notice(self._write_small(decided, few, batch_id) if few else self._write_large(decided, batch_id))

    def _notice(self, has_changes: bool) -> None:
        if has_changes and self._materializer is not None:
            self._materializer.notice()

    def _write_small(self, decided: DataFrame, few: Sequence[_Decision], batch_id: int) -> bool:
        rebalances = [rebalance_row(body) for kind, body in few if kind == "rebalance"]
        changes = [change_row(body, batch_id) for kind, body in few if kind == "change"]
        self._append(self._rebalances, rebalances, ("cluster", "group_id", "event_time", "generation"), batch_id)
        self._append(self._changes, changes, ("cluster", "group_id", "subject", "number"), batch_id)
        unfinished = {_unfinished.decode(body).cluster for kind, body in few if kind == "unfinished"}
        begun = {_begun.decode(body).cluster for kind, body in few if kind == "begun"}
        self._append_progress([body for kind, body in few if kind == "progress"], decided, batch_id)
        rejected = sum(kind == "rejected" for kind, _ in few)
        if rejected > DRIVER_REJECTED:
            self._append_large(self._rejected, decided, _sizes(decided)["rejected"], batch_id)
        elif rejected:
            found = decided.where("kind = 'rejected'").collect()
            self._append(
                self._rejected,
                [rejected_row(body) for _, _, body in found],
                ("source", "position", "reason"),
                batch_id,
            )
        if self._report is not None:
            newest = heapq.nlargest(NEWEST_REBALANCES, rebalances, key=itemgetter("event_time", "cluster", "group_id"))
            changed_ms: dict[str, int] = {}
            for row in changes:
                if row["cluster"] == NO_CLUSTER:
                    continue
                changed_ms[row["cluster"]] = max(row["event_time"], changed_ms.get(row["cluster"], 0))
            self._report(Decided(len(rebalances), newest, changed_ms, rejected))
        self._report_begun(begun)
        self._make_another_batch(unfinished)
        self._report_observed([body for kind, body in few if kind == "observed"])
        return bool(changes)

    def _append_progress(self, bodies: Sequence[str], decided: DataFrame, batch_id: int) -> None:
        if len(bodies) > DRIVER_PROGRESS:
            size = _Size("progress", len(bodies), sum(map(len, bodies)))
            self._append_large(self._progress, decided, size, batch_id)
            return
        rows = [row for body in bodies for row in progress_rows(body)]
        self._append(
            self._progress, rows, ("cluster", "group_id", "event_time", "topic", "broker", "queue_id"), batch_id
        )

    def _report_begun(self, clusters: Collection[str]) -> None:
        if clusters and self._begun is not None:
            self._begun(sorted(clusters))

    def _report_observed(self, bodies: Sequence[str]) -> None:
        if bodies and self._observed is not None:
            self._observed([_observed.decode(body) for body in bodies])

    def _make_another_batch(self, clusters: Iterable[str]) -> None:
        """Resume groups that had to stop, before this batch ends, so that a crash forgets none."""
        if clusters and self._resume is not None:
            self._resume(sorted(clusters))

    def _append(self, table: TableWriter, rows: Sequence[Row], order: Iterable[str], batch_id: int) -> None:
        if rows:
            names = tuple(order)
            ordered = sorted(rows, key=lambda row: [(row[name] is not None, row[name]) for name in names])
            self._commit(table, to_arrow(table.table, ordered), batch_id)

    def _write_large(self, decided: DataFrame, batch_id: int) -> bool:
        sizes = _sizes(decided)
        observed = sizes.pop("observed", None)
        counts = {kind: size.rows for kind, size in sizes.items()}
        for kind, table in (
            ("rebalance", self._rebalances),
            ("change", self._changes),
            ("progress", self._progress),
            ("rejected", self._rejected),
        ):
            if counts.get(kind):
                self._append_large(table, decided, sizes[kind], batch_id)
        if counts and self._report is not None:
            self._report(_of_large(decided, counts))
        if counts.get("begun"):
            self._report_begun({row["cluster"] for row in decided.where("kind = 'begun'").collect()})
        if counts.get("unfinished"):
            self._make_another_batch({row["cluster"] for row in decided.where("kind = 'unfinished'").collect()})
        self._report_observed(observed.bodies if observed is not None else [])
        return bool(counts.get("change"))

    def _append_large(self, table: TableWriter, decided: DataFrame, size: _Size, batch_id: int) -> None:
        kind = size.kind
        of_kind = decided.where(f"kind = '{kind}'")
        if isinstance(table, DeltaSparkTable):
            with self._clock.writing():
                table.append_frame(rows_frame(of_kind, kind, batch_id), size.rows, self._mark(table, batch_id))
            return
        slices = -(-size.bytes // SLICE_BYTES)

        def batches() -> Iterator[pa.RecordBatch]:
            for number in range(slices):
                part = of_kind.where(f"pmod(xxhash64(body), {slices}) = {number}")
                found = rows_frame(part, kind, batch_id).toArrow()
                order = [(name, "ascending") for name in table.table.cluster_by]
                yield from as_schema(found, table.table.schema).sort_by(order).to_batches()

        def stream() -> pa.RecordBatchReader:
            return pa.RecordBatchReader.from_batches(table.table.schema, batches())

        self._commit(table, stream, batch_id)

    def _commit(self, table: TableWriter, rows: TableRows, batch_id: int) -> None:
        with self._clock.writing():
            table.append(rows, self._mark(table, batch_id))

    def _mark(self, table: TableWriter, batch_id: int) -> Mark:
        return Mark(self._app_id, batch_id, self._clock.drain_note() if table is self._changes else "")


class _Size(NamedTuple):
    """The number of decisions of one kind, and their bytes as text.

    ``bodies``: the rows themselves, for the kind ``observed``.
    """

    kind: str
    rows: int
    bytes: int
    bodies: Sequence[str] = ()


def _sizes(decided: DataFrame) -> dict[str, _Size]:
    from pyspark.sql import functions

    observed = functions.collect_list(functions.when(functions.col("kind") == "observed", functions.col("body")))
    found = decided.groupBy("kind").agg(functions.count("*"), functions.sum(functions.octet_length("body")), observed)
    return {row[0]: _Size(*row) for row in found.collect()}


def _first(decided: DataFrame, rows: int) -> list[_Decision]:
    """Return at most this many rows as (kind, body), without rejected inputs, which may be long."""
    from pyspark.sql import functions

    body = functions.when(functions.col("kind") != "rejected", functions.col("body")).alias("body")
    # The rows are sorted, because a mere limit would skip partitions, and with them their changes of the state.
    return [(kind, body) for kind, body in decided.select("kind", body).orderBy("kind").limit(rows).collect()]


def _of_large(decided: DataFrame, counts: Mapping[str, int]) -> Decided:
    """Return the rebalances of a large batch that are shown, selected by Spark."""
    from pyspark.sql import functions

    event_time = functions.get_json_object("body", "$.event_time").cast("bigint")
    order = [event_time.desc(), functions.desc("cluster"), functions.get_json_object("body", "$.group_id").desc()]
    newest = decided.where("kind = 'rebalance'").orderBy(*order).limit(NEWEST_REBALANCES).select("body")
    changed = decided.where("kind = 'change' AND cluster != ''").groupBy("cluster").agg(functions.max(event_time))
    return Decided(
        counts.get("rebalance", 0),
        [rebalance_row(body) for (body,) in newest.collect()],
        dict(map(tuple, changed.collect())),
        counts.get("rejected", 0),
    )
