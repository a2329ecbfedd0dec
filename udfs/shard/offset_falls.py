"""Core: commits that are lower than the commit before, found in columns. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from udfs.model.arrays import Int64, UInt64
from udfs.model.observations import UNKNOWN, QueueFall
from udfs.packets.progress_columns import ProgressColumns
from udfs.shard.deleted_groups import DeletedQueues
from udfs.shard.queue_table import QueueTable


class OffsetFalls(NamedTuple):
    """Commits that are lower than the one before: rows of the table, both times and both offsets; by row, then by time.

    Attributes:
        begun: Rows that are committed for the first time, or for the first time since they were deleted; not aligned
            with the others.
    """

    rows: Int64
    before_times: Int64
    before: Int64
    times: Int64
    after: Int64
    begun: Int64


NO_FALLS = OffsetFalls(*[np.empty(0, np.int64)] * 6)


def falls_of(table: QueueTable, due: ProgressColumns, due_rows: Int64, deleted: DeletedQueues) -> OffsetFalls:
    """Return which due commits are lower than the ones before; commits without an offset compare with none.

    Args:
        table: The table without the due observations. due, due_rows: The result of ``in_row_order``. deleted: Queues
            whose commits are deleted now: what is committed after that begins anew.
    """
    own_times = table.columns["times"]
    is_known = table.applied & (own_times != UNKNOWN)
    which = np.flatnonzero(due.commits & ~(is_known[due_rows] & (due.times <= own_times[due_rows])))
    if not len(which):
        return NO_FALLS
    rows, times, offsets = due_rows[which], due.times[which], due.offsets[which]
    is_first = np.append(True, rows[1:] != rows[:-1])
    before = np.append(UNKNOWN, offsets[:-1])
    before[is_first] = np.where(is_known[rows[is_first]], table.columns["offsets"][rows[is_first]], UNKNOWN)
    fell = np.flatnonzero((offsets >= 0) & (offsets < before))
    begun = rows[is_first & ~is_known[rows]]
    if len(deleted.rows):
        begun = np.union1d(begun, rows[np.isin(rows, deleted.rows)])
    before_times = np.where(is_first[fell], own_times[rows[fell]], times[fell - 1])
    return OffsetFalls(rows[fell], before_times, before[fell], times[fell], offsets[fell], begun)


def groups_of(table: QueueTable, falls: OffsetFalls) -> UInt64:
    """Return the groups with commits that went back, or with queues that begin to be committed."""
    return table.groups_of(np.concatenate([falls.rows, falls.begun]))


def named_falls(
    table: QueueTable, falls: OffsetFalls, group: int, deleted: DeletedQueues, deletions: Sequence[int]
) -> list[QueueFall]:
    """Return which commits of a group went back, by time; not those of queues without a name.

    Args:
        deleted: Queues whose commits are deleted now. deletions: When the group is.
    """
    rows = table.rows_of(group)
    some = slice(*falls.rows.searchsorted((rows.start, rows.stop)).tolist())
    found: list[QueueFall] = []
    for row, before_at, before, at, after in zip(*(part[some].tolist() for part in falls[:5]), strict=True):
        place = table.place(row)
        ends = [*deletions, *deleted.times[deleted.rows == row].tolist()]
        if place is not None and not any(before_at < end <= at for end in ends):
            found.append(QueueFall((*place, int(table.queue_ids[row])), before_at, before, at, after))
    return sorted(found, key=lambda fall: (fall.at, fall.queue[0], fall.queue[1] or "", fall.queue[2]))
