"""Shell: every table of the monitor: its name, columns, types, comments, keys and properties, once. No I/O.

Whatever needs a schema (Delta's log, Arrow, Spark SQL, the README) derives it from here. Rows travel through the
shell as plain dicts in which times are epoch milliseconds, as in the core; only here do they become TIMESTAMPs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

Row: TypeAlias = dict[str, Any]

TEXT = pa.string()
COUNT = pa.int32()
LONG = pa.int64()
TRUTH = pa.bool_()
TIME = pa.timestamp("us", "UTC")
TEXTS = pa.list_(TEXT)
TRIGGERS = pa.list_(
    pa.struct([("kind", TEXT), ("member_id", TEXT), ("topic", TEXT), ("detail", TEXT), ("event_id", TEXT)])
)
QUEUES = pa.list_(pa.struct([("broker", TEXT), ("queue_id", LONG), ("racks", TEXTS)]))

_SIMPLE = {TEXT: ("string", "STRING"), COUNT: ("integer", "INT"), LONG: ("long", "BIGINT"),
           TRUTH: ("boolean", "BOOLEAN"), TIME: ("timestamp", "TIMESTAMP")}  # fmt: skip


class Column(NamedTuple):
    """One column; the comment says what a user must know to read it."""

    name: str
    type: pa.DataType
    comment: str


class Table(NamedTuple):
    """One table.

    Attributes:
        key: What tells two rows apart.
        cluster_by: What readers ask by; rows that share it lie together.
        append_only: Rows are never changed or taken away.
        ends: Column that is null while what the row tells still holds, where the table has one.
    """

    name: str
    comment: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    cluster_by: tuple[str, ...] = ("cluster", "group_id")
    append_only: bool = False
    ends: str | None = None

    @property
    def schema(self) -> pa.Schema:
        """Answer the Arrow schema."""
        return pa.schema([(column.name, column.type) for column in self.columns])

    @property
    def names(self) -> tuple[str, ...]:
        """Answer the columns' names, in order."""
        return tuple(column.name for column in self.columns)


_CLUSTER = Column("cluster", TEXT, "Name of the cluster")
_SYSTEM = Column("system", TEXT, "kafka, rocketmq or metaq")
_GROUP = Column("group_id", TEXT, "Name of the consumer group")
_TOPIC = Column("topic", TEXT, "Name of the topic")
_BROKER = Column("broker", TEXT, "Broker of the queue where queues are numbered per broker, else null")
_QUEUE = Column("queue_id", LONG, "Number of the queue (partition); -1 = shared by message, owned by nobody alone")
_MEMBER = Column("member_id", TEXT, "Id of the member within its group")
_REBALANCE = Column("rebalance_id", TEXT, "The rebalance, see table rebalances")
_IDLE = Column("idle_members", COUNT, "Members that subscribe to something and hold nothing")
_UNASSIGNED = Column("unassigned_queues", COUNT, "Subscribed queues that nobody holds")
_SPREAD = Column("spread", COUNT, "Most minus fewest queues of a subscribing member")

