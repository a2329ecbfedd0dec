"""Shell: a row filter as SQL, for skipping files, and as an exact test of Arrow rows. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from streaming.tables.journal_entries import RowFilter
from streaming.tables.schema import TIME

# Planning a longer list of values costs more than reading the files that it would skip.
LISTED = 500


class Dialect(NamedTuple):
    """An engine's syntax of constants: a time in epoch milliseconds, and a text."""

    time: Callable[[int], str]
    text: Callable[[str], str]


def literal_time(epoch_ms: int) -> str:
    """Return a time as SQL of delta-rs, in the columns' own type: files are skipped only by comparison with that."""
    seconds, rest_ms = divmod(epoch_ms, 1_000)
    text = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest_ms:03d}Z"
    return f"arrow_cast('{text}', 'Timestamp(Microsecond, Some(\"UTC\"))')"


DELTA_RS = Dialect(literal_time, lambda text: "'" + text.replace("'", "''") + "'")


def predicate_of(wanted: RowFilter, dialect: Dialect = DELTA_RS) -> str | None:
    """Return SQL that holds for all rows that match, and for few others; None if it would hold for all."""
    tests = [one_of(f"`{column}`", values, dialect) for column, values in wanted.among.items()]
    for column, (first, last) in wanted.between.items():
        tests.append(f"`{column}` BETWEEN {dialect.time(first)} AND {dialect.time(last)}")
    if wanted.ends is not None:
        since = "" if wanted.ended_since is None else f" OR `{wanted.ends}` >= {dialect.time(wanted.ended_since)}"
        tests.append(f"(`{wanted.ends}` IS NULL{since})")
    return " AND ".join(tests) or None


def matching(wanted: RowFilter) -> pc.Expression:
    """Return a test for rows."""
    test = pc.scalar(True)
    for column, values in wanted.among.items():
        test &= pc.field(column).isin(pa.array(values, pa.string()))
    for column, (first, last) in wanted.between.items():
        test &= (pc.field(column) >= _time(first)) & (pc.field(column) <= _time(last))
    if wanted.ends is not None:
        ends = pc.field(wanted.ends)
        test &= ends.is_null() if wanted.ended_since is None else ends.is_null() | (ends >= _time(wanted.ended_since))
    return test


def one_of(column: str, values: Sequence[str], dialect: Dialect = DELTA_RS) -> str:
    """Return SQL that tests whether a column has one of these values or, if there are many, one between them."""
    if not values:
        return "false"
    if len(values) > LISTED:
        return between(column, min(values), max(values), dialect)
    return f"{column} IN ({', '.join(map(dialect.text, sorted(values)))})"


def between(column: str, first: str, last: str, dialect: Dialect) -> str:
    """Return SQL that tests whether a column of texts has a value from the first to the last."""
    return f"{column} BETWEEN {dialect.text(first)} AND {dialect.text(last)}"


def _time(epoch_ms: int) -> pa.Scalar:
    return pa.scalar(epoch_ms * 1_000, TIME)
