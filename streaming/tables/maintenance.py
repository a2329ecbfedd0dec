"""Shell: upkeep of the tables: small files compacted; old rows of journal and progress, and unneeded files dropped.

May run beside the job: the second one to commit starts over.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from streaming.machine import clock
from streaming.settings.locations import Location
from streaming.tables.engine import DeltaRsEngine, Engine
from streaming.tables.materializer import Materializer
from streaming.tables.projections import PROJECTIONS
from streaming.tables.schema import CHANGES, QUEUE_PROGRESS, TABLES
from streaming.tables.writer import LogTruncatedError, TableWriter, Upkeep


def optimize(
    root: Location,
    *,
    journal_retention_ms: int,
    progress_retention_ms: int,
    vacuum_after_ms: int,
    report: Callable[[Upkeep], None] = lambda _upkeep: None,
    now_ms: int | None = None,
    engine: Engine | None = None,
) -> list[Upkeep]:
    """Keep up every table that is there.

    Args:
        journal_retention_ms: Rows of ``changes`` older than this are deleted, once every table has passed them.
        progress_retention_ms: Rows of ``queue_progress`` older than this are deleted.
        vacuum_after_ms: Files that no version of this age or younger needs are deleted; at least an hour, for a
            file that the log does not name may belong to a commit that is being made.
        report: Is called for each finished table.
        engine: What writes the tables; None = delta-rs.
    """
    now = clock.now_ms() if now_ms is None else now_ms
    engine = engine or DeltaRsEngine()
    done = []
    for name, table in TABLES.items():
        if not engine.exists(root, name):
            continue
        writer = engine.table(root, table)
        drop_before = now - progress_retention_ms if table is QUEUE_PROGRESS else None
        if table is CHANGES and _all_have_passed(root, engine, writer, now - journal_retention_ms):
            drop_before = now - journal_retention_ms
        upkeep = writer.maintain(vacuum_after_ms=vacuum_after_ms, drop_before_ms=drop_before)
        report(upkeep)
        done.append(upkeep)
    return done


def _all_have_passed(root: Location, engine: Engine, changes: TableWriter, time_ms: int) -> bool:
    """Return whether every table has passed all rows of the journal that are older."""
    if not all(engine.exists(root, projection.table.name) for projection in PROJECTIONS):
        return False
    reached = Materializer(root, 0, engine=engine).reached()
    try:
        for batch in changes.appended(reached, changes.refresh(), ["event_time"]):
            oldest = pc.min(batch["event_time"].cast(pa.int64())).as_py()
            if oldest is not None and oldest // 1_000 < time_ms:
                return False
    except LogTruncatedError:
        return False
    return True
