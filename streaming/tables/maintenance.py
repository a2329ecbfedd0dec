"""Shell: maintenance of tables: compacts small files, and drops rows beyond their retention and unneeded files.

It may run alongside the job; whichever commits second starts over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from streaming.machine import clock
from streaming.settings.locations import Location
from streaming.tables.annotation_table import ANNOTATIONS
from streaming.tables.arrow_rows import from_arrow_columns
from streaming.tables.engine import DeltaRsEngine, Engine
from streaming.tables.journal_entries import RowFilter
from streaming.tables.journal_progress import from_mark
from streaming.tables.materializer import progress_id
from streaming.tables.projections import PROJECTIONS
from streaming.tables.replay_tables import EVERY_TABLE
from streaming.tables.retention import RETENTIONS, OldRows
from streaming.tables.schema import CHANGES, GROUPS
from streaming.tables.writer import LogTruncatedError, TableWriter, Upkeep
from udfs.model.annotations import FOLLOWED_KIND, NO_CLUSTER

# Each change of a group is in `group_minutes`, progress without changes is in `queue_progress`, and a cluster without
# groups has topics.
_EVENT_TIMES = {"group_minutes": "minute", "queue_progress": "event_time", "topics": "valid_from"}
# These show when the monitor last wrote: inputs are rejected, rebalances decided and replays begun at its own times.
_BATCH_TIMES = {"rejected_events": "seen_at", "rebalances": "detected_at", "replays": "started_at"}


class Kept(NamedTuple):
    """How rows of one table were kept, in addition to what was done to its files.

    Attributes:
        keep_ms: Rows of this age are dropped; None if all rows stay.
        newest_ms: The time from which age is measured, in epoch milliseconds: the newest event of each cluster or, for
            rejected inputs, the monitor's newest batch.
        is_held_back: Whether rows stay because a table has not applied all of them.
    """

    upkeep: Upkeep
    keep_ms: int | None
    newest_ms: Mapping[str, int] | int
    is_held_back: bool = False


def optimize(
    root: Location,
    *,
    keep_ms: Mapping[str, int],
    vacuum_after_ms: int,
    dry_run: bool = False,
    report: Callable[[Upkeep], None] = lambda _upkeep: None,
    now_ms: int | None = None,
    engine: Engine | None = None,
) -> list[Kept]:
    """Maintain every existing table.

    Args:
        keep_ms: Table -> how long rows are kept (``retention.py``); rows of other tables are kept forever. Rows of
            ``changes`` stay until every table has passed them.
        vacuum_after_ms: Files that no version of this age or younger needs are deleted; at least an hour, because a
            file that the log does not name may belong to an unfinished commit.
        dry_run: Change nothing, and only return what would be changed.
        now_ms: No age is measured from a later time, because a clock ahead must not age all other rows.
        engine: The engine that writes the tables; None for delta-rs.
    """
    engine = engine or DeltaRsEngine()
    writers = {
        name: engine.table(root, table, adds_columns=not dry_run)
        for name, table in EVERY_TABLE.items()
        if engine.exists(root, name)
    }
    newest = _Newest(writers, clock.now_ms() if now_ms is None else now_ms)
    done = []
    for name, writer in writers.items():
        kept_ms, times, is_held_back = keep_ms.get(name), newest.of(name), False
        old = None if kept_ms is None else _old_rows(name, times, kept_ms, writers)
        if old is not None and writer.table is CHANGES and not _all_have_passed(writers, old):
            old, is_held_back = None, True
        change = writer.survey if dry_run else writer.maintain
        upkeep = change(vacuum_after_ms=vacuum_after_ms, old=old)
        report(upkeep)
        done.append(Kept(upkeep, kept_ms, times, is_held_back))
    return done


class _Newest:
    """The times from which ages are measured; read before any row is dropped."""

    def __init__(self, writers: Mapping[str, TableWriter], now_ms: int) -> None:
        self._events: dict[str, int] = {}
        for name, column in _EVENT_TIMES.items():
            for cluster, time in (writers[name].newest(column) if name in writers else {}).items():
                if cluster is not None:
                    self._events[cluster] = min(now_ms, max(time, self._events.get(cluster, time)))
        if self._events:
            self._events[NO_CLUSTER] = max(self._events.values())
        batches = [
            time
            for name, column in _BATCH_TIMES.items()
            if name in writers
            for time in writers[name].newest(column).values()
        ]
        self._batch = min(now_ms, max(batches, default=0))

    def of(self, table: str) -> Mapping[str, int] | int:
        """Return the newest event of each cluster, or the newest batch, whichever the table's rows have."""
        rule = RETENTIONS.get(table)
        return self._events if rule is None or rule.is_event_time else self._batch


def _old_rows(name: str, newest: Mapping[str, int] | int, keep_ms: int, writers: Mapping[str, TableWriter]) -> OldRows:
    if isinstance(newest, int):
        return OldRows(RETENTIONS[name], newest - keep_ms)

    def groups() -> Set[tuple[str, str]]:
        present = writers.get(GROUPS.name)
        batches = [] if present is None else present.rows_at(present.refresh(), ["cluster", "group_id"])
        return {pair for batch in batches for pair in zip(*(batch[at].to_pylist() for at in (0, 1)), strict=True)}

    old = OldRows(RETENTIONS[name], {cluster: time - keep_ms for cluster, time in newest.items()}, groups)
    return old._replace(followed=_followed(writers[name], old)) if name == ANNOTATIONS.name else old


def _followed(annotations: TableWriter, old: OldRows) -> Mapping[str, int]:
    """Return since when the pods of each platform are followed; a collector that was given up long ago is left out."""
    rows = annotations.read(RowFilter({"kind": [FOLLOWED_KIND]}))
    names = ("platform", "cluster", "began_at", "written_at")
    found = zip(*from_arrow_columns(rows, names), strict=True)
    return {platform: began for platform, cluster, began, written in found if written >= old.before(cluster)}


def _all_have_passed(writers: Mapping[str, TableWriter], old: OldRows) -> bool:
    """Return whether every table has passed all old rows of the journal."""
    changes = writers[CHANGES.name]
    if not all(projection.table.name in writers for projection in PROJECTIONS):
        return False
    marks = [writers[projection.table.name].mark(progress_id(changes.identity)) or 0 for projection in PROJECTIONS]
    reached = from_mark(max(marks) or None).after
    try:
        for batch in changes.appended(reached, changes.refresh(), ["cluster", "event_time"]):
            by_cluster = pa.Table.from_batches([batch]).group_by("cluster").aggregate([("event_time", "min")])
            times = pc.divide(by_cluster["event_time_min"].cast(pa.int64()), 1_000).to_pylist()
            for cluster, time in zip(by_cluster["cluster"].to_pylist(), times, strict=True):
                if time < old.before(cluster):
                    return False
    except LogTruncatedError:
        return False
    return True
