"""Shell: upkeep of the tables: small files compacted, old rows of the journal and unneeded files dropped.

May run beside the job: the second one to commit starts over.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from streaming.machine import clock
from streaming.tables.delta_files import DeltaFiles
from streaming.tables.materializer import Materializer
from streaming.tables.projections import EFFECTS
from streaming.tables.schema import CHANGES, TABLES

_HOUR_MS = 3_600_000
# A file that the log does not name may belong to a commit that is being made.
_LEAST_AGE_MS = _HOUR_MS
_ATTEMPTS = 5


class Upkeep(NamedTuple):
    """What was done to one table."""

    table: str
    files_before: int
    files_after: int
    journal_files_dropped: int
    files_deleted: int
    bytes_deleted: int


def optimize(
    root: Path,
    *,
    journal_retention_ms: int,
    vacuum_after_ms: int,
    told: Callable[[Upkeep], None] = lambda _upkeep: None,
    now_ms: int | None = None,
) -> list[Upkeep]:
    """Read after every table that is there.

    Args:
        journal_retention_ms: Rows of ``changes`` older than this go, once every table has passed them.
        vacuum_after_ms: Files go that no version of this age or younger needs.
        told: Is called for each finished table.
    """
    now = clock.now_ms() if now_ms is None else now_ms
    done = []
    for name, table in TABLES.items():
        if not (root / name / "_delta_log").is_dir():
            continue
        files = DeltaFiles(root, table)
        before = files.files().listing.num_rows
        dropped = _drop_old_changes(root, files, now - journal_retention_ms) if table is CHANGES else 0
        _compact(files)
        files.write_checkpoint()
        deleted = _vacuum(files, now - vacuum_after_ms, now)
        upkeep = Upkeep(name, before, files.files().listing.num_rows, dropped, len(deleted), sum(deleted))
        told(upkeep)
        done.append(upkeep)
    return done


def _compact(files: DeltaFiles) -> None:
    for _ in range(_ATTEMPTS):
        if not files.compact(at_least=2):
            return


def _drop_old_changes(root: Path, changes: DeltaFiles, before_ms: int) -> int:
    """Drop the files of the journal that every table has passed and whose rows are all old."""
    if not all((root / effect.table.name / "_delta_log").is_dir() for effect in EFFECTS):
        return 0
    for _ in range(_ATTEMPTS):
        changes.refresh()
        try:
            ahead = {path for _, path in changes.added_after(min(Materializer(root, 0).reached().values()))}
        except FileNotFoundError:
            return 0
        listing = changes.files().listing
        if "max.event_time" not in listing.column_names:
            return 0
        newest = listing["max.event_time"].cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
        old = listing.filter(pc.fill_null(pc.less(newest, before_ms), False))["path"].to_pylist()
        going = [path for path in old if path not in ahead]
        if not going or changes.drop_files(going):
            return len(going)
    return 0


def _vacuum(files: DeltaFiles, before_ms: int, now_ms: int) -> list[int]:
    """Delete files that no version since then needs; return their sizes."""
    files.refresh()
    needed = set(files.files().listing["path"].to_pylist()) | _removed_since(files.folder / "_delta_log", before_ms)
    deleted = []
    data = [*files.folder.glob("*.parquet"), *(files.folder / "_change_data").glob("*.parquet")]
    # What a crash left of a commit that never was.
    unfinished = (files.folder / "_delta_log").glob(".*.tmp")
    for path in [*data, *unfinished]:
        stat = path.stat()
        written = stat.st_mtime_ns // 1_000_000
        if written < min(before_ms, now_ms - _LEAST_AGE_MS) and str(path.relative_to(files.folder)) not in needed:
            path.unlink()
            deleted.append(stat.st_size)
    return deleted


def _removed_since(log: Path, since_ms: int) -> set[str]:
    """Return the files that were taken out of the table since then: readers of older versions may need them."""
    removed = set()
    for commit in log.glob("*.json"):
        for line in commit.read_bytes().splitlines():
            action = json.loads(line)
            if "remove" in action and action["remove"].get("deletionTimestamp", 0) >= since_ms:
                removed.add(action["remove"]["path"])
    return removed
