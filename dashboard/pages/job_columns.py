"""Dashboard: the columns of the tables on the page of the job."""

from __future__ import annotations

from dashboard.pages.page_columns import PageColumn

DELAYS = (
    PageColumn("hour", "Hour", "time"),
    PageColumn("cluster", "Cluster", "name"),
    PageColumn("rebalances", "Rebalances", "count"),
    PageColumn("median_ms", "Median", "span"),
    PageColumn("p95_ms", "95 %", "span"),
    PageColumn("longest_ms", "Longest", "span"),
)
JOBS = (
    PageColumn("state", "State", "text"),
    PageColumn("since", "Since", "time"),
    PageColumn("text", "What it does", "timed"),
    PageColumn("host", "Host", "name"),
    PageColumn("pid", "Process", "code"),
    PageColumn("last_seen_at", "Last report", "time", hint="of a job that is not alive"),
    PageColumn("unknown_after_ms", "Gone after", "span", hint="so long without a report"),
    PageColumn("note", "Clocks", "timed", needs_any=("note",)),
    PageColumn("app_id", "Checkpoint", "name", wide=True),
)
PRESENT = (
    PageColumn("cluster", "Cluster", "cluster"),
    PageColumn("system", "System", "text", wide=True),
    PageColumn("text", "Present", "timed"),
)
GROUP_SOURCES = (
    PageColumn("cluster", "Cluster", "name"),
    PageColumn("taken", "Source of its groups, and why", "prose"),
)
CLOCKS = (
    PageColumn("cluster", "Cluster", "name"),
    PageColumn("newest_event", "Newest event time", "time"),
    PageColumn("last_batch", "Last batch", "count"),
    PageColumn("batches", "Batches with changes", "count"),
    PageColumn("changes", "Changes", "count"),
)
SOURCES = (
    PageColumn("source", "Source", "name"),
    PageColumn("cluster", "Cluster", "name"),
    PageColumn("reason", "Reason", "word"),
    PageColumn("inputs", "Inputs", "count"),
    PageColumn("last_at", "Last", "time"),
)
BATCHES = (
    PageColumn("at", "Commit", "time"),
    PageColumn("batches", "Batches", "count"),
    PageColumn("events", "Events", "count"),
    PageColumn("triggerExecution", "A batch took", "span"),
    PageColumn("latestOffset", "Listing", "span", wide=True),
    PageColumn("queryPlanning", "Planning", "span", wide=True),
    PageColumn("walCommit", "Offset log", "span", wide=True),
    PageColumn("addBatch", "Computing and writing", "span"),
    PageColumn("writing", "of it tables", "span", wide=True),
    PageColumn("commitOffsets", "Commit log", "span", wide=True),
)
COMMITS = (
    PageColumn("at", "Time", "time"),
    PageColumn("table", "Table", "code"),
    PageColumn("version", "Version", "count"),
    PageColumn("operation", "Operation", "text"),
    PageColumn("rows", "Rows", "count"),
    PageColumn("took_ms", "Took", "span"),
)
TABLES = (
    PageColumn("table", "Table", "code"),
    PageColumn("comment", "A row is", "prose", wide=True),
    PageColumn("version", "Version", "count"),
    PageColumn("files", "Files", "count"),
    PageColumn("bytes", "Bytes", "count"),
)
