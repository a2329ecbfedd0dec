"""Shell: the tables in Spark SQL: the types of their columns, and what makes them. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pyarrow as pa

from streaming.tables.delta_schema import properties
from streaming.tables.journal_entries import RowFilter
from streaming.tables.schema import COUNT, LONG, TEXT, TIME, TRUTH, Table

_SIMPLE = {TEXT: "STRING", COUNT: "INT", LONG: "BIGINT", TRUTH: "BOOLEAN", TIME: "TIMESTAMP"}


# A longer list of values does not help to skip files, and is slow to plan.
_LISTED = 500


def ddl(table: Table, name: str, more: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the SQL that makes the table under a name, or at a path as ``delta.`PATH```.

    Args:
        more: Properties beside those of all tables.
    """
    columns = ",\n  ".join(
        f"`{column.name}` {sql_type(column.type)} COMMENT {quoted(column.comment)}" for column in table.columns
    )
    pairs = ", ".join(
        f"{quoted(key)} = {quoted(value)}" for key, value in sorted({**properties(table), **more}.items())
    )
    return (
        f"CREATE TABLE IF NOT EXISTS {name} (\n  {columns}\n) USING delta\n"
        f"COMMENT {quoted(table.comment)}\nTBLPROPERTIES ({pairs})"
    )


def quoted_path(uri: str) -> str:
    """Return the name of the table at a path or URI."""
    return f"delta.`{uri.replace('`', '``')}`"


def where_of(wanted: RowFilter) -> str:
    """Return SQL that holds for all rows that match, and for few others."""
    tests = [one_of(f"`{column}`", values) for column, values in wanted.among.items()]
    for column, (first, last) in wanted.between.items():
        tests.append(f"`{column}` BETWEEN timestamp_millis({first}) AND timestamp_millis({last})")
    if wanted.ends is not None:
        since = "" if wanted.ended_since is None else f" OR `{wanted.ends}` >= timestamp_millis({wanted.ended_since})"
        tests.append(f"(`{wanted.ends}` IS NULL{since})")
    return " AND ".join(tests) or "true"


def one_of(column: str, values: Sequence[str]) -> str:
    """Return SQL by which a column has one of these values, or, where they are many, one between them."""
    if not values:
        return "false"
    if len(values) > _LISTED:
        return between(column, min(values), max(values))
    return f"{column} IN ({', '.join(map(quoted, sorted(values)))})"


def between(column: str, first: str, last: str) -> str:
    """Return SQL by which a column of texts has a value from the first to the last."""
    return f"{column} BETWEEN {quoted(first)} AND {quoted(last)}"


def sql_type(kind: pa.DataType, *, time: str = "TIMESTAMP") -> str:
    """Return the type's name in Spark SQL.

    Args:
        time: The type of times, e.g. BIGINT where it is still epoch milliseconds.
    """
    if pa.types.is_timestamp(kind):
        return time
    if pa.types.is_list(kind):
        return f"ARRAY<{sql_type(kind.value_type, time=time)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'`{field.name}`: {sql_type(field.type, time=time)}' for field in kind)}>"
    return _SIMPLE[kind]


def quoted(text: str) -> str:
    """Return a text as SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
