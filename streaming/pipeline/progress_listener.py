"""Shell: the running job's progress, for the live view and the log."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from streaming.machine.clock import now_ms
from streaming.machine.logs import logger
from streaming.machine.telemetry import record_span
from streaming.pipeline.batch_clock import BatchClock
from streaming.pipeline.query_position import QueryPosition
from streaming.pipeline.totals import Totals
from streaming.settings.locations import Location
from streaming.terminal.live_view import ClusterStatus, LiveStatus

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.streaming import StreamingQuery

    from streaming.pipeline.sink import Decided
    from streaming.tables.schema import Table

_log = logger("job")
# A job with a batch every two seconds would log 43,000 lines a day.
LOGGED_EVERY_MS = 60_000


class ProgressListener:
    """Fills the live status from reports of the query, the sink and the tables.

    It holds a few numbers for each cluster and the newest rebalances, nothing for each group.

    Args:
        position: The query's position in a topic, which is kept up to date.
    """

    def __init__(self, status: LiveStatus, position: QueryPosition | None = None) -> None:
        self._status = status
        self._position = position
        self.clock = BatchClock()
        self._totals = Totals()
        # Tables are written concurrently, and the newest read must be shown last.
        self._showing = threading.Lock()
        self._changed_ms: dict[str, int] = {}
        self._progress: tuple[int, str] | None = None
        self._logged: _Logged | None = None
        self.progressed = False

    def begin(self, tables: Location) -> None:
        """Read the totals of the tables from earlier runs."""
        self._totals.count(tables)
        self._show_totals()

    def decided(self, batch: Decided) -> None:
        """Update with the decisions of a batch; called by the sink."""
        for cluster, changed_ms in batch.changed_ms.items():
            self._changed_ms[cluster] = max(changed_ms, self._changed_ms.get(cluster, 0))
        self._status.rejected += batch.rejected
        self._status.add_rebalances(batch.newest, batch.rebalances)
        if batch.newest:
            self._status.delay_ms = max(0, now_ms() - max(row["event_time"] for row in batch.newest))
        self._show_totals()

    def replaced(self, table: Table, removed: pa.Table, added: pa.Table) -> None:
        """Update with a commit to one of the tables that follow the journal."""
        self._totals.replaced(table, removed, added)
        self._show_totals()

    def followed(self, changes: int, of: int) -> None:
        """Show how many changes of a large piece, such as the first read of a fleet, the tables have now."""
        self._status.following = f"{changes:,} of {of:,} changes" if changes < of else ""
        _log.info("the tables follow", changes=changes, of=of)

    def _show_totals(self) -> None:
        with self._showing:
            self._status.findings = self._totals.open_findings
            self._status.clusters = tuple(
                ClusterStatus(name, total.system, total.groups, total.members, self._changed_ms.get(name))
                for name, total in self._totals.clusters.items()
            )

    def progress(self, query: StreamingQuery) -> None:
        """Update with the query's last progress, once."""
        java = query._jsq.lastProgress()
        # The whole progress is a long text that is compared far more often than it changes.
        if java is None or (progress := (java.batchId(), java.timestamp())) == self._progress:
            return
        self._progress = progress
        last = query.lastProgress
        if last is None:
            return
        # This also applies if nothing came: after a start, and after transaction markers, which are not rows.
        for source in last["sources"]:
            if self._position is not None:
                self._position.ended(last["batchId"], source.get("endOffset"))
        if last["numInputRows"] == 0:
            return
        self.progressed = True
        self._status.batch = last["batchId"]
        self._status.batch_ms = last["durationMs"].get("triggerExecution")
        self._status.batches += 1
        self._status.batches_ms += self._status.batch_ms or 0
        events = _events_of(last["sources"])
        self._status.events += events
        self.clock.ended(events, last["durationMs"])
        self._status.parts_ms = dict(self.clock.totals)
        self._status.events_per_second = last.get("processedRowsPerSecond") or 0.0
        parts = {f"spark.{part}_ms": took_ms for part, took_ms in last["durationMs"].items()}
        record_span("batch", self._status.batch_ms or 0, {"batch": last["batchId"], "events": events, **parts})
        self._log_batch(events)

    def _log_batch(self, events: int) -> None:
        """Log each batch at level debug; otherwise the first one, and then a summary of each minute."""
        status = self._status
        _log.debug("batch", batch=status.batch, events=events, duration_ms=status.batch_ms)
        now, before = now_ms(), self._logged
        # If the clock was set back, one more line is logged.
        if before is not None and 0 <= now - before.at_ms < LOGGED_EVERY_MS:
            return
        last = _Logged(now, status.batches, status.events, status.rebalance_count, status.batches_ms)
        before = before or _Logged(now)
        self._logged = last
        _log.info(
            "batches",
            batch=status.batch,
            batches=last.batches - before.batches,
            events=last.events - before.events,
            rebalances=last.rebalances - before.rebalances,
            duration_ms=last.duration_ms - before.duration_ms,
        )


class _Logged(NamedTuple):
    """Totals since the start, as of the last line."""

    at_ms: int
    batches: int = 0
    events: int = 0
    rebalances: int = 0
    duration_ms: int = 0


def caught_up(query: StreamingQuery) -> bool:
    """Return whether the last batch ended at the newest offsets."""
    last = query.lastProgress
    return last is not None and (last["numInputRows"] == 0 or not query.status["isDataAvailable"])


def _events_of(sources: Sequence[Mapping[str, Any]]) -> int:
    """Return how many rows were events; a folder is two sources with one name, its lines and its files."""
    rows: dict[str, int] = {}
    for source in sources:
        rows.setdefault(source["description"], source["numInputRows"])
    return sum(rows.values())
