"""Shell: every table of the monitor: its name, columns, types, comments, keys and properties, once. No I/O.

Everything that needs a schema (Delta, Arrow, Spark SQL, the README) derives it from here. Rows travel through the
shell as plain dicts in which times are epoch milliseconds, as in the core; `arrow_rows.py` makes TIMESTAMPs of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from udfs.model.member_fields import SHOWN, TRAITS, kind_of
from udfs.model.systems import SYSTEMS

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

MERGED_FILE_BYTES = 128 << 10  # a changed row has its whole file written anew
APPENDED_FILE_BYTES = 64 << 20

_SIMPLE = {TEXT: "string", COUNT: "integer", LONG: "long", TRUTH: "boolean", TIME: "timestamp"}


class Column(NamedTuple):
    """One column; the comment is the documentation for users."""

    name: str
    type: pa.DataType
    comment: str


class Table(NamedTuple):
    """One table.

    Attributes:
        key: The identity of a row.
        cluster_by: What readers filter by; rows that share it are clustered.
        append_only: Rows are never changed or taken away.
        ends: Column that is null while the row is current, where the table has one.
        unique_texts: Columns whose texts hardly repeat: a dictionary of them costs time and saves nothing.
        file_bytes: How large a data file should be.
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


_CLUSTER = Column("cluster", TEXT, "Name of the cluster")
_SYSTEM = Column("system", TEXT, f"{', '.join([*SYSTEMS][:-1])} or {[*SYSTEMS][-1]}")
_GROUP = Column("group_id", TEXT, "Name of the consumer group")
_TOPIC = Column("topic", TEXT, "Name of the topic")
_BROKER = Column("broker", TEXT, "Broker of the queue where queues are numbered per broker, else null")
_QUEUE = Column("queue_id", LONG, "Number of the queue (partition); -1 = shared by message, without a single owner")
_MEMBER = Column("member_id", TEXT, "Id of the member within its group")
_INSTANCE = Column("instance_id", TEXT, TRAITS["instance_id"].comment)
_REBALANCE = Column("rebalance_id", TEXT, "The rebalance, see table rebalances")
_SPAN = (
    Column("valid_from", TIME, "Start of the span"),
    Column("valid_to", TIME, "End of the span, not part of it; null = now"),
)
_IDLE = Column("idle_members", COUNT, "Members with a subscription and without queues")
_UNASSIGNED = Column("unassigned_queues", COUNT, "Subscribed queues without an owner")
_SPREAD = Column("spread", COUNT, "Most minus fewest queues of a subscribing member")

_KINDS = {str: TEXT, int: LONG, bool: TRUTH, tuple: TEXTS}


def _described(*names: str) -> list[Column]:
    """Return the columns of a member's description."""
    return [Column(name, _KINDS[kind_of(name)], TRAITS[name].comment) for name in names]


REBALANCES = Table(
    "rebalances",
    "One row per rebalance: its time, its causes and its effects",
    (
        Column("rebalance_id", TEXT, "Identity: the same input gives the same id"),
        _CLUSTER,
        _SYSTEM,
        _GROUP,
        Column("generation", LONG, "Number of the rebalance within its group"),
        Column("generation_source", TEXT, "reported (by the source) or counted (by the monitor)"),
        Column("event_time", TIME, "Event time"),
        Column("detected_at", TIME, "Processing time: the timestamp of the batch that decided it"),
        Column("trigger", TEXT, "Main cause: the first in the documented order of kinds"),
        Column("triggers", TRIGGERS, "Every cause at the same event time"),
        Column("strategy", TEXT, "Strategy that computed the assignment, by its qualified name"),
        Column("leader", TEXT, "Member that computed the assignment, where the source reports it"),
        Column("mode", TEXT, "clustering, broadcasting or message"),
        Column("status", TEXT, "completed or failed"),
        Column("error", TEXT, "Why it failed, or why it could not be recomputed"),
        Column("members_before", COUNT, "Members before"),
        Column("members_after", COUNT, "Members after; 0 = the group became empty"),
        Column("queues_before", COUNT, "Queues of subscribed, known topics before"),
        Column("queues_after", COUNT, "Queues of subscribed, known topics after"),
        Column("queues_kept", COUNT, "Owners that kept their queue"),
        Column("queues_assigned", COUNT, "Queues that had no owner and got one"),
        Column("queues_revoked", COUNT, "Queues that lost an owner and got none"),
        Column("queues_moved", COUNT, "Queues that moved from one owner to another"),
        Column("generations_missed", LONG, "Generations between the last one observed and this one; null = unknown"),
        _IDLE,
        _UNASSIGNED,
        _SPREAD,
        Column("agrees", TRUTH, "Whether computed and reported assignment are equal; null = nothing to compare"),
        Column("queues_differing", COUNT, "Queues on which computed and reported assignment differ"),
        Column(
            "pause_ms", LONG, "From the first evidence that it began to the completed assignment; null = not observed"
        ),
        Column("queue_pause_ms", LONG, "Time without an owner, summed over the paused queues; null = not observed"),
        Column("pause_estimated_ms", LONG, "Estimate of pause_ms where it was not observed"),
        Column("queue_pause_estimated_ms", LONG, "Estimate of queue_pause_ms where it was not observed"),
    ),
    key=("rebalance_id",),
    append_only=True,
    unique_texts=("rebalance_id",),
    file_bytes=APPENDED_FILE_BYTES,
)

