"""Bench: what the release before does on commands of `former_release.py`; its own packages are on the path.

Each line of standard input is a command with its arguments, as JSON; the answer is how long it took, in ms.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_CHANGED_QUEUE = 3


class Former:
    """Its tables below one root."""

    def __init__(self) -> None:
        self._files = importlib.import_module("streaming.delta_files")
        self._mark = importlib.import_module("streaming.delta_actions").Mark
        self._tables: Any = importlib.import_module("streaming.tables")
        self._materialise = importlib.import_module("streaming.materialise")
        self._open: dict[tuple[str, str], Any] = {}
        self._following: dict[str, Any] = {}
        self._number = 0

    def append(self, root: str, name: str, file: str) -> None:
        """Append the rows of a Parquet file to a table in one commit."""
        table = self._table(root, name)
        self._number += 1
        table.append(self._tables.as_schema(pq.read_table(file), table.table.schema), self._mark("bench", self._number))

    def change(self, root: str, groups: Sequence[str], now_us: int) -> None:
        """End one span of each group in ``assignments``, and begin another."""
        table = self._table(root, "assignments")
        self._number += 1

        def compute() -> Any:
            wanted = pc.field("group_id").isin(pa.array(groups)) & pc.field("valid_to").is_null()
            bounds = {"cluster": ("c1", "c1"), "group_id": (min(groups), max(groups))}
            found = table.standing(bounds, wanted, some_null="valid_to")
            keep = pc.equal(found.rows["queue_id"], _CHANGED_QUEUE)
            rows = found.rows.filter(keep)
            places = [place for place, is_kept in zip(found.places, keep.to_pylist(), strict=True) if is_kept]
            schema = table.table.schema
            times = pa.repeat(pa.scalar(now_us, schema.field("valid_to").type), rows.num_rows)
            parts = [
                rows.set_column(schema.names.index(name), schema.field(name), times)
                for name in ("valid_to", "valid_from")
            ]
            return self._files.Replacement(self._files.Standing(rows, places), pa.concat_tables(parts))

        if not table.replace(compute, self._mark("bench", self._number)):
            raise RuntimeError("the change was not made")

    def follow(self, root: str) -> None:
        """Have all tables follow the journal."""
        if root not in self._following:
            self._following[root] = self._materialise.Materialiser(Path(root), 0)
        self._following[root].run()

    def _table(self, root: str, name: str) -> Any:
        if (root, name) not in self._open:
            self._open[root, name] = self._files.DeltaFiles(Path(root), self._tables.TABLES[name])
        return self._open[root, name]


def main() -> None:
    """Run the commands of standard input, to its end."""
    former = Former()
    for line in sys.stdin:
        command, *arguments = json.loads(line)
        begin = time.perf_counter()
        getattr(former, command)(*arguments)
        sys.stdout.write(f"{(time.perf_counter() - begin) * 1_000}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
