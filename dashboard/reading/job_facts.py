"""Dashboard: whether jobs are alive, and their performance in the tables: delay, batches, clocks, sizes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from dashboard.reading.known_time import job_rows, present_rows
from dashboard.reading.listing_query import plain_rows
from dashboard.reading.questions import Reading
from dashboard.reading.window import HOUR_MS, last_day
from streaming.tables.commit_notes import USER_METADATA, batch_times_of
from streaming.tables.schema import TABLES, Row
from streaming.views.group_sources import group_sources
from streaming.views.reader import Within

COMMITS = 100
BATCH_COMMITS = 50
# Parts of a batch, as Spark names them, preceded by the whole.
BATCH_PARTS = (
    *("triggerExecution", "latestOffset", "queryPlanning", "getBatch", "walCommit", "addBatch", "writing"),
    "commitOffsets",
)
# Findings about sources and clocks, and not about one group's members.
SOURCE_KINDS = ("source_silent", "events_late", "events_lost", "records_lost", "clock_ahead", "clocks_ahead")


def delays(reading: Reading) -> list[Row]:
    """Return for each cluster and hour of the last 24 the delay from event to decision in ms: median, 95th, longest."""
    window = last_day(reading)
    sql = f"""
        with decided as (
            select cluster, epoch_ms(event_time) // {HOUR_MS} * {HOUR_MS} as hour,
                epoch_ms(detected_at) - epoch_ms(event_time) as delay
            from rebalances where detected_at is not null
        )
        select cluster, hour, count(*) as rebalances, quantile_cont(delay, 0.5)::bigint as median_ms,
            quantile_cont(delay, 0.95)::bigint as p95_ms, max(delay)::bigint as longest_ms
        from decided group by all order by cluster, hour
    """
    within = {"event_time": Within(window.first_hour_ms, window.until_ms)}
    columns = ["cluster", "event_time", "detected_at"]

    def compute() -> pa.Table:
        return reading.sql(sql, {"rebalances": reading.tables.read("rebalances", columns=columns, where=within)})

    return plain_rows(reading.kept(("delays", window.first_hour_ms), ["rebalances"], compute))


def clocks(reading: Reading) -> list[Row]:
    """Return for each cluster the newest event time of its changes and rebalances, with the last decision."""
    window = last_day(reading)
    sql = """
        select cluster, max(event_time) as newest_event, max(batch) as last_batch, count(*) as changes,
            count(distinct batch) as batches
        from changes group by cluster order by cluster
    """
    within = {"event_time": Within(window.since_ms, window.until_ms)}
    columns = ["cluster", "event_time", "batch"]

    def compute() -> pa.Table:
        return reading.sql(sql, {"changes": reading.tables.read("changes", columns=columns, where=within)})

    return plain_rows(reading.kept(("clocks", window.since_ms), ["changes"], compute))


def commits(reading: Reading) -> list[Row]:
    """Return the newest commits to the tables: time, table, version, operation, rows, milliseconds."""
    found: list[Row] = []
    for name in TABLES:
        for commit in reading.tables.history(name, COMMITS // len(TABLES)):
            metrics = commit.get("operationMetrics") or {}
            rows = metrics.get("num_added_rows", metrics.get("num_output_rows", metrics.get("numOutputRows")))
            took = metrics.get("execution_time_ms", metrics.get("executionTimeMs"))
            found.append(
                {
                    "at": commit.get("timestamp"),
                    "table": name,
                    "version": commit.get("version"),
                    "operation": str(commit.get("operation", "")),
                    "rows": None if rows is None else int(rows),
                    "took_ms": None if took is None else int(took),
                }
            )
    return sorted(found, key=lambda row: (-(row["at"] or 0), row["table"]))


def batches(reading: Reading) -> list[Row]:
    """Return for each of the newest commits to the journal the batches since the previous, and their parts in ms."""
    found: list[Row] = []
    for commit in reading.tables.history("changes", BATCH_COMMITS):
        times = batch_times_of(commit.get(USER_METADATA))
        if times is not None:
            parts = {part: times.ms.get(part, 0) // times.batches for part in BATCH_PARTS}
            found.append({"at": commit.get("timestamp"), "batches": times.batches, "events": times.events, **parts})
    return found


def tables(reading: Reading) -> list[Row]:
    """Return for each table its version, files and bytes; null for a table that does not exist yet."""
    return [{"table": name, **reading.tables.size(name), "comment": table.comment} for name, table in TABLES.items()]


def sources(reading: Reading) -> list[Row]:
    """Return the inputs that were not applied as sent, by source and reason, within the last day, newest first."""
    window = last_day(reading)
    sql = """
        select coalesce(cluster, '') as cluster, source, reason, count(*) as inputs, max(seen_at) as last_at
        from rejected group by all order by last_at desc, inputs desc limit 200
    """
    within = {"seen_at": Within(since_ms=window.since_ms)}
    columns = ["cluster", "source", "reason", "seen_at"]

    def compute() -> pa.Table:
        return reading.sql(sql, {"rejected": reading.tables.read("rejected_events", columns=columns, where=within)})

    return plain_rows(reading.kept(("sources", window.since_ms), ["rejected_events"], compute))


def source_findings(reading: Reading) -> list[Row]:
    """Return the open findings about clusters, sources and clocks."""
    rows = reading.tables.rows("findings", keep=lambda found: found["closed_at"].is_null())
    return [row for row in rows if row["group_id"] is None or row["kind"] in SOURCE_KINDS]


def jobs(reading: Reading) -> list[Row]:
    """Return the jobs, without the time when a live one last reported, which changes every few seconds."""
    return [row | {"last_seen_at": None if row["is_alive"] else row["seen_at"]} for row in job_rows(reading)]


def job_facts(reading: Reading) -> dict[str, Any]:
    """Return all of these."""
    return {
        "jobs": jobs(reading),
        "present": present_rows(reading),
        "delays": delays(reading),
        "clocks": clocks(reading),
        "batches": batches(reading),
        "commits": commits(reading),
        "tables": tables(reading),
        "sources": sources(reading),
        "group_sources": [{"cluster": name, "taken": text} for name, text in group_sources(reading.tables).items()],
        "findings": source_findings(reading),
    }