REBALANCES = Table(
    "rebalances",
    "One row per rebalance: when, why, and what it did",
    (
        Column("rebalance_id", TEXT, "Identity: the same input gives the same id"),
        _CLUSTER,
        _SYSTEM,
        _GROUP,
        Column("generation", LONG, "Number of the rebalance within its group"),
        Column("generation_source", TEXT, "reported (by the source) or counted (by the monitor)"),
        Column("event_time", TIME, "When it happened, by the events"),
        Column("detected_at", TIME, "When the monitor decided it: the time of its batch"),
        Column("trigger", TEXT, "Main cause, the first that is present in the documented order of kinds"),
        Column("triggers", TRIGGERS, "Every cause that fell on the same moment"),
        Column("strategy", TEXT, "Strategy that dealt, by its qualified name"),
        Column("leader", TEXT, "Member that computed the assignment, where the source tells"),
        Column("mode", TEXT, "clustering, broadcasting or message"),
        Column("status", TEXT, "completed or failed"),
        Column("error", TEXT, "Why it failed, or why it could not be recomputed"),
        Column("members_before", COUNT, "Members before"),
        Column("members_after", COUNT, "Members after; 0 = the group became empty"),
        Column("queues_before", COUNT, "Queues of subscribed, known topics before"),
        Column("queues_after", COUNT, "Queues of subscribed, known topics after"),
        Column("queues_kept", COUNT, "Owners that kept their queue"),
        Column("queues_assigned", COUNT, "Queues that got an owner and took none away"),
        Column("queues_revoked", COUNT, "Queues that lost an owner and got none"),
        Column("queues_moved", COUNT, "Queues that went from one owner to another"),
        Column(
            "generations_missed", LONG, "Generations between the last one seen and this one; null = cannot be known"
        ),
        _IDLE,
        _UNASSIGNED,
        _SPREAD,
        Column("agrees", TRUTH, "Whether computed and reported assignment are the same; null = nothing to compare"),
        Column("queues_differing", COUNT, "Queues on which computed and reported assignment differ"),
        Column("pause_ms", LONG, "From the first evidence that it began to the completed assignment; null = not seen"),
        Column(
            "queue_pause_ms", LONG, "Time without an owner, summed over the queues that stood still; null = not seen"
        ),
        Column("pause_estimated_ms", LONG, "Estimate of pause_ms where it was not seen"),
        Column("queue_pause_estimated_ms", LONG, "Estimate of queue_pause_ms where it was not seen"),
    ),
    key=("rebalance_id",),
    append_only=True,
)

CHANGES = Table(
    "changes",
    "One row per change of one thing: the journal from which the tables of spans and of the present are made",
    (
        _CLUSTER,
        Column("group_id", TEXT, "Group whose history this belongs to; null = of a topic or of the cluster"),
        Column(
            "subject", TEXT, "Topic or other thing of the cluster whose history this belongs to, where group_id is null"
        ),
        Column("number", LONG, "Place within that history: orders it for ever"),
        Column("kind", TEXT, "member_opened, queue_assigned, group_changed, ...: the type of body"),
        Column("event_time", TIME, "When it happened, by the events"),
        Column("batch", LONG, "Batch of the job that decided it"),
        Column("body", TEXT, "The change itself, as JSON; times in epoch milliseconds"),
    ),
    key=("cluster", "group_id", "subject", "number"),
)

REJECTED_EVENTS = Table(
    "rejected_events",
    "One row per input that was not applied as sent",
    (
        Column("cluster", TEXT, "Name of the cluster, where the input told it"),
        Column("group_id", TEXT, "Name of the group, where the input told it"),
        Column("source", TEXT, "Where it was read: folder or topic"),
        Column("position", TEXT, "Its place there: partition and offset, or file and line"),
        Column("raw", TEXT, "Its text, cut at limits.raw_limit_bytes"),
        Column("reason", TEXT, "A stable word, e.g. not_json, missing_field, late"),
        Column("detail", TEXT, "A sentence for people"),
        Column("seen_at", TIME, "Time of the batch that read it"),
        Column("raw_length", LONG, "Its full length in bytes"),
        Column("raw_sha256", TEXT, "SHA-256 of the whole, in hex"),
    ),
    key=("source", "position", "reason"),
    cluster_by=("seen_at",),
    append_only=True,
)

ASSIGNMENTS = Table(
    "assignments",
    "One row per owner of one queue for one span; owner at T: valid_from <= T and (valid_to is null or T < valid_to)",
    (
        _CLUSTER,
        _GROUP,
        _TOPIC,
        _BROKER,
        _QUEUE,
        _MEMBER,
        Column("origin", TEXT, "computed (what the strategy gives) or reported (what clients or coordinator say)"),
        Column("generation", LONG, "Generation that began the span"),
        _REBALANCE,
        Column("valid_from", TIME, "Begin of the span"),
        Column("valid_to", TIME, "End of the span, not part of it; null = now"),
        Column("inferred", TRUTH, "Whether the begin was inferred and not seen"),
        Column(
            "pause_ms",
            LONG,
            "Reported spans: from the old owner's release of the queue to this one's first pull, as seen",
        ),
        Column("pause_estimated_ms", LONG, "Estimate of pause_ms where it was not seen, by the clients' own timings"),
    ),
    key=("cluster", "group_id", "topic", "broker", "queue_id", "member_id", "origin", "valid_from"),
    ends="valid_to",
)

