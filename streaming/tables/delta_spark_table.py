"""Shell: a Delta table that Spark writes: executors write the files, in a catalog or at a path.

A commit is marked by Delta's own ``txnAppId`` and ``txnVersion``, one mark per commit. The content of the log (marks,
versions, files) is read with delta-rs, in milliseconds; Spark would start jobs for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable as DeltaLog
from deltalake.exceptions import DeltaError

from streaming.settings.locations import Location, catalog_schema
from streaming.stores.places import hadoop_uri
from streaming.tables.arrow_rows import as_schema
from streaming.tables.commit_notes import USER_METADATA
from streaming.tables.delta_log_table import ATTEMPTS, DeltaLogTable
from streaming.tables.edits import REMOVED, source_of
from streaming.tables.errors import TableError
from streaming.tables.file_listing import is_out_of_order, small_files
from streaming.tables.journal_entries import RowFilter
from streaming.tables.location import WRITER_PROPERTY, check_columns, check_writer, table_uri
from streaming.tables.predicates import matching, one_of, predicate_of
from streaming.tables.retention import ROWS, OldRows, condition, join
from streaming.tables.schema import Table
from streaming.tables.spark_sql import SPARK, ddl, quoted, quoted_path, sql_type
from streaming.tables.writer import (
    COMMIT_VERSION,
    Edit,
    Mark,
    TableRows,
    Upkeep,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_Write: TypeAlias = Callable[[], None]

NAME = "delta-spark"
_ROWS_A_FILE = 50_000
_HOUR_MS = 3_600_000
_TXN = "spark.databricks.delta.write."
# Delta reads these only from the session of the write.
_WRITE_CONF = {"spark.sql.parquet.compression.codec": "zstd"}
_NO_DICTIONARY = "parquet.enable.dictionary#"
_OPTIMIZE = "spark.databricks.delta.optimize."
# Java prefixes its message with this, and names the place.
_PY4J_PREFIX = re.compile(r"^An error occurred while calling \S+ : (?:[\w.$]+: )?")


class DeltaSparkTable(DeltaLogTable):
    """One table below a root, or in a schema of Spark's catalog.

    Args:
        spark: A session in which nothing else commits at the same time, because marks of merges are values of the
            session.
        table: Its definition; it is created if it does not exist.
        adds_columns: Whether missing columns are added to a table of an older release.

    Raises:
        TableError: It is another table, has another writer, or cannot be opened.
    """

    _dialect = SPARK

    def __init__(self, spark: SparkSession, root: Location, table: Table, *, adds_columns: bool = True) -> None:
        self.table = table
        self._spark = spark
        self.name = spark_name(root, table.name)
        with _as_table_error(f"{self.name} cannot be used"):
            self._spark.sql(ddl(table, self.name, {WRITER_PROPERTY: NAME}))
            self.uri = uri_of(spark, root, table.name)
            self._delta = DeltaLog(self.uri)
        check_writer(self._delta, NAME, self.name)
        if adds_columns:
            self._add_columns()
        self._compacted_at = self.version

    def _add_columns(self) -> None:
        lacking = check_columns(self._delta, self.table, self.name)
        if lacking:
            columns = ", ".join(
                f"`{column.name}` {sql_type(column.type)}" for column in self.table.columns if column.name in lacking
            )
            with _as_table_error(f"{self.name} cannot be used"):
                self._spark.sql(f"ALTER TABLE {self.name} ADD COLUMNS ({columns})")
            self.refresh()

    @property
    def root(self) -> Location:
        """Return the folder or URI of all tables, which commands can read without Spark."""
        parent = self.uri.rstrip("/").removesuffix(f"/{self.table.name}")
        return parent if "://" in parent else Path(parent)

    # -- reading ------------------------------------------------------------------------------------------------

    def frame(self) -> DataFrame:
        """Return all current rows, on the executors."""
        return self._spark.read.table(self.name)

    def appended_frame(self, after: int, upto: int) -> DataFrame:
        """Return the rows that were added after a version up to another, with ``COMMIT_VERSION``."""
        feed = self._spark.read.option("readChangeFeed", "true")
        feed = feed.option("startingVersion", after + 1).option("endingVersion", upto)
        return feed.table(self.name).where("_change_type = 'insert'")

    def frame_at(self, version: int) -> DataFrame:
        """Return all rows of a version, with that version as ``COMMIT_VERSION``."""
        from pyspark.sql import functions

        found = self._spark.sql(f"SELECT * FROM {self.name} VERSION AS OF {version}")
        return found.withColumn(COMMIT_VERSION, functions.lit(version).cast("bigint"))

    def check_log(self, after: int) -> None:
        """Check that the log still has everything that was added after a version.

        Raises:
            LogTruncatedError: Entries of the log are gone.
        """
        self._change_feed(after, after + 1, ["_change_type"])

    def read(self, wanted: RowFilter) -> pa.Table:
        found = self.frame().where(predicate_of(wanted, SPARK) or "true").select(*self.table.names).toArrow()
        return as_schema(found, self.table.schema).filter(matching(wanted))

    def appended(self, after: int, upto: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if after >= upto:
            return
        self.check_log(after)
        yield from self._batches(self.appended_frame(after, upto), columns)

    def rows_at(self, version: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from self._batches(self.frame_at(version), columns)

    def _batches(self, frame: DataFrame, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        schema = pa.schema([*(self.table.schema.field(name) for name in columns), (COMMIT_VERSION, pa.int64())])
        yield from as_schema(frame.select(*columns, COMMIT_VERSION).toArrow(), schema).to_batches()

    # -- writing ------------------------------------------------------------------------------------------------

    def append(self, rows: TableRows, mark: Mark) -> bool:
        def prepare() -> _Write:
            arrow = rows if isinstance(rows, pa.Table) else rows().read_all()
            return lambda: self._append(self._spark.createDataFrame(arrow), arrow.num_rows, mark)

        return self._commit(mark, prepare)

    def append_frame(self, frame: DataFrame, rows: int, mark: Mark) -> bool:
        """Add about ``rows`` rows in one commit with this mark, from the executors; False if it already exists."""
        return self._commit(mark, lambda: lambda: self._append(frame, rows, mark))

    def merge(self, compute: Callable[[], Edit], mark: Mark) -> bool:
        def prepare() -> _Write | None:
            removed, added = compute()
            if not (removed.num_rows or added.num_rows):
                return None
            if not removed.num_rows:
                return lambda: self._append(self._spark.createDataFrame(added), added.num_rows, mark)
            source = source_of(Edit(removed, added), self.table.key)
            bounds = [
                one_of(f"target.`{name}`", pc.unique(source[name]).to_pylist(), SPARK)
                for name in self.table.key[:2]
                if not source[name].null_count and pa.types.is_string(source[name].type)
            ]
            return lambda: self._merge(self._spark.createDataFrame(source), bounds, mark)

        return self._commit(mark, prepare)

    def merge_frame(self, compute: Callable[[], tuple[DataFrame, Sequence[str], int | None]], mark: Mark) -> bool:
        """Replace rows in one commit with this mark, from the executors.

        Args:
            compute: Returns the source of a MERGE (``edits.source_of``), an SQL condition for all rows of ``target``
                that it may match, and, if all its rows are new ones, their approximate number; it runs again after a
                concurrent commit.
        """

        def prepare() -> _Write | None:
            source, bounds, only_new = compute()
            if only_new is None:
                return lambda: self._merge(source, bounds, mark)
            return (lambda: self._append(source.drop(REMOVED), only_new, mark)) if only_new else None

        return self._commit(mark, prepare)

    def _commit(self, mark: Mark, prepare: Callable[[], _Write | None]) -> bool:
        """Run a write until it is committed, or its mark exists; it starts over from others' commits."""
        self.refresh()
        for _ in range(ATTEMPTS):
            if self._has(mark):
                return False
            before = self.version
            with _as_table_error(f"{self.name} cannot be written"):
                write = prepare()
                # Spark would write rows computed from an older version onto a newer one.
                if self.refresh() != before:
                    continue
                if write is None:
                    return False
                try:
                    write()
                except _lost_races():
                    self.refresh()
                    continue
            # Spark itself skips a write whose mark exists.
            is_written = self.refresh() != before
            self._compact_sometimes()
            return is_written
        raise TableError(f"{self.name}: concurrent commits, {ATTEMPTS} attempts failed")

    def _append(self, frame: DataFrame, rows: int, mark: Mark) -> None:
        ordered = frame.coalesce(max(1, -(-rows // _ROWS_A_FILE))).sortWithinPartitions(*self.table.cluster_by)
        # The session of the frame writes it, because a batch has its own.
        with _conf(frame.sparkSession, self._files()):
            writer = ordered.write.format("delta").mode("append")
            marked = writer.option("txnAppId", mark.app_id).option("txnVersion", mark.version)
            if mark.note:
                marked = marked.option(USER_METADATA, mark.note)
            marked.saveAsTable(self.name) if "`" not in self.name else marked.save(hadoop_uri(self.uri))

    def _merge(self, source: DataFrame, bounds: Sequence[str], mark: Mark) -> None:
        from delta.tables import DeltaTable

        keys = [f"target.`{name}` <=> source.`{name}`" for name in self.table.key]
        values = {f"`{name}`": f"source.`{name}`" for name in self.table.names}
        target = DeltaTable.forName(self._spark, self.name).alias("target")
        merger = target.merge(source.alias("source"), " AND ".join([*bounds, *keys]))
        merger = merger.whenMatchedDelete(f"source.{REMOVED}").whenMatchedUpdate(set=values)  # type: ignore[arg-type]
        merger = merger.whenNotMatchedInsert(f"NOT source.{REMOVED}", values=values)  # type: ignore[arg-type]
        marked = {f"{_TXN}txnAppId": mark.app_id, f"{_TXN}txnVersion": str(mark.version)}
        with _conf(self._spark, self._files() | marked):
            merger.execute()

    def _files(self) -> dict[str, str]:
        return _WRITE_CONF | {f"{_NO_DICTIONARY}{name}": "false" for name in self.table.unique_texts}

    # -- upkeep -------------------------------------------------------------------------------------------------

    def _compact(self) -> None:
        self._optimize()

    def _optimize(self, order: str = "") -> None:
        sizes = {f"{_OPTIMIZE}{bound}FileSize": str(self.table.file_bytes) for bound in ("min", "max")}
        with _conf(self._spark, self._files() | sizes):
            self._spark.sql(f"OPTIMIZE {self.name} {order}")

    def _order(self) -> None:
        self._optimize(f"ZORDER BY ({', '.join(self.table.cluster_by)})")

    def _tried(self, change: Callable[[], object]) -> bool:
        try:
            with _as_table_error(f"{self.name} cannot be written"):
                change()
        except _lost_races():
            return False
        finally:
            self.refresh()
        return True

    def maintain(self, *, vacuum_after_ms: int, old: OldRows | None = None) -> Upkeep:
        self.refresh()
        files = len(self._paths())
        dropped = self._drop(old) if old is not None else self._promise_to_keep()
        before = self._paths()
        if small_files(self._listing(), self.table.file_bytes) > 1:
            self._until_done(self._compact)
        if is_out_of_order(self._listing(), self.table.cluster_by):
            self._until_done(self._order)
        after = self._paths()
        # Spark is slow to find out that there is nothing to delete.
        found = self._unneeded(vacuum_after_ms)
        if found:
            self._spark.sql(f"VACUUM {self.name} RETAIN {_hours(vacuum_after_ms)} HOURS")
            self.refresh()
        return Upkeep(self.table.name, files, len(after), len(before - after), len(found), dropped)

    def _sql(self, query: Callable[[str], str]) -> pa.Table:
        with _as_table_error(f"{self.name} cannot be read"):
            return self._spark.sql(query(self.name)).toArrow()

    def _set_properties(self, values: dict[str, str]) -> None:
        pairs = ", ".join(f"{quoted(name)} = {quoted(value)}" for name, value in values.items())
        self._spark.sql(f"ALTER TABLE {self.name} SET TBLPROPERTIES ({pairs})")

    def _delete(self, old: OldRows, to_delete: pa.Table) -> None:
        if not old.rule.last_of:
            self._spark.sql(f"DELETE FROM {self.name} WHERE {condition(old, self._dialect)}")
            return
        from delta.tables import DeltaTable

        source = self._spark.createDataFrame(to_delete.drop_columns([ROWS])).alias("source")
        target = DeltaTable.forName(self._spark, self.name).alias("target")
        with _conf(self._spark, self._files()):
            target.merge(source, join(old, self._dialect)).whenMatchedDelete().execute()

    def _unneeded(self, vacuum_after_ms: int) -> list[str]:
        hours = _hours(vacuum_after_ms)
        return self._delta.vacuum(hours, dry_run=True, enforce_retention_duration=False, full=True)


def _hours(vacuum_after_ms: int) -> int:
    # Delta refuses anything below the table's own retention of deleted files, which is a day.
    return max(24, vacuum_after_ms // _HOUR_MS)


def uri_of(spark: SparkSession, root: Location, table: str) -> str:
    """Return the location of a table that exists, in delta-rs's form."""
    if not catalog_schema(root):
        return table_uri(root, table)
    uri: str = spark.sql(f"DESCRIBE DETAIL {spark_name(root, table)}").select("location").collect()[0][0]
    scheme, is_uri, rest = uri.partition("://")
    return f"s3://{rest}" if scheme == "s3a" else uri if is_uri else uri.removeprefix("file:")


def spark_name(root: Location, table: str) -> str:
    """Return the name of a table in Spark SQL."""
    if catalog_schema(root):
        return f"{catalog_schema(root)}.{table}"
    return quoted_path(hadoop_uri(table_uri(root, table)))


@contextmanager
def _conf(session: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Set values in a session while the block runs."""
    before = {name: session.conf.get(name, None) for name in values}
    for name, value in values.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, former in before.items():
            if former is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, former)


def _lost_races() -> tuple[type[Exception], ...]:
    """Return the errors of a commit that lost a race; Delta's have no common class."""
    from delta import exceptions

    names = ("Append", "DeleteDelete", "DeleteRead", "Transaction", "Write")
    others = (exceptions.MetadataChangedException, exceptions.DeltaConcurrentModificationException)
    return (*(getattr(exceptions, f"Concurrent{name}Exception") for name in names), *others)


@contextmanager
def _as_table_error(what: str) -> Iterator[None]:
    """Convert errors of Spark and delta-rs to table errors, in one line; lost races stay unchanged."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except _lost_races():
        raise
    except (PySparkException, Py4JError, DeltaError, OSError) as error:
        lines = str(error).partition("\n\tat ")[0].splitlines()
        reason = _PY4J_PREFIX.sub("", " ".join(line.strip() for line in lines if line.strip()))
        raise TableError(f"{what}: {reason}. Choose other tables with --tables.") from error
