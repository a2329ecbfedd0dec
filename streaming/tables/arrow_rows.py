"""Shell: rows as dicts and as Arrow columns; only here do epoch milliseconds become TIMESTAMPs. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streaming.tables.schema import Row, Table
from udfs.model.arrays import Int64

_MS = pa.timestamp("ms", "UTC")


def to_arrow(table: Table, rows: Sequence[Row]) -> pa.Table:
    """Convert rows to the table's columns; a column that a row does not name is null."""
    kinds = [(column.name, _MS if pa.types.is_timestamp(column.type) else column.type) for column in table.columns]
    return pa.Table.from_struct_array(pa.array(rows, pa.struct(kinds))).cast(table.schema)


def as_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with these columns; a column missing from rows of an older release is null."""
    for field in schema:
        if field.name not in rows.column_names:
            rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
    return rows.select(schema.names).cast(schema)


def from_arrow(table: Table, columns: pa.Table) -> list[Row]:
    """Return the rows as dicts, times in epoch milliseconds; columns that do not exist are left out."""
    by_name = {name: _plain_values(columns.column(name)) for name in table.names if name in columns.column_names}
    return [dict(zip(by_name, values, strict=True)) for values in zip(*by_name.values(), strict=True)]


def from_arrow_columns(columns: pa.Table, names: Sequence[str]) -> list[Sequence[Any]]:
    """Return columns as lists, times in epoch milliseconds."""
    return [list(_plain_values(columns.column(name))) for name in names]


def integers(column: pa.ChunkedArray, null: int) -> Int64:
    """Return a column of integers, or of times in epoch milliseconds; ``null`` is put where there is none."""
    values: Int64 = pc.fill_null(_whole_milliseconds(column), null).to_numpy()
    return values


def _whole_milliseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(_MS, safe=False).cast(pa.int64()) if pa.types.is_timestamp(column.type) else column


def _plain_values(column: pa.ChunkedArray) -> Iterable[Any]:
    values: list[Any] = _whole_milliseconds(column).to_pylist()
    return values
