"""Dashboard: the columns of the tables on the page of a topic."""

from __future__ import annotations

from dashboard.pages.page_columns import PageColumn

_KEPT = "messages between the start and the end of the queue: what retention has left"
GROUPS = (
    PageColumn("health", "Health", "health"),
    PageColumn("group_id", "Group", "group"),
    PageColumn("owned", "Queues owned", "count"),
    PageColumn("owners", "Members with queues", "count", wide=True),
    PageColumn("subscribers", "Members that subscribe", "count", wide=True),
    PageColumn("unowned_count", "Queues without an owner", "count", hint="in a group that has members"),
    PageColumn("lag", "Lag", "count", hint="in messages, of the queues of which it is known"),
    PageColumn("lag_ms", "Oldest unread", "lag_age"),
    PageColumn("queues_unknown", "Lag not known", "count", wide=True, hint="queues of which it is not known"),
)
QUEUES = (
    PageColumn("queue", "Queue", "name"),
    PageColumn("start_offset", "Start", "count", wide=True),
    PageColumn("end_offset", "End", "count"),
    PageColumn("kept", "Kept", "count", wide=True, hint=_KEPT),
    PageColumn("end_rate", "Messages a minute", "count", hint="by which the end grew in the range of the page"),
    PageColumn("end_at", "End observed", "time", wide=True),
    PageColumn("readers", "Read by", "groups"),
    PageColumn("without", "No owner in", "groups"),
)
COMMITS = (
    PageColumn("queue", "Queue", "name"),
    PageColumn("group_id", "Group", "group"),
    PageColumn("committed_offset", "Current offset", "count"),
    PageColumn("committed_at", "Committed", "time", wide=True),
    PageColumn("lag", "Lag", "lag"),
    PageColumn("lag_ms", "Oldest unread", "lag_age"),
    PageColumn("ahead", "Ahead of the start", "count", wide=True, hint="messages until retention reaches the commit"),
    PageColumn("lag_reliable", "Reliable", "truth", wide=True),
    PageColumn("member_id", "Owner", "member"),
)
SPANS = (
    PageColumn("queue_count", "Queues", "count"),
    PageColumn("valid_from", "From", "time"),
    PageColumn("valid_to", "Until", "time", hint="a dash: now"),
    PageColumn("topic_id", "Topic id", "name", wide=True, needs_any=("topic_id",)),
)
LAG_HISTORY = (
    PageColumn("at", "From", "time"),
    PageColumn("group_id", "Group", "name"),
    PageColumn("lag", "Lag", "count", hint="in messages, of the queues of which it is known, at the end of the step"),
    PageColumn("queue_lag", "Worst queue", "count"),
    PageColumn("lag_ms", "Oldest unread", "lag_age"),
    PageColumn("queues_unknown", "Lag not known", "count", hint="queues of which it is not known"),
)
