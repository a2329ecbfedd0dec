"""Dashboard: the lag of groups over a range of time, in messages and in time, from the history of commits and ends.

A row of ``queue_progress`` is written only where a commit or an end moved, so a queue keeps its lag until its next row,
as long as its cluster was known. Where it was not, there is no lag.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from dashboard.reading.group_detail import current_members, offsets_of
from dashboard.reading.known_time import known_end
from dashboard.reading.listing_query import plain_rows
from dashboard.reading.questions import Reading
from dashboard.reading.time_range import TimeRange
from dashboard.reading.window import DAY_MS, MINUTE_MS, last_day
from streaming.tables.schema import Row
from streaming.views.lag_ages import ages_of
from streaming.views.name_checks import one_group
from streaming.views.reader import Within
from streaming.views.related_findings import SOURCE_SILENT
from udfs.model.arrays import Int64
from udfs.model.observations import UNKNOWN

# A chart shows at most so many groups, and so many of their rebalances, the newest.
MOST_GROUPS = 8
MOST_MARKS = 200
# Steps are that much shorter than the bins of other charts, so there are at most 241 of them.
_STEPS_PER_BIN = 5
# Before as many rows more are read, each queue keeps only its last one of each step.
_BLOCK_ROWS = 500_000
_COLUMNS = (
    *("group_id", "topic", "broker", "queue_id"),
    *("event_time", "committed_at", "end_at", "written_at"),
    *("committed_offset", "end_offset", "lag", "written_offset"),
)
# Of a state: the message whose time brokers gave, see ``written_of``.
_WRITTEN = ("written", "written_at")
# The same rows from lists, because Arrow imports pandas for them.
_KINDS = ("varchar", "varchar", "varchar", "bigint", *("bigint",) * 8)
_STILL = f"""
select * replace ({", ".join(f"make_timestamptz({name} * 1000) as {name}" for name in _COLUMNS[4:8])}),
    event_time as first_ms
