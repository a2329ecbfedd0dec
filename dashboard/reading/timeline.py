"""Dashboard: who owned what of a group, when: swimlanes of queues, with the rebalances as marks."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from dashboard.reading.listing_query import plain_rows
from dashboard.reading.questions import Reading
from dashboard.reading.window import last_day
from streaming.terminal.causes import describe_cause
from streaming.terminal.format import queue_name
from streaming.views.reader import Within

MAX_SPANS = 50_000
MAX_MARKS = 2_000
_COLUMNS = ("topic", "broker", "queue_id", "member_id", "origin", "valid_from", "valid_to")
_MARKS = ("rebalance_id", "event_time", "trigger", "triggers", "queues_moved", "status", "generation")


def timeline(
    reading: Reading,
    cluster: str,
    group: str,
    *,
    since_ms: int | None = None,
    until_ms: int | None = None,
    origin: str = "",
) -> dict[str, Any]:
    """Return the spans of a group as numbers into lists of queues and members, and its rebalances.

    Args:
        reading: The tables.
        cluster, group: Whose.
        since_ms: The window's begin, and until_ms its end; None = the last day.
        origin: computed or reported; empty = reported where the group reports, else computed.

    Returns:
        ``spans``: [queue, member, from, to] with times in epoch ms and null for a span that is open; at most
        ``MAX_SPANS``, the newest; ``is_cut`` whether there are more.
    """
    window = last_day(reading)
    since = window.since_ms if since_ms is None else since_ms
    until = window.until_ms if until_ms is None else until_ms
    where = {"cluster": cluster, "group_id": group}
    spans = reading.tables.read(
        "assignments",
        columns=list(_COLUMNS),
        where=where | {"valid_from": Within(until_ms=until), "valid_to": Within(since_ms=since, or_null=True)},
    )
    origins = sorted(set(spans["origin"].to_pylist()))
    shown = origin or ("reported" if "reported" in origins else "computed")
    sql = """
        select topic, broker, queue_id, member_id, epoch_ms(valid_from) as begins, epoch_ms(valid_to) as ends
        from spans where origin = ? order by valid_from desc limit ?
    """
    rows = plain_rows(reading.sql(sql, {"spans": spans}, [shown, MAX_SPANS + 1]))
    is_cut, rows = len(rows) > MAX_SPANS, rows[:MAX_SPANS]
    keys = sorted({(row["topic"], row["broker"] or "", row["queue_id"]) for row in rows})
    members = sorted({row["member_id"] for row in rows})
    queue_at = {key: number for number, key in enumerate(keys)}
    member_at = {member: number for number, member in enumerate(members)}
    if rows and since_ms is None and until_ms is None:
        since, until = _narrowed(since, window.now_ms, rows, window.is_live)
    return {
        "origin": shown,
        "origins": origins,
        "since": since,
        "until": until,
        "queues": [queue_name(topic, broker or None, queue_id) for topic, broker, queue_id in keys],
        "members": members,
        "spans": [
            [
                queue_at[row["topic"], row["broker"] or "", row["queue_id"]],
                member_at[row["member_id"]],
                row["begins"],
                row["ends"],
            ]
            for row in rows
        ],
        "is_cut": is_cut,
        "marks": _marks(reading, where, since, until),
    }


def _narrowed(since: int, now: int, rows: list[dict[str, Any]], is_live: bool) -> tuple[int, int]:
    """Return the part of the window in which there is something, with a margin."""
    first = min(max(since, row["begins"]) for row in rows)
    times = [row["ends"] for row in rows if row["ends"]] + [row["begins"] for row in rows]
    last = max(now, *times) if is_live else max(times)
    margin = max(1_000, (last - first) // 50)
    return first - margin, last + margin


def _marks(reading: Reading, where: dict[str, str], since: int, until: int) -> list[dict[str, Any]]:
    found: pa.Table = reading.tables.read(
        "rebalances", columns=list(_MARKS), where=where | {"event_time": Within(since, until)}
    )
    newest = found.sort_by([("event_time", "descending")]).slice(0, MAX_MARKS)
    return [
        {
            "id": row["rebalance_id"],
            "at": row["event_time"],
            "trigger": row["trigger"],
            "cause": describe_cause(row["triggers"] or [], where["group_id"], 40),
            "moved": row["queues_moved"],
            "status": row["status"],
        }
        for row in reversed(plain_rows(newest))
    ]