MEMBERS = Table(
    "members",
    "One row per session of one member",
    (
        _CLUSTER,
        _GROUP,
        _MEMBER,
        Column("client_id", TEXT, "Name that the client gives itself"),
        Column("host", TEXT, "Address of the client"),
        Column("instance_id", TEXT, "Static member's group.instance.id"),
        Column("rack", TEXT, "Rack of the client"),
        Column("subscriptions", TEXTS, "Topics subscribed to"),
        Column("strategies", TEXTS, "Strategies in order of preference"),
        Column("joined_at", TIME, "Begin of the session"),
        Column("last_heartbeat_at", TIME, "Last sign of life of an ended session; null while it is open"),
        Column("left_at", TIME, "End of the session; null = a member now"),
        Column("left_reason", TEXT, "left, expired, gone or absent_from_snapshot"),
        Column("lives_by", TEXT, "heartbeats (expires by silence) or snapshots"),
        Column("session_timeout_ms", LONG, "Silence after which the session ends"),
        Column("former_member_id", TEXT, "Id under which a static member held this session before it came back"),
        Column("client_version", TEXT, "Version of the client, as the source names it"),
        Column("language", TEXT, "Language of the client: JAVA, GO, ..."),
    ),
    key=("cluster", "group_id", "member_id", "joined_at"),
    ends="left_at",
)

GROUPS = Table(
    "groups",
    "One row per group as it is now",
    (
        _CLUSTER,
        _SYSTEM,
        _GROUP,
        Column("state", TEXT, "stable, empty, failed, or not_followed (a kind that is not recomputed)"),
        Column("mode", TEXT, "clustering, broadcasting or message"),
        Column("strategy", TEXT, "Strategy that deals, by its qualified name"),
        Column("generation", LONG, "Last generation"),
        Column("generation_source", TEXT, "reported or counted"),
        Column("members", COUNT, "Members"),
        Column("queues", COUNT, "Queues of subscribed, known topics"),
        _IDLE,
        _UNASSIGNED,
        _SPREAD,
        Column("last_rebalance_at", TIME, "When it last rebalanced"),
        Column("last_rebalance_id", TEXT, "That rebalance"),
    ),
    key=("cluster", "group_id"),
)

TOPICS = Table(
    "topics",
    "One row per span in which a topic had the same queues",
    (
        _CLUSTER,
        _TOPIC,
        Column("queue_count", LONG, "Number of queues"),
        Column("queues", QUEUES, "The queues, with the racks of their replicas where known"),
        Column("valid_from", TIME, "Begin of the span"),
        Column("valid_to", TIME, "End of the span, not part of it; null = now"),
    ),
    key=("cluster", "topic", "valid_from"),
    ends="valid_to",
    cluster_by=("cluster", "topic"),
)

FINDINGS = Table(
    "findings",
    "One row per thing that was or is wrong",
    (
        Column("finding_id", TEXT, "Identity of the finding"),
        _CLUSTER,
        Column("group_id", TEXT, "Group that it is about; null = the cluster"),
        Column("kind", TEXT, "source_silent, generations_missed, strategy_failed, events_late, expected_differs, ..."),
        Column("severity", TEXT, "info, warning or critical"),
        Column("message", TEXT, "What is wrong"),
        Column("advice", TEXT, "What to do about it"),
        Column("evidence", TEXTS, "Ids of the events that show it"),
        Column("opened_at", TIME, "Since when"),
        Column("closed_at", TIME, "Until when; null = still so"),
    ),
    key=("finding_id",),
    ends="closed_at",
)

