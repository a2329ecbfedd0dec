"""Shell: the protocol between the content of tables and the engine that commits to them; each engine implements it.

The monitor itself never writes a Delta log: `delta_rs_table.py` commits with delta-rs in the driver,
`delta_spark_table.py` through Spark. A table records its writer in a property, so that a newly chosen engine never
finds commits that it does not expect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import pyarrow as pa

from streaming.settings.locations import Location
from streaming.tables.journal_entries import RowFilter
from streaming.tables.retention import Dropped, OldRows
from streaming.tables.schema import Table

# This column of ``appended`` has the table's version that brought the row.
COMMIT_VERSION = "_commit_version"


class Mark(NamedTuple):
    """Delta's ``txn``: this application has written everything up to this version of its own.

    ``note`` is for people (``commit_notes.py``); empty for no note.
    """

    app_id: str
    version: int
    note: str = ""


# Rows, or a function that streams the same rows whenever it is called, because a lost race starts over.
TableRows: TypeAlias = pa.Table | Callable[[], pa.RecordBatchReader]


class Edit(NamedTuple):
    """Rows before and after.

    A row whose key is in both is updated.
    """

    removed: pa.Table
    added: pa.Table


class Upkeep(NamedTuple):
    """The maintenance of one table, done or due.

    Attributes:
        files_after: None if nothing was done.
        files_compacted: Files that were joined into larger ones, or rewritten in order.
        files_deleted: Files that no version needs any longer, and leftovers of crashes.
        dropped: Rows that were too old.
    """

    table: str
    files_before: int
    files_after: int | None
    files_compacted: int
    files_deleted: int
    dropped: tuple[Dropped, ...] = ()


class LogTruncatedError(Exception):
    """The table's log no longer reaches back to a version."""


class TableWriter(Protocol):
    """One Delta table and its only writer.

    Commits are exactly-once by their marks; after a lost race they run again.
    """

    table: Table

    @property
    def root(self) -> Location:
        """Return the folder or URI of all tables, for readers without Spark."""

    @property
    def version(self) -> int:
        """Return the version that was last read."""

    @property
    def identity(self) -> str:
        """Return the table's own id, which never changes."""

    def refresh(self) -> int:
        """Read others' commits; return the newest version."""

    def mark(self, app_id: str) -> int | None:
        """Return how far this application has written; None if it has written nothing yet."""

    def append(self, rows: TableRows, mark: Mark) -> bool:
        """Add rows in one commit with this mark; return False if they already exist."""

    def merge(self, compute: Callable[[], Edit], mark: Mark) -> bool:
        """Replace rows in one commit with this mark; return False if that is already done, or nothing changes.

        Args:
            compute: Runs again after a concurrent commit.
        """

    def read(self, wanted: RowFilter) -> pa.Table:
        """Read the rows that match."""

    def appended(self, after: int, upto: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the rows that were added after a version up to another, with ``COMMIT_VERSION``, in no order.

        Raises:
            LogTruncatedError: The log no longer reaches back that far.
        """

    def rows_at(self, version: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read all rows of a version, with that version as ``COMMIT_VERSION``."""

    def newest(self, column: str) -> dict[str | None, int]:
        """Return the newest time in a column, in epoch milliseconds, by cluster."""

    def maintain(self, *, vacuum_after_ms: int, old: OldRows | None = None) -> Upkeep:
        """Compact small files, put rows in order, drop old rows, delete files that no version needs.

        Args:
            vacuum_after_ms: Files stay while a version of this age or younger needs them.
            old: The rows to drop; None if all rows stay. A table that is only appended to has ``delta.appendOnly`` as
                long as it keeps all its rows.
        """

    def survey(self, *, vacuum_after_ms: int, old: OldRows | None = None) -> Upkeep:
        """Return what ``maintain`` would do now, and change nothing."""
