"""Shell: both writers' access to a table's log by delta-rs, in milliseconds, without Spark jobs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from streaming.tables.delta_schema import CHECKPOINT_INTERVAL
from streaming.tables.errors import TableError
from streaming.tables.file_listing import files_to_compact, holds_times_before, is_out_of_order, small_files
from streaming.tables.predicates import Dialect
from streaming.tables.retention import (
    DROPPED_BEFORE,
    Dropped,
    OldRows,
    count_dropped,
    counting_sql,
    noted,
    to_drop,
)
from streaming.tables.writer import LogTruncatedError, Mark, TableWriter, Upkeep

SMALL_FILES = 24  # with this many small files a compaction pays off
ATTEMPTS = 20
_APPEND_ONLY = "delta.appendOnly"


class DeltaLogTable(TableWriter):
    """A writer that holds the log of its table as ``_delta``."""

    name: str  # its name in errors
    _delta: DeltaTable
    _dialect: Dialect
    _marks_at: int | None = None
    _compacted_at: int

    @property
    def version(self) -> int:
        return self._delta.version()

    @property
    def identity(self) -> str:
        return str(self._delta.metadata().id)

    def refresh(self) -> int:
        self._delta.update_incremental()
        return self.version

    def mark(self, app_id: str) -> int | None:
        # delta-rs reads the log for each of these calls.
        if self._marks_at != self.version:
            self._marks_at, self._marks = self.version, dict[str, int | None]()
        if app_id not in self._marks:
            self._marks[app_id] = self._delta.transaction_version(app_id)
        return self._marks[app_id]

    def _has(self, mark: Mark) -> bool:
        reached = self.mark(mark.app_id)
        return reached is not None and reached >= mark.version

    def _note(self, mark: Mark, before: int) -> None:
        """Record the mark of a commit that was made from a version, unless others have committed since."""
        if self._marks_at == before == self.version - 1:
            self._marks_at = self.version
            self._marks[mark.app_id] = mark.version

    def _change_feed(self, after: int, upto: int, columns: Sequence[str]) -> object:
        """Return the feed of changes after a version up to another, as a stream of Arrow.

        Raises:
            LogTruncatedError: The log no longer has all of them.
        """
        try:
            return self._delta.load_cdf(starting_version=after + 1, ending_version=upto, columns=list(columns))
        except DeltaError as error:
            if "Invalid table version" not in str(error):
                raise
            raise LogTruncatedError(after) from error

    # -- upkeep -------------------------------------------------------------------------------------------------

    @abstractmethod
    def _sql(self, query: Callable[[str], str]) -> pa.Table:
        """Return the result of a query, which is built with the name of the table."""

    @abstractmethod
    def _tried(self, change: Callable[[], object]) -> bool:
        """Commit a change of files or old rows; return False if another commit was faster."""

    @abstractmethod
    def _compact(self) -> object:
        """Join small files into larger ones."""

    def _until_done(self, change: Callable[[], object]) -> None:
        """Make a change and commit it; start over whenever another commit is faster."""
        for _ in range(ATTEMPTS):
            if self._tried(change):
                return
        raise TableError(f"{self.name}: concurrent commits, {ATTEMPTS} attempts failed")

    def _compact_sometimes(self) -> None:
        """Compact the files of many small commits; Delta writes checkpoints and clears the log by itself."""
        if self.version - self._compacted_at < CHECKPOINT_INTERVAL:
            return
        self._compacted_at = self.version
        if small_files(self._listing(), self.table.file_bytes) >= SMALL_FILES:
            self._tried(self._compact)

    @abstractmethod
    def _set_properties(self, values: dict[str, str]) -> None: ...

    @abstractmethod
    def _delete(self, old: OldRows, to_delete: pa.Table) -> None:
        """Commit the table without old rows.

        Args:
            to_delete: The result of ``to_drop``: the old rows, if last rows stay.
        """

    @abstractmethod
    def _unneeded(self, vacuum_after_ms: int) -> Sequence[str]:
        """Return the files that no version of that age needs, and leftovers of unfinished commits after crashes."""

    def newest(self, column: str) -> dict[str | None, int]:
        found = self._sql(lambda table: f"SELECT cluster, max({column}) AS newest FROM {table} GROUP BY cluster")
        times = found["newest"].cast(pa.int64()).to_pylist()
        pairs = zip(found["cluster"].cast(pa.string()).to_pylist(), times, strict=True)
        return {cluster: time // 1_000 for cluster, time in pairs if time is not None}

    def survey(self, *, vacuum_after_ms: int, old: OldRows | None = None) -> Upkeep:
        self.refresh()
        listing = self._listing()
        files = listing.num_rows
        if is_out_of_order(listing, self.table.cluster_by):
            compacted = files
        else:
            compacted = files_to_compact(listing, self.table.file_bytes)
        dropped = () if old is None else count_dropped(old, self._rows_to_delete(old))
        return Upkeep(self.table.name, files, None, compacted, len(self._unneeded(vacuum_after_ms)), dropped)

    def _listing(self) -> pa.Table:
        return pa.table(self._delta.get_add_actions(flatten=True))

    def _paths(self) -> set[str]:
        return set(self._listing()["path"].to_pylist())

    def _rows_to_delete(self, old: OldRows) -> pa.Table:
        if not holds_times_before(self._listing(), old.rule.time, old.newest_ms):
            return pa.table({"cluster": pa.array([], pa.string()), "rows": pa.array([], pa.int64())})
        return to_drop(old, self._sql(lambda table: counting_sql(old, table, self._dialect)))

    def _drop(self, old: OldRows) -> tuple[Dropped, ...]:
        """Drop rows, after recording in the table that they may be missing."""
        dropped = count_dropped(old, self._rows_to_delete(old))
        if not dropped:
            return ()
        before = self._delta.metadata().configuration
        wanted = {DROPPED_BEFORE: noted(old, dropped, before)}
        if self.table.append_only:
            wanted[_APPEND_ONLY] = "false"
        self._ensure(wanted)

        def drop() -> None:
            nonlocal dropped
            to_delete = self._rows_to_delete(old)
            dropped = count_dropped(old, to_delete)
            if dropped:
                self._delete(old, to_delete)

        self._until_done(drop)
        return dropped

    def _promise_to_keep(self) -> tuple[Dropped, ...]:
        """Drop nothing, and mark a table that keeps all its rows as append-only again."""
        if self.table.append_only:
            self._ensure({_APPEND_ONLY: "true"})
        return ()

    def _ensure(self, wanted: dict[str, str]) -> None:
        def change() -> None:
            if not self._delta.metadata().configuration.items() >= wanted.items():
                self._set_properties(wanted)

        self._until_done(change)
