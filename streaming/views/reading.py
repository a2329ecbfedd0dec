"""Shell: reads Delta tables with delta-rs, and imports nothing slow: an answer takes less than a second."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from streaming.tables import TABLES, TIME, Row, as_schema, from_arrow

# Which rows stay. Not a pc.Expression: filtering by one imports pandas.
Keep: TypeAlias = Callable[[pa.Table], pa.ChunkedArray]


class NoTablesError(Exception):
    """There are no tables to ask; the message says the way out."""


class NotFoundError(Exception):
    """What was asked for is not in the tables."""


class AmbiguousError(Exception):
    """More than one thing fits; the message names them."""


class Reader:
    """The tables below one root folder.

    Args:
        root: Where they lie.

    Raises:
        NoTablesError: There is none.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        if not root.is_dir():
            raise NoTablesError(f"{root}: there is no such folder. Name the job's tables with --tables DIR.")
        if not any((root / name / "_delta_log").is_dir() for name in TABLES):
            raise NoTablesError(
                f"{root} holds no tables of the monitor yet. Name the job's own with --tables DIR, or start `run`."
            )

    def read(
        self,
        name: str,
        *,
        columns: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        keep: Keep | None = None,
    ) -> pa.Table:
        """Read a table, or what of it fits; a table that is not there yet is empty.

        Args:
            where: Column -> the value that it must have, or a set of those that it may have; None = any.
            keep: What must hold beside that.
        """
        table = TABLES[name]
        names = list(columns or table.names)
        schema = pa.schema([table.schema.field(column) for column in names])
        path = self._root / name
        if not (path / "_delta_log").is_dir():
            return schema.empty_table()
        delta = DeltaTable(str(path))
        # A table of an older release gets the columns that it lacks when its job starts again.
        there = {field.name for field in delta.schema().fields}
        tests = [_test(column, value) for column, value in (where or {}).items() if value is not None]
        batches = delta.scan(columns=[one for one in names if one in there], predicate=" AND ".join(tests) or None)
        # Not pa.table(): that imports pandas.
        rows = as_schema(pa.RecordBatchReader.from_stream(batches).read_all(), schema)
        return rows if keep is None else rows.filter(keep(rows))

    def rows(self, name: str, *, where: Mapping[str, Any] | None = None, keep: Keep | None = None) -> list[Row]:
        """Read as ``read`` does; answer dicts, times in epoch milliseconds."""
        return from_arrow(TABLES[name], self.read(name, where=where, keep=keep))


def time_scalar(epoch_ms: int) -> pa.Scalar:
    """Answer the time as the tables hold it."""
    # Not pa.scalar(): making Arrow's values of Python's imports pandas.
    raw = pa.py_buffer((epoch_ms * 1_000).to_bytes(8, sys.byteorder, signed=True))
    return pa.Array.from_buffers(TIME, 1, [None, raw])[0]


def holds_at(begin: str, end: str, at_ms: int | None) -> Keep:
    """Test whether a span holds at a time: begin <= T < end; None = now, when its end is not known."""
    if at_ms is None:
        return lambda rows: rows[end].is_null()
    at = time_scalar(at_ms)
    return lambda rows: pc.and_kleene(
        pc.less_equal(rows[begin], at), pc.or_kleene(rows[end].is_null(), pc.greater(rows[end], at))
    )


def time_columns(name: str) -> frozenset[str]:
    """Answer which columns of a table are times."""
    return frozenset(column.name for column in TABLES[name].columns if column.type == TIME)


def _test(column: str, value: object) -> str:
    if isinstance(value, set):
        return f"{column} IN ({', '.join(sorted(map(_literal, value)))})"
    return f"{column} = {_literal(value)}"


def _literal(value: object) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value)
