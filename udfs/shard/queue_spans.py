"""Core: observations applied to the table of queues, and the rows of each span of event time. No I/O.

A span is over once the cluster's clock has passed its end; by then all of it was observed, in whatever batches. Each
queue whose commit or end offset changed within a span gives one row for it, with both values at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from udfs.model.arrays import Int64
from udfs.model.observations import SECOND_MS, UNKNOWN
from udfs.model.stall_rule import StallRule
from udfs.packets.progress_columns import ProgressColumns
from udfs.shard.ends import Ends
from udfs.shard.log_starts import NOT_NEAR, NearSpans, is_near, near_rows, near_spans, remember_starts
from udfs.shard.queue_table import Booleans, QueueTable
from udfs.shard.standstills import NO_STANDSTILLS, Seen, Standstills, remember, remembered, standstills_of, waits_of


class SpanRows(NamedTuple):
    """Queues that moved within a completed span: rows of the table, the span's number, and the newest values in it."""

    rows: Int64
    spans: Int64
    times: Int64
    offsets: Int64
    end_times: Int64
    ends: Int64
    starts: Int64
    written_offsets: Int64
    written_times: Int64


# What of them is a column of the table, in their order.
SHOWN: Final = ("times", "offsets", "end_times", "ends", "starts", "written_offsets", "written_times")
_NOTHING = SpanRows(*[np.empty(0, np.int64)] * 9)


class Look(NamedTuple):
    """The search for standstills, and for queues near the start of their log, in a batch that passes an evaluation.

    Attributes:
        clock: The cluster's clock. share: Of its log; a queue with less of it before its commit is near its start.
    """

    rule: StallRule
    clock: int
    share: float


class AppliedSpans(NamedTuple):
    """Rows of completed spans; when queues stood, or were near the starts of their logs, some of them twice."""

    spans: SpanRows = _NOTHING
    standstills: Standstills = NO_STANDSTILLS
    near: NearSpans = NOT_NEAR

    @staticmethod
    def concat(parts: Sequence[AppliedSpans]) -> AppliedSpans:
        """Join parts."""
        spans, standstills, near = zip(*parts, strict=True)
        return AppliedSpans(
            SpanRows(*map(np.concatenate, zip(*spans, strict=True))),
            Standstills(*map(np.concatenate, zip(*standstills, strict=True))),
            NearSpans(*map(np.concatenate, zip(*near, strict=True))),
        )


class Reach(NamedTuple):
    """The time up to which each row of the table is applied.

    Attributes:
        until: Only older observations apply. opened: The number of the span that was open before. first_open: The first
            span that is not over then. flush: Whether that span is shown as far as it was observed.
    """

    until: Int64
    opened: Int64
    first_open: Int64
    flush: Booleans

    @classmethod
    def of_all(cls, rows: int, span_ms: int, before: int | None, clock: int, *, flush: bool) -> Reach:
        """Return a reach that applies all rows up to the clock; a span of 0 ms never ends."""
        opened = 0 if before is None or not span_ms else before // span_ms
        first_open = clock // span_ms if span_ms else 0
        until, from_, to = (np.broadcast_to(np.int64(value), rows) for value in (clock, opened, first_open))
        return cls(until, from_, to, np.broadcast_to(np.bool_(flush), rows))


class _Observations(NamedTuple):
    """All due observations by row, then by time; before the first of a row comes the row itself, as of earlier batches.

    Attributes:
        is_row: Whether this is the row itself.
    """

    rows: Int64
    times: Int64
    offsets: Int64
    ends: Int64
    positions: Int64
    starts: Int64
    commits: Booleans
    written_offsets: Int64
    written_times: Int64
    is_row: Booleans


def in_row_order(due: ProgressColumns, rows: Int64) -> tuple[ProgressColumns, Int64]:
    """Return observations by row, then by time, merged into the greatest values for each row and time; and their rows.

    Args:
        rows: The row in the table of each observation.
    """
    order = _order(rows, due.times)
    due, rows = due.where(order), rows[order]
    again = np.zeros(len(rows), np.bool_)
    again[1:] = (rows[1:] == rows[:-1]) & (due.times[1:] == due.times[:-1])
    if not again.any():
        return due, rows
    firsts = np.flatnonzero(~again)
    others = [np.maximum.reduceat(column, firsts) for column in due[3:]]
    return ProgressColumns(due.groups[firsts], due.queues[firsts], due.times[firsts], *others), rows[firsts]