from (select {", ".join(f"unnest(?::{kind}[]) as {name}" for name, kind in zip(_COLUMNS, _KINDS, strict=True))})
"""
_QUEUE = "group_id, topic, broker, queue_id"
# The last row of each queue and step. Within it, the end began to grow no earlier than about ``first_ms``.
_THINNED = f"""
select * replace (min(first_ms) over span as first_ms)
from found
window span as (partition by {_QUEUE}, epoch_ms(event_time) // {{step}})
qualify row_number() over (span order by event_time desc, committed_at desc nulls last, end_at desc nulls last) = 1
"""
# At the end of each step: the last row of each queue up to it, and the ends around its commit in the same history of
# the queue: one that falls is that of a topic that was made again.
_STATES = f"""
with told as (
    select *, epoch_ms(event_time) as span_ms, dense_rank() over (order by {_QUEUE}) as queue from found
),
fallen as (
    select *, end_offset < lag(end_offset ignore nulls) over (partition by queue order by event_time) as falls from told
),
history as (
    select *, count(*) filter (falls) over (
        partition by queue order by event_time rows between unbounded preceding and current row
    ) as part
    from fallen
),
steps as (select unnest(range({{since}}, {{until}}, {{step}})) as at_ms),
wanted as (select distinct queue, group_id, at_ms from history, steps),
states as (
    select wanted.queue, wanted.group_id, wanted.at_ms, part, committed_offset, end_offset, lag,
        written_offset, written_at
    from wanted asof left join history on wanted.queue = history.queue and wanted.at_ms + {{step}} > history.span_ms
    where history.queue is null or committed_offset is not null or end_offset is not null
),
ends as (
    select queue, part, end_offset, min(epoch_ms(end_at)) as first_at, max(epoch_ms(end_at)) as last_at,
        arg_min(first_ms, end_at) as first_ms
    from history where end_offset is not null and end_at is not null group by all
)
select states.group_id, states.at_ms, coalesce(states.lag, -1) as lag, coalesce(committed_offset, 0) as committed,
    coalesce(up_to.last_at, {{none}}) as before, coalesce(up_to.end_offset, 0) as end_before,
    coalesce(beyond.first_at, {{none}}) as after, coalesce(beyond.end_offset, 0) as end_after,
    coalesce(beyond.first_ms, 0) as span,
    coalesce(written_offset, {{none}}) as written, coalesce(epoch_ms(written_at), {{none}}) as written_at
from states
asof left join ends as up_to on states.queue = up_to.queue and states.part = up_to.part
    and states.committed_offset >= up_to.end_offset
asof left join ends as beyond on states.queue = beyond.queue and states.part = beyond.part
    and states.committed_offset < beyond.end_offset
order by states.group_id, states.at_ms
"""
# Over the ends of all groups, because any of them may have seen one last.
_RATES = """
with ends as (
    select broker, queue_id, epoch_ms(end_at) as at_ms, max(end_offset) as end_offset from found
    where end_offset is not null and epoch_ms(end_at) >= {since} group by all
),
grown as (select *, end_offset < lag(end_offset) over (partition by broker, queue_id order by at_ms) as falls from ends)
select broker, queue_id,
    ((max(end_offset) - min(end_offset)) * {minute} / (max(at_ms) - min(at_ms)))::bigint as rate
from grown group by all having max(at_ms) > min(at_ms) and not coalesce(bool_or(falls), false)
"""
_TABLES = ("queue_progress", "groups", "members", "assignments", "topics")
_MARKS = ("rebalance_id", "group_id", "event_time", "trigger", "queue_outage_max_ms", "queue_outage_min_ms")


class LagHistory(NamedTuple):
    """The lag of some groups over time.

    Attributes:
        rows: By group and step: group_id, at (its beginning, in epoch ms), lag (in messages, summed over queues of
            which it is known; null if it is known of none), queue_lag (that of the worst queue), lag_ms and lag_min_ms
            (of the oldest unread message, see ``LagAge``), queues, queues_unknown. All are as of the end of the step.
        step_ms: The length of a step. gaps: Spans in which the cluster was not known: begin and end, in epoch ms.
        marks: The newest rebalances within the range: id, group_id, at, trigger, outage_ms (of the queue that nobody
            read for longest; null if it is not known).
    """

    rows: list[Row]
    step_ms: int
    gaps: list[tuple[int, int]]
    marks: list[Row]


def lag_history(
    reading: Reading, cluster: str, groups: Sequence[str], span: TimeRange, topic: str | None = None
) -> LagHistory:
    """Return how the lag of groups of one cluster developed in a range.

    Args:
        groups: The first ``MOST_GROUPS`` count. topic: Only its queues; None for all.

    Raises:
        NotFoundError: There is no such group.
    """
    names = tuple(sorted(groups[:MOST_GROUPS]))
    step_ms = _step_ms(span)
    end_ms = known_end(reading, cluster, last_day(reading).now_ms) or 0
    gaps = _gaps(reading, cluster, span, end_ms)
    since_ms = span.since_ms // step_ms * step_ms
    until_ms = min(span.until_ms, end_ms)

    def compute() -> pa.Table:
        sql = _STATES.format(since=since_ms, until=until_ms, step=step_ms, none=UNKNOWN)
        return reading.sql(sql, {"found": _thinned(reading, cluster, names, span, topic)})

    key = ("lag history", cluster, names, topic, since_ms, until_ms, step_ms)
    states = reading.kept(key, _TABLES, compute)
    rows = [
        row
        for row in _summed(states, step_ms, until_ms)
        if not any(begin < min(row["at"] + step_ms, until_ms) <= end for begin, end in gaps)
    ]
    return LagHistory(rows, step_ms, gaps, _marks(reading, cluster, names, span))


def end_rates(
    reading: Reading, cluster: str, groups: Sequence[str], span: TimeRange, topic: str
) -> dict[tuple[str | None, int], int]:
    """Return how many messages a minute came to queues of a topic, by broker and queue, as their observed ends grew.

    Args:
        groups: The first ``MOST_GROUPS`` count. span: The range over which it is measured.
    Returns: only queues of which two ends within the range are known, and none that fell.
    """
    found = _thinned(reading, cluster, tuple(sorted(groups[:MOST_GROUPS])), span, topic)
    rows = plain_rows(reading.sql(_RATES.format(since=span.since_ms, minute=MINUTE_MS), {"found": found}))
    return {(row["broker"], row["queue_id"]): row["rate"] for row in rows}


def _step_ms(span: TimeRange) -> int:
    return max(MINUTE_MS, span.bin_ms // _STEPS_PER_BIN)


def _thinned(reading: Reading, cluster: str, groups: tuple[str, ...], span: TimeRange, topic: str | None) -> pa.Table:
    """Return what ``_rows`` does, computed once for each version of the tables."""
    step_ms = _step_ms(span)
    key = ("lag rows", cluster, groups, topic, span.since_ms, span.until_ms)
    return reading.kept(key, _TABLES, lambda: _rows(reading, cluster, groups, span, step_ms, topic))


def _rows(
    reading: Reading, cluster: str, groups: tuple[str, ...], span: TimeRange, step_ms: int, topic: str | None
) -> pa.Table:
    """Return the rows of the range and of as long before it, at most a day; of queues without any, the newest row."""
    since_ms = span.since_ms - min(DAY_MS, span.span_ms)
    where: dict[str, Any] = {"cluster": cluster, "group_id": {*groups}, "topic": topic}
    where["event_time"] = Within(since_ms, span.until_ms)
    waiting = [_still(reading, cluster, groups, since_ms, topic)]

    def thinned() -> pa.Table:
        return reading.sql(_THINNED.format(step=step_ms), {"found": pa.concat_tables(waiting)})

    timed = "select *, epoch_ms(event_time) as first_ms from block"
    for block in reading.tables.blocks("queue_progress", columns=_COLUMNS, where=where):
        waiting.append(reading.sql(timed, {"block": block}))
        if sum(rows.num_rows for rows in waiting[1:]) >= _BLOCK_ROWS:
            waiting = [thinned()]
    return thinned()


def _still(reading: Reading, cluster: str, groups: Sequence[str], since_ms: int, topic: str | None) -> pa.Table:
    """Return the newest rows of the queues that have not moved since a time: their lag is what it was."""
    rows = []
    for name in groups:
        group = one_group(reading.tables, name, cluster)
        for row in offsets_of(reading, group, current_members(reading, cluster, name)):
            at = max(row["committed_at"] or 0, row["end_at"] or 0)
            if 0 < at < since_ms and topic in (None, row["topic"]):
                rows.append(row | {"event_time": at})
    return reading.sql(_STILL, {}, [[row.get(name) for row in rows] for name in _COLUMNS])


def _summed(states: pa.Table, step_ms: int, until_ms: int) -> list[Row]:
    """Return the rows of ``LagHistory`` from the states of queues, which are in the order of groups and steps."""
    names = (*("at_ms", "lag", "committed", "before", "end_before", "after", "end_after"), *("span", *_WRITTEN))
    numbers = {name: _numbers(states[name]) for name in names}
    at, lag = numbers["at_ms"], numbers["lag"]
    age, least = _ages(numbers, np.minimum(at + step_ms, until_ms))
    groups = states["group_id"].to_pylist()
    begins = [
        place
        for place in range(len(groups))
        if not place or (groups[place], at[place]) != (groups[place - 1], at[place - 1])
    ]
    found = []
    for begin, end in pairwise([*begins, len(groups)]):
        known = np.flatnonzero(lag[begin:end] >= 0) + begin
        row = {
            "group_id": groups[begin],
            "at": int(at[begin]),
            "queues": end - begin,
            "queues_unknown": end - begin - len(known),
        }
        row |= dict.fromkeys(("lag", "queue_lag", "lag_ms", "lag_min_ms"))
        if len(known):
            row |= {"lag": int(lag[known].sum()), "queue_lag": int(lag[known].max())}
            oldest = known[np.argmax(np.maximum(age[known], least[known]))]
            row |= {
                name: int(values[oldest]) if values[oldest] != UNKNOWN else None
                for name, values in (("lag_ms", age), ("lag_min_ms", least))
            }
        found.append(row)
    return found


def _numbers(column: pa.ChunkedArray) -> Int64:
    """Return a column of whole numbers without nulls. Its memory is read, because Arrow's own way imports pandas."""
    parts = [
        np.frombuffer(part.buffers()[1], np.int64, len(part), 8 * part.offset) for part in column.chunks if len(part)
    ]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _ages(numbers: Mapping[str, Int64], known_ms: Int64) -> tuple[Int64, Int64]:
    """Return the age of the next unread message of each queue, and the least that it can be; 0 where all is read."""
    up_to, beyond = (numbers["before"], numbers["end_before"]), (numbers["after"], numbers["end_after"])
    committed, written = numbers["committed"], [numbers[name] for name in _WRITTEN]
    (age, least, _), _ = ages_of(committed, written, up_to, beyond, numbers["span"], known_ms)
    is_bounded = (numbers["after"] != UNKNOWN) | (written[0] == committed)
    is_read, is_unknown = numbers["lag"] == 0, (numbers["lag"] < 0) | ~is_bounded
    found = np.where(is_unknown, UNKNOWN, age), np.where(is_unknown, UNKNOWN, np.maximum(0, least))
    return np.where(is_read, 0, found[0]), np.where(is_read, 0, found[1])


def _gaps(reading: Reading, cluster: str, span: TimeRange, end_ms: int) -> list[tuple[int, int]]:
    """Return the spans of a range in which a cluster was not known: its source was silent, or it is not known yet."""
    within = {"opened_at": Within(until_ms=span.until_ms), "closed_at": Within(since_ms=span.since_ms, or_null=True)}
    rows = reading.tables.rows("findings", where={"cluster": cluster, "kind": SOURCE_SILENT} | within)
    found = [(row["opened_at"], row["closed_at"] or span.until_ms) for row in rows]
    # A range up to now ends with the minute that is not over.
    if end_ms < span.until_ms - MINUTE_MS:
        found.append((end_ms, span.until_ms))
    merged: list[tuple[int, int]] = []
    for begin, end in sorted((max(begin, span.since_ms), min(end, span.until_ms)) for begin, end in found):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        elif begin < end:
            merged.append((begin, end))
    return merged


def _marks(reading: Reading, cluster: str, groups: tuple[str, ...], span: TimeRange) -> list[Row]:
    """Return the newest rebalances of these groups within a range, in the order of their times."""
    where = {"cluster": cluster, "group_id": {*groups}, "event_time": Within(span.since_ms, span.until_ms)}
    found = reading.tables.read("rebalances", columns=_MARKS, where=where)
    newest = found.sort_by([("event_time", "descending"), ("rebalance_id", "ascending")]).slice(0, MOST_MARKS)
    return [
        {"id": row["rebalance_id"], "group_id": row["group_id"], "at": row["event_time"], "trigger": row["trigger"]}
        | {"outage_ms": row["queue_outage_max_ms"] or row["queue_outage_min_ms"]}
        for row in reversed(plain_rows(newest))
    ]
