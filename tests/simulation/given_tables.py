"""Tables that are given as rows, in memory, with the interface of ``Reader``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from streaming.tables.arrow_rows import from_arrow, to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.schema import TABLES, Row
from streaming.tables.writer import Mark
from streaming.views.reader import Keep, Within
from tests.simulation.core_run import CoreRun, rows_of
from tests.streaming.tables.signs import leave_recording_sign


class GivenTables:
    """Reads rows by table."""

    def __init__(self, rows: Mapping[str, Sequence[Row]]) -> None:
        self._rows = rows

    @classmethod
    def of(cls, run: CoreRun) -> GivenTables:
        """Return the tables that the job would have after a run, without the progress of queues."""
        return cls({**rows_of(run.changes), "rebalances": run.rows()})

    def read(
        self,
        name: str,
        *,
        columns: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        keep: Keep | None = None,
    ) -> pa.Table:
        """Read as ``Reader.read`` does."""
        rows = [
            row
            for row in self._rows.get(name, ())
            if all(_fits(row.get(column), wanted) for column, wanted in (where or {}).items())
        ]
        table = to_arrow(TABLES[name], rows)
        table = table if keep is None else table.filter(keep(table))
        return table if columns is None else table.select(list(columns))

    def rows(self, name: str, *, where: Mapping[str, Any] | None = None, keep: Keep | None = None) -> list[Row]:
        """Read as ``Reader.rows`` does."""
        return from_arrow(TABLES[name], self.read(name, where=where, keep=keep))

    def write(self, root: Path) -> None:
        """Write the tables as a recording's."""
        for name, rows in self._rows.items():
            DeltaRsTable(root, TABLES[name]).append(to_arrow(TABLES[name], rows), Mark("job", 0))
        leave_recording_sign(root, {row["cluster"] for row in self._rows["groups"]})

    def newest_ms(self, name: str, column: str) -> int | None:
        """Return the newest time of a column."""
        return max((row[column] for row in self._rows.get(name, ()) if row[column] is not None), default=None)

    def dropped_before(self, name: str) -> Mapping[str, int]:
        """Return that nothing was dropped."""
        return {}


def _fits(value: Any, condition: Any) -> bool:
    if isinstance(condition, Within):
        return condition.holds(value)
    return condition is None or (value in condition if isinstance(condition, set) else value == condition)