def _order(rows: Int64, times: Int64) -> Int64:
    """Return the order that sorts by row, then by time."""
    if not len(rows):
        return np.empty(0, np.int64)
    later = times - times.min()
    span = int(later.max()) + 1
    if (int(rows.max()) + 1) * span < 2**62:
        return np.argsort(rows * span + later, kind="stable")
    return np.lexsort((times, rows))


def apply(
    table: QueueTable,
    due: ProgressColumns,
    due_rows: Int64,
    ends: Ends,
    reach: Reach,
    *,
    span_ms: int,
    look: Look | None = None,
) -> AppliedSpans:
    """Apply due observations, and return the rows of completed spans.

    Args:
        due, due_rows: The result of ``in_row_order``, within the reach. ends: End offsets older than the clock.
        span_ms: The length of a span; 0 if spans never end. look: How to find standstills; None to find none.
    """
    closing = table.moved & (reach.flush | (reach.first_open > reach.opened))
    observed = _observations(table, due, due_rows, ends, reach.until, np.flatnonzero(closing))
    standing, near = NO_STANDSTILLS, NOT_NEAR
    if look is not None:
        untouched = np.ones(len(table), np.bool_)
        untouched[observed.rows] = False
        standing = remembered(table.columns, np.flatnonzero(untouched), look.rule, reach.until, look.clock)
        near = near_rows(table.columns, np.flatnonzero(untouched), look.share)
    if not len(observed.rows):
        return AppliedSpans(standstills=standing, near=near)
    rows, is_row = observed.rows, observed.is_row
    last = np.append(rows[1:] != rows[:-1], True)
    by_offset = _newest(is_row | observed.commits | (observed.offsets != UNKNOWN))
    by_end = _newest(is_row | (observed.ends != UNKNOWN))
    by_commit = _newest(is_row | observed.commits)
    offsets, final_ends = observed.offsets[by_offset], observed.ends[by_end]
    changed = ~is_row
    changed[1:] &= (offsets[1:] != offsets[:-1]) | (final_ends[1:] != final_ends[:-1])
    times = np.where(is_row, table.columns["times"][rows], observed.times)[by_commit]
    end_times = np.where(is_row, table.columns["end_times"][rows], observed.times)[by_end]
    seen = Seen(
        rows, observed.times, is_row, observed.commits, offsets, final_ends, end_times, observed.ends != UNKNOWN
    )
    waits = waits_of(table.columns, seen)
    if look is not None:
        found = standstills_of(waits, look.rule, reach.until, look.clock)
        standing = Standstills(*map(np.concatenate, zip(standing, found, strict=True)))
    _write(table, observed, last, by_offset, by_end, by_commit)
    remember(table.columns, waits)
    starts = observed.starts[_newest(is_row | (observed.starts != UNKNOWN))]
    found_near = _apply_starts(table, observed, offsets, final_ends, starts, None if look is None else look.share)
    near = NearSpans(*map(np.concatenate, zip(near, found_near, strict=True)))
    opened = reach.opened[rows]
    spans = np.where(is_row, opened, np.maximum(observed.times // max(span_ms, 1), opened))
    by_written = _newest(is_row | (observed.written_offsets != UNKNOWN))
    written = (observed.written_offsets[by_written], observed.written_times[by_written])
    newest = SpanRows(rows, spans, times, offsets, end_times, final_ends, starts, *written)
    shown = _complete_spans(table, newest, np.where(is_row, table.moved[rows], changed), reach) if span_ms else _NOTHING
    return AppliedSpans(shown, standing, near)


def _complete_spans(table: QueueTable, newest: SpanRows, moved: Booleans, reach: Reach) -> SpanRows:
    """Return the completed spans in which queues moved, and remember which queues moved in the open ones.

    Args:
        newest: The newest values up to each observation. moved: Whether it moved the queue.
    """
    rows, spans = newest.rows, newest.spans
    last = np.append(rows[1:] != rows[:-1], True)
    closes = last | np.append(spans[1:] != spans[:-1], True)
    firsts = np.flatnonzero(np.append(True, closes[:-1]))
    at, any_moved = np.flatnonzero(closes), np.logical_or.reduceat(moved, firsts)
    shown = any_moved & ((spans[at] < reach.first_open[rows[at]]) | reach.flush[rows[at]])
    table.moved[rows[last]] = False
    table.moved[rows[at[any_moved & ~shown]]] = True
    return SpanRows(*(column[at[shown]] for column in newest))


def _apply_starts(
    table: QueueTable, observed: _Observations, offsets: Int64, ends: Int64, starts: Int64, share: float | None
) -> NearSpans:
    """Remember the observed starts of logs, and return the rows that were near them at some time.

    Args:
        offsets, ends, starts: The newest up to each observation. share: See ``Look``; None to return no rows.
    """
    rows, is_seen, columns = observed.rows, observed.starts != UNKNOWN, table.columns
    if not is_seen.any():
        return NOT_NEAR
    moves = columns["former_start_times"][rows] != UNKNOWN
    new = is_seen & ~observed.is_row
    if new.any():
        remember_starts(columns, rows[new], observed.times[new], observed.starts[new])
    if share is None:
        return NOT_NEAR
    moves |= columns["former_start_times"][rows] != UNKNOWN
    return near_spans(rows, observed.times, is_near(starts, offsets, ends, moves, share))


def match_ends(
    table: QueueTable, due: ProgressColumns, due_rows: Int64, ends: Ends, until: Int64 | None = None
) -> tuple[Int64, Int64]:
    """Match end offsets with the rows of all groups: for each pair, the row and the index of the end.

    A group without a row when the end was observed is not matched, so it does not matter which batch brought which.
    """
    ordered, order = table.by_key()
    lefts, rights = np.searchsorted(ordered, ends.queues), np.searchsorted(ordered, ends.queues, side="right")
    counts = rights - lefts
    numbers = np.repeat(np.arange(len(ends.queues)), counts)
    within = np.arange(len(numbers)) - np.repeat(np.cumsum(counts) - counts, counts)
    rows = order[np.repeat(lefts, counts) + within]
    kept = ends.times[numbers] >= seen_since(table, due, due_rows)[rows]
    if until is not None:
        kept &= ends.times[numbers] < until[rows]
    return rows[kept], numbers[kept]


def seen_since(table: QueueTable, due: ProgressColumns, due_rows: Int64) -> Int64:
    """Return since when something is known of the group in each row; beyond all times if it is not with this batch."""
    since = np.where(table.applied, UNKNOWN, np.iinfo(np.int64).max)
    fresh = ~table.applied[due_rows]
    np.minimum.at(since, due_rows[fresh], due.times[fresh])
    return since


def _observations(
    table: QueueTable, due: ProgressColumns, due_rows: Int64, ends: Ends, until: Int64, also: Int64
) -> _Observations:
    end_rows, numbers = match_ends(table, due, due_rows, ends, until)
    touched = np.zeros(len(table), np.bool_)
    for some in (due_rows, end_rows, also):
        touched[some] = True
    own = np.flatnonzero(touched)
    unknown = np.full(len(numbers), UNKNOWN, np.int64)
    rows = np.concatenate([own, due_rows, end_rows])
    columns = table.columns
    observed = _Observations(
        rows,
        np.concatenate([np.full(len(own), UNKNOWN, np.int64), due.times, ends.times[numbers]]),
        np.concatenate([columns["offsets"][own], due.offsets, unknown]),
        np.concatenate([columns["ends"][own], due.ends, ends.ends[numbers]]),
        np.concatenate([columns["positions"][own], due.positions, unknown]),
        np.concatenate([columns["starts"][own], np.full(len(due.times), UNKNOWN), ends.starts[numbers]]),
        np.concatenate([columns["times"][own] != UNKNOWN, due.commits, np.zeros(len(numbers), np.bool_)]),
        np.concatenate([columns["written_offsets"][own], due.written_offsets, unknown]),
        np.concatenate([columns["written_times"][own], due.written_times, unknown]),
        np.arange(len(rows)) < len(own),
    )
    # Late observations do not change newer ones.
    others = ~observed.is_row
    for values, newest in (
        (observed.offsets, "times"),
        (observed.ends, "end_times"),
        (observed.positions, "position_times"),
        (observed.starts, "start_times"),
        (observed.written_offsets, "written_seen"),
    ):
        values[others & (observed.times <= columns[newest][rows])] = UNKNOWN
    observed.commits[others & (observed.times <= columns["times"][rows])] = False
    order = _order(rows, observed.times)
    same = (np.diff(rows[order]) == 0) & (np.diff(observed.times[order]) == 0)
    if same.any():  # of two ends with the same timestamp only the greater counts
        order = np.lexsort((observed.ends, observed.times, rows))
        observed.ends[order[:-1][same]] = UNKNOWN
        starts = observed.starts[order]
        begins = np.append(0, np.flatnonzero(~same) + 1)
        observed.starts[order] = np.repeat(np.maximum.reduceat(starts, begins), np.diff(begins, append=len(starts)))
    observed = _Observations._make(column[order] for column in observed)
    # A commit shows the committed offset; an offset without a commit, from a poll, counts only before the first commit.
    committed = observed.commits[_newest(observed.is_row | observed.commits)]
    observed.offsets[committed & ~observed.commits & ~observed.is_row] = UNKNOWN
    return observed


def _newest(valid: Booleans) -> Int64:
    """Return for each index the last valid index up to it; the first of each row is valid."""
    return np.maximum.accumulate(np.where(valid, np.arange(len(valid)), 0))


def _write(
    table: QueueTable, observed: _Observations, last: Booleans, by_offset: Int64, by_end: Int64, by_commit: Int64
) -> None:
    """Set the rows to the newest values."""
    rows, columns, is_row = observed.rows[last], table.columns, observed.is_row
    commit = by_commit[last]
    again = ~is_row[commit]
    # The commit before the newest is in this batch, or it is the row's own newest commit.
    former = by_commit[np.maximum(commit[again] - 1, 0)]
    of_row, has_former = is_row[former], observed.commits[former]
    times, offsets = columns["times"][rows[again]], columns["offsets"][rows[again]]
    former_times = np.where(of_row, times, observed.times[former])
    former_offsets = np.where(of_row, offsets, observed.offsets[former])
    has_former &= former_offsets != UNKNOWN
    columns["former_times"][rows[again]] = np.where(has_former, former_times, UNKNOWN)
    columns["former_offsets"][rows[again]] = np.where(has_former, former_offsets, UNKNOWN)
    _write_earlier(table, observed, rows[again], commit[again])
    columns["times"][rows[again]] = observed.times[commit[again]]
    columns["offsets"][rows] = observed.offsets[by_offset[last]]
    by_position = _newest(is_row | (observed.positions != UNKNOWN))
    by_written = _newest(is_row | (observed.written_offsets != UNKNOWN))
    for values, by, value, time in (
        (observed.ends, by_end, "ends", "end_times"),
        (observed.positions, by_position, "positions", "position_times"),
        (observed.written_offsets, by_written, "written_offsets", "written_seen"),
    ):
        at = by[last]
        new = ~is_row[at]
        columns[value][rows[new]] = values[at[new]]
        columns[time][rows[new]] = observed.times[at[new]]
    columns["written_times"][rows] = observed.written_times[by_written[last]]
    table.applied[rows] |= np.maximum.reduceat(~is_row, np.flatnonzero(np.append(True, last[:-1])))


def _write_earlier(table: QueueTable, observed: _Observations, rows: Int64, commit: Int64) -> None:
    """Set when rows were last committed in the two seconds with a commit before the newest commit's second.

    Args:
        commit: The index of each row's newest commit.
    """
    columns, places = table.columns, np.flatnonzero(observed.commits)
    of_rows, is_row = observed.rows[places], observed.is_row[places]
    times = np.where(is_row, columns["times"][of_rows], observed.times[places])
    seconds = times // SECOND_MS
    begins = np.append(True, (of_rows[1:] != of_rows[:-1]) | (seconds[1:] != seconds[:-1]))
    # This is the last commit of an earlier second.
    before = np.maximum.accumulate(np.where(begins, np.arange(len(places)), 0)) - 1

    def last_before(at: Int64) -> tuple[Int64, Booleans]:
        found = before[at]
        return found, (found >= 0) & (of_rows[found] == of_rows[at])

    newest = np.searchsorted(places, commit)
    first, has_first = last_before(newest)
    second, has_second = last_before(first)
    # The row itself holds the commits before its newest one.
    own, own_before = columns["earlier_times"][rows], columns["earliest_times"][rows]
    earlier = np.where(has_first, times[first], own)
    columns["earliest_times"][rows] = np.where(has_first, np.where(has_second, times[second], own), own_before)
    columns["earlier_times"][rows] = earlier
