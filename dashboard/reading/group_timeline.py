"""Dashboard: the owners of a group's queues over time: swimlanes, with the rebalances as marks."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from dashboard.reading.listing_query import piece, plain_rows
from dashboard.reading.listings import FINDINGS
from dashboard.reading.questions import Reading
from dashboard.reading.window import last_day_of
from streaming.machine.clock import now_ms
from streaming.tables.schema import Row
from streaming.terminal.causes import describe_cause
from streaming.terminal.format import queue_name
from streaming.views.pods import with_pods
from streaming.views.reader import Within
from streaming.views.related_annotations import AnnotationSpans, Happening, concerned_members, near, related, shown_text

MAX_SPANS = 50_000
MAX_MARKS = 2_000
MAX_FINDINGS = 200
# An empty span after the last knowledge is shown, at most this fraction of the span before it.
_UNKNOWN_PART = 5
_COLUMNS = ("topic", "broker", "queue_id", "member_id", "origin", "valid_from", "valid_to")
# Queues and members get their numbers here, in the order of their names, because a group may have very many spans.
_SPANS = """
with shown as (
    select topic, broker, queue_id, member_id, valid_from, valid_to from spans where origin = ?
    order by valid_from desc, topic, broker, queue_id, member_id limit ?
)
select dense_rank() over (order by topic, coalesce(broker, ''), queue_id) - 1 as queue,
    dense_rank() over (order by member_id) - 1 as member, topic, nullif(broker, '') as broker, queue_id, member_id,
    epoch_ms(valid_from) as begins, epoch_ms(valid_to) as ends
