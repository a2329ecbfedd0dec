"""Shell: an edit of rows as the source of a MERGE. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from streaming.tables.arrow_rows import from_arrow_columns
from streaming.tables.writer import Edit

# This extra column says whether the row with this key is removed.
REMOVED = "_gone"


def source_of(edit: Edit, key: Sequence[str]) -> pa.Table:
    """Return the added rows, and the removed ones that are not added again."""
    coming = set(_keys(edit.added, key))
    # Each key occurs once, because a MERGE rejects two source rows for one row of the table.
    removed: dict[tuple[Any, ...], int] = {}
    for index, each in enumerate(_keys(edit.removed, key)):
        if each not in coming:
            removed.setdefault(each, index)
    removed_rows = edit.removed.take(pa.array(list(removed.values()), pa.int64()))
    parts = ((edit.added, False), (removed_rows, True))
    return pa.concat_tables(
        [rows.append_column(REMOVED, pa.repeat(is_removed, rows.num_rows)) for rows, is_removed in parts]
    )


def updates_of(edit: Edit, key: Sequence[str]) -> pa.Table | None:
    """Return key and changed columns of an edit that only updates rows; None if rows are added or removed.

    delta-rs plans a MERGE of few columns in less time.
    """
    indexes = {each: index for index, each in enumerate(_keys(edit.removed, key))}
    added = list(_keys(edit.added, key))
    if len(added) != edit.removed.num_rows or set(added) != set(indexes):
        return None
    before = edit.removed.take(pa.array([indexes[each] for each in added], pa.int64()))
    changed = [
        name for name in edit.added.column_names if name not in key and not before[name].equals(edit.added[name])
    ]
    return edit.added.select([*key, *changed]) if changed else None


def _keys(rows: pa.Table, key: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    return zip(*from_arrow_columns(rows, key), strict=True)
