"""Shell: the tables' columns and properties in the Delta log's form. No I/O."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from streaming.tables.columns import COUNT, LONG, REAL, TEXT, TIME, TRUTH, Table

_SIMPLE = {TEXT: "string", COUNT: "integer", LONG: "long", REAL: "double", TRUTH: "boolean", TIME: "timestamp"}

# There are many commits, so checkpoints of the log must be rare enough to be cheap, and old commits must be removed.
CHECKPOINT_INTERVAL = 50
PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    "delta.checkpointInterval": str(CHECKPOINT_INTERVAL),
    "delta.logRetentionDuration": "interval 2 days",
    "delta.deletedFileRetentionDuration": "interval 1 days",
}


def properties(table: Table) -> dict[str, str]:
    """Return the Delta properties of the table."""
    return PROPERTIES | {"delta.appendOnly": "true" if table.append_only else "false"}


def delta_fields(table: Table) -> list[dict[str, Any]]:
    """Return the columns in the Delta log's form (Delta protocol, "Schema Serialization Format")."""
    return [
        {
            "name": column.name,
            "type": _delta_type(column.type),
            "nullable": True,
            "metadata": {"comment": column.comment},
        }
        for column in table.columns
    ]


def _delta_type(kind: pa.DataType) -> object:
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": _delta_type(kind.value_type), "containsNull": True}
    if pa.types.is_struct(kind):
        return {
            "type": "struct",
            "fields": [
                {"name": field.name, "type": _delta_type(field.type), "nullable": True, "metadata": {}}
                for field in kind
            ],
        }
    return _SIMPLE[kind]
