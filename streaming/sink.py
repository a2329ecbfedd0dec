"""Shell: one batch of decisions into the tables, each table exactly once: rebalances, then the journal, then rejected.

Few rows come to the driver and are written from there, for a commit by Spark costs half a second; many are written by
Spark where they are. A batch that decided nothing costs one pass over its empty frame and commits nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from streaming.delta_actions import Mark
from streaming.delta_files import ROWS_PER_FILE, DeltaFiles
from streaming.tables import CHANGES, REBALANCES, REJECTED_EVENTS, Row, Table, sql_type, to_arrow
from udfs.journal import Rebalance, Rejected

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from streaming.materialise import Materialiser

# More rows than this are written by Spark. A rejected input may be long, so fewer of them.
DRIVER_ROWS = 20_000
DRIVER_REJECTED = 500

Tell: TypeAlias = Callable[[Sequence[Row], Sequence[Row], int], None]


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
_kind = msgspec.json.Decoder(_Kind)


# Hears of a batch once it is written: rows of rebalances, rows of changes, number of rejected inputs.
Tell: TypeAlias = Callable[[Sequence[Row], Sequence[Row], int], None]
# Of a large batch, tellers hear in parts of this many rows, and of changes only these kinds.
_TOLD_AT_ONCE = 10_000
_TOLD_KINDS = ("group_changed", "group_removed")


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
        materialiser: Hears of new changes.
        tell: Hears what each batch decided, once it is written; of large batches in parts.
        large_above: Rows of one batch above which Spark writes.
    """

    def __init__(
        self,
        root: Path,
        app_id: str,
        materialiser: Materialiser | None = None,
        *,
        large_above: int = DRIVER_ROWS,
        tell: Tell | None = None,
    ) -> None:
        self._app_id = app_id
        self._materialiser = materialiser
        self._large_above = large_above
        self._tell = tell
        self._rebalances = DeltaFiles(root, REBALANCES)
        self._changes = DeltaFiles(root, CHANGES)
        self._rejected = DeltaFiles(root, REJECTED_EVENTS)

    def __call__(self, decided: DataFrame, batch_id: int) -> None:
        """Write one batch of (kind, cluster, body); a batch that comes again adds nothing."""
        decided.persist()
        try:
            # One action over the whole frame, in one stage: whatever the batch must do to its state is then done.
            rows = decided._jdf.queryExecution().toRdd().count()
            if rows:
                self._write(decided, rows, batch_id)
        finally:
            decided.unpersist()

    def _write(self, decided: DataFrame, rows: int, batch_id: int) -> None:
        if rows > self._large_above:
            new_changes = self._write_large(decided, batch_id)
        else:
            new_changes = self._write_small(decided, rows, batch_id)
        if new_changes and self._materialiser is not None:
            self._materialiser.notice()

    def _write_small(self, decided: DataFrame, rows: int, batch_id: int) -> bool:
        bodies: dict[str, list[str]] = {"rebalance": [], "change": []}
        for kind, _, body in decided.where("kind <> 'rejected'").collect():
            bodies[kind].append(body)
        rebalances = [_rebalance_row(body) for body in bodies["rebalance"]]
        changes = [_change_row(body, batch_id) for body in bodies["change"]]
        self._append(self._rebalances, rebalances, ("cluster", "group_id", "event_time", "generation"), batch_id)
        self._append(self._changes, changes, ("cluster", "group_id", "subject", "number"), batch_id)
        rejected = rows - len(rebalances) - len(changes)
        if rejected > DRIVER_REJECTED:
            self._append_large(self._rejected, decided, "rejected", batch_id)
        elif rejected:
            found = decided.where("kind = 'rejected'").collect()
            self._append(
                self._rejected,
                [msgspec.structs.asdict(_rejected.decode(body)) for _, _, body in found],
                ("source", "position", "reason"),
                batch_id,
            )
        if self._tell is not None:
            self._tell(rebalances, changes, rejected)
        return bool(changes)

    def _append(self, table: DeltaFiles, rows: Sequence[Row], order: Iterable[str], batch_id: int) -> None:
        if rows:
            names = tuple(order)
            ordered = sorted(rows, key=lambda row: [(row[name] is not None, row[name]) for name in names])
            table.append(to_arrow(table.table, ordered), Mark(self._app_id, batch_id))

    def _write_large(self, decided: DataFrame, batch_id: int) -> bool:
        counts = {row["kind"]: row["count"] for row in decided.groupBy("kind").count().collect()}
        for kind, table in (("rebalance", self._rebalances), ("change", self._changes), ("rejected", self._rejected)):
            if counts.get(kind):
                self._append_large(table, decided, kind, batch_id)
        if self._tell is not None:
            self._tell([], [], counts.get("rejected", 0))
            self._tell_large(decided, batch_id, self._tell)
        return bool(counts.get("change"))

    def _tell_large(self, decided: DataFrame, batch_id: int, tell: Tell) -> None:
        kinds = ", ".join(f"'{kind}'" for kind in _TOLD_KINDS)
        worth = f"kind = 'rebalance' OR (kind = 'change' AND get_json_object(body, '$.body.kind') IN ({kinds}))"
        told = decided.where(worth).toLocalIterator()
        while part := list(islice(told, _TOLD_AT_ONCE)):
            tell(
                [_rebalance_row(body) for kind, _, body in part if kind == "rebalance"],
                [_change_row(body, batch_id) for kind, _, body in part if kind == "change"],
                0,
            )

    def _append_large(self, table: DeltaFiles, decided: DataFrame, kind: str, batch_id: int) -> None:
        columns = _change_columns(batch_id) if kind == "change" else _columns(table.table)
        order = list(table.table.cluster_by) + (["subject", "number"] if kind == "change" else [])
        (
            decided.where(f"kind = '{kind}'")
            .select(*columns)
            .repartitionByRange(*order)
            .sortWithinPartitions(*order)
            .write.format("delta")
            .mode("append")
            .option("txnAppId", self._app_id)
            .option("txnVersion", batch_id)
            .option("maxRecordsPerFile", ROWS_PER_FILE)
            .save(str(table.folder))
        )


def _columns(table: Table) -> list[Column]:
    """Answer the table's columns out of the JSON of a row."""
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
