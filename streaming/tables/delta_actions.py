"""Shell: the actions that a Delta log is made of, as plain values (Delta protocol, "Actions")."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from streaming.machine.clock import now_ms
from streaming.tables.schema import Table, delta_fields, properties

Action = dict[str, Any]

_STATISTICS_TEXT = 32  # Delta's own limit for texts in statistics
_WRITER_FEATURES = ["appendOnly", "invariants", "changeDataFeed", "clustering", "domainMetadata"]


class Mark(NamedTuple):
    """Delta's ``txn``: this application has written everything up to this version of its own."""

    app_id: str
    version: int


def commit_info(
    operation: str, parameters: dict[str, str] | None = None, *, read_version: int | None = None, blind: bool
) -> Action:
    """Return the commitInfo of a commit.

    Args:
        read_version: The version that was seen; None: the table was not there.
        blind: Nothing was read for it.
    """
    seen = {} if read_version is None else {"readVersion": read_version}
    return {
        "commitInfo": {
            "timestamp": now_ms(),
            "operation": operation,
            "operationParameters": parameters or {},
            **seen,
            "isolationLevel": "Serializable",
            "isBlindAppend": blind,
            "operationMetrics": {},
            "engineInfo": "rebalance-monitor",
            "txnId": str(uuid.uuid4()),
        }
    }


def txn(mark: Mark) -> Action:
    """Return what remembers a mark."""
    return {"txn": {"appId": mark.app_id, "version": mark.version, "lastUpdated": now_ms()}}


def add(path: str, size: int, rows: pa.Table, *, data_change: bool) -> Action:
    """Return what takes a file in."""
    return {
        "add": {
            "path": path,
            "partitionValues": {},
            "size": size,
            "modificationTime": now_ms(),
            "dataChange": data_change,
            "stats": json.dumps(_statistics(rows)),
        }
    }


def remove(path: str, size: int, *, data_change: bool) -> Action:
    """Return what takes a file out."""
    return {
        "remove": {
            "path": path,
            "deletionTimestamp": now_ms(),
            "dataChange": data_change,
            "extendedFileMetadata": True,
            "partitionValues": {},
            "size": size,
        }
    }


def creation(table: Table) -> list[Action]:
    """Return what makes a table."""
    clustering = {"clusteringColumns": [[name] for name in table.cluster_by], "domainName": "delta.clustering"}
    parameters = {"clusterBy": json.dumps(list(table.cluster_by)), "description": table.comment}
    return [
        commit_info("CREATE TABLE", parameters, blind=True),
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": _WRITER_FEATURES}},
        {
            "metaData": {
                "id": str(uuid.uuid4()),
                "description": table.comment,
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": delta_fields(table)}),
                "partitionColumns": [],
                "configuration": properties(table),
                "createdTime": now_ms(),
            }
        },
        {"domainMetadata": {"domain": "delta.clustering", "configuration": json.dumps(clustering), "removed": False}},
    ]


def more_columns(delta: DeltaTable, fields: Sequence[dict[str, Any]]) -> list[Action]:
    """Return what puts columns behind those that a table has; in the rows that are there they are null."""
    metadata = delta.metadata()
    schema = json.loads(delta.schema().to_json())
    schema["fields"] += fields
    return [
        commit_info("ADD COLUMNS", {"columns": json.dumps(fields)}, read_version=delta.version(), blind=False),
        {
            "metaData": {
                "id": str(metadata.id),
                "name": metadata.name,
                "description": metadata.description,
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps(schema),
                "partitionColumns": metadata.partition_columns,
                "configuration": metadata.configuration,
                "createdTime": metadata.created_time,
            }
        },
    ]


def _statistics(rows: pa.Table) -> dict[str, Any]:
    """Return the file's statistics (Delta protocol, "Per-file Statistics"), exact or left out."""
    smallest, largest = {}, {}
    for name in rows.column_names:
        column = rows[name]
        if pa.types.is_nested(column.type) or pa.types.is_boolean(column.type) or column.null_count == rows.num_rows:
            continue
        bounds = pc.min_max(column)
        low, high = _statistic(bounds["min"]), _statistic(bounds["max"])
        if low is not None and high is not None:
            smallest[name], largest[name] = low, high
    return {
        "numRecords": rows.num_rows,
        "minValues": smallest,
        "maxValues": largest,
        "nullCount": {name: rows[name].null_count for name in rows.column_names},
    }


def _statistic(value: pa.Scalar) -> object | None:
    if pa.types.is_timestamp(value.type):
        return str(pc.strftime(value.cast(pa.timestamp("ms", "UTC")), format="%Y-%m-%dT%H:%M:%S").as_py()) + "Z"
    plain = value.as_py()
    return None if isinstance(plain, str) and len(plain) > _STATISTICS_TEXT else plain
