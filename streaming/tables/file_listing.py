"""Shell: decides from a table's files and their statistics, as delta-rs lists them, which maintenance is due.

No I/O.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc


def small_files(listing: pa.Table, file_bytes: int) -> int:
    """Return the number of files that are less than half as large as they should be."""
    return int(pc.sum(pc.less(listing["size_bytes"], file_bytes // 2)).as_py() or 0)


def files_to_compact(listing: pa.Table, file_bytes: int) -> int:
    """Return the number of files to join into larger ones: the smallest ones, as long as they fit into one file."""
    joined, files, size = 0, 0, 0
    for file_size in [
        *sorted(size_bytes for size_bytes in listing["size_bytes"].to_pylist() if size_bytes <= file_bytes),
        file_bytes,
    ]:
        if size + file_size > file_bytes:
            joined += files if files > 1 else 0
            files, size = 0, 0
        files, size = files + 1, size + file_size
    return joined


def is_out_of_order(listing: pa.Table, cluster_by: Sequence[str]) -> bool:
    """Return whether files overlap in the values by which they are clustered."""
    names = [f"{bound}.{name}" for bound in ("min", "max") for name in cluster_by]
    if not set(names) <= set(listing.column_names):
        return False
    width = len(cluster_by)
    spans = [span for span in zip(*(listing[name].to_pylist() for name in names), strict=True) if None not in span]
    return any(later[:width] < earlier[width:] for earlier, later in pairwise(sorted(spans)))


def holds_times_before(listing: pa.Table, column: str, time_ms: int) -> bool:
    """Return whether some row may have an older time in that column."""
    if f"min.{column}" not in listing.column_names:
        return False
    first = pc.min(listing[f"min.{column}"].cast(pa.int64())).as_py()
    return first is not None and first // 1_000 < time_ms


def newest_time(listing: pa.Table, column: str) -> int | None:
    """Return the newest time in that column, in epoch milliseconds; None if files have no statistics of it."""
    if f"max.{column}" not in listing.column_names:
        return None
    last = pc.max(listing[f"max.{column}"].cast(pa.int64())).as_py()
    return None if last is None else int(last) // 1_000