from shown order by begins desc, queue, member
"""
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
        since_ms: The window's beginning, and until_ms its end; None for the last day that is known, in whole hours.
        origin: computed or reported; empty for reported if the group reports, else computed.

    Returns:
        ``spans``: [queue, member, from, to] with times in epoch ms and null for a span that is open; at most
        ``MAX_SPANS``, the newest; ``is_cut`` whether there are more. ``marks``: at most ``MAX_MARKS``, the newest of
        ``mark_count``; ``marks_cut`` whether there are more. ``annotations``: those that concern the group, at most
        ``MAX_MARKS``, with ``at`` and ``until``, null if it is not known. ``findings``: the newest ``MAX_FINDINGS``
        that were open within it. ``traits``: what members may be coloured by, with a value for each member, empty if
        it is not known. ``known_until``: the end of the knowledge of
        an unknown cluster, in epoch ms; nothing is drawn beyond it. It is null while the cluster is known, and for a
        recording.
    """
    window = last_day_of(reading, cluster)
    known_until = window.now_ms if reading.freshness.of(cluster).state == "unknown" else None
    since = window.first_hour_ms if since_ms is None else since_ms
    until = window.until_ms if until_ms is None else until_ms
    where = {"cluster": cluster, "group_id": group}
    within = where | {"valid_from": Within(until_ms=until), "valid_to": Within(since_ms=since, or_null=True)}
    # The page requests it, and then its chart does.
    spans = reading.columns("assignments", _COLUMNS, within)
    counts = {row["values"]: row["counts"] for row in spans["origin"].value_counts().to_pylist()}
    origins = sorted(counts)
    shown = origin or ("reported" if "reported" in origins else "computed")
    found = reading.sql(_SPANS, {"spans": spans}, [shown, MAX_SPANS])
    columns = [found[name].to_pylist() for name in ("queue", "member", "begins", "ends")]
    marks, mark_count = _marks(reading, where, since, until)
    is_cut = counts.get(shown, 0) > MAX_SPANS
    if found.num_rows and since_ms is None and until_ms is None:
        times = [mark["at"] for mark in marks]
        # If spans are cut, older marks would have nothing below them.
        begins = columns[2] if is_cut else [*columns[2], *times]
        ends = [*columns[2], *(end for end in columns[3] if end), *times]
        since, until = _narrowed(since, window.now_ms if window.is_live else 0, begins, ends)
        if known_until is not None:
            # The empty space beyond the last knowledge shows that there is none.
            until = max(known_until + 1_000, min(now_ms(), known_until + (known_until - since) // _UNKNOWN_PART))
        marks = [mark for mark in marks if since <= mark["at"] < until]
    members = [member for (member,) in _named(reading, found, "member", ("member_id",))]
    return {
        "origin": shown,
        "origins": origins,
        "since": since,
        "until": until,
        "known_until": known_until,
        "queues": [
            queue_name(topic, broker, queue_id)
            for topic, broker, queue_id in _named(reading, found, "queue", ("topic", "broker", "queue_id"))
        ],
        "members": members,
        "traits": _traits(reading, where, since, until, members),
        "spans": [list(span) for span in zip(*columns, strict=True)],
        "is_cut": is_cut,
        "marks": marks,
        "mark_count": mark_count,
        "marks_cut": mark_count > MAX_MARKS,
        "annotations": _annotations(reading, cluster, group, since, until),
        "findings": _findings(reading, where, since, until),
    }


def _findings(reading: Reading, where: dict[str, str], since: int, until: int) -> list[dict[str, Any]]:
    """Return the newest findings of a group that were open within a window, in the order of their times."""
    bounds = {"since": str(since), "until": str(until)}
    found = piece(reading, FINDINGS, where | bounds, sort="-opened_at", limit=MAX_FINDINGS).rows
    return [
        {"id": row["finding_id"], "at": row["opened_at"], "until": row["closed_at"]}
        | {"kind": row["kind"], "severity": row["severity"], "text": row["message"]}
        for row in reversed(found)
    ]


def _traits(
    reading: Reading, where: dict[str, str], since: int, until: int, members: list[str]
) -> dict[str, list[str]]:
    """Return hosts, versions, workloads of members by their last session in a window, those of which one is known."""
    within = {"joined_at": Within(until_ms=until + 1), "left_at": Within(since_ms=since, or_null=True)}
    rows = reading.tables.rows("members", where=where | within)
    last = {row["member_id"]: row for row in with_pods(reading.tables, sorted(rows, key=lambda row: row["joined_at"]))}
    found = {
        "host": [last.get(member, {}).get("address") or "" for member in members],
        "version": [_version(last.get(member, {})) for member in members],
        "workload": [last.get(member, {}).get("workload") or "" for member in members],
    }
    return {name: values for name, values in found.items() if any(values)}


def _version(row: Row) -> str:
    names = (row.get("client_library") or row.get("language"), row.get("client_version"))
    return " ".join(filter(None, names))


def _annotations(reading: Reading, cluster: str, group: str, since: int, until: int) -> list[dict[str, Any]]:
    """Return the annotations within a window that concern a group, or members that it had then, by their times."""
    spans = AnnotationSpans(lead_ms=0, open_ms=reading.near.open_ms)
    found = near(reading.tables, since, until, spans)
    if not found:
        return []
    within = {"joined_at": Within(until_ms=until + 1), "left_at": Within(since_ms=since, or_null=True)}
    where = {"cluster": cluster, "group_id": group} | within
    members = concerned_members(reading.tables, found, lambda: reading.tables.rows("members", where=where))
    rows = related(found, Happening(cluster, group, members, since, until), spans)
    rows.sort(key=lambda row: (row["began_at"], row["annotation_id"]))
    return [
        {"at": row["began_at"], "until": row["ended_at"]}
        | {"kind": shown_text(row["kind"]), "text": shown_text(row["text"])}
        | {"concerns": row["concerns_text"], "url": row["url"]}
        for row in rows[-MAX_MARKS:]
    ]


def _named(reading: Reading, found: pa.Table, number: str, names: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Return the names for numbers from 0 on, each once, in the order of the numbers."""
    # DuckDB is used, because Arrow's group_by imports pandas.
    sql = f"select distinct {number}, {', '.join(names)} from found order by {number}"
    distinct = reading.sql(sql, {"found": found})
    return list(zip(*(distinct[name].to_pylist() for name in names), strict=True))


def _narrowed(since: int, now: int, begins: list[int], ends: list[int]) -> tuple[int, int]:
    """Return the part of the window with content, and up to now, with a margin."""
    first = max(since, min(begins))
    last = max(*ends, now)
    margin = max(1_000, (last - first) // 50)
    return first - margin, last + margin


def _marks(reading: Reading, where: dict[str, str], since: int, until: int) -> tuple[list[dict[str, Any]], int]:
    """Return the newest rebalances within a window, in the order of their times, and their total number."""
    found: pa.Table = reading.tables.read(
        "rebalances", columns=list(_MARKS), where=where | {"event_time": Within(since, until)}
    )
    newest = found.sort_by([("event_time", "descending")]).slice(0, MAX_MARKS)
    marks = [
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
    return marks, found.num_rows
