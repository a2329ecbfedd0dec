"""Dashboard: sums of a table's rows, file by file; files never change, so each is read once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.fs as pa_fs
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler

from streaming.tables.arrow_rows import as_schema
from streaming.tables.schema import TABLES
from streaming.views.reader import Reader

# The sums of a table's rows. Sums of parts, summed the same way, are the sums of the whole.
Sums: TypeAlias = Mapping[str, pa.Table]
Summing: TypeAlias = Callable[[pa.Table], Sums]
# The sums of all files of a table have at most this many rows; sums of further files are computed each time.
MOST_ROWS = 1_000_000


def whole(reader: Reader, name: str, columns: Sequence[str], sum_rows: Summing) -> Sums:
    """Return the sums of a table that is read as a whole."""
    return sum_rows(reader.read(name, columns=columns))


class FileSums:
    """Sums of tables; the sums of each file are kept as long as the table has the file.

    So a new version costs only its new files: those that were appended, or that replaced others.
    """

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, Sums]] = {}
        self._summing = threading.Lock()

    def __call__(self, reader: Reader, name: str, columns: Sequence[str], sum_rows: Summing) -> Sums:
        """Return for each name the sums of all files, concatenated.

        Args:
            columns: The columns to sum; the same at each call for one table.
        """
        table = reader.snapshot(name)
        if table is None or not _is_plain(table):
            return whole(reader, name, columns, sum_rows)
        with self._summing:
            before, now, held = self._kept.get(name, {}), dict[str, Sums](), 0
            parts: list[Sums] = []
            # The library's data set is not used, because it opens every file of the table for a single new one.
            files = pa_fs.PyFileSystem(DeltaStorageHandler(table.table_uri))
            for path in table.get_add_actions(flatten=True)["path"].to_pylist():
                sums = before.get(path) or sum_rows(_rows_of(files, name, path, columns))
                parts.append(sums)
                held += sum(part.num_rows for part in sums.values())
                if held <= MOST_ROWS:
                    now[path] = sums
            self._kept[name] = now
        if not parts:
            return whole(reader, name, columns, sum_rows)
        return {key: pa.concat_tables([sums[key] for sums in parts]) for key in parts[0]}


def _is_plain(table: DeltaTable) -> bool:
    """Return whether a table's files contain exactly its rows: no deletion vectors, mapped columns, partitions."""
    return table.protocol().min_reader_version == 1 and not table.metadata().partition_columns


def _rows_of(files: pa_fs.FileSystem, name: str, path: str, columns: Sequence[str]) -> pa.Table:
    """Return columns of one file; missing ones are null."""
    with files.open_input_file(path) as opened:
        file = pq.ParquetFile(opened)
        there = [column for column in columns if column in file.schema_arrow.names]
        return as_schema(file.read(columns=there), pa.schema([TABLES[name].schema.field(column) for column in columns]))
