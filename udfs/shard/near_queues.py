"""Core: the queues of groups whose commits were near the starts of their logs, or before them. No I/O."""

from __future__ import annotations

import numpy as np

from udfs.model.arrays import UInt64
from udfs.model.observations import NearQueue
from udfs.shard.log_starts import NOT_NEAR, NearSpans
from udfs.shard.queue_table import QueueTable


class NearQueues:
    """Queues of groups that were near the starts of their logs, as ``queue_spans.apply`` found them."""

    def __init__(self, table: QueueTable | None = None, found: NearSpans = NOT_NEAR) -> None:
        self._table = table
        order = np.argsort(found.rows, kind="stable")
        self._found = NearSpans(*(column[order] for column in found))

    def groups(self) -> UInt64:
        """Return the keys of the groups that have any."""
        return np.empty(0, np.uint64) if self._table is None else self._table.groups_of(self._found.rows)

    def of(self, group: int) -> list[NearQueue]:
        """Return the queues of a group, as far as they have names."""
        if self._table is None or not len(self._found.rows):
            return []
        table, rows = self._table, self._table.rows_of(group)
        some = slice(*self._found.rows.searchsorted((rows.start, rows.stop)).tolist())
        spans = zip(*(column[some].tolist() for column in self._found), strict=True)
        named = ((row, place, span) for row, *span in spans if (place := table.place(row)) is not None)
        return [NearQueue(int(table.keys[row]), *place, int(table.queue_ids[row]), *span) for row, place, span in named]
