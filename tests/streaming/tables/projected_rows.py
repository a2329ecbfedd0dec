"""The rows of a table after a piece of the journal, without a disk."""

from __future__ import annotations

from collections.abc import Sequence

from streaming.tables.journal_entries import Entry
from streaming.tables.projections import PROJECTIONS, Projection
from streaming.tables.row_edits import RowEdits
from streaming.tables.schema import Row
from tests.streaming.tables.journals import T0
from udfs.model import journal

BY_TABLE = {projection.table.name: projection for projection in PROJECTIONS}


def kind(body: journal.Body) -> str:
    return str(type(body).__struct_config__.tag)


def apply_changes(
    name: str, changes: Sequence[journal.Change], current: Sequence[Row] = (), groups: Sequence[Row] = ()
) -> list[Row]:
    """Return the table's rows after these changes."""
    projection: Projection = BY_TABLE[name]
    entries = [
        Entry(change.cluster, change.group_id, change.event_time, change.body)
        for change in changes
        if projection.concerns(kind(change.body), change.group_id)
    ]
    names = projection.table.names
    rows = RowEdits(current)
    projection.apply_changes(entries, rows, {(row["cluster"], row["group_id"]): row for row in groups})
    ending, coming = rows.outcome(names)
    stay = [row for index, row in enumerate(current) if index not in ending]
    full = [{column: row.get(column) for column in names} for row in [*stay, *coming]]
    return sorted(full, key=lambda row: [str(row[column]) for column in names])


def spans(changes: Sequence[journal.Change], current: Sequence[Row] = ()) -> list[tuple[int, str, int, int | None]]:
    return [
        (row["queue_id"], row["member_id"], row["valid_from"] - T0, row["valid_to"] and row["valid_to"] - T0)
        for row in apply_changes("assignments", changes, current)
    ]
