"""Shell: reads Delta tables with delta-rs, and imports nothing slow, so that an answer takes less than a second."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from streaming.settings.locations import Location
from streaming.tables.arrow_rows import as_schema, from_arrow
from streaming.tables.errors import NoTablesError
from streaming.tables.file_listing import newest_time
from streaming.tables.location import is_table, opened_table, table_to_read
from streaming.tables.replay_tables import EVERY_TABLE
from streaming.tables.retention import dropped_before
from streaming.tables.schema import TIME, Row
from streaming.terminal.format import time_text

# A function that selects rows. A pc.Expression is not used, because filtering by one imports pandas.
Keep: TypeAlias = Callable[[pa.Table], pa.ChunkedArray]


class Within(NamedTuple):
    """A condition on a time by which files are skipped: since <= T < until; None for no bound.

    Attributes:
        or_null: Null matches, too, for spans that are open.
    """

    since_ms: int | None = None
    until_ms: int | None = None
    or_null: bool = False

    def holds(self, time_ms: int | None) -> bool:
        """Return whether a time matches; null matches only an open span, or if there are no bounds."""
        if time_ms is None:
            return self.or_null or self == Within()
        return (self.since_ms or time_ms) <= time_ms < (time_ms + 1 if self.until_ms is None else self.until_ms)


class Between(NamedTuple):
    """A condition on a text: first <= T <= last, in byte order."""

    first: str
    last: str


class Except(NamedTuple):
    """A condition on a text: any but these."""

    values: frozenset[str]


class Reader:
    """The tables below one root folder.

    Raises:
        NoTablesError: The folder has no tables.
    """

    def __init__(self, root: Location) -> None:
        self.root = root
        if isinstance(root, Path) and not root.is_dir():
            raise NoTablesError(f"{root}: there is no such folder. Name the job's tables with --tables DIR.")
        if not any(is_table(root, name, soon=True) for name in EVERY_TABLE):
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
            where: Column -> its required value, a set of allowed values, ``Within``, ``Between`` or ``Except``; None
                for any.
        """
        names = list(columns or EVERY_TABLE[name].names)
        schema = pa.schema([EVERY_TABLE[name].schema.field(column) for column in names])
        blocks = list(self.blocks(name, columns=names, where=where))
        # empty_table() is not used, because it imports pandas.
        rows = pa.concat_tables(blocks) if blocks else pa.Table.from_batches([], schema)
        return rows if keep is None else rows.filter(keep(rows))

    def blocks(
        self, name: str, *, columns: Sequence[str], where: Mapping[str, Any] | None = None
    ) -> Iterator[pa.Table]:
        """Read as ``read`` does, one block of rows after another, so that the table is never in memory as a whole."""
        delta = self._table(name)
        if delta is None:
            return
        schema = pa.schema([EVERY_TABLE[name].schema.field(column) for column in columns])
        # A table of an older release gets its missing columns when its job starts again.
        there = {field.name for field in delta.schema().fields}
        tests = [_test(column, value) for column, value in (where or {}).items() if value is not None]
        found = delta.scan(
            columns=[column for column in columns if column in there], predicate=" AND ".join(tests) or None
        )
        # pa.table() is not used, because it imports pandas.
        for batch in pa.RecordBatchReader.from_stream(found):
            yield as_schema(pa.Table.from_batches([batch]), schema)

    def newest_ms(self, name: str, column: str) -> int | None:
        """Return the newest time of a column, from the statistics of the files; None if there is none."""
        delta = self._table(name)
        if delta is None:
            return None
        # pa.table() is not used, because it imports pandas.
        listing = pa.RecordBatchReader.from_stream(delta.get_add_actions(flatten=True)).read_all()
        return newest_time(listing, column)

    def history(self, name: str, limit: int) -> list[dict[str, Any]]:
        """Return the newest commits to a table as Delta describes them, newest first."""
        delta = self._table(name)
        return [] if delta is None else delta.history(limit)

    def dropped_before(self, name: str) -> Mapping[str, int]:
        """Return for each cluster the time before which ended rows of a table may be missing."""
        delta = self._table(name)
        return {} if delta is None else dropped_before(delta.metadata().configuration)

    def snapshot(self, name: str) -> DeltaTable | None:
        """Return a table at the version that is read; None if it does not exist yet."""
        return self._table(name)

    def _table(self, name: str) -> DeltaTable | None:
        """Return the current table; None if it does not exist yet."""
        return table_to_read(self.root, name)

    def rows(self, name: str, *, where: Mapping[str, Any] | None = None, keep: Keep | None = None) -> list[Row]:
        """Read as ``read`` does; return dicts, times in epoch milliseconds."""
        return from_arrow(EVERY_TABLE[name], self.read(name, where=where, keep=keep))


class JobReader(Reader):
    """The tables as the job reads them that makes them: one that is missing is made soon, and empty until then."""

    def _table(self, name: str) -> DeltaTable | None:
        return opened_table(self.root, name)


def time_scalar(epoch_ms: int) -> pa.Scalar:
    """Return a time in the tables' type."""
    # pa.scalar() is not used, because converting Python values imports pandas.
    raw = pa.py_buffer((epoch_ms * 1_000).to_bytes(8, sys.byteorder, signed=True))
    return pa.Array.from_buffers(TIME, 1, [None, raw])[0]


def holds_at(begin: str, end: str, at_ms: int | None) -> Keep:
    """Test whether a span is current at a time: begin <= T < end; None for now: spans without an end."""
    if at_ms is None:
        return lambda rows: rows[end].is_null()
    at = time_scalar(at_ms)
    return lambda rows: pc.and_kleene(
        pc.less_equal(rows[begin], at), pc.or_kleene(rows[end].is_null(), pc.greater(rows[end], at))
    )


def distinct(reader: Reader, tables: Iterable[str], column: str, where: Mapping[str, Any] | None = None) -> set[str]:
    """Return the texts of a column in several tables; nulls are left out."""
    found: set[str] = set()
    for name in tables:
        found.update(reader.read(name, columns=[column], where=where)[column].unique().to_pylist())
    return {text for text in found if text is not None}


def _test(column: str, value: object) -> str:
    if isinstance(value, Within):
        bounds = [
            f"{column} {sign} '{time_text(ms)}'"
            for sign, ms in zip((">=", "<"), value[:2], strict=True)
            if ms is not None
        ]
        inside = " AND ".join(bounds) or "TRUE"
        return f"({column} IS NULL OR ({inside}))" if value.or_null else inside
    if isinstance(value, Between):
        return f"{column} BETWEEN {_literal(value.first)} AND {_literal(value.last)}"
    if isinstance(value, Except):
        return f"{column} NOT IN ({', '.join(sorted(map(_literal, value.values)))})" if value.values else "TRUE"
    if isinstance(value, set):
        if not value:
            return "FALSE"
        return f"{column} IN ({', '.join(sorted(map(_literal, value)))})"
    return f"{column} = {_literal(value)}"


def _literal(value: object) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value)
