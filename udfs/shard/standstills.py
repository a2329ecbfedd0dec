"""Core: queues whose commit stands while their end grows, found in columns. No I/O.

A queue waits from the first end offset that shows growth more than one record beyond its commit: one record may be the
marker of a transaction, which nobody reads. It waits until its commit changes. How long it usually waits is remembered
in one number, which decays with each wait and can at most quadruple with one, so that an outage is not taken for a
habit. It stalls once an end offset shows growth after it has waited for longer than the limit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from udfs.model.arrays import Int64
from udfs.model.observations import UNKNOWN
from udfs.model.stall_rule import NEVER, STEPS, StallRule

Booleans = npt.NDArray[np.bool_]

_RISE = 2 * STEPS


class Motion(NamedTuple):
    """How queues move, for each of some observations in the order of rows and times.

    Attributes:
        advanced: When the current offset was committed. waiting: Since when messages wait beyond it. grown: When the
            end last grew. usual: The usual wait, as a logarithm. Each is ``UNKNOWN`` if it is not known.
    """

    advanced: Int64
    waiting: Int64
    grown: Int64
    usual: Int64


class Standstills(NamedTuple):
    """Spans in which messages waited, by row of the table.

    Attributes:
        advanced, since: See ``Motion``. limits: How long each may wait. stalled: From when it had waited for too long,
            ``NEVER`` if not yet. until: When its commit changed, ``NEVER`` if it has not.
    """

    rows: Int64
    advanced: Int64
    since: Int64
    limits: Int64
    stalled: Int64
    until: Int64

    def where(self, which: Booleans | Int64 | slice) -> Standstills:
        """Return the selected spans."""
        return Standstills(*(column[which] for column in self))


NO_STANDSTILLS = Standstills(*[np.empty(0, np.int64)] * 6)


class Seen(NamedTuple):
    """Observations by row, then by time, with the newest values up to each; the first of each row is the row itself.

    Attributes:
        commits: Whether it is a commit. new_ends: Whether this observation has an end offset.
    """

    rows: Int64
    times: Int64
    is_row: Booleans
    commits: Booleans
    offsets: Int64
    ends: Int64
    end_times: Int64
    new_ends: Booleans


def motion_of(columns: dict[str, Int64], seen: Seen) -> Motion:
    """Return how queues move, from observations and what the rows of the table remember.

    Args:
        columns: The columns of the table before.
    """
    is_row, offsets, ends = seen.is_row, seen.offsets, seen.ends
    places = np.arange(len(seen.rows))
    before = np.maximum(places - 1, 0)
    changes = ~is_row & (offsets != offsets[before])
    begins = changes | is_row
    begin = _last(begins)
    advanced = np.where(
        is_row[begin],
        columns["advanced_times"][seen.rows],
        np.where(seen.commits[begin] & (offsets[begin] != UNKNOWN), seen.times[begin], UNKNOWN),
    )
    own = np.where(is_row, columns["waiting_times"][seen.rows], UNKNOWN)
    grows = ~is_row & seen.new_ends & (ends[before] != UNKNOWN) & (ends > ends[before])
    at_growth = _last(grows | is_row)
    grown = np.where(is_row[at_growth], columns["grown_times"][seen.rows], seen.times[at_growth])
    # The growth came after the commit: the end before was seen since, or it was reached by the commit.
    grows &= (seen.end_times[before] >= advanced) | (ends[before] <= offsets)
    grows &= (offsets != UNKNOWN) & (ends > offsets + 1)
    number = np.cumsum(grows)
    first = grows & (number - (number - grows)[begin] == 1) & (own[begin] == UNKNOWN)
    place = _last(begins | first)
    waiting = np.where(first[place], seen.times[place], own[place])
    return Motion(advanced, waiting, grown, _usual(columns, seen, changes, waiting))


def _usual(columns: dict[str, Int64], seen: Seen, changes: Booleans, waiting: Int64) -> Int64:
    """Return the usual wait after each observation; a commit before any wait begins the history of a queue."""
    rows, known = seen.rows, columns["usual_waits"]
    before = np.maximum(np.arange(len(rows)) - 1, 0)
    counts = changes & (seen.offsets != UNKNOWN) & (seen.offsets[before] != UNKNOWN) & (seen.ends[before] != UNKNOWN)
    waited = counts & (waiting[before] != UNKNOWN)
    counts &= waited | (known[rows] == UNKNOWN)
    own = known[rows]
    if not counts.any():
        return own
    ended = np.flatnonzero(counts)
    of_rows = rows[ended]
    seconds = np.maximum(np.where(waited[ended], seen.times[ended] - waiting[ended - 1], 0), 0) / 1_000
    logs = np.ceil(STEPS * np.log2(1 + seconds)).astype(np.int64) + 1
    starts = np.append(True, of_rows[1:] != of_rows[:-1])
    ranks = np.arange(len(ended)) - _last(starts)
    usual = np.empty(len(ended), np.int64)
    by_rank = np.argsort(ranks, kind="stable")
    bounds = np.cumsum(np.bincount(ranks))
    for rank, (start, stop) in enumerate(zip([0, *bounds[:-1].tolist()], bounds.tolist(), strict=True)):
        now = by_rank[start:stop]
        former = known[of_rows[now]] if rank == 0 else usual[now - 1]
        usual[now] = np.where(
            former == UNKNOWN, logs[now], np.clip(logs[now], np.maximum(former - 1, 1), former + _RISE)
        )
        usual[now] = np.where(waited[ended[now]] | (former == UNKNOWN), usual[now], former)
    place = _last(counts | seen.is_row)
    of_place = np.zeros(len(rows), np.int64)
    of_place[ended] = usual
    return np.where(counts[place], of_place[place], own)


def standstills_of(seen: Seen, motion: Motion, rule: StallRule, until: Int64, clock: int) -> Standstills:
    """Return the spans in which messages waited, as far as these observations show them.

    Args:
        until: The time up to which each row of the table is observed.
    """
    waits = motion.waiting != UNKNOWN
    if not waits.any():
        return NO_STANDSTILLS
    rows, since = seen.rows, motion.waiting
    begins = waits & np.append(True, (since[1:] != since[:-1]) | (rows[1:] != rows[:-1]))
    begins[1:] |= waits[1:] & (motion.advanced[1:] != motion.advanced[:-1])
    begin = np.flatnonzero(begins)
    ends = np.append(False, waits[:-1]) & (np.append(True, ~waits[1:] | begins[1:]))
    end = np.append(np.flatnonzero(ends), len(rows))
    after = end[np.searchsorted(end, begin, side="right")]
    is_over = (after < len(rows)) & (rows[np.minimum(after, len(rows) - 1)] == rows[begin])
    open_until = np.where(until[rows[begin]] < clock, until[rows[begin]], NEVER)
    limits = rule.limits(motion.usual[begin])
    too_long = np.full(len(begin), NEVER, np.int64)
    run = np.cumsum(begins) - 1
    due = np.flatnonzero(waits & (motion.grown >= since + limits[np.maximum(run, 0)]))
    runs, firsts = np.unique(run[due], return_index=True)
    at = due[firsts]
    too_long[runs] = np.where(seen.is_row[at], since[at] + limits[runs], motion.grown[at])
    return Standstills(
        rows[begin],
        motion.advanced[begin],
        since[begin],
        limits,
        too_long,
        np.where(is_over, seen.times[np.minimum(after, len(rows) - 1)], open_until),
    )


def remembered(columns: dict[str, Int64], rows: Int64, rule: StallRule, until: Int64, clock: int) -> Standstills:
    """Return the spans of rows of the table of which nothing new was observed."""
    rows = rows[columns["waiting_times"][rows] != UNKNOWN]
    since, limits = columns["waiting_times"][rows], rule.limits(columns["usual_waits"][rows])
    stalled = np.where(columns["grown_times"][rows] >= since + limits, since + limits, NEVER)
    ends = np.where(until[rows] < clock, until[rows], NEVER)
    return Standstills(rows, columns["advanced_times"][rows], since, limits, stalled, ends)


def evaluated(found: Standstills, rule: StallRule, before: int | None, clock: int) -> Standstills:
    """Return the spans that hold at an evaluation between two values of the clock, by row."""
    looks = rule.next_looks(np.maximum(found.since, 0 if before is None else before))
    found = found.where(looks < np.minimum(found.until, clock))
    return found.where(np.lexsort((found.since, found.rows)))


def stalled_rows(found: Standstills, rule: StallRule, before: int | None, clock: int) -> Int64:
    """Return the rows that have waited for too long at an evaluation between two values of the clock."""
    looks = rule.next_looks(np.maximum(np.minimum(found.stalled, clock), 0 if before is None else before))
    return found.rows[(found.stalled < NEVER) & (looks < np.minimum(found.until, clock))]


def _last(holds: Booleans) -> Int64:
    """Return for each index the last one up to it at which something holds."""
    return np.maximum.accumulate(np.where(holds, np.arange(len(holds)), 0))
