"""Shell: reads Delta tables with delta-rs and asks them in SQL with DuckDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from deltalake import DeltaTable

from streaming.tables import TABLES, TIME, Row


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

    def read(self, name: str, columns: Sequence[str] | None = None, where: Mapping[str, Any] | None = None) -> pa.Table:
        """Read a table, or what of it equals these values; a table that is not there yet is empty.

        Args:
            where: Column -> value; values that are None do not count.
        """
        table = TABLES[name]
        names = list(columns or table.names)
        schema = pa.schema([table.schema.field(column) for column in names])
        path = self._root / name
        if not (path / "_delta_log").is_dir():
            return schema.empty_table()
        tests = [f"{column} = {_literal(value)}" for column, value in (where or {}).items() if value is not None]
        reader = DeltaTable(str(path)).scan(columns=names, predicate=" AND ".join(tests) or None)
        return pa.table(reader).select(names).cast(schema)

    def ask(self, query: str, tables: Mapping[str, pa.Table], parameters: Sequence[Any] = ()) -> list[Row]:
        """Answer a query over these tables, times in epoch milliseconds."""
        with duckdb.connect(config={"threads": 2}) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            for name, table in tables.items():
                connection.register(name, table)
            answer = connection.execute(query, list(parameters)).to_arrow_table()
        return plain_rows(answer)


def plain_rows(answer: pa.Table) -> list[Row]:
    """Answer the rows as dicts; times in epoch milliseconds."""
    columns = {}
    for name in answer.column_names:
        column = answer[name]
        if pa.types.is_timestamp(column.type):
            column = column.cast(TIME).cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
        columns[name] = column.to_pylist()
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def time_columns(name: str) -> frozenset[str]:
    """Answer which columns of a table are times."""
    return frozenset(column.name for column in TABLES[name].columns if column.type == TIME)


def _literal(value: object) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value)
