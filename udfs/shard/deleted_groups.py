"""Core: queues of deleted groups, of deleted commits, and of groups re-created under the same name. No I/O.

A row of the table that was applied and is no longer ``applied`` is deleted: once the span of the deletion is over, it
gives a last row without offsets, and is dropped. Commits after that start over.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from udfs.model.arrays import Int64
from udfs.model.events import AnyEvent, GroupDeleted, GroupRecord, GroupSnapshot
from udfs.model.observations import UNKNOWN
from udfs.packets.progress_columns import ProgressColumns
from udfs.shard.ends import Ends
from udfs.shard.queue_spans import SHOWN, AppliedSpans, Look, Reach, SpanRows, apply, seen_since
from udfs.shard.queue_table import Booleans, QueueTable

# Rows of the table, and when they were deleted, in ascending order, the same for all of them.
Deletions: TypeAlias = Sequence[tuple[Int64, Sequence[int]]]


class DeletedQueues(NamedTuple):
    """Queues whose commit alone was deleted: rows of the table, and when; a row may occur more than once."""

    rows: Int64
    times: Int64


_NEVER = np.iinfo(np.int64).min


def deletions_of(events: Iterable[AnyEvent]) -> list[int]:
    """Return when a group was deleted, ascending; a record of another protocol that replaces it is not a deletion."""
    deleted, records, tombstones, snapshots = set[int](), set[int](), set[int](), set[int]()
    for event in events:
        match event:
            case GroupDeleted():
                deleted.add(event.event_time)
            case GroupRecord(record="group"):
                (tombstones if event.deleted else records).add(event.event_time)
            case GroupSnapshot():
                snapshots.add(event.event_time)
            case _:
                pass
    return sorted((deleted - records) | (tombstones - snapshots))


def is_ended(table: QueueTable) -> Booleans:
    """Return for each row whether its group was deleted."""
    has_values = np.zeros(len(table), np.bool_)
    for values in table.columns.values():
        has_values |= values != UNKNOWN
    return ~table.applied & has_values


def deletions_of_rows(table: QueueTable, groups: Mapping[int, Sequence[int]], queues: DeletedQueues) -> Deletions:
    """Return which rows were deleted when, each row once.

    Args:
        groups: When each group was deleted, ascending. queues: Commits that were deleted individually.
    """
    own: dict[int, set[int]] = {}
    for row, at in zip(*(column.tolist() for column in queues), strict=True):
        own.setdefault(row, set()).add(at)
    numbers = sorted(own)
    found: list[tuple[Int64, Sequence[int]]] = []
    for group, times in sorted(groups.items()):
        rows = table.rows_of(group)
        mixed = numbers[bisect_left(numbers, rows.start) : bisect_left(numbers, rows.stop)]
        for row in mixed:
            own[row].update(times)
        whole = np.arange(rows.start, rows.stop)
        found.append((whole[~np.isin(whole, mixed)], times))
    together: dict[tuple[int, ...], list[int]] = {}
    for row in numbers:
        together.setdefault(tuple(sorted(own[row])), []).append(row)
    return [*found, *((np.array(rows, np.int64), times) for times, rows in together.items())]


def apply_with_deletions(
    table: QueueTable,
    due: ProgressColumns,
    due_rows: Int64,
    ends: Ends,
    reach: Reach,
    deletions: Deletions,
    *,
    span_ms: int,
    look: Look | None = None,
) -> AppliedSpans:
    """Apply due observations, up to the deletions and after them; return the rows of the completed spans.

    Args:
        deletions: The result of ``deletions_of_rows``. Observations with the same timestamp as a deletion come after
            it. look: How to find standstills; None to find none.
    """
    found: list[AppliedSpans] = []
    for number in range(max((len(times) for _, times in deletions), default=0)):
        part = _part(reach, deletions, number, span_ms)
        found.append(_apply_part(table, due, due_rows, ends, part, span_ms, look))
        opened = reach.opened.copy()
        for rows, times in deletions:
            if number < len(times):
                _end(table, rows, times[number], shows=span_ms > 0)
                opened[rows] = part.first_open[rows]
        later = due.times >= part.until[due_rows]
        due, due_rows = due.where(later), due_rows[later]
        reach = reach._replace(opened=opened)
    found.append(_apply_part(table, due, due_rows, ends, reach, span_ms, look))
    return AppliedSpans.concat(found)


def _part(reach: Reach, deletions: Deletions, number: int, span_ms: int) -> Reach:
    """Return the reach up to this deletion of each row; other rows are applied at the end."""
    part = Reach(
        np.full(len(reach.until), _NEVER), reach.opened, reach.opened.copy(), np.zeros(len(reach.until), np.bool_)
    )
    for rows, times in deletions:
        if number < len(times):
            part.until[rows] = times[number]
            part.first_open[rows] = np.maximum(times[number] // span_ms if span_ms else 0, reach.opened[rows])
    return part


def _apply_part(
    table: QueueTable,
    due: ProgressColumns,
    due_rows: Int64,
    ends: Ends,
    reach: Reach,
    span_ms: int,
    look: Look | None,
) -> AppliedSpans:
    now = due.times < reach.until[due_rows]
    due, due_rows = due.where(now), due_rows[now]
    if (notes := due.are_notes).any():
        founded = ~notes | (due.times >= seen_since(table, due.where(~notes), due_rows[~notes])[due_rows])
        due, due_rows = due.where(founded), due_rows[founded]
    ended = is_ended(table)
    if not ended.any():
        return apply(table, due, due_rows, ends, reach, span_ms=span_ms, look=look)
    newer = ~ended[due_rows] | (due.times >= table.columns["times"][due_rows])
    due, due_rows = due.where(newer), due_rows[newer]
    rows, firsts = np.unique(due_rows, return_index=True)
    again, firsts = rows[ended[rows]], firsts[ended[rows]]
    shown = _begin_anew(table, again, due.times[firsts], reach, span_ms)
    applied = apply(table, due, due_rows, ends, reach, span_ms=span_ms, look=look)
    return AppliedSpans.concat([AppliedSpans(shown), applied])


def _begin_anew(table: QueueTable, rows: Int64, times: Int64, reach: Reach, span_ms: int) -> SpanRows:
    """Forget deleted observations in rows that a new commit takes over.

    Returns: their values in the span of the deletion, if the new commit came after it.
    """
    columns = table.columns
    is_over = table.moved[rows] & (times // span_ms > reach.opened[rows]) if span_ms else np.zeros(len(rows), np.bool_)
    over = rows[is_over]
    shown = SpanRows(over, reach.opened[over], *(columns[name][over] for name in SHOWN))
    table.moved[over] = False
    for values in columns.values():
        values[rows] = UNKNOWN
    return shown


def _end(table: QueueTable, rows: Int64, at: int, *, shows: bool) -> None:
    """Record that rows were deleted; only observations at least as new belong to the next group of that name.

    Args:
        shows: Whether the span of the deletion gives a row.
    """
    columns = table.columns
    newest = np.maximum(columns["times"][rows], columns["position_times"][rows])
    for time, name in (
        ("former_times", "former_offsets"),
        ("former_times", "former_times"),
        ("earlier_times", "earlier_times"),
        ("earliest_times", "earliest_times"),
    ):
        columns[name][rows] = np.where(columns[time][rows] < at, UNKNOWN, columns[name][rows])
    ended = rows[table.applied[rows] & (newest < at)]
    table.applied[ended] = False
    table.moved[ended] = shows
    for name, values in columns.items():
        values[ended] = at if name == "times" else UNKNOWN
