"""Shell: writes into the journal that a cluster sends no events, while that lasts.

The query cannot do it: a batch needs its sources, and an unavailable source may block all others. The core reports the
same gap under the same id once the next event shows its end. The rows written here come after that, and include the
reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from streaming.machine.clock import now_ms
from streaming.machine.logs import logger
from streaming.machine.process import since_boot_ms
from streaming.pipeline.decided_rows import change_row
from streaming.settings.locations import Location
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.engine import Engine
from streaming.tables.schema import CHANGES
from streaming.tables.writer import Mark
from streaming.views.reader import JobReader
from udfs.model.journal import Body, Change, FindingClosed, FindingOpened
from udfs.shard.source_gaps import KIND, silent_found

# No batch decided these changes.
_NO_BATCH = -1
# This long after the first event the core has reported the gap itself, because its clock trails by the lateness.
_CORE_REPORTS_MS = 8_000
_log = logger("job")


class SilentCluster(NamedTuple):
    """A live cluster without new events: its newest event time, and why none come."""

    newest_ms: int
    reason: str


class OutageFindings:
    """Opens a finding for each cluster that falls silent, and closes it when events come again.

    Args:
        root: The location of the tables for readers. tables: Their location for the engine.
        app_id: The checkpoint's id. after_ms: ``time.source_silent_after_ms``. lateness_ms: The job's.
    """

    def __init__(
        self, engine: Engine, root: Location, tables: Location, app_id: str, *, after_ms: int, lateness_ms: int
    ) -> None:
        self._journal = engine.table(tables, CHANGES)
        self._reader = JobReader(root)
        self._mark = f"{app_id}-outages"
        self._after_ms = after_ms
        self._settle_ms = lateness_ms + _CORE_REPORTS_MS
        rows = self._reader.rows("findings", where={"kind": KIND}, keep=lambda found: found["closed_at"].is_null())
        self._open: dict[str, FindingOpened] = {row["cluster"]: _opened(row) for row in rows}
        # Clusters whose events have come back: when, since the machine's boot, and the event time.
        self._back: dict[str, tuple[int, int]] = {}

    def step(self, silent: Mapping[str, SilentCluster], known_until: Mapping[str, int]) -> bool:
        """Write changes; return whether there were any."""
        changes: list[Change] = []
        for cluster, found in sorted(silent.items()):
            if cluster not in self._open:
                opened_at = found.newest_ms + self._after_ms
                opened = silent_found(cluster, found.newest_ms, opened_at, found.reason)
                self._open[cluster] = opened
                self._add(changes, cluster, opened_at, opened)
                _log.warning("nothing comes from a cluster", cluster=cluster, reason=found.reason)
            self._back.pop(cluster, None)
        now = since_boot_ms()
        for cluster in sorted(set(self._open) - set(silent)):
            if cluster not in self._back and cluster in known_until:
                self._back[cluster] = (now, known_until[cluster])
                _log.info("events come again from a cluster", cluster=cluster)
            if cluster in self._back and now - self._back[cluster][0] > self._settle_ms:
                opened, (_, until) = self._open.pop(cluster), self._back.pop(cluster)
                closed_at = self._closed_at(opened) or max(until, opened.opened_at)
                closed = FindingClosed(finding_id=opened.finding_id, closed_at=closed_at)
                self._add(changes, cluster, opened.opened_at, opened)
                self._add(changes, cluster, closed_at, closed)
        if changes:
            self._append(changes)
        return bool(changes)

    def _closed_at(self, opened: FindingOpened) -> int | None:
        """Return when the core closed a finding; None if it has not."""
        rows = self._reader.rows("findings", where={"finding_id": opened.finding_id})
        return rows[0]["closed_at"] if rows else None

    def _add(self, changes: list[Change], cluster: str, at_ms: int, body: Body) -> None:
        number, subject = now_ms() * 100 + len(changes), f"{cluster}: outages"
        changes.append(
            Change(cluster=cluster, group_id=None, subject=subject, number=number, event_time=at_ms, body=body)
        )

    def _append(self, changes: list[Change]) -> None:
        rows = [change_row(msgspec.json.encode(change).decode(), _NO_BATCH) for change in changes]
        self._journal.append(to_arrow(CHANGES, rows), Mark(self._mark, now_ms()))


def _opened(row: Mapping[str, object]) -> FindingOpened:
    fields = {
        "finding": KIND,
        **{name: row[name] for name in FindingOpened.__struct_fields__ if row.get(name) is not None},
    }
    return msgspec.convert(fields, FindingOpened)
