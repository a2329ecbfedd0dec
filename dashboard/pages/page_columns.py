"""Dashboard: the columns of the pages' tables, and how each is shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from streaming.tables.schema import Row


class PageColumn(NamedTuple):
    """One column of a table on a page.

    Attributes:
        kind: How a cell is shown: one of ``KINDS`` of ``cells.py``.
        sort: Name of the listing's order; empty if the column cannot be sorted by.
        wide: Left out on a narrow screen.
        hint: The meaning of the heading, if it is not obvious.
        needs_any: Fields of the row; if no row has any of them, the column is left out. Empty if it is always shown.
    """

    name: str
    title: str
    kind: str = "text"
    sort: str = ""
    wide: bool = False
    hint: str = ""
    needs_any: tuple[str, ...] = ()


_QUEUE_OUTAGE = "for how long nobody read the queue with the longest outage: at least and at most"
_OUTAGE = "for how long nobody read queues, summed over them: at least and at most"
_OF_QUEUE = "from the former owner's last progress to the new one's first possible: at least and at most"
_REPEATED = "messages that new owners of queues read again; ~ is estimated"
_WAITING = "messages between the committed offset and the end of a queue when it got its new owner; ~ is estimated"
_EPOCH = "the group epoch that the member is at; -2 is a static member that is away"
_TARGET = "what the group's target assignment gives the member"
_PROTOCOL = "that the member speaks: classic, consumer, share or streams"
_WHY = "its state unless it is stable, of a kind that is not followed its coordinator's; kinds of its open findings"
_SIBLINGS = "what became of the same client's, and its host's, sessions in other groups"
_AGREES = "whether the reported assignment is the recomputed one"
_RANGE = "rebalances in the range of the page; in brackets those in the equally long span before it, if that is known"
_ESTIMATE = "an estimate: queues that would not have stood still, times the median of one in this group"
_NOT_REPEATED = "messages that would not have been read twice, an estimate"
_SHARE = "of the queues that stood still, those that would not have"
_SURE = "good, fair or weak: by what was measured, and decided again as recorded"
_BUDGET = "how much of its budget of outages the group has used in the last 24 hours, and what is left"
_HOUR, _DAY = "rebalances of the last 60 minutes", "rebalances of the last 24 hours"


def _counts(*columns: tuple[str, str]) -> tuple[PageColumn, ...]:
    return tuple(PageColumn(name, title, "count", name, wide=True) for name, title in columns)


def filled_columns(columns: Iterable[PageColumn], rows: Sequence[Row], sort: str = "") -> list[PageColumn]:
    """Return the columns without those that are empty in all rows; the column that rows are sorted by stays."""
    return [
        column
        for column in columns
        if not column.needs_any
        or (column.sort and column.sort == sort.removeprefix("-"))
        or any(row.get(name) is not None for row in rows for name in column.needs_any)
    ]


def _costs(*, are_sorted: bool) -> tuple[PageColumn, ...]:
    """Return the columns of the cost of moves in messages."""
    repeated, waiting = "repeated_messages", "waiting_messages"
    names, late = (repeated, "repeated_estimated_messages"), (waiting, "waiting_estimated_messages")
    orders = (repeated, waiting) if are_sorted else ("", "")
    return (
        PageColumn(repeated, "Messages read twice", "repeated", orders[0], wide=True, hint=_REPEATED, needs_any=names),
        PageColumn(waiting, "Messages that waited", "waiting", orders[1], wide=True, hint=_WAITING, needs_any=late),
    )


GROUPS = (
    PageColumn("condition", "Health", "health", "health"),
    PageColumn("group_id", "Group", "group", "group_id"),
    PageColumn("cluster", "Cluster", "name", "cluster", wide=True),
    PageColumn("finding_kinds", "Why", "why", wide=True, hint=_WHY),
    PageColumn("open_findings", "Findings", "findings", "open_findings"),
    PageColumn("rebalances_range", "Rebalances", "compared", "rebalances_range", hint=_RANGE),
    PageColumn("bins", "In this range", "spark", wide=True),
    *_counts(
        ("members", "Members"), ("queues", "Queues"), ("idle_members", "Idle"), ("unassigned_queues", "Unassigned")
    ),
    PageColumn("budget", "Outages of a day", "budget", wide=True, hint=_BUDGET, needs_any=("budget",)),
    PageColumn("last_rebalance_at", "Last rebalance", "time", "last_rebalance_at", wide=True),
)
ADVICE = (
    PageColumn("group_id", "Group", "advised", "group_id"),
    PageColumn("cluster", "Cluster", "name", "cluster", wide=True),
    PageColumn("policy", "What would have saved most, and how it is set", "advice", "policy"),
    PageColumn("saved_pause_ms", "Queue-pause saved", "estimate", "saved_pause_ms", hint=_ESTIMATE),
    PageColumn(
        "saved_repeated_messages", "Messages", "estimated", "saved_repeated_messages", wide=True, hint=_NOT_REPEATED
    ),
    PageColumn("saved_percent", "Share", "percent", "saved_percent", wide=True, hint=_SHARE),
    PageColumn("sure", "Sure", "text", "sure", hint=_SURE),
    PageColumn("costs", "It costs", "prose", wide=True, needs_any=("costs",)),
    PageColumn("rebalances", "Rebalances", "count", "rebalances", wide=True, hint="recorded in the time of the run"),
)
FLEET = (
    PageColumn("hour", "From", "time"),
    PageColumn("cluster", "Cluster", "name"),
    PageColumn("rebalances", "Rebalances", "count"),
    PageColumn("outage_max_ms", "Nobody read queues for", "outage", hint=_OUTAGE),
    PageColumn("unread_queues", "Unread queues", "count", hint="named by open findings, the most of each group"),
    PageColumn("stalled_queues", "Stalled queues", "count", hint="named by open findings, the most of each group"),
)
_CHANGE = (
    PageColumn("cause", "Cause", "cause", "trigger"),
    PageColumn("generation", "Generation", "count", "generation", wide=True),
    PageColumn("members_after", "Members", "members", "members_after", wide=True),
    PageColumn("queues_moved", "Moved", "count", "queues_moved"),
    PageColumn("queue_outage_max_ms", "Longest outage", "queue_outage", "queue_outage_max_ms", hint=_QUEUE_OUTAGE),
    *_costs(are_sorted=True),
    PageColumn("began_at", "Phases", "phases", wide=True, needs_any=("began_at", "joined_at", "completed_at")),
    PageColumn("agrees", "Agrees", "truth", wide=True, hint=_AGREES, needs_any=("agrees",)),
)
REBALANCES = (
    PageColumn("event_time", "Time", "rebalance", "event_time"),
    PageColumn("group_id", "Group", "group", "group_id"),
    PageColumn("cluster", "Cluster", "name", "cluster", wide=True),
    *_CHANGE,
)
NEAR_REBALANCES = (
    PageColumn("event_time", "Time", "rebalance"),
    PageColumn("group_id", "Group", "group"),
    PageColumn("cluster", "Cluster", "name", wide=True),
    PageColumn("trigger", "Cause", "cause"),
    PageColumn("members_after", "Members", "members", wide=True),
    PageColumn("queues_moved", "Moved", "count"),
)
GROUP_REBALANCES = (PageColumn("event_time", "Time", "rebalance", "event_time"), *_CHANGE)
FINDINGS = (
    PageColumn("severity", "Severity", "health", "severity"),
    PageColumn("kind", "Kind", "word", "kind", wide=True),
    PageColumn("group_id", "Group", "group", "group_id"),
    PageColumn("cluster", "Cluster", "name", "cluster", wide=True),
    PageColumn("message", "What is wrong, and what to do", "finding"),
    PageColumn("opened_at", "Since", "time", "opened_at"),
    PageColumn("closed_at", "Until", "until", "closed_at", hint="a dash: it is open"),
)
EPISODES = (
    PageColumn("kind", "Kind", "word"),
    PageColumn("began_at", "From", "time"),
    PageColumn("closed_at", "Over", "time", wide=True),
    PageColumn("rebalances", "Rebalances", "count"),
    PageColumn("text", "What happened", "prose"),
    PageColumn("client", "Client", "client", wide=True),
    PageColumn("queues_moved", "Moved", "count", wide=True),
)
GROUP_FINDINGS = tuple(column for column in FINDINGS if column.name not in ("group_id", "cluster"))
_POD = PageColumn("pod", "Pod", "pod", needs_any=("pod",))
MEMBERS = (
    PageColumn("member_id", "Member", "member"),
    _POD,
    PageColumn("client", "Client", "client"),
    PageColumn("host", "Host", "host", wide=True),
    PageColumn("instance_id", "Instance", "name", wide=True),
    PageColumn("held", "Queues", "count"),
    PageColumn("computed_text", "Computed", "queues", wide=True),
    PageColumn("reported_text", "Reported", "queues", wide=True),
    PageColumn("agrees", "Agrees", "truth", wide=True),
    PageColumn("target_text", "Target", "queues", wide=True, hint=_TARGET, needs_any=("target",)),
    PageColumn("subscriptions_text", "Subscribes to", "queues", wide=True, needs_any=("subscriptions_text",)),
    PageColumn("strategies_text", "Strategies", "queues", wide=True, needs_any=("strategies_text",)),
    PageColumn("version_text", "Version", "text", wide=True, needs_any=("version_text",)),
    PageColumn("session_timeout_ms", "Session timeout", "span", wide=True, needs_any=("session_timeout_ms",)),
    PageColumn("epoch", "Epoch", "count", wide=True, hint=_EPOCH, needs_any=("epoch",)),
    PageColumn("protocol", "Protocol", "text", wide=True, hint=_PROTOCOL, needs_any=("protocol",)),
    PageColumn("joined_at", "Joined", "time"),
)
SESSIONS = (
    PageColumn("member_id", "Member", "member", "member_id"),
    _POD,
    PageColumn("group_id", "Group", "group", "group_id"),
    PageColumn("cluster", "Cluster", "name", "cluster", wide=True),
    PageColumn("client", "Client", "client", "client"),
    PageColumn("host", "Host", "host", "host", wide=True),
    PageColumn("instance_id", "Instance", "name", wide=True),
    PageColumn("joined_at", "Joined", "time", "joined_at"),
    PageColumn("left_at", "Left", "time", "left_at"),
    PageColumn("left_reason", "How", "word", wide=True),
    PageColumn("last_heartbeat_at", "Last heartbeat", "time", wide=True),
)
CLIENTS = (
    PageColumn("client", "Client", "client"),
    PageColumn("sessions", "Sessions", "count"),
    PageColumn("open", "Open now", "count"),
    PageColumn("expired", "Expired", "count"),
    PageColumn("rebalances", "Rebalances caused", "count"),
)
GROUP_SESSIONS = tuple(column for column in SESSIONS if column.name not in ("group_id", "cluster"))
UNOWNED = (
    PageColumn("queue", "Queue", "queue"),
    PageColumn("kind", "Finding", "word"),
    PageColumn("member_id", "Assigned to", "member"),
    PageColumn("reason", "Why that one does not read it", "word"),
    PageColumn("since", "Since", "time"),
)
QUEUES = (
    PageColumn("queue", "Queue", "queue"),
    PageColumn("computed", "Computed owner", "member"),
    PageColumn("reported", "Reported owner", "member"),
    PageColumn("agrees", "Agrees", "truth", wide=True),
    PageColumn("since", "Since", "time"),
)
PROGRESS = (
    PageColumn("queue", "Queue", "queue"),
    PageColumn("committed_offset", "Current offset", "count"),
    PageColumn("end_offset", "End", "count"),
    PageColumn("lag", "Lag", "lag"),
    PageColumn("lag_ms", "Oldest unread", "lag_age"),
    PageColumn("lag_reliable", "Reliable", "truth"),
    PageColumn("member_id", "Owner", "member", wide=True),
)
# These columns are left out for groups whose members and coordinator report nothing.
_REPORTED = ("reported", "reported_text", "agrees")
MEMBERS_UNREPORTED = tuple(column for column in MEMBERS if column.name not in _REPORTED)
QUEUES_UNREPORTED = tuple(column for column in QUEUES if column.name not in _REPORTED)
HELD = (
    PageColumn("queue", "Queue", "queue"),
    PageColumn("group_id", "Group", "group"),
    PageColumn("cluster", "Cluster", "name", wide=True),
    PageColumn("origin", "Origin", "text"),
    PageColumn("valid_from", "Since", "time"),
)
CAUSES = (
    PageColumn("kind", "Kind", "word"),
    PageColumn("member_id", "Member", "member"),
    PageColumn("client", "Client", "client"),
    PageColumn("recent_text", "Within the hour", "prose", needs_any=("recent_text",)),
    PageColumn("topic", "Topic", "topic", wide=True),
    PageColumn("detail", "Detail", "prose"),
    PageColumn("siblings_text", "Elsewhere", "prose", wide=True, hint=_SIBLINGS, needs_any=("siblings_text",)),
    PageColumn("silence", "Source", "prose", wide=True, needs_any=("silence",)),
    PageColumn("host", "Host", "name", wide=True),
    PageColumn("last_heartbeat_at", "Last heartbeat", "time", wide=True),
    PageColumn("event_id", "Event", "name"),
)
SIDES = (
    PageColumn("member_id", "Member", "member"),
    PageColumn("computed_before", "Before", "queues"),
    PageColumn("computed_after", "After, recomputed", "queues"),
    PageColumn("reported_after", "After, reported", "queues"),
)
FORESEEN = (
    PageColumn("member_id", "Member", "member"),
    PageColumn("change", "Change", "text"),
    PageColumn("host", "Host", "name", wide=True),
    PageColumn("before_text", "Before", "queues"),
    PageColumn("after_text", "After", "queues"),
)
FORESEEN_MOVES = (
    PageColumn("from", "From", "name"),
    PageColumn("to", "To", "name"),
    PageColumn("number", "Moved", "count"),
    PageColumn("queues", "Queues", "queues"),
)
_SWITCHED = "queues that move as the strategy is taken into use"
COMPARED = (
    PageColumn("strategy", "Strategy", "code"),
    PageColumn("queues_switched", "Switch", "count", hint=_SWITCHED),
    PageColumn("queues_moved", "Moved", "count", hint="queues that the rest of the change moves then"),
    PageColumn("queues_stopped", "Stopped", "count"),
    PageColumn("spread", "Spread", "count"),
    PageColumn("idle_members", "Idle", "count"),
    PageColumn("unassigned_queues", "Unassigned", "count", wide=True),
    PageColumn("error", "Why not", "prose", needs_any=("error",)),
)
MOVES = (
    PageColumn("queue", "Queue", "queue"),
    PageColumn("before_text", "Before", "queues"),
    PageColumn("after_text", "After", "queues"),
    PageColumn("outage_max_ms", "Nobody read it for", "outage", hint=_OF_QUEUE),
    *_costs(are_sorted=False),
)
OUTAGES = (
    PageColumn("queue", "Queue", "queue"),
    PageColumn("outage_max_ms", "Nobody read it for", "outage", hint=_OF_QUEUE),
    PageColumn("former_member_id", "Read before by", "member"),
    PageColumn("member_id", "Read then by", "member"),
    PageColumn("evidence", "Known by", "text"),
)
AUDITS = (
    PageColumn("event_time", "Generation of", "rebalance", "event_time"),
    PageColumn("verdict", "Verdict", "word", "verdict"),
    PageColumn("reason", "Likely reason", "word"),
    PageColumn("queues_differing", "Differing", "count", "queues_differing"),
    PageColumn("missing", "Missing", "count", wide=True),
    PageColumn("duplicate", "Duplicate", "count", wide=True),
    PageColumn("unexpected_owner", "Unexpected owner", "count", wide=True),
    PageColumn("detail", "Evidence", "prose", wide=True),
)
AUDITED_QUEUES = (
    PageColumn("queue", "Queue", "queue"),
    PageColumn("kind", "Kind", "word"),
    PageColumn("expected_text", "Expected", "queues"),
    PageColumn("reported_text", "Reported", "queues"),
)
REJECTED = (
    PageColumn("seen_at", "Seen", "time", "seen_at"),
    PageColumn("reason", "Reason", "word", "reason"),
    PageColumn("detail", "Detail", "prose"),
    PageColumn("cluster", "Cluster", "name", "cluster", wide=True),
    PageColumn("group_id", "Group", "name", wide=True),
    PageColumn("source", "Source", "name", wide=True),
    PageColumn("position", "Position", "name", wide=True),
    PageColumn("raw", "Input", "raw"),
)
CLUSTERS = (
    PageColumn("cluster", "Cluster", "cluster"),
    PageColumn("freshness", "Present", "timed", hint="whether what is shown is the present"),
    PageColumn("system", "System", "text"),
    *(PageColumn(name, title, "count") for name, title in (("groups", "Groups"), ("in_trouble", "In trouble"))),
    PageColumn("members", "Members", "count"),
    PageColumn("queues", "Queues", "count", wide=True),
    PageColumn("open_findings", "Findings", "count"),
    PageColumn("rebalances_hour", "Rebalances 1 h", "count", hint=_HOUR),
    PageColumn("rebalances_day", "24 h", "count", hint=_DAY),
    PageColumn("last_rebalance_at", "Last rebalance", "time", wide=True),
)
_DONE = (
    PageColumn("kind", "Kind", "text"),
    PageColumn("text", "What was done", "annotation"),
)
ANNOTATIONS = (
    PageColumn("at", "From", "time"),
    PageColumn("until", "Until", "time", hint="a dash: not known, or not over"),
    *_DONE,
    PageColumn("concerns", "Concerns", "prose", wide=True),
)
NEAR_ANNOTATIONS = (
    PageColumn("when_text", "When", "prose", hint="seen from the beginning of the rebalance"),
    *_DONE,
    PageColumn("concerns_text", "Concerns", "prose", wide=True),
)
MINUTES = (
    PageColumn("minute", "Minute", "time"),
    *(PageColumn(name, title, "count") for name, title in (("members", "Members"), ("rebalances", "Rebalances"))),
    *(PageColumn(name, title, "count") for name, title in (("idle_members", "Idle"), ("spread", "Spread"))),
    PageColumn("unassigned_queues", "Unassigned", "count"),
    PageColumn("queues_moved", "Moved", "count"),
    PageColumn("outage_max_ms", "Outage", "outage"),
)
SPANS = (
    PageColumn("queue", "Queue", "queue"),
    PageColumn("member_id", "Member", "member"),
    PageColumn("begins", "From", "time"),
    PageColumn("ends", "Until", "time"),
)
CHURN = (
    PageColumn("group_id", "Group", "group"),
    PageColumn("cluster", "Cluster", "name", wide=True),
    PageColumn("hour", "From", "time"),
    PageColumn("rebalances", "Rebalances", "count"),
    PageColumn("queues_moved", "Moved", "count"),
)
