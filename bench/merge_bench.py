"""Bench: ten rows of `assignments` ended and begun anew, among 100,000 and among 1,000,000 open ones.

The ten are of neighbouring groups, or of groups that are far apart; reading them, and the commit with its feed, are in
the figure. The ratio is to an append of ten rows to the same table, in the same run. What the last commit copied is
printed, too: of a changed row its whole file is written anew.
`BENCH_ROWS=100000,1000000` sets the sizes.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.journal_entries import RowFilter
from streaming.tables.location import table_uri
from streaming.tables.schema import ASSIGNMENTS, TIME
from streaming.tables.writer import Edit, Mark, TableWriter

_T0 = 1_767_225_600_000
_ROUNDS = 9
_WARM_UP = 2
_TEN = 10
_CHANGED_QUEUE = 3


def open_spans(rows: int) -> pa.Table:
    """Return open spans of ten queues in each group."""
    groups = [f"group-{number // _TEN:06d}" for number in range(rows)]
    columns = {
        "cluster": pa.repeat("c1", rows),
        "group_id": groups,
        "topic": pa.repeat("orders", rows),
        "queue_id": [number % _TEN for number in range(rows)],
        "member_id": [f"{group}-m{number % _TEN}" for number, group in enumerate(groups)],
        "origin": pa.repeat("computed", rows),
        "generation": pa.repeat(1, rows),
        "rebalance_id": [f"{group}-1" for group in groups],
        "valid_from": pa.repeat(pa.scalar(_T0 * 1_000, TIME), rows),
    }
    return pa.table(
        [columns.get(field.name, pa.nulls(rows, field.type)) for field in ASSIGNMENTS.schema], ASSIGNMENTS.names
    )


class Spans:
    """A table of open spans in which those of ten groups change hands.

    Args:
        table: ``assignments``, empty.
        rows: How many.
    """

    def __init__(self, table: TableWriter, rows: int) -> None:
        self._table = table
        self._table.append(open_spans(rows).cast(ASSIGNMENTS.schema), Mark("fleet", 0))
        self._groups = rows // _TEN
        self._number = 0

    def neighbours(self) -> list[str]:
        """Return ten groups one after another, others each time."""
        return self._chosen(1)

    def scattered(self) -> list[str]:
        """Return ten groups far apart, others each time."""
        return self._chosen(self._groups // _TEN)

    def _chosen(self, step: int) -> list[str]:
        first = self._number * _TEN % (self._groups // _TEN)
        return [f"group-{first + index * step:06d}" for index in range(_TEN)]

    def change(self, groups: Sequence[str]) -> None:
        """End one span of each group, and begin another."""
        self._number += 1
        now = _T0 + self._number * 1_000

        def compute() -> Edit:
            found = self._table.read(RowFilter({"cluster": ["c1"], "group_id": groups}, ends="valid_to"))
            ended = found.filter(pc.equal(found["queue_id"], _CHANGED_QUEUE))
            times = pa.repeat(pa.scalar(now * 1_000, TIME), ended.num_rows)
            parts = [_with(ended, "valid_to", times), _with(ended, "valid_from", times)]
            return Edit(ended, pa.concat_tables(parts))

        if not self._table.merge(compute, Mark("bench", self._number)):
            raise RuntimeError("the change was not made")

    def append(self) -> None:
        """Begin ten spans of a group of their own."""
        self._number += 1
        span = {"cluster": "c2", "group_id": f"new-{self._number}", "valid_from": _T0}
        rows = to_arrow(ASSIGNMENTS, [{**span, "queue_id": number} for number in range(_TEN)])
        self._table.append(rows, Mark("append", self._number))

    def copied(self) -> int:
        """Return how many rows the last commit wrote anew without changing them."""
        metrics = DeltaTable(table_uri(self._table.root, ASSIGNMENTS.name)).history(1)[0].get("operationMetrics") or {}
        return int(metrics.get("num_target_rows_copied", 0))


def _with(rows: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return rows.set_column(rows.column_names.index(name), ASSIGNMENTS.schema.field(name), values)


def _ms(run: Callable[[], None]) -> float:
    begin = time.perf_counter()
    run()
    return (time.perf_counter() - begin) * 1_000


def _measure(root: Path, rows: int) -> None:
    spans = Spans(DeltaRsTable(root, ASSIGNMENTS), rows)
    append = statistics.median(_ms(spans.append) for _ in range(_WARM_UP + _ROUNDS))
    print(f"{rows:,} rows; an append of ten: {append:.0f} ms; load {os.getloadavg()[0]:.1f}")
    for name, choose in (("neighbouring", spans.neighbours), ("scattered", spans.scattered)):
        chosen = [choose() for _ in range(_WARM_UP + _ROUNDS)]
        took = [_ms(partial(spans.change, groups)) for groups in chosen]
        merge = statistics.median(took[_WARM_UP:])
        print(f"  ten of {name} groups: {merge:.0f} ms, ratio {merge / append:.2f}; copied {spans.copied():,} rows")


def main() -> None:
    """Measure and print."""
    root = Path(tempfile.mkdtemp(prefix="merge-bench-"))
    try:
        for rows in map(int, os.environ.get("BENCH_ROWS", "100000,1000000").split(",")):
            _measure(root / str(rows), rows)
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
