"""Dashboard: which columns the tables of the pages have, and how each is shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from streaming.tables.schema import Row


class Column(NamedTuple):
    """One column of a table on a page.

    Attributes:
        name: Of the row's field.
        title: Its heading.
        kind: How a cell is shown: a macro of ``templates/cells.html``.
        sort: Name of the listing's order; empty = none.
        wide: Left out on a narrow screen.
        hint: What the heading means, where its words alone leave that open.
        known_by: Fields of the row; where no row has any of them, the column is left out. Empty = it is always shown.
    """

    name: str
    title: str
    kind: str = "text"
    sort: str = ""
    wide: bool = False
    hint: str = ""
    known_by: tuple[str, ...] = ()


_SPREAD = "most minus fewest queues of a member"
_PAUSE = "from the first evidence that it began to the completed assignment; ~ is estimated"
_QUEUE_PAUSE = "time without an owner, summed over queues; ~ is estimated"
_REPEATED = "messages that new owners of queues read again; ~ is estimated"
_WAITING = "messages between the committed offset and the end of a queue when it got its new owner"
_EPOCH = "the group epoch that the member is at; -2 is a static member that is away"
_HOUR, _DAY = "rebalances of the last 60 minutes", "rebalances of the last 24 hours"


def _counts(*columns: tuple[str, str]) -> tuple[Column, ...]:
    return tuple(Column(name, title, "count", name, wide=True) for name, title in columns)


def filled_columns(columns: Iterable[Column], rows: Sequence[Row], sort: str = "") -> list[Column]:
    """Return the columns without those that no row has a value for; what rows are sorted by stays."""
    return [
        column
        for column in columns
        if not column.known_by
        or (column.sort and column.sort == sort.removeprefix("-"))
        or any(row.get(name) is not None for row in rows for name in column.known_by)
    ]


def _costs(*, are_sorted: bool) -> tuple[Column, ...]:
    """Return the columns of what moves of queues cost in messages."""
    repeated, waiting = "repeated_messages", "waiting_messages"
    names = (repeated, "repeated_estimated_messages")
    orders = (repeated, waiting) if are_sorted else ("", "")
    return (
        Column(repeated, "Messages read twice", "repeated", orders[0], wide=True, hint=_REPEATED, known_by=names),
        Column(waiting, "Messages that waited", "count", orders[1], wide=True, hint=_WAITING, known_by=(waiting,)),
    )


GROUPS = (
    Column("health", "Health", "health", "health"),
    Column("group_id", "Group", "group", "group_id"),
    Column("cluster", "Cluster", "name", "cluster", wide=True),
    Column("state", "State", "text", "state", wide=True),
    Column("open_findings", "Findings", "findings", "open_findings"),
    Column("rebalances_hour", "Rebalances 1 h", "count", "rebalances_hour", hint=_HOUR),
    Column("rebalances_day", "24 h", "count", "rebalances_day", hint=_DAY),
    Column("hours", "By hour", "spark", wide=True),
    *_counts(
        ("members", "Members"), ("queues", "Queues"), ("idle_members", "Idle"), ("unassigned_queues", "Unassigned")
    ),
    Column("spread", "Spread", "count", "spread", wide=True, hint=_SPREAD),
    Column("last_rebalance_at", "Last rebalance", "time", "last_rebalance_at", wide=True),
    Column("strategy", "Strategy", "name", "strategy", wide=True),
)
_CHANGE = (
    Column("cause", "Cause", "cause", "trigger"),
    Column("generation", "Generation", "count", "generation", wide=True),
    Column("members_after", "Members", "members", "members_after", wide=True),
    Column("queues_moved", "Moved", "count", "queues_moved"),
    Column("pause_ms", "Pause", "pause", "pause_ms", wide=True, hint=_PAUSE),
    Column("queue_pause_ms", "Queue pause", "queue_pause", "queue_pause_ms", wide=True, hint=_QUEUE_PAUSE),
    *_costs(are_sorted=True),
    Column("began_at", "Phases", "phases", wide=True),
    Column("agrees", "Agrees", "truth", wide=True, hint="whether the reported assignment is the recomputed one"),
    Column("status", "Status", "status", "status", wide=True),
)
REBALANCES = (
    Column("event_time", "Time", "rebalance", "event_time"),
    Column("group_id", "Group", "group", "group_id"),
    Column("cluster", "Cluster", "name", "cluster", wide=True),
    *_CHANGE,
)
GROUP_REBALANCES = (Column("event_time", "Time", "rebalance", "event_time"), *_CHANGE)
FINDINGS = (
    Column("severity", "Severity", "health", "severity"),
    Column("kind", "Kind", "code", "kind", wide=True),
    Column("group_id", "Group", "group", "group_id"),
    Column("cluster", "Cluster", "name", "cluster", wide=True),
    Column("message", "What is wrong", "prose"),
    Column("advice", "What to do", "prose", wide=True),
    Column("opened_at", "Since", "time", "opened_at"),
    Column("closed_at", "Until", "time", "closed_at", wide=True),
)
GROUP_FINDINGS = tuple(column for column in FINDINGS if column.name not in ("group_id", "cluster"))
MEMBERS = (
    Column("member_id", "Member", "member"),
    Column("host", "Host", "name"),
    Column("client_id", "Client", "name", wide=True),
    Column("instance_id", "Instance", "name", wide=True),
    Column("held", "Queues", "count"),
    Column("computed_text", "Computed", "queues", wide=True),
    Column("reported_text", "Reported", "queues", wide=True),
    Column("agrees", "Agrees", "truth", wide=True),
    Column("epoch", "Epoch", "count", wide=True, hint=_EPOCH, known_by=("epoch",)),
    Column("joined_at", "Joined", "time"),
)
SESSIONS = (
    Column("member_id", "Member", "member", "member_id"),
    Column("group_id", "Group", "group", "group_id"),
    Column("cluster", "Cluster", "name", "cluster", wide=True),
    Column("host", "Host", "name", "host"),
    Column("client_id", "Client", "name", "client_id", wide=True),
    Column("instance_id", "Instance", "name", wide=True),
    Column("joined_at", "Joined", "time", "joined_at"),
    Column("left_at", "Left", "time", "left_at"),
    Column("left_reason", "How", "text", wide=True),
    Column("last_heartbeat_at", "Last heartbeat", "time", wide=True),
)
GROUP_SESSIONS = tuple(column for column in SESSIONS if column.name not in ("group_id", "cluster"))
QUEUES = (
    Column("queue", "Queue", "name"),
    Column("computed", "Computed owner", "member"),
    Column("reported", "Reported owner", "member"),
    Column("agrees", "Agrees", "truth", wide=True),
    Column("since", "Since", "time"),
)
PROGRESS = (
    Column("queue", "Queue", "name"),
    Column("committed_offset", "Current offset", "count"),
    Column("end_offset", "End", "count"),
    Column("lag", "Lag", "lag"),
    Column("lag_reliable", "Reliable", "truth"),
    Column("member_id", "Owner", "member", wide=True),
)
# Of groups whose members and coordinator report nothing.
_REPORTED = ("reported", "reported_text", "agrees")
MEMBERS_UNREPORTED = tuple(column for column in MEMBERS if column.name not in _REPORTED)
QUEUES_UNREPORTED = tuple(column for column in QUEUES if column.name not in _REPORTED)
HELD = (
    Column("queue", "Queue", "name"),
    Column("group_id", "Group", "group"),
    Column("cluster", "Cluster", "name", wide=True),
    Column("origin", "Origin", "text"),
    Column("valid_from", "Since", "time"),
)
CAUSES = (
    Column("kind", "Kind", "code"),
    Column("member_id", "Member", "member"),
    Column("topic", "Topic", "name", wide=True),
    Column("detail", "Detail", "prose"),
    Column("host", "Host", "name", wide=True),
    Column("last_heartbeat_at", "Last heartbeat", "time", wide=True),
    Column("event_id", "Event", "name"),
)
SIDES = (
    Column("member_id", "Member", "member"),
    Column("computed_before", "Before", "queues"),
    Column("computed_after", "After, recomputed", "queues"),
    Column("reported_after", "After, reported", "queues"),
)
MOVES = (
    Column("queue", "Queue", "name"),
    Column("before_text", "Before", "queues"),
    Column("after_text", "After", "queues"),
    *_costs(are_sorted=False),
)
AUDITS = (
    Column("event_time", "Generation of", "rebalance", "event_time"),
    Column("verdict", "Verdict", "code", "verdict"),
    Column("reason", "Likely reason", "code"),
    Column("queues_differing", "Differing", "count", "queues_differing"),
    Column("missing", "Missing", "count", wide=True),
    Column("duplicate", "Duplicate", "count", wide=True),
    Column("unexpected_owner", "Unexpected owner", "count", wide=True),
    Column("detail", "Evidence", "prose", wide=True),
)
AUDITED_QUEUES = (
    Column("queue", "Queue", "name"),
    Column("kind", "Kind", "code"),
    Column("expected_text", "Expected", "queues"),
    Column("reported_text", "Reported", "queues"),
)
REJECTED = (
    Column("seen_at", "Seen", "time", "seen_at"),
    Column("reason", "Reason", "code", "reason"),
    Column("detail", "Detail", "prose"),
    Column("cluster", "Cluster", "name", "cluster", wide=True),
    Column("group_id", "Group", "name", wide=True),
    Column("source", "Source", "name", wide=True),
    Column("position", "Position", "name", wide=True),
    Column("raw", "Input", "raw"),
)
DELAYS = (
    Column("hour", "Hour", "time"),
    Column("cluster", "Cluster", "name"),
    Column("rebalances", "Rebalances", "count"),
    Column("median_ms", "Median", "span"),
    Column("p95_ms", "95 %", "span"),
    Column("longest_ms", "Longest", "span"),
)
GROUP_SOURCES = (
    Column("cluster", "Cluster", "name"),
    Column("taken", "Source of its groups, and why", "prose"),
)
CLOCKS = (
    Column("cluster", "Cluster", "name"),
    Column("newest_event", "Newest event time", "time"),
    Column("last_batch", "Last batch", "count"),
    Column("batches", "Batches with changes", "count"),
    Column("changes", "Changes", "count"),
)
SOURCES = (
    Column("source", "Source", "name"),
    Column("cluster", "Cluster", "name"),
    Column("reason", "Reason", "code"),
    Column("inputs", "Inputs", "count"),
    Column("last_at", "Last", "time"),
)
BATCHES = (
    Column("at", "Commit", "time"),
    Column("batches", "Batches", "count"),
    Column("events", "Events", "count"),
    Column("triggerExecution", "A batch took", "span"),
    Column("latestOffset", "Listing", "span", wide=True),
    Column("queryPlanning", "Planning", "span", wide=True),
    Column("walCommit", "Offset log", "span", wide=True),
    Column("addBatch", "Computing and writing", "span"),
    Column("writing", "of it tables", "span", wide=True),
    Column("commitOffsets", "Commit log", "span", wide=True),
)
COMMITS = (
    Column("at", "Time", "time"),
    Column("table", "Table", "code"),
    Column("version", "Version", "count"),
    Column("operation", "Operation", "text"),
    Column("rows", "Rows", "count"),
    Column("took_ms", "Took", "span"),
)
TABLES = (
    Column("table", "Table", "code"),
    Column("comment", "A row is", "prose", wide=True),
    Column("version", "Version", "count"),
    Column("files", "Files", "count"),
    Column("bytes", "Bytes", "count"),
)
CLUSTERS = (
    Column("cluster", "Cluster", "cluster"),
    Column("system", "System", "text"),
    *(Column(name, title, "count") for name, title in (("groups", "Groups"), ("in_trouble", "In trouble"))),
    Column("members", "Members", "count"),
    Column("queues", "Queues", "count", wide=True),
    Column("open_findings", "Findings", "count"),
    Column("rebalances_hour", "Rebalances 1 h", "count", hint=_HOUR),
    Column("rebalances_day", "24 h", "count", hint=_DAY),
    Column("last_rebalance_at", "Last rebalance", "time", wide=True),
)
MINUTES = (
    Column("minute", "Minute", "time"),
    *(Column(name, title, "count") for name, title in (("members", "Members"), ("rebalances", "Rebalances"))),
    *(Column(name, title, "count") for name, title in (("idle_members", "Idle"), ("spread", "Spread"))),
    Column("unassigned_queues", "Unassigned", "count"),
    Column("queues_moved", "Moved", "count"),
    Column("queue_pause_ms", "Queue pause", "span"),
)
SPANS = (
    Column("queue", "Queue", "name"),
    Column("member_id", "Member", "member"),
    Column("begins", "From", "time"),
    Column("ends", "Until", "time"),
)
CHURN = (
    Column("group_id", "Group", "group"),
    Column("cluster", "Cluster", "name", wide=True),
    Column("hour", "Hour", "time"),
    Column("rebalances", "Rebalances", "count"),
    Column("queues_moved", "Moved", "count"),
)
