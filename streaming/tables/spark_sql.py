"""Shell: the tables in Spark SQL: the types of their columns, and the statements that create them. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pyarrow as pa

from streaming.tables.columns import COUNT, LONG, REAL, TEXT, TIME, TRUTH, Table
from streaming.tables.delta_schema import properties
from streaming.tables.predicates import Dialect

_SIMPLE = {TEXT: "STRING", COUNT: "INT", LONG: "BIGINT", REAL: "DOUBLE", TRUTH: "BOOLEAN", TIME: "TIMESTAMP"}


def ddl(table: Table, name: str, more: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the SQL that creates the table under a name, or at a path as ``delta.`PATH```.

    Args:
        more: Properties in addition to those of all tables.
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


def sql_type(kind: pa.DataType, *, time: str = "TIMESTAMP") -> str:
    """Return the type's name in Spark SQL.

    Args:
        time: The type of times, e.g. BIGINT if it is still in epoch milliseconds.
    """
    if pa.types.is_timestamp(kind):
        return time
    if pa.types.is_list(kind):
        return f"ARRAY<{sql_type(kind.value_type, time=time)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'`{field.name}`: {sql_type(field.type, time=time)}' for field in kind)}>"
    return _SIMPLE[kind]


def quoted(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SPARK = Dialect(lambda epoch_ms: f"timestamp_millis({epoch_ms})", quoted)
