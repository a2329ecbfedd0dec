"""Core: groups that commit for the first time, or for the first time since they were deleted or forgotten. No I/O."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from udfs.model.arrays import Int64, UInt64
from udfs.packets.progress_columns import NamedGroup, ProgressColumns
from udfs.shard.queue_table import QueueTable


def beginning_groups(
    table: QueueTable, due: ProgressColumns, find: Callable[[UInt64], Int64], forget_before: int
) -> list[tuple[int, NamedGroup]]:
    """Return key, name and system of each group that begins to commit.

    Args:
        table: The table as of the previous batch. due: Observations that are due now; each group's rows are adjacent.
        find: Returns -1 for groups without state. forget_before: Commits older than this no longer count.
    """
    groups = due.groups[due.commits]
    if not len(groups):
        return []
    groups = groups[np.append(True, groups[1:] != groups[:-1])]
    firsts = np.cumsum(table.counts) - table.counts
    has_commits = np.logical_or.reduceat(table.applied & (table.columns["times"] >= forget_before), firsts)
    begins = ~has_commits[np.searchsorted(table.groups, groups)] | (find(groups) < 0)
    return [(key, table.names[key]) for key in groups[begins].tolist() if key in table.names]
