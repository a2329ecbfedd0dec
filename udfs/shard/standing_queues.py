"""Core: the queues of groups whose messages waited at an evaluation. No I/O."""

from __future__ import annotations

import numpy as np

from udfs.model.arrays import Int64, UInt64
from udfs.model.observations import QueueWait
from udfs.shard.queue_table import QueueTable
from udfs.shard.standstills import NO_STANDSTILLS, Standstills


class StandingQueues:
    """Spans in which messages waited, as ``standstills.evaluated`` returns them; ``stalled``: rows that stall."""

    def __init__(
        self, table: QueueTable | None = None, found: Standstills = NO_STANDSTILLS, stalled: Int64 | None = None
    ) -> None:
        self._table = table
        self._found, self._stalled = found, np.empty(0, np.int64) if stalled is None else stalled

    def groups(self) -> UInt64:
        """Return the keys of the groups with queues that have waited for too long."""
        return np.empty(0, np.uint64) if self._table is None else self._table.groups_of(self._stalled)

    def of(self, group: int) -> list[QueueWait]:
        """Return the spans of a group's queues, by queue."""
        if self._table is None or not len(self._found.rows):
            return []
        rows = self._table.rows_of(group)
        found = self._found.where(slice(*self._found.rows.searchsorted((rows.start, rows.stop)).tolist()))
        keys = self._table.keys[found.rows].tolist()
        return list(map(QueueWait, keys, *(column.tolist() for column in found[1:])))
