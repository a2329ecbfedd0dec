"""Shell: applies a piece of the journal to one table on the executors; no change and no row comes to the driver.

Changes and the current rows of their groups are joined by a hash of cluster and group (or topic); each part is applied
by the same code as in the driver (`projector.py`), and its result is the source of one MERGE.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from streaming.tables.arrow_rows import as_schema
from streaming.tables.delta_spark_table import DeltaSparkTable
from streaming.tables.edits import REMOVED, source_of
from streaming.tables.journal_piece import ENTRY_COLUMNS, JournalPiece, Share, entries_of, in_order
from streaming.tables.predicates import between, matching
from streaming.tables.projections import MINUTE_MS, PROJECTIONS, Projection
from streaming.tables.projector import Projector, Replaced, edit_of, present_of
from streaming.tables.schema import ANNOTATIONS, ASSIGNMENTS, AUDITS, FINDINGS, GROUP_MINUTES, GROUPS, TOPICS, Table
from streaming.tables.spark_sql import SPARK, sql_type
from streaming.tables.writer import COMMIT_VERSION, Mark

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

# One call in a Python worker applies about this many changes.
_CHANGES_A_PART = 20_000
_PART = "_part"
# This column carries the rows of groups, from which those of group_minutes start.
_PRESENT = "_present"
# Tables whose rows belong to no group: the column with the subject of their changes.
_SUBJECTS = {TOPICS.name: "topic", ANNOTATIONS.name: "annotation_id"}
# This column says whether the part of an edit removes rows from the table.
_REMOVES = "_removes"
_WITHDRAWN = "spans_withdrawn"


class _Changes(NamedTuple):
    """A piece of the journal on the executors.

    Attributes:
        kinds: For each kind, and whether its changes belong to a group: their number and bounds.
    """

    frame: DataFrame
    kinds: Sequence[Row]

    def of(self, projection: Projection) -> list[Row]:
        """Return the kinds that touch the projection's table."""
        return [row for row in self.kinds if projection.concerns(row["kind"], "" if row["is_of_group"] else None)]


