"""Shell: a Delta table written by delta-rs in the driver: commits take milliseconds, on a disk or an object store.

delta-rs creates the files of the log atomically and compares concurrent commits. It rebases an append that races
another commit; it refuses a merge, or the second of two commits with the same mark. Then the table is read again, the
mark compared, and the change computed again. The existing marks must be read before each commit, because a fresh handle
would accept one that already exists.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import (
    ColumnProperties,
    CommitProperties,
    DeltaTable,
    QueryBuilder,
    Transaction,
    WriterProperties,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.schema import Field, Schema

from streaming.settings.locations import Location
from streaming.stores.failure import one_line
from streaming.tables.arrow_rows import as_schema
from streaming.tables.commit_notes import USER_METADATA
from streaming.tables.delta_log_table import ATTEMPTS, DeltaLogTable
from streaming.tables.delta_schema import delta_fields, properties
from streaming.tables.edits import REMOVED, source_of, updates_of
from streaming.tables.errors import TableError
from streaming.tables.file_listing import is_out_of_order
from streaming.tables.journal_entries import RowFilter
from streaming.tables.location import WRITER_PROPERTY, check_columns, check_writer, table_uri
from streaming.tables.predicates import DELTA_RS, literal_time, matching, one_of, predicate_of
from streaming.tables.retention import ROWS, OldRows, condition, join
from streaming.tables.schema import TIME, Table
from streaming.tables.writer import (
    COMMIT_VERSION,
    Edit,
    Mark,
    TableRows,
    Upkeep,
)

NAME = "delta-rs"
# Spark does not know this property, and ignores it.
_FILE_BYTES = "delta.targetFileSize"
_HOUR_MS = 3_600_000
_STATISTICS_BYTES = 64


class DeltaRsTable(DeltaLogTable):
    """One table below a root.

    Args:
        table: Its definition; it is created if it does not exist.
        adds_columns: Whether missing columns are added to a table of an older release.

    Raises:
        TableError: It is another table, has another writer, or cannot be opened.
    """

    _dialect = DELTA_RS

    def __init__(self, root: Location, table: Table, *, adds_columns: bool = True) -> None:
        self.table = table
        self._root = root
        self._adds_columns = adds_columns
        self.name = self.uri = table_uri(root, table.name)
        self._delta = self._open()
        self._properties = _parquet_properties(table)
        self._compacted_at = self.version

    # -- opening ------------------------------------------------------------------------------------------------

    def _open(self) -> DeltaTable:
        try:
            try:
                delta = DeltaTable(self.uri)
            except TableNotFoundError:
                delta = self._create()
            check_writer(delta, NAME, self.uri)
            lacking = check_columns(delta, self.table, self.uri)
            if lacking and self._adds_columns:
                wanted = [field for field in delta_fields(self.table) if field["name"] in lacking]
                delta.alter.add_columns([Field.from_json(json.dumps(field)) for field in wanted])
        except (DeltaError, OSError) as error:
            raise TableError(f"{self.uri} cannot be used: {one_line(error)}. Choose a folder with --tables.") from error
        return delta

    def _create(self) -> DeltaTable:
        schema = Schema.from_json(json.dumps({"type": "struct", "fields": delta_fields(self.table)}))
        try:
            return DeltaTable.create(
                self.uri,
                schema,
                description=self.table.comment,
                configuration=properties(self.table) | {_FILE_BYTES: str(self.table.file_bytes), WRITER_PROPERTY: NAME},
                raise_if_key_not_exists=False,
            )
        except (DeltaError, OSError) as error:
            try:
                # Another process has just created it.
                return DeltaTable(self.uri)
            except TableNotFoundError:
                raise error from None

    @property
    def root(self) -> Location:
        return self._root

    # -- reading ------------------------------------------------------------------------------------------------

    def read(self, wanted: RowFilter) -> pa.Table:
        found = self._delta.scan(columns=list(self.table.names), predicate=predicate_of(wanted))
        return as_schema(pa.table(found), self.table.schema).filter(matching(wanted))

    def appended(self, after: int, upto: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if after >= upto:
            return
        names = [f'"{name}"' for name in (*columns, "_change_type", COMMIT_VERSION)]
        for batch in pa.RecordBatchReader.from_stream(self._change_feed(after, upto, names)):
            is_inserted = pc.equal(batch["_change_type"].cast(pa.string()), "insert")
            yield self._with_version(batch, columns, batch[COMMIT_VERSION]).filter(is_inserted)

    def rows_at(self, version: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        feed = DeltaTable(self.uri, version=version).scan(columns=list(columns))
        for batch in pa.RecordBatchReader.from_stream(feed):
            yield self._with_version(batch, columns, pa.repeat(version, batch.num_rows))

    def _with_version(self, batch: pa.RecordBatch, columns: Sequence[str], version: pa.Array) -> pa.RecordBatch:
        arrays = [batch[name].cast(self.table.schema.field(name).type) for name in columns]
        return pa.record_batch([*arrays, version.cast(pa.int64())], names=[*columns, COMMIT_VERSION])

    # -- writing ------------------------------------------------------------------------------------------------

    def append(self, rows: TableRows, mark: Mark) -> bool:
        def write() -> bool:
            self._write(rows, None, mark)
            return True

        return self._commit(mark, write)

    def merge(self, compute: Callable[[], Edit], mark: Mark) -> bool:
        def write() -> bool:
            removed, added = compute()
            if not (removed.num_rows or added.num_rows):
                return False
            self._write(added, removed if removed.num_rows else None, mark)
            return True

        self.refresh()  # maintenance may have deleted files of an older version
        return self._commit(mark, write)

    def _commit(self, mark: Mark, write: Callable[[], bool]) -> bool:
        """Run a write until it is committed, or until its mark has already been committed.

        A commit that began from an older version is refused, and so is one whose mark has appeared in between.
        """
        for _ in range(ATTEMPTS):
            if self._has(mark):
                return False
            version = self.version
            try:
                is_written = write()
            except CommitFailedError as error:
                if self.refresh() == version:
                    raise TableError(f"{self.uri} cannot be written: {one_line(error)}") from error
                continue
            except (DeltaError, OSError) as error:
                raise TableError(f"{self.uri} cannot be written: {one_line(error)}") from error
            self._note(mark, version)
            self._compact_sometimes()
            return is_written
        raise TableError(f"{self.uri}: concurrent commits, {ATTEMPTS} attempts failed")

    def _write(self, added: TableRows, removed: pa.Table | None, mark: Mark) -> None:
        """Commit rows once; rows with only new keys need no merge, because a repeated computation has the same mark."""
        if removed is not None and isinstance(added, pa.Table):
            self._merge(Edit(removed, added), mark)
            return
        rows = (
            added.sort_by([(name, "ascending") for name in self.table.cluster_by])
            if isinstance(added, pa.Table)
            else added()
        )
        write_deltalake(
            self._delta,
            rows,
            mode="append",
            schema_mode="merge",  # a column that a user has added is null in these rows
            writer_properties=self._properties,
            commit_properties=_commit_properties(mark),
        )

    def _merge(self, edit: Edit, mark: Mark) -> None:
        updates = updates_of(edit, self.table.key)
        source = source_of(edit, self.table.key) if updates is None else updates
        values = {name: f"source.`{name}`" for name in self.table.names if name in source.column_names}
        merger = self._delta.merge(
            source,
            self._join(source),
            source_alias="source",
            target_alias="target",
            writer_properties=self._properties,
            commit_properties=_commit_properties(mark),
        )
        if updates is not None:
            merger.when_matched_update(values).execute()
            return
        merger.when_matched_delete(f"source.{REMOVED}").when_matched_update(values).when_not_matched_insert(
            values, f"NOT source.{REMOVED}"
        ).execute()

    def _join(self, source: pa.Table) -> str:
        """Return the condition for equal rows, and values by which delta-rs can skip files."""
        tests = []
        for name in self.table.key:
            column, ours, theirs = source[name], f"source.`{name}`", f"target.`{name}`"
            if column.null_count:
                tests.append(f"({theirs} = {ours} OR ({theirs} IS NULL AND {ours} IS NULL))")
                continue
            tests.append(f"{theirs} = {ours}")
            if column.type == TIME:
                bounds = pc.min_max(column.cast(pa.int64())).as_py()
                low, high = (literal_time(bounds[bound] // 1_000) for bound in ("min", "max"))
                tests.append(f"{theirs} BETWEEN {low} AND {high}")
            elif name in self.table.key[:2]:
                tests.append(one_of(theirs, pc.unique(column).to_pylist()))
        return " AND ".join(tests)

    # -- upkeep -------------------------------------------------------------------------------------------------

    def _compact(self) -> object:
        return self._delta.optimize.compact(writer_properties=self._properties)

    def _order(self) -> object:
        return self._delta.optimize.z_order(list(self.table.cluster_by), writer_properties=self._properties)

    def _tried(self, change: Callable[[], object]) -> bool:
        self.refresh()
        try:
            change()
        except CommitFailedError:
            self.refresh()
            return False
        except (DeltaError, OSError) as error:
            raise TableError(f"{self.uri} cannot be written: {one_line(error)}") from error
        self.refresh()
        return True

    def maintain(self, *, vacuum_after_ms: int, old: OldRows | None = None) -> Upkeep:
        self.refresh()
        files = len(self._paths())
        dropped = self._drop(old) if old is not None else self._promise_to_keep()
        before = self._paths()
        self._until_done(self._compact)
        if is_out_of_order(self._listing(), self.table.cluster_by):
            self._until_done(self._order)
        self._delta.create_checkpoint()
        self._delta.cleanup_metadata()
        after = self._paths()
        deleted = self._vacuum(vacuum_after_ms)
        return Upkeep(self.table.name, files, len(after), len(before - after), deleted, dropped)

    def _sql(self, query: Callable[[str], str]) -> pa.Table:
        return pa.table(QueryBuilder().register("rows", self._delta).execute(query("rows")))

    def _set_properties(self, values: dict[str, str]) -> None:
        self._delta.alter.set_table_properties(values, raise_if_not_exists=False)

    def _delete(self, old: OldRows, to_delete: pa.Table) -> None:
        if not old.rule.last_of:
            self._delta.delete(condition(old, self._dialect), writer_properties=self._properties)
            return
        merger = self._delta.merge(
            to_delete.drop_columns([ROWS]),
            join(old, self._dialect),
            source_alias="source",
            target_alias="target",
            writer_properties=self._properties,
        )
        merger.when_matched_delete().execute()

    def _vacuum(self, vacuum_after_ms: int) -> int:
        if not self._unneeded(vacuum_after_ms):
            return 0
        deleted = self._run_vacuum(vacuum_after_ms, dry_run=False)
        self.refresh()
        return len(deleted)

    def _unneeded(self, vacuum_after_ms: int) -> list[str]:
        return self._run_vacuum(vacuum_after_ms, dry_run=True)

    def _run_vacuum(self, after_ms: int, *, dry_run: bool) -> list[str]:
        hours = max(1, after_ms // _HOUR_MS)
        return self._delta.vacuum(hours, dry_run=dry_run, enforce_retention_duration=False, full=True)


def _parquet_properties(table: Table) -> WriterProperties:
    return WriterProperties(
        compression="ZSTD",
        statistics_truncate_length=_STATISTICS_BYTES,
        column_properties={name: ColumnProperties(dictionary_enabled=False) for name in table.unique_texts},
    )


def _commit_properties(mark: Mark) -> CommitProperties:
    return CommitProperties(
        app_transactions=[Transaction(mark.app_id, mark.version)],
        custom_metadata={USER_METADATA: mark.note} if mark.note else None,
    )
