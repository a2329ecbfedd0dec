"""Core: what was known of the queues of groups that are deleted, and of those made again under their names. No I/O.

A row of the table that was applied and is not ``seen`` any more is of a deleted group: it shows what was known in the
span of the deletion once that span is over, and is dropped. What a new group of that name commits begins anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from udfs.model.arrays import Int64
from udfs.model.events import AnyEvent, GroupDeleted, GroupRecord, GroupSnapshot
from udfs.packets.progress import UNKNOWN, ProgressColumns
from udfs.shard.queue_spans import Ends, Reach, SpanRows, apply
from udfs.shard.queue_table import Booleans, QueueTable

_NEVER = np.iinfo(np.int64).min


def deletions_of(events: Iterable[AnyEvent]) -> list[int]:
    """Return when a group was deleted, ascending: not where a record takes its place that is of another protocol."""
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
    """Return of each row whether its group was deleted."""
    known = np.zeros(len(table), np.bool_)
    for values in table.columns.values():
        known |= values != UNKNOWN
    return ~table.seen & known


def apply_with_deletions(
    table: QueueTable,
    due: ProgressColumns,
    due_rows: Int64,
    ends: Ends,
    reach: Reach,
    deletions: Mapping[int, Sequence[int]],
    *,
    span_ms: int,
) -> SpanRows:
    """Apply what is due, up to the deletions of groups and after them; return what the spans that are over show.

    Args:
        deletions: By group, when it was deleted: ascending. What has that very time comes after it.
    """
    deleted = [(table.rows_of(group), list(times)) for group, times in sorted(deletions.items())]
    found: list[SpanRows] = []
    for number in range(max((len(times) for _, times in deleted), default=0)):
        part = _part(reach, deleted, number, span_ms)
        found.append(_apply_part(table, due, due_rows, ends, part, span_ms))
        opened = reach.opened.copy()
        for rows, times in deleted:
            if number < len(times):
                _end(table, rows, times[number])
                opened[rows] = part.first_open[rows]
        later = due.times >= part.until[due_rows]
        due, due_rows = due.where(later), due_rows[later]
        reach = reach._replace(opened=opened)
    found.append(_apply_part(table, due, due_rows, ends, reach, span_ms))
    return SpanRows(*map(np.concatenate, zip(*found, strict=True)))


def _part(reach: Reach, deleted: Sequence[tuple[slice, list[int]]], number: int, span_ms: int) -> Reach:
    """Return the reach up to this deletion of each group; other rows are applied at the end."""
    part = Reach(
        np.full(len(reach.until), _NEVER), reach.opened, reach.opened.copy(), np.zeros(len(reach.until), np.bool_)
    )
    for rows, times in deleted:
        if number < len(times):
            part.until[rows] = times[number]
            part.first_open[rows] = np.maximum(times[number] // span_ms if span_ms else 0, reach.opened[rows])
    return part


def _apply_part(
    table: QueueTable, due: ProgressColumns, due_rows: Int64, ends: Ends, reach: Reach, span_ms: int
) -> SpanRows:
    now = due.times < reach.until[due_rows]
    due, due_rows = due.where(now), due_rows[now]
    ended = is_ended(table)
    if not ended.any():
        return apply(table, due, due_rows, ends, reach, span_ms=span_ms)
    newer = ~ended[due_rows] | (due.times > table.columns["times"][due_rows])
    due, due_rows = due.where(newer), due_rows[newer]
    rows, firsts = np.unique(due_rows, return_index=True)
    again, firsts = rows[ended[rows]], firsts[ended[rows]]
    shown = _begin_anew(table, again, due.times[firsts], reach, span_ms)
    applied = apply(table, due, due_rows, ends, reach, span_ms=span_ms)
    return SpanRows(*map(np.concatenate, zip(shown, applied, strict=True)))


def _begin_anew(table: QueueTable, rows: Int64, times: Int64, reach: Reach, span_ms: int) -> SpanRows:
    """Forget what was known of a deleted group in rows that a new one has from now on.

    Returns: what they show of the span of the deletion, where the new group came after it.
    """
    columns = table.columns
    is_over = table.moved[rows] & (times // span_ms > reach.opened[rows]) if span_ms else np.zeros(len(rows), np.bool_)
    over = rows[is_over]
    shown = SpanRows(
        over, reach.opened[over], *(columns[name][over] for name in ("times", "offsets", "end_times", "ends"))
    )
    table.moved[over] = False
    for values in columns.values():
        values[rows] = UNKNOWN
    return shown


def _end(table: QueueTable, rows: slice, at: int) -> None:
    """Note that a group was deleted: only what is as new is of the next one of its name."""
    columns = table.columns
    newest = np.maximum(columns["times"][rows], columns["position_times"][rows])
    table.seen[rows] &= newest >= at
    outdated = columns["former_times"][rows] < at
    for name in ("former_times", "former_offsets"):
        columns[name][rows] = np.where(outdated, UNKNOWN, columns[name][rows])