GROUP_MINUTES = Table(
    "group_minutes",
    "One row per minute of a group in which anything changed; a minute without a row is like the last row before it,"
    " with no rebalances",
    (
        _CLUSTER,
        _GROUP,
        Column("minute", TIME, "Begin of the minute"),
        Column("members", COUNT, "Members at the end of the minute"),
        Column("rebalances", COUNT, "Rebalances in the minute"),
        Column("queues_moved", LONG, "Queues moved in the minute"),
        Column(
            "queue_pause_ms",
            LONG,
            "Queue pauses of its rebalances, or that ended in it where members take over by themselves, as far as seen;"
            " null = of none of them",
        ),
        Column("idle_members", COUNT, "Idle members at the end of the minute"),
        Column("unassigned_queues", COUNT, "Unassigned queues at the end of the minute"),
        Column("spread", COUNT, "Spread at the end of the minute"),
    ),
    key=("cluster", "group_id", "minute"),
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        REBALANCES,
        ASSIGNMENTS,
        MEMBERS,
        GROUPS,
        TOPICS,
        FINDINGS,
        REJECTED_EVENTS,
        CHANGES,
        GROUP_MINUTES,
    )
}

# Commits are many: checkpoints of the log must be rare enough to be cheap, and old commits must go.
CHECKPOINT_INTERVAL = 50
PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    "delta.checkpointInterval": str(CHECKPOINT_INTERVAL),
    "delta.logRetentionDuration": "interval 2 days",
    "delta.deletedFileRetentionDuration": "interval 1 days",
}


def properties(table: Table) -> dict[str, str]:
    """Answer the Delta properties of the table."""
    return PROPERTIES | {"delta.appendOnly": "true" if table.append_only else "false"}


def ddl(table: Table, path: str) -> str:
    """Answer the SQL that makes the table at a path of its own, for engines that have SQL."""
    columns = ",\n  ".join(
        f"`{column.name}` {sql_type(column.type)} COMMENT {_quoted(column.comment)}" for column in table.columns
    )
    pairs = ", ".join(f"{_quoted(key)} = {_quoted(value)}" for key, value in sorted(properties(table).items()))
    return (
        f"CREATE TABLE IF NOT EXISTS delta.`{path}` (\n  {columns}\n) USING delta\n"
        f"CLUSTER BY ({', '.join(table.cluster_by)})\nCOMMENT {_quoted(table.comment)}\nTBLPROPERTIES ({pairs})"
    )


def sql_type(kind: pa.DataType, *, time: str = "TIMESTAMP") -> str:
    """Answer the type's name in Spark SQL.

    Args:
        time: What stands for a time, e.g. BIGINT where it is still epoch milliseconds.
    """
    if pa.types.is_timestamp(kind):
        return time
    if pa.types.is_list(kind):
        return f"ARRAY<{sql_type(kind.value_type, time=time)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'`{field.name}`: {sql_type(field.type, time=time)}' for field in kind)}>"
    return _SIMPLE[kind][1]


def delta_fields(table: Table) -> list[dict[str, Any]]:
    """Answer the columns as the Delta log has them (Delta protocol, "Schema Serialization Format")."""
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
    return _SIMPLE[kind][0]


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def to_arrow(table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Lay rows out as the table's columns; what a row does not name is null."""
    return pa.table(
        [_arrow_column([row.get(column.name) for row in rows], column.type) for column in table.columns],
        schema=table.schema,
    )


def _arrow_column(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.timestamp("ms", "UTC")).cast(kind)
    return pa.array(values, kind)


def as_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Answer rows with these columns; one that rows of an older release do not have is null."""
    for field in schema:
        if field.name not in rows.column_names:
            rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
    return rows.select(schema.names).cast(schema)


def from_arrow(table: Table, columns: pa.Table) -> list[Row]:
    """Answer the rows as dicts, times in epoch milliseconds; columns that are not there are left out."""
    by_name = {name: _plain_values(columns.column(name)) for name in table.names if name in columns.column_names}
    return [dict(zip(by_name, values, strict=True)) for values in zip(*by_name.values(), strict=True)]


def from_arrow_columns(columns: pa.Table, names: Sequence[str]) -> list[Sequence[Any]]:
    """Answer columns as lists, times in epoch milliseconds."""
    return [list(_plain_values(columns.column(name))) for name in names]


def _plain_values(column: pa.ChunkedArray) -> Iterable[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
    return column.to_pylist()
