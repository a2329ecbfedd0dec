"""Shell: tables of earlier releases become tables of delta-rs: copied once, with their marks, then put in place.

They were written by a log writer of our own, with Delta's clustering feature, which delta-rs refuses to write and Delta
cannot drop. Copies are made beside the tables; only when all are complete do they take the old ones' places. The old
ones are kept. A crash before that leaves the tables as they were; one behind it is continued by the next start. The
journal's versions are counted from 0, and so are the marks by which other tables follow it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from streaming.machine.logs import logger
from streaming.settings.locations import Location
from streaming.tables import delta_rs
from streaming.tables.delta_rs import DeltaRsTable
from streaming.tables.engine import change_writer
from streaming.tables.journal_progress import JournalProgress, to_mark
from streaming.tables.location import is_clustered
from streaming.tables.materializer import progress_id
from streaming.tables.projections import PROJECTIONS
from streaming.tables.schema import AUDITS, CHANGES, TABLES, Table
from streaming.tables.writer import Mark

_COPIES = ".taken-over"
_COMPLETE = "complete"
_SHARES = 1 << 20  # of a version of the journal, in the marks of those tables
KEPT = "before-takeover"
_log = logger("tables")


def take_over(root: Location, writer: str = delta_rs.NAME) -> None:
    """Take over the tables of earlier releases below a root; others are left alone. They were in folders alone.

    Args:
        writer: The engine that writes them from now on.
    """
    if not isinstance(root, Path):
        return
    copies = root / _COPIES
    if not (copies / _COMPLETE).exists():
        shutil.rmtree(copies, ignore_errors=True)
        old = {name: DeltaTable(str(root / name)) for name in TABLES if DeltaTable.is_deltatable(str(root / name))}
        old = {name: table for name, table in old.items() if is_clustered(table)}
        if not old:
            return
        _log.info("taking over the tables of an earlier release", tables=len(old), kept=str(root / KEPT))
        _copy_all(root, copies, old)
        change_writer(copies, writer)
        (copies / _COMPLETE).touch()
    _put_in_place(root, copies)


def _copy_all(root: Path, copies: Path, old: Mapping[str, DeltaTable]) -> None:
    marks = {name: _marks_of(root / name) for name in old}
    follow_mark: list[Mark] = []
    for name, table in sorted(old.items(), key=lambda one: one[0] != CHANGES.name):
        copy = DeltaRsTable(copies, TABLES[name])
        copy.add_columns_of(table)
        if TABLES[name] is CHANGES:
            followed = [mark for others in marks.values() for mark in others]
            follow_mark = _copy_journal(table, copy, marks[name], followed)
        else:
            copy.fill(lambda table=table: _rows(table), [*marks[name], *follow_mark])  # type: ignore[misc]


def _copy_journal(old: DeltaTable, copy: DeltaRsTable, marks: list[Mark], followed: list[Mark]) -> list[Mark]:
    """Copy what all tables have passed as one version, each later version as one; return the mark of their progress."""
    reached = _positions(str(old.metadata().id), followed)
    base, end = min(each.version for each in reached), old.version()
    copy.fill(lambda: _rows(DeltaTable(old.table_uri, version=base)), marks)
    versions = {base: copy.version}
    for version in _versions_with_rows(old, base, end):
        copy.fill(lambda version=version: _feed(copy.table, old, version), [])  # type: ignore[misc]
        versions[version] = copy.version

    def at(version: int) -> int:
        return max(number for copied, number in versions.items() if copied <= version)

    lowest, ahead = min(reached), max(reached)
    progress = JournalProgress(at(base))
    if ahead != lowest:
        upto = lowest.upto or ahead.upto or ahead.version
        progress = JournalProgress(at(base), at(upto), lowest.shares, reached.index(lowest))
    elif lowest.shares:
        progress = JournalProgress(at(base), at(lowest.upto), lowest.shares)
    return [Mark(progress_id(copy.identity), to_mark(progress))] if base or progress.upto else []


class _Position(NamedTuple):
    """How far a table had come: all of the journal up to a version, and so many shares of the piece after it."""

    version: int
    shares: int = 0
    upto: int = 0


def _positions(journal: str, followed: list[Mark]) -> list[_Position]:
    """Return those of the tables that follow the journal, in their order; each had marks of its own."""
    highest = _highest(iter(followed))
    found = []
    for projection in PROJECTIONS:
        if projection.table is AUDITS:
            continue  # a table of later releases
        version = highest.get(f"{journal}-{projection.table.name}", 0)
        upto, shares = divmod(highest.get(f"{journal}-{projection.table.name}-share", 0), _SHARES)
        found.append(_Position(version, shares, upto) if upto > version else _Position(version))
    return found


def _versions_with_rows(old: DeltaTable, after: int, upto: int) -> list[int]:
    if after >= upto:
        return []
    feed = old.load_cdf(starting_version=after + 1, ending_version=upto, columns=["_change_type", "_commit_version"])
    rows = pa.table(feed)
    kinds = rows["_change_type"].cast(pa.string()).to_pylist()
    return sorted(
        {number for kind, number in zip(kinds, rows["_commit_version"].to_pylist(), strict=True) if kind == "insert"}
    )


def _rows(table: DeltaTable) -> pa.RecordBatchReader:
    return _without_comments(pa.RecordBatchReader.from_stream(table.scan()))


def _without_comments(found: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Drop the comments of columns: they may have been reworded, which no append may do."""
    schema = pa.schema([(field.name, field.type) for field in found.schema])
    batches = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in found)
    return pa.RecordBatchReader.from_batches(schema, batches)


def _feed(table: Table, old: DeltaTable, version: int) -> pa.RecordBatchReader:
    """Return the rows that one version of the journal brought."""
    names = [f'"{name}"' for name in table.names]
    feed = old.load_cdf(starting_version=version, ending_version=version, columns=names)
    return _without_comments(pa.RecordBatchReader.from_stream(feed))


def _marks_of(folder: Path) -> list[Mark]:
    """Return all marks of a table: delta-rs looks one up only by its name."""
    return [Mark(app_id, version) for app_id, version in sorted(_highest(_marks_in(folder / "_delta_log")).items())]


def _marks_in(log: Path) -> Iterator[Mark]:
    for checkpoint in log.glob("*.checkpoint.parquet"):
        for txn in pq.read_table(checkpoint, columns=["txn"])["txn"].drop_null().to_pylist():
            yield Mark(txn["appId"], txn["version"])
    for commit in log.glob("*.json"):
        for line in commit.read_bytes().splitlines():
            txn = json.loads(line).get("txn")
            if txn is not None:
                yield Mark(txn["appId"], txn["version"])


def _highest(marks: Iterator[Mark]) -> dict[str, int]:
    found: dict[str, int] = {}
    for mark in marks:
        found[mark.app_id] = max(mark.version, found.get(mark.app_id, 0))
    return found


def _put_in_place(root: Path, copies: Path) -> None:
    kept = root / KEPT
    kept.mkdir(exist_ok=True)
    for name in TABLES:
        if (copies / name).exists():
            if (root / name).exists():
                (root / name).rename(kept / name)
            (copies / name).rename(root / name)
    shutil.rmtree(copies)
