"""Shell: an edit of rows as the source of a MERGE. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from streaming.tables.arrow_rows import from_arrow_columns
from streaming.tables.writer import Edit

# Beside the columns of the table: whether the row of this key goes.
GONE = "_gone"


def source_of(edit: Edit, key: Sequence[str]) -> pa.Table:
    """Return the rows that come, and those that go and do not come again."""
    coming = set(_keys(edit.added, key))
    # Once for each key: a MERGE refuses two rows of the source for one of the table.
    going: dict[tuple[Any, ...], int] = {}
    for index, each in enumerate(_keys(edit.removed, key)):
        if each not in coming:
            going.setdefault(each, index)
    gone = edit.removed.take(pa.array(list(going.values()), pa.int64()))
    parts = ((edit.added, False), (gone, True))
    return pa.concat_tables([rows.append_column(GONE, pa.repeat(is_gone, rows.num_rows)) for rows, is_gone in parts])


def _keys(rows: pa.Table, key: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    return zip(*from_arrow_columns(rows, key), strict=True)