class ExecutorProjector(Projector):
    """Applies them in Spark's Python workers.

    Args:
        listener: Counts the rows of tables again after each commit to a table that it counts.
    """

    # A MERGE takes its mark from the session, which all tables share.
    tables_at_once = 1

    def __init__(
        self,
        journal: DeltaSparkTable,
        tables: Mapping[str, DeltaSparkTable],
        listener: Replaced | None,
    ) -> None:
        self._journal = journal
        self._tables = tables
        self._listener = listener

    def piece(self, after: int, upto: int, limit: int) -> JournalPiece:  # noqa: ARG002 - parts have a limit of their own
        self._journal.check_log(after)
        return JournalPiece(after, upto, self._journal.appended_frame(after, upto).count())

    def snapshot(self, after: int, upto: int) -> JournalPiece:
        return JournalPiece(after, upto, self._journal.frame_at(upto).count(), is_snapshot=True)

    def shares(self, piece: JournalPiece, limit: int) -> list[Share | None]:  # noqa: ARG002 - as above
        return [None]

    def changes(self, piece: JournalPiece, share: Share | None) -> _Changes:  # noqa: ARG002 - there is one share
        from pyspark.sql import functions

        if piece.is_snapshot:
            found = self._journal.frame_at(piece.upto)
        else:
            found = self._journal.appended_frame(piece.after, piece.upto)
        frame = found.select(*ENTRY_COLUMNS, COMMIT_VERSION)
        millis = functions.unix_millis("event_time")
        bounds: dict[str, Column] = {name: functions.col(name) for name in ("group_id", "subject")}
        bounds["event_time"] = millis
        kinds = frame.groupBy("kind", functions.col("group_id").isNotNull().alias("is_of_group")).agg(
            functions.count("*").alias("rows"),
            *(functions.min(column).alias(f"min_{name}") for name, column in bounds.items()),
            *(functions.max(column).alias(f"max_{name}") for name, column in bounds.items()),
        )
        return _Changes(frame, kinds.collect())

    def is_concerned(self, projection: Projection, changes: _Changes) -> bool:
        return bool(changes.of(projection))

    def apply(
        self, projection: Projection, changes: Any, mark: Mark, check: Callable[[], None], ready: Callable[[], None]
    ) -> None:
        outcomes: list[DataFrame] = []

        def compute() -> tuple[DataFrame, Sequence[str], int | None]:
            check()
            ready()
            outcomes.append(self._outcome(projection, changes).persist())
            return _source(outcomes[-1], projection.table)

        try:
            is_done = self._tables[projection.table.name].merge_frame(compute, mark)
        finally:
            for outcome in outcomes:
                outcome.unpersist()
        if not outcomes:
            check()  # raises an error: the mark already exists
        elif is_done and self._listener is not None and projection.table in (GROUPS, FINDINGS):
            self._listener.begin(self._journal.root)

    def _outcome(self, projection: Projection, changes: _Changes) -> DataFrame:
        """Return the rows that a piece removes and adds, part by part."""
        from pyspark.sql import functions

        kinds = changes.of(projection)
        parts = max(2, -(-sum(row["rows"] for row in kinds) // _CHANGES_A_PART))
        subject = _SUBJECTS.get(projection.table.name)
        # An annotation may concern other clusters than before; its id is its identity.
        keys = () if projection.table is ANNOTATIONS else ("cluster",)
        wanted = changes.frame.where(
            functions.col("group_id").isNotNull()
            if projection.every_change
            else functions.col("kind").isin(sorted(projection.kinds))
        )
        wanted = wanted.withColumn(_PART, _part_of([*keys, "subject" if subject else "group_id"], parts))
        current = self._tables[projection.table.name].frame().select(*projection.table.names)
        current = current.where(_touched(projection, kinds))
        if projection.table is GROUP_MINUTES:
            groups = self._tables[GROUPS.name].frame().where(_touched(projection._replace(table=GROUPS), kinds))
            present = groups.select("cluster", "group_id", functions.struct(*GROUPS.names).alias(_PRESENT))
            current = current.unionByName(present, allowMissingColumns=True)
        current = current.withColumn(_PART, _part_of([*keys, subject or "group_id"], parts))
        columns = ", ".join(f"`{column.name}` {sql_type(column.type)}" for column in projection.table.columns)
        together = wanted.groupBy(_PART).cogroup(current.groupBy(_PART))
        return together.applyInArrow(
            partial(apply_part, projection.table.name), f"{columns}, {REMOVED} BOOLEAN, {_REMOVES} BOOLEAN"
        )


def _part_of(names: Sequence[str], parts: int) -> Column:
    from pyspark.sql import functions

    key = [functions.coalesce(functions.col(name), functions.lit("")) for name in names]
    return functions.pmod(functions.xxhash64(*key), functions.lit(parts)).cast("int")


def _touched(projection: Projection, kinds: Sequence[Row]) -> str:
    """Return SQL for skipping files; it holds for all current rows that the changes may touch."""

    def bounds(name: str) -> tuple[Any, Any]:
        found = [(row[f"min_{name}"], row[f"max_{name}"]) for row in kinds if row[f"min_{name}"] is not None]
        return (min(low for low, _ in found), max(high for _, high in found)) if found else (None, None)

    subject = _SUBJECTS.get(projection.table.name)
    column, source = (subject, "subject") if subject else ("group_id", "group_id")
    low, high = bounds(source)
    tests = [f"({between(f'`{column}`', low, high, SPARK)} OR `{column}` IS NULL)"] if low is not None else []
    if projection.table is GROUP_MINUTES:
        first, last = bounds("event_time")
        tests.append(f"minute BETWEEN timestamp_millis({first - MINUTE_MS}) AND timestamp_millis({last})")
    elif projection.table is AUDITS:
        first, last = bounds("event_time")
        tests.append(f"event_time BETWEEN timestamp_millis({first}) AND timestamp_millis({last})")
    elif projection.table is TOPICS or (
        projection.table is ASSIGNMENTS and _WITHDRAWN not in {row["kind"] for row in kinds}
    ):
        tests.append(f"`{projection.table.ends}` IS NULL")
    return " AND ".join(tests) or "true"


def apply_part(name: str, changes: pa.Table, current: pa.Table) -> pa.Table:
    """Apply a part of the changes to the current rows of its groups; runs in a Python worker."""
    projection = next(each for each in PROJECTIONS if each.table.name == name)
    entries = entries_of(in_order(changes), projection)
    present = pa.table([], names=[])
    if _PRESENT in current.column_names:
        is_present = pc.is_valid(current[_PRESENT])
        structs = current.filter(is_present)[_PRESENT].combine_chunks()
        present = as_schema(pa.Table.from_struct_array(structs), GROUPS.schema)
        current = current.filter(pc.invert(is_present))
    rows = as_schema(current, projection.table.schema)
    rows = rows.filter(matching(projection.row_filter(entries))) if entries else rows.slice(0, 0)
    edit = edit_of(projection, entries, rows, present_of(present) if present.num_rows else {})
    source = source_of(edit, projection.table.key)
    return source.append_column(_REMOVES, pa.repeat(edit.removed.num_rows > 0, source.num_rows))


def _source(outcome: DataFrame, table: Table) -> tuple[DataFrame, Sequence[str], int | None]:
    """Return a result as the source of a MERGE, with bounds of its rows, or how many it adds if it removes none."""
    from pyspark.sql import functions

    names = [column.name for column in table.columns if column.name in table.key[:2]]
    found = outcome.agg(
        functions.count("*").alias("rows"),
        functions.max(_REMOVES).alias("removes"),
        *(functions.min(name).alias(f"min_{name}") for name in names),
        *(functions.max(name).alias(f"max_{name}") for name in names),
        *(functions.count(name).alias(f"count_{name}") for name in names),
    ).collect()[0]
    bounds = [
        between(f"target.`{name}`", found[f"min_{name}"], found[f"max_{name}"], SPARK)
        for name in names
        if found["rows"] and found[f"count_{name}"] == found["rows"]
    ]
    return outcome.drop(_REMOVES), bounds, None if found["removes"] else found["rows"]
