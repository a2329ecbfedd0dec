"""Core: queues whose commit stands while their end grows, found in columns. No I/O.

A queue waits from the first end offset that shows growth more than one record beyond its commit: one record may be the
marker of a transaction, which nobody reads. It waits until its commit changes. How long it usually waits is remembered
in one number, which decays with each wait and can at most quadruple with one, so that an outage is not taken for a
habit; the first few commits are no history. It stalls once its end grows after it has waited for longer than the limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from udfs.model.arrays import Int64
from udfs.model.observations import UNKNOWN
from udfs.model.stall_rule import COMMITS_OF_HISTORY, NEVER, STEPS, YOUNG, StallRule

Booleans = npt.NDArray[np.bool_]

_RISE = 2 * STEPS


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


class Waits(NamedTuple):
    """How queues move: an entry for each offset that a row had, by row, then by time.

    Attributes:
        rows: Rows of the table. advanced: When the offset was committed. since: Since when messages wait beyond it.
            usual: The usual wait up to then, as a logarithm. until: When the offset changed; ``NEVER`` if it has not.
        grown: When the end had last grown before these observations, in the first entry of a row. Each is ``UNKNOWN``
            if it is not known.
        growths: The entry of each observed growth of an end. growth_times: Its time.
    """

    rows: Int64
    advanced: Int64
    since: Int64
    usual: Int64
    until: Int64
    grown: Int64
    growths: Int64
    growth_times: Int64


class Standstills(NamedTuple):
    """Spans in which messages waited, by row of the table.

    Attributes:
        advanced, since: See ``Waits``. limits: How long each may wait. stalled: From when it had waited for too long,
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


def waits_of(columns: Mapping[str, Int64], seen: Seen) -> Waits:
    """Return how queues move, from observations and what the rows of the table remember.

    Args:
        columns: The columns of the table before.
    """
    begins, offsets, ends = seen.is_row.copy(), seen.offsets, seen.ends
    begins[1:] |= offsets[1:] != offsets[:-1]
    grows = np.append(False, ~seen.is_row[1:] & seen.new_ends[1:] & (ends[1:] > ends[:-1]) & (ends[:-1] != UNKNOWN))
    begin, growth = np.flatnonzero(begins), np.flatnonzero(grows)
    growths = (np.cumsum(begins) - 1)[growth]
    rows, times, is_first = seen.rows[begin], seen.times[begin], seen.is_row[begin]
    is_known = seen.commits[begin] & (offsets[begin] != UNKNOWN)
    advanced = np.where(is_first, columns["advanced_times"][rows], np.where(is_known, times, UNKNOWN))
    since = np.where(is_first, columns["waiting_times"][rows], UNKNOWN)
    # The growth came after the commit: the end before was seen since, or it was reached by the commit.
    committed, former = offsets[growth], ends[growth - 1]
    is_beyond = (seen.end_times[growth - 1] >= advanced[growths]) | (former <= committed)
    is_beyond &= (committed != UNKNOWN) & (ends[growth] > committed + 1) & (since[growths] == UNKNOWN)
    waiting, first = _firsts(growths[is_beyond])
    since[waiting] = seen.times[growth[is_beyond][first]]
    is_over = np.append(~is_first[1:], False)
    until = np.where(is_over, np.append(times[1:], NEVER), NEVER)
    usual = columns["usual_waits"][rows]
    if not is_first.all():
        has_offsets = (offsets[begin] != UNKNOWN) & (ends[np.maximum(begin - 1, 0)] != UNKNOWN)
        has_offsets[1:] &= offsets[begin[:-1]] != UNKNOWN
        usual = _usual(rows, since, times, usual, ~is_first & has_offsets)
    grown = np.where(is_first, columns["grown_times"][rows], UNKNOWN)
    return Waits(rows, advanced, since, usual, until, grown, growths, seen.times[growth])


