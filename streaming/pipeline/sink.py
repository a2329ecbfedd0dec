"""Shell: one batch of decisions into the tables, each table exactly once: rebalances, then the journal, then rejected.

Few rows come to the driver in the one job that also computes them. Many come in slices, as Arrow's columns that Spark
has made where the rows are, and are written as they come: the driver holds one slice. A batch that decided nothing
costs that job and commits nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec
import pyarrow as pa

from streaming.settings.locations import Location
from streaming.tables.arrow_rows import as_schema, to_arrow
from streaming.tables.delta_rs import DeltaRsTable
from streaming.tables.schema import CHANGES, REBALANCES, REJECTED_EVENTS, Row, Table
from streaming.tables.spark_sql import sql_type
from streaming.tables.writer import Mark, TableWriter
from udfs.model.journal import Rebalance, Rejected, Unfinished

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from streaming.tables.materializer import Materializer

# More rows than this come in slices. A rejected input may be long, so fewer of them.
DRIVER_ROWS = 20_000
DRIVER_REJECTED = 500
SLICE_ROWS = 100_000
SLICE_REJECTED = 500
# This many rows come to the driver with the job that computes the batch.
FIRST_ROWS = 2_000
# At most this many rebalances of one batch are listed in the live view.
NEWEST_REBALANCES = 200


class _JournalRow(msgspec.Struct):
    """A change whose body stays the text that it is."""

    cluster: str
    group_id: str | None
    subject: str | None
    number: int
    event_time: int
    body: msgspec.Raw


class _Kind(msgspec.Struct):
    kind: str


_rebalance = msgspec.json.Decoder(Rebalance)
_rejected = msgspec.json.Decoder(Rejected)
_change = msgspec.json.Decoder(_JournalRow)
_unfinished = msgspec.json.Decoder(Unfinished)
_kind = msgspec.json.Decoder(_Kind)

# Kind and body of a row that a batch decided; no body where it was rejected.
_Decision: TypeAlias = tuple[str, str]


class Decided(NamedTuple):
    """What one batch wrote, for the live view: no more of it than is shown, however large the batch.

    Attributes:
        rebalances: How many.
        newest: Rows of the newest of them, at most ``NEWEST_REBALANCES``.
        changed_ms: Cluster -> event time of its newest change.
        rejected: Number of rejected inputs.
    """

    rebalances: int
    newest: Sequence[Row]
    changed_ms: Mapping[str, int]
    rejected: int


# Called once a batch is written.
Report: TypeAlias = Callable[[Decided], None]


def _rebalance_row(body: str) -> Row:
    row = msgspec.structs.asdict(_rebalance.decode(body))
    row["triggers"] = [msgspec.structs.asdict(trigger) for trigger in row["triggers"]]
    return row


def _change_row(body: str, batch_id: int) -> Row:
    change = _change.decode(body)
    return {
        "cluster": change.cluster,
        "group_id": change.group_id,
        "subject": change.subject,
        "number": change.number,
        "kind": _kind.decode(change.body).kind,
        "event_time": change.event_time,
        "batch": batch_id,
        "body": bytes(change.body).decode(),
    }


class Sink:
    """What ``foreachBatch`` calls.

    Args:
        root: Root folder of the tables; those that are missing are made.
        app_id: Marks this checkpoint's commits; another checkpoint has another.
        materialiser: Is notified of new changes.
        report: Called with what each batch decided, once it is written.
        resume: Called with the clusters whose groups have more to do: another batch must follow, though nothing comes.
        large_above: Rows of one batch above which they come in slices.
    """

    def __init__(
        self,
        root: Location,
        app_id: str,
        materialiser: Materializer | None = None,
        *,
        large_above: int = DRIVER_ROWS,
        report: Report | None = None,
        resume: Callable[[Sequence[str]], None] | None = None,
    ) -> None:
        self._app_id = app_id
        self._materialiser = materialiser
        self._large_above = large_above
        self._report = report
        self._resume = resume
        self._rebalances: TableWriter = DeltaRsTable(root, REBALANCES)
        self._changes: TableWriter = DeltaRsTable(root, CHANGES)
        self._rejected: TableWriter = DeltaRsTable(root, REJECTED_EVENTS)

    def __call__(self, decided: DataFrame, batch_id: int) -> None:
        """Write one batch of (kind, cluster, body); a batch that comes again adds nothing."""
        decided.persist()
        try:
            # One job over the whole frame, in one stage: then all work on the batch's state is done.
            few = _first(decided, min(FIRST_ROWS, self._large_above) + 1)
            if few:
                self._write(decided, few, batch_id)
        finally:
            decided.unpersist()

    def _write(self, decided: DataFrame, few: Sequence[_Decision], batch_id: int) -> None:
        """Write a batch, of which ``few`` is all if it has fewer rows than requested."""
        if len(few) > min(FIRST_ROWS, self._large_above):
            rows = decided._jdf.queryExecution().toRdd().count()
            few = _first(decided, rows) if rows <= self._large_above else ()
        has_changes = self._write_small(decided, few, batch_id) if few else self._write_large(decided, batch_id)
        if has_changes and self._materialiser is not None:
            self._materialiser.notice()

    def _write_small(self, decided: DataFrame, few: Sequence[_Decision], batch_id: int) -> bool:
        rebalances = [_rebalance_row(body) for kind, body in few if kind == "rebalance"]
        changes = [_change_row(body, batch_id) for kind, body in few if kind == "change"]
        self._append(self._rebalances, rebalances, ("cluster", "group_id", "event_time", "generation"), batch_id)
        self._append(self._changes, changes, ("cluster", "group_id", "subject", "number"), batch_id)
        unfinished = {_unfinished.decode(body).cluster for kind, body in few if kind == "unfinished"}
        rejected = len(few) - len(rebalances) - len(changes) - sum(kind == "unfinished" for kind, _ in few)
        if rejected > DRIVER_REJECTED:
            self._append_large(self._rejected, decided, "rejected", rejected, batch_id)
        elif rejected:
            found = decided.where("kind = 'rejected'").collect()
            self._append(
                self._rejected,
                [msgspec.structs.asdict(_rejected.decode(body)) for _, _, body in found],
                ("source", "position", "reason"),
                batch_id,
            )
        if self._report is not None:
            newest = heapq.nlargest(NEWEST_REBALANCES, rebalances, key=itemgetter("event_time", "cluster", "group_id"))
            changed_ms: dict[str, int] = {}
            for row in changes:
                changed_ms[row["cluster"]] = max(row["event_time"], changed_ms.get(row["cluster"], 0))
            self._report(Decided(len(rebalances), newest, changed_ms, rejected))
        self._make_another_batch(unfinished)
        return bool(changes)

    def _make_another_batch(self, clusters: Iterable[str]) -> None:
        """Have groups go on that had to stop; before this batch ends, so that a crash forgets none."""
        if clusters and self._resume is not None:
            self._resume(sorted(clusters))

    def _append(self, table: TableWriter, rows: Sequence[Row], order: Iterable[str], batch_id: int) -> None:
        if rows:
            names = tuple(order)
            ordered = sorted(rows, key=lambda row: [(row[name] is not None, row[name]) for name in names])
            table.append(to_arrow(table.table, ordered), Mark(self._app_id, batch_id))

    def _write_large(self, decided: DataFrame, batch_id: int) -> bool:
        counts = {row["kind"]: row["count"] for row in decided.groupBy("kind").count().collect()}
        for kind, table in (("rebalance", self._rebalances), ("change", self._changes), ("rejected", self._rejected)):
            if counts.get(kind):
                self._append_large(table, decided, kind, counts[kind], batch_id)
        if self._report is not None:
            self._report(_of_large(decided, counts))
        if counts.get("unfinished"):
            self._make_another_batch({row["cluster"] for row in decided.where("kind = 'unfinished'").collect()})
        return bool(counts.get("change"))

    def _append_large(self, table: TableWriter, decided: DataFrame, kind: str, rows: int, batch_id: int) -> None:
        columns = _change_columns(batch_id) if kind == "change" else _columns(table.table)
        of_kind = decided.where(f"kind = '{kind}'")
        slices = -(-rows // (SLICE_REJECTED if kind == "rejected" else SLICE_ROWS))

        def batches() -> Iterator[pa.RecordBatch]:
            for number in range(slices):
                found = of_kind.where(f"pmod(xxhash64(body), {slices}) = {number}").select(*columns).toArrow()
                order = [(name, "ascending") for name in table.table.cluster_by]
                yield from as_schema(found, table.table.schema).sort_by(order).to_batches()

        def stream() -> pa.RecordBatchReader:
            return pa.RecordBatchReader.from_batches(table.table.schema, batches())

        table.append(stream, Mark(self._app_id, batch_id))


def _first(decided: DataFrame, rows: int) -> list[_Decision]:
    """Return at most this many rows as (kind, body), without rejected inputs: those may be long."""
    from pyspark.sql import functions

    body = functions.when(functions.col("kind") != "rejected", functions.col("body")).alias("body")
    # Sorted, because a mere limit would leave partitions out, and with them what they do to the state.
    return [(kind, body) for kind, body in decided.select("kind", body).orderBy("kind").limit(rows).collect()]


def _of_large(decided: DataFrame, counts: Mapping[str, int]) -> Decided:
    """Return the rebalances of a large batch that are shown, selected by Spark."""
    from pyspark.sql import functions

    event_time = functions.get_json_object("body", "$.event_time").cast("bigint")
    order = [event_time.desc(), functions.desc("cluster"), functions.get_json_object("body", "$.group_id").desc()]
    newest = decided.where("kind = 'rebalance'").orderBy(*order).limit(NEWEST_REBALANCES).select("body")
    changed = decided.where("kind = 'change'").groupBy("cluster").agg(functions.max(event_time))
    return Decided(
        counts.get("rebalance", 0),
        [_rebalance_row(body) for (body,) in newest.collect()],
        dict(map(tuple, changed.collect())),
        counts.get("rejected", 0),
    )


def _columns(table: Table) -> list[Column]:
    """Return the table's columns out of the JSON of a row."""
    from pyspark.sql import functions

    told = functions.from_json(
        "body", ", ".join(f"`{c.name}` {sql_type(c.type, time='BIGINT')}" for c in table.columns)
    )
    return [_as_time(told[column.name], column.type).alias(column.name) for column in table.columns]


def _change_columns(batch_id: int) -> list[Column]:
    from pyspark.sql import functions

    told: dict[str, Callable[[], Any]] = {
        "kind": lambda: functions.get_json_object("body", "$.body.kind"),
        "batch": lambda: functions.lit(batch_id).cast("bigint"),
        "body": lambda: functions.get_json_object("body", "$.body"),
    }
    plain = [column for column in CHANGES.columns if column.name not in told]
    rest = functions.from_json("body", ", ".join(f"`{c.name}` {sql_type(c.type, time='BIGINT')}" for c in plain))
    return [
        (told[c.name]() if c.name in told else _as_time(rest[c.name], c.type)).alias(c.name) for c in CHANGES.columns
    ]


def _as_time(column: Column, kind: Any) -> Column:
    from pyspark.sql import functions

    return functions.timestamp_millis(column) if sql_type(kind) == "TIMESTAMP" else column
