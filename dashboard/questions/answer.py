"""Dashboard: the answer to a predefined question, computed from the tables without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa

from dashboard.questions.catalog import Question
from dashboard.reading.queries import Queries
from dashboard.reading.questions import Reading
from streaming.tables.arrow_rows import from_arrow_columns
from streaming.tables.schema import Row
from streaming.views.reader import Reader


class Answer(NamedTuple):
    """Columns and rows of an answer.

    Attributes:
        columns: Their names, in order. times: The names of those that are times.
        rows: Dicts; times in epoch milliseconds.
    """

    columns: list[str]
    times: frozenset[str]
    rows: list[Row]


def answer(question: Question, reader: Reader, queries: Queries, given: Mapping[str, object]) -> Answer:
    """Return the answer to a question.

    Args:
        reader: Reads the tables. queries: Runs the SQL.
        given: Parameters by name; times in epoch milliseconds; None if not given.

    Raises:
        ValueError: A parameter is missing, unknown or out of range.
        QueryTimeoutError: It took too long.
    """
    return answer_of(arrow_answer(question, reader, queries, given))


def arrow_answer(question: Question, reader: Reader, queries: Queries, given: Mapping[str, object]) -> pa.Table:
    """Return the answer as columns, see ``answer``."""
    text, values = question.positional(given)
    tables = {name: without_zones(reader.read(name, columns=columns)) for name, columns in question.tables.items()}
    return queries.run(text, tables, values)


def row_count(question: Question, reader: Reader, queries: Queries, given: Mapping[str, object]) -> pa.Table:
    """Return the number of rows that an answer has without a limit, as the column ``n``, see ``answer``."""
    text, values = question.positional(given, is_limited=False)
    tables = {name: without_zones(reader.read(name, columns=columns)) for name, columns in question.tables.items()}
    return queries.run(f"select count(*) as n from ({text})", tables, values)


def answer_of(found: pa.Table) -> Answer:
    """Convert columns into rows."""
    times = frozenset(field.name for field in found.schema if pa.types.is_timestamp(field.type))
    names: list[str] = found.column_names
    values_of = from_arrow_columns(found, names)
    return Answer(names, times, [dict(zip(names, row, strict=True)) for row in zip(*values_of, strict=True)])


def without_zones(rows: pa.Table) -> pa.Table:
    """Return the rows with times in UTC without a zone, because DuckDB compares and truncates those as such."""
    fields = [
        pa.field(field.name, pa.timestamp("us")) if pa.types.is_timestamp(field.type) else field
        for field in rows.schema
    ]
    return rows.cast(pa.schema(fields))


def kept_answer(reading: Reading, question: Question, given: Mapping[str, object]) -> Answer:
    """Return the answer to a question, cached, see ``answer``.

    Raises:
        ValueError, QueryTimeoutError: See ``answer``.
    """
    values = tuple(question.values(given).items())
    found = reading.kept(
        ("question", question.name, values),
        list(question.tables),
        lambda: arrow_answer(question, reading.tables, reading.queries, given),
    )
    return answer_of(found)


def kept_total(reading: Reading, question: Question, given: Mapping[str, object], found: Answer) -> int:
    """Return the number of rows that an answer would have without a limit.

    Args:
        given: The parameters of the answer, with its limit.

    Raises:
        QueryTimeoutError: See ``answer``.
    """
    values = question.values(given)
    if len(found.rows) < int(values.pop("limit")):
        return len(found.rows)
    counted = reading.kept(
        ("rows of a question", question.name, tuple(values.items())),
        list(question.tables),
        lambda: row_count(question, reading.tables, reading.queries, given),
    )
    count: int = counted["n"][0].as_py()
    return count
