"""Shell: a row filter as SQL, for passing over files, and as a test of Arrow's rows, which is exact. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from streaming.tables.journal_entries import RowFilter
from streaming.tables.schema import TIME

# Planning a longer list of values costs more than reading the files that it would skip.
LISTED = 500


def predicate_of(wanted: RowFilter) -> str | None:
    """Return SQL that holds for all rows that match, and for few others; None: it would hold for all."""
    tests = [one_of(f"`{column}`", values) for column, values in wanted.among.items()]
    for column, (first, last) in wanted.between.items():
        tests.append(f"`{column}` BETWEEN {literal_time(first)} AND {literal_time(last)}")
    if wanted.ends is not None:
        since = f" OR `{wanted.ends}` >= {literal_time(wanted.ended_since)}" if wanted.ended_since is not None else ""
        tests.append(f"(`{wanted.ends}` IS NULL{since})")
    return " AND ".join(tests) or None


def matching(wanted: RowFilter) -> pc.Expression:
    """Return the test of a row."""
    test = pc.scalar(True)
    for column, values in wanted.among.items():
        test &= pc.field(column).isin(pa.array(values, pa.string()))
    for column, (first, last) in wanted.between.items():
        test &= (pc.field(column) >= _time(first)) & (pc.field(column) <= _time(last))
    if wanted.ends is not None:
        ends = pc.field(wanted.ends)
        test &= ends.is_null() if wanted.ended_since is None else ends.is_null() | (ends >= _time(wanted.ended_since))
    return test


def one_of(column: str, values: Sequence[str]) -> str:
    """Return SQL by which a column has one of these values, or, where they are many, one between them."""
    if not values:
        return "false"
    if len(values) > LISTED:
        return f"{column} BETWEEN {literal(min(values))} AND {literal(max(values))}"
    return f"{column} IN ({', '.join(map(literal, sorted(values)))})"


def literal_time(epoch_ms: int) -> str:
    """Return a time as SQL, of the columns' own type: files are passed over by comparing with no other."""
    seconds, rest_ms = divmod(epoch_ms, 1_000)
    text = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest_ms:03d}Z"
    return f"arrow_cast('{text}', 'Timestamp(Microsecond, Some(\"UTC\"))')"


def literal(text: str) -> str:
    """Return a text as SQL."""
    return "'" + text.replace("'", "''") + "'"


def _time(epoch_ms: int) -> pa.Scalar:
    return pa.scalar(epoch_ms * 1_000, TIME)
