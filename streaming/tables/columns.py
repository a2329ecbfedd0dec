"""Shell: definitions of tables: the types of columns, a column, a table. No I/O."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from udfs.model.queue_outages import QueueOutage

Row: TypeAlias = dict[str, Any]

TEXT = pa.string()
COUNT = pa.int32()
LONG = pa.int64()
REAL = pa.float64()
TRUTH = pa.bool_()
TIME = pa.timestamp("us", "UTC")
TEXTS = pa.list_(TEXT)
TRIGGERS = pa.list_(
    pa.struct(
        [(name, TEXT) for name in ("kind", "member_id", "topic", "detail", "event_id", "client", "host", "part_of")]
    )
)
NAMED_QUEUES = pa.list_(
    pa.struct(
        [
            *(("topic", TEXT), ("broker", TEXT), ("queue_id", LONG)),
            *(("member_id", TEXT), ("reason", TEXT), ("owners", TEXTS)),
        ]
    )
)
NAMED_MEMBERS = pa.list_(pa.struct([("member_id", TEXT), ("client", TEXT), ("detail", TEXT)]))
NAMED_CLIENTS = pa.list_(pa.struct([("client", TEXT), ("rebalances", LONG)]))
NAMED_SUBSCRIPTIONS = pa.list_(pa.struct([("topics", TEXTS), ("members", TEXTS), ("members_left_out", LONG)]))
DIFFERING = pa.list_(
    pa.struct(
        [
            ("topic", TEXT),
            ("broker", TEXT),
            ("queue_id", LONG),
            ("kind", TEXT),
            ("expected", TEXTS),
            ("reported", TEXTS),
        ]
    )
)
MEMBER_EPOCHS = pa.list_(pa.struct([("member_id", TEXT), ("epoch", LONG)]))
_ASSIGNED = pa.list_(pa.struct([("topic", TEXT), ("queue_ids", pa.list_(LONG))]))
RECONCILING = pa.list_(
    pa.struct(
        [
            *((name, TEXT) for name in ("member_id", "instance_id", "client_id", "host")),
            *(("epoch", LONG), ("state", TEXT)),
            *((name, _ASSIGNED) for name in ("assigned", "revoking", "target")),
        ]
    )
)
OUTAGES = pa.list_(
    pa.struct(
        [(name, LONG if name == "queue_id" or name.endswith("_ms") else TEXT) for name in QueueOutage.__struct_fields__]
    )
)
# A session keeps this many earlier descriptions; beyond it the oldest is dropped.
MAX_EARLIER = 100
EARLIER = pa.list_(
    pa.struct(
        [
            ("until_ms", LONG),
            *((name, TEXTS) for name in ("subscriptions", "strategies")),
            *((name, TEXT) for name in ("client_id", "host", "instance_id", "rack")),
            *((name, TEXT) for name in ("client_library", "strategy_settings")),
            ("session_timeout_ms", LONG),
        ]
    )
)
QUEUES = pa.list_(pa.struct([("broker", TEXT), ("queue_id", LONG), ("racks", TEXTS)]))

MERGED_FILE_BYTES = 128 << 10  # a changed row rewrites its whole file
APPENDED_FILE_BYTES = 64 << 20


class Column(NamedTuple):
    """One column; the comment is the documentation for users."""

    name: str
    type: pa.DataType
    comment: str


class Table(NamedTuple):
    """One table.

    Attributes:
        cluster_by: Columns that readers filter by; rows with equal values are clustered.
        append_only: Rows are never changed or removed.
        ends: Column that is null while the row is current, if the table has one.
        unique_texts: Columns whose texts hardly repeat, so that a dictionary costs time and saves nothing.
        file_bytes: The target size of a data file.
    """

    name: str
    comment: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    cluster_by: tuple[str, ...] = ("cluster", "group_id")
    append_only: bool = False
    ends: str | None = None
    unique_texts: tuple[str, ...] = ()
    file_bytes: int = MERGED_FILE_BYTES

    @property
    def schema(self) -> pa.Schema:
        """Return the Arrow schema."""
        return pa.schema([(column.name, column.type) for column in self.columns])

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns' names, in order."""
        return tuple(column.name for column in self.columns)
