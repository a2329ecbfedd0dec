"""Shell: reads Delta tables with delta-rs, and imports nothing slow: an answer takes less than a second."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from streaming.settings.locations import Location
from streaming.tables.arrow_rows import as_schema, from_arrow
from streaming.tables.errors import NoTablesError
from streaming.tables.location import is_table, table_uri
from streaming.tables.schema import TABLES, TIME, Row

# Which rows stay. Not a pc.Expression: filtering by one imports pandas.
Keep: TypeAlias = Callable[[pa.Table], pa.ChunkedArray]


class Reader:
    """The tables below one root folder.

    Args:
        root: Their folder.

    Raises:
        NoTablesError: There is none.
    """

    def __init__(self, root: Location) -> None:
        self._root = root
        if isinstance(root, Path) and not root.is_dir():
            raise NoTablesError(f"{root}: there is no such folder. Name the job's tables with --tables DIR.")
        if not any(is_table(root, name) for name in TABLES):
            raise NoTablesError(
                f"{root} holds no tables of the monitor yet. Name the job's folder with --tables DIR, or start `run`."
            )

    def read(
        self,
        name: str,
        *,
        columns: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        keep: Keep | None = None,
    ) -> pa.Table:
        """Read a table, or the rows that match; a table that does not exist yet is empty.

        Args:
            where: Column -> the value that it must have, or a set of those that it may have; None = any.
            keep: A further condition.
        """
        names = list(columns or TABLES[name].names)
        schema = pa.schema([TABLES[name].schema.field(column) for column in names])
        blocks = list(self.blocks(name, columns=names, where=where))
        rows = pa.concat_tables(blocks) if blocks else schema.empty_table()
        return rows if keep is None else rows.filter(keep(rows))

    def blocks(
        self, name: str, *, columns: Sequence[str], where: Mapping[str, Any] | None = None
    ) -> Iterator[pa.Table]:
        """Read as ``read`` does, a block of rows after another: the table is never in memory as a whole."""
        if not is_table(self._root, name):
            return
        schema = pa.schema([TABLES[name].schema.field(column) for column in columns])
        delta = DeltaTable(table_uri(self._root, name))
        # A table of an older release gets the columns that it lacks when its job starts again.
        there = {field.name for field in delta.schema().fields}
        tests = [_test(column, value) for column, value in (where or {}).items() if value is not None]
        found = delta.scan(columns=[one for one in columns if one in there], predicate=" AND ".join(tests) or None)
        # Not pa.table(), and no empty_table() where there are rows: they import pandas.
        for batch in pa.RecordBatchReader.from_stream(found):
            yield as_schema(pa.Table.from_batches([batch]), schema)

    def rows(self, name: str, *, where: Mapping[str, Any] | None = None, keep: Keep | None = None) -> list[Row]:
        """Read as ``read`` does; answer dicts, times in epoch milliseconds."""
        return from_arrow(TABLES[name], self.read(name, where=where, keep=keep))


def time_scalar(epoch_ms: int) -> pa.Scalar:
    """Return the time as the tables store it."""
    # Not pa.scalar(): making Arrow's values of Python's imports pandas.
    raw = pa.py_buffer((epoch_ms * 1_000).to_bytes(8, sys.byteorder, signed=True))
    return pa.Array.from_buffers(TIME, 1, [None, raw])[0]


def holds_at(begin: str, end: str, at_ms: int | None) -> Keep:
    """Test whether a span is current at a time: begin <= T < end; None = now: spans without an end."""
    if at_ms is None:
        return lambda rows: rows[end].is_null()
    at = time_scalar(at_ms)
    return lambda rows: pc.and_kleene(
        pc.less_equal(rows[begin], at), pc.or_kleene(rows[end].is_null(), pc.greater(rows[end], at))
    )


def time_columns(name: str) -> frozenset[str]:
    """Return which columns of a table are times."""
    return frozenset(column.name for column in TABLES[name].columns if column.type == TIME)


def _test(column: str, value: object) -> str:
    if isinstance(value, set):
        return f"{column} IN ({', '.join(sorted(map(_literal, value)))})"
    return f"{column} = {_literal(value)}"


def _literal(value: object) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value)