CHANGES = Table(
    "changes",
    "One row per change: the journal from which the tables of spans and of the current state are built",
    (
        _CLUSTER,
        Column("group_id", TEXT, "Group whose history this belongs to; null = of a topic or of the cluster"),
        Column(
            "subject", TEXT, "Topic or other thing of the cluster whose history this belongs to, where group_id is null"
        ),
        Column("number", LONG, "Position within that history: fixes the order"),
        Column("kind", TEXT, "member_opened, queues_reassigned, group_changed, ...: the type of body"),
        Column("event_time", TIME, "Event time"),
        Column("batch", LONG, "Batch of the job that decided it"),
        Column("body", TEXT, "The change itself, as JSON; times in epoch milliseconds"),
    ),
    key=("cluster", "group_id", "subject", "number"),
    file_bytes=APPENDED_FILE_BYTES,
    unique_texts=("body",),
)

REJECTED_EVENTS = Table(
    "rejected_events",
    "One row per input that was not applied as sent",
    (
        Column("cluster", TEXT, "Name of the cluster, where the input names it"),
        Column("group_id", TEXT, "Name of the group, where the input names it"),
        Column("source", TEXT, "Source: folder or topic"),
        Column("position", TEXT, "Position in the source: partition and offset, or file and line"),
        Column("raw", TEXT, "Text of the input, cut at limits.raw_limit_bytes"),
        Column("reason", TEXT, "Stable code, e.g. not_json, missing_field, late"),
        Column("detail", TEXT, "Explanation of the reason"),
        Column("seen_at", TIME, "Time of the batch that read it"),
        Column("raw_length", LONG, "Full length of the input in bytes"),
        Column("raw_sha256", TEXT, "SHA-256 of the full input, in hex"),
    ),
    key=("source", "position", "reason"),
    cluster_by=("seen_at",),
    append_only=True,
    unique_texts=("position", "raw", "raw_sha256"),
    file_bytes=APPENDED_FILE_BYTES,
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
        _INSTANCE,
        Column("origin", TEXT, "computed (by the strategy) or reported (by clients or coordinator)"),
        Column("generation", LONG, "Generation that began the span"),
        _REBALANCE,
        *_SPAN,
        Column("inferred", TRUTH, "Whether the start was inferred and not observed"),
        Column(
            "pause_ms",
            LONG,
            "Reported spans: from the old owner's release of the queue to this one's first pull, as observed",
        ),
        Column(
            "pause_estimated_ms", LONG, "Estimate of pause_ms where it was not observed, by the clients' own timings"
        ),
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
        *_described("client_id", "host", "instance_id", "rack", "subscriptions", "strategies"),
        Column("joined_at", TIME, "Start of the session"),
        Column("last_heartbeat_at", TIME, "Last heartbeat of an ended session; null while it is open"),
        Column("left_at", TIME, "End of the session; null = still a member"),
        Column("left_reason", TEXT, "left, expired, gone, absent_from_snapshot or replaced"),
        Column("lives_by", TEXT, "heartbeats (expires without them) or snapshots"),
        *_described("session_timeout_ms"),
        Column("former_member_id", TEXT, "Previous id of a static member that rejoined under this one"),
        *_described(*SHOWN[SHOWN.index("client_version") :]),  # all that are newer come at the end
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
        Column("strategy", TEXT, "Strategy that computes the assignment, by its qualified name"),
        Column("generation", LONG, "Last generation"),
        Column("generation_source", TEXT, "reported or counted"),
        Column("members", COUNT, "Members"),
        Column("queues", COUNT, "Queues of subscribed, known topics"),
        _IDLE,
        _UNASSIGNED,
        _SPREAD,
        Column("last_rebalance_at", TIME, "Time of the last rebalance"),
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
        *_SPAN,
    ),
    key=("cluster", "topic", "valid_from"),
    ends="valid_to",
    cluster_by=("cluster", "topic"),
)

FINDINGS = Table(
    "findings",
    "One row per finding, open or closed",
    (
        Column("finding_id", TEXT, "Identity of the finding"),
        _CLUSTER,
        Column("group_id", TEXT, "Affected group; null = the whole cluster"),
        Column("kind", TEXT, "source_silent, generations_missed, strategy_failed, events_late, expected_differs, ..."),
        Column("severity", TEXT, "info, warning or critical"),
        Column("message", TEXT, "What is wrong"),
        Column("advice", TEXT, "What to do about it"),
        Column("evidence", TEXTS, "Ids of the events that prove it"),
        Column("opened_at", TIME, "Since when"),
        Column("closed_at", TIME, "Time when it closed; null = still open"),
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
        Column("minute", TIME, "Start of the minute"),
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
    """Return the Delta properties of the table."""
    return PROPERTIES | {"delta.appendOnly": "true" if table.append_only else "false"}


def delta_fields(table: Table) -> list[dict[str, Any]]:
    """Return the columns as the Delta log has them (Delta protocol, "Schema Serialization Format")."""
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