def _usual(rows: Int64, since: Int64, times: Int64, usual: Int64, ends: Booleans) -> Int64:
    """Return the usual wait after each entry; a commit before any wait counts only for the history of a queue.

    Args:
        usual: What was usual before, by the entries' rows. ends: Whether an entry ends a wait, or could have.
    """
    waited = ends & np.append(False, since[:-1] != UNKNOWN)
    counts = np.flatnonzero(waited | (ends & ((usual == UNKNOWN) | (usual > YOUNG))))
    if not len(counts):
        return usual
    of_rows, has_waited = rows[counts], waited[counts]
    seconds = np.maximum(np.where(has_waited, times[counts] - since[counts - 1], 0), 0) / 1_000
    logs = np.minimum(np.ceil(STEPS * np.log2(1 + seconds)).astype(np.int64) + 1, YOUNG)
    ranks = np.arange(len(counts)) - _last(np.append(True, of_rows[1:] != of_rows[:-1]))
    by_rank = np.argsort(ranks, kind="stable")
    bounds = np.cumsum(np.bincount(ranks)).tolist()
    after = np.empty(len(counts), np.int64)
    for start, stop in zip([0, *bounds[:-1]], bounds, strict=True):
        now = by_rank[start:stop]
        former = after[now - 1] if start else usual[counts[now]]
        former = np.where(former == UNKNOWN, 1 + COMMITS_OF_HISTORY * YOUNG, former)
        risen = np.clip(logs[now], np.maximum(former - 1, 1), former + _RISE)
        young = np.maximum(former, logs[now] + (former - 1) // YOUNG * YOUNG) - YOUNG
        after[now] = np.where(former > YOUNG, young, np.where(has_waited[now], risen, former))
    place = np.full(len(rows), UNKNOWN, np.int64)
    place[counts] = np.arange(len(counts))
    begins = np.append(True, rows[1:] != rows[:-1])
    place = place[_last(begins | (place != UNKNOWN))]
    return np.where(place != UNKNOWN, after[place], usual)


def remember(columns: Mapping[str, Int64], waits: Waits) -> None:
    """Set the rows of a table to how their queues move now."""
    rows = waits.rows
    last = np.append(rows[1:] != rows[:-1], True)
    for name, values in (
        ("advanced_times", waits.advanced),
        ("waiting_times", waits.since),
        ("usual_waits", waits.usual),
    ):
        columns[name][rows[last]] = values[last]
    columns["grown_times"][rows[waits.growths]] = waits.growth_times  # of several the last counts


def standstills_of(waits: Waits, rule: StallRule, until: Int64, clock: int) -> Standstills:
    """Return the spans in which messages waited, as far as these observations show them.

    Args:
        until: The time up to which each row of the table is observed.
    """
    which = np.flatnonzero(waits.since != UNKNOWN)
    number = np.full(len(waits.rows), UNKNOWN, np.int64)
    number[which] = np.arange(len(which))
    rows, since = waits.rows[which], waits.since[which]
    limits = rule.limits(waits.usual[which])
    stalled = np.where((waits.grown[which] != UNKNOWN) & (waits.grown[which] >= since + limits), since + limits, NEVER)
    spans = number[waits.growths]
    is_due = spans != UNKNOWN
    is_due[is_due] = waits.growth_times[is_due] >= (since + limits)[spans[is_due]]
    of_spans, first = _firsts(spans[is_due])
    stalled[of_spans] = np.minimum(stalled[of_spans], waits.growth_times[is_due][first])
    ends = np.where(until[rows] < clock, until[rows], NEVER)
    return Standstills(rows, waits.advanced[which], since, limits, stalled, np.minimum(waits.until[which], ends))


def remembered(columns: Mapping[str, Int64], rows: Int64, rule: StallRule, until: Int64, clock: int) -> Standstills:
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


def _firsts(ordered: Int64) -> tuple[Int64, Booleans]:
    """Return the distinct ones of ascending values, and where each occurs first."""
    first = np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]
    return ordered[first], first


def _last(holds: Booleans) -> Int64:
    """Return for each index the last one up to it at which something holds."""
    return np.maximum.accumulate(np.where(holds, np.arange(len(holds)), 0))
