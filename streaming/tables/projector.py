"""Shell: applies a piece of the journal to one table; here in the driver, from a bounded number of Arrow rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from streaming.settings.locations import Location
from streaming.tables.arrow_rows import from_arrow, to_arrow
from streaming.tables.journal_entries import Entry, Group, RowFilter
from streaming.tables.journal_piece import (
    JournalPiece,
    Share,
    entries_of,
    is_concerned,
    piece_of,
    rows_if_few,
    rows_of,
    shares_of,
    snapshot_of,
)
from streaming.tables.projections import GROUPS_PROJECTION, Projection
from streaming.tables.row_edits import RowEdits
from streaming.tables.schema import GROUP_MINUTES, GROUPS, Row, Table
from streaming.tables.writer import Edit, Mark, TableWriter
from udfs.model.garbage_collection import makes_no_cycles

# A piece of up to this many changes is read once; the changes of a larger one are counted first.
_HELD_CHANGES = 10_000


class Replaced(Protocol):
    """Called with the rows that a commit removed from a table and added to it."""

    def begin(self, tables: Location) -> None: ...
    def replaced(self, table: Table, removed: pa.Table, added: pa.Table) -> None: ...
    def followed(self, changes: int, of: int) -> None:
        """Report about how many changes of a large piece the tables have now."""


class Projector(Protocol):
    """Reads pieces of the journal and applies them; ``changes`` are the rows of a share, wherever they are.

    Attributes:
        tables_at_once: Changes may be applied to this many tables at a time, each by a thread of its own.
    """

    tables_at_once: int

    def piece(self, after: int, upto: int, limit: int) -> JournalPiece:
        """Return the piece to apply at once after a version; about this many changes if memory bounds them.

        Raises:
            LogTruncatedError: The log no longer reaches back that far.
        """

    def snapshot(self, after: int, upto: int) -> JournalPiece:
        """Return everything that the journal holds as one piece."""

    def shares(self, piece: JournalPiece, limit: int) -> list[Share | None]:
        """Divide a piece into shares, each of which is applied at once; None if the whole piece is one share."""

    def changes(self, piece: JournalPiece, share: Share | None) -> Any:
        """Return the changes of a share."""

    def is_concerned(self, projection: Projection, changes: Any) -> bool:
        """Return whether any of these changes touch the projection's table."""

    def apply(
        self, projection: Projection, changes: Any, mark: Mark, check: Callable[[], None], ready: Callable[[], None]
    ) -> None:
        """Apply changes to the projection's table in one commit with this mark; commit nothing if nothing changes.

        Args:
            check: Called whenever the current rows have been read again; raises an error if others have applied the
                changes.
            ready: Called before each attempt to commit; returns when the commit is allowed, raises an error if it is
                not.
        """


class DriverProjector(Projector):
    """Applies changes in this process.

    Args:
        listener: Receives the rows that each commit replaced.
    """

    tables_at_once = 2

    def __init__(self, journal: TableWriter, tables: Mapping[str, TableWriter], listener: Replaced | None) -> None:
        self._journal = journal
        self._tables = tables
        self._listener = listener
        self._cut: tuple[JournalPiece, list[Share | None]] | None = None
        self._held: tuple[JournalPiece, pa.Table] | None = None
        self._groups: tuple[int, RowFilter, pa.Table] | None = None

    def piece(self, after: int, upto: int, limit: int) -> JournalPiece:
        rows = rows_if_few(self._journal, after, upto, min(limit, _HELD_CHANGES))
        if rows is None:
            return piece_of(self._journal, after, upto, limit)
        piece = JournalPiece(after, upto, rows.num_rows)
        self._held = piece, rows
        return piece

    def snapshot(self, after: int, upto: int) -> JournalPiece:
        return snapshot_of(self._journal, after, upto)

    def shares(self, piece: JournalPiece, limit: int) -> list[Share | None]:
        if self._cut is None or self._cut[0] != piece:
            self._cut = piece, shares_of(self._journal, piece, limit)
        return self._cut[1]

    def changes(self, piece: JournalPiece, share: Share | None) -> pa.Table:
        held, self._held = self._held, None
        return held[1] if held is not None and held[0] == piece else rows_of(self._journal, piece, share)

    def is_concerned(self, projection: Projection, changes: pa.Table) -> bool:
        return is_concerned(projection, changes)

    def apply(
        self, projection: Projection, changes: Any, mark: Mark, check: Callable[[], None], ready: Callable[[], None]
    ) -> None:
        entries = entries_of(changes, projection)
        edit: Edit | None = None

        def compute() -> Edit:
            nonlocal edit
            check()
            edit = self._edit(projection, entries)
            ready()
            return edit

        is_done = self._tables[projection.table.name].merge(compute, mark)
        if edit is None:
            check()  # raises an error: the mark already exists
        elif is_done and self._listener is not None:
            self._listener.replaced(projection.table, edit.removed, edit.added)

    def _edit(self, projection: Projection, entries: Sequence[Entry]) -> Edit:
        wanted, table = projection.row_filter(entries), self._tables[projection.table.name]
        current = self._read_groups(wanted) if projection.table is GROUPS else table.read(wanted)
        return edit_of(projection, entries, current, self._present(projection, entries))

    def _present(self, projection: Projection, entries: Sequence[Entry]) -> dict[Group, Row]:
        """Return the former state of groups; only the minutes need it."""
        if projection.table is not GROUP_MINUTES:
            return {}
        self._tables[GROUPS.name].refresh()
        return present_of(self._read_groups(GROUPS_PROJECTION.row_filter(entries)))

    def _read_groups(self, wanted: RowFilter) -> pa.Table:
        """Read groups once for their minutes and for themselves, which follow one another."""
        groups = self._tables[GROUPS.name]
        if self._groups is None or self._groups[:2] != (groups.version, wanted):
            self._groups = groups.version, wanted, groups.read(wanted)
        return self._groups[2]


@makes_no_cycles
def edit_of(projection: Projection, entries: Sequence[Entry], current: pa.Table, present: Mapping[Group, Row]) -> Edit:
    """Return the effect of entries on the current rows that they may touch."""
    rows = RowEdits(from_arrow(projection.table, current))
    projection.apply_changes(entries, rows, present)
    indexes, new = rows.outcome(projection.table.names)
    return Edit(current.take(pa.array(indexes, pa.int64())), to_arrow(projection.table, new))


def present_of(groups: pa.Table) -> dict[Group, Row]:
    """Return rows of ``groups`` by cluster and group."""
    return {(row["cluster"], row["group_id"]): row for row in from_arrow(GROUPS, groups)}
