"""Shell: what the job learns while it runs, for the live view and the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from streaming.live_view import ClusterStatus, LiveStatus
from streaming.logs import logger
from streaming.tables import FINDINGS, GROUPS, Row
from streaming.views.reading import Reader
from streaming.wall_clock import now_ms

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

_OFFSETS_TOPIC = "__consumer_offsets"
_log = logger("job")


class Watch:
    """Fills the live status from what the query and the sink tell."""

    def __init__(self, status: LiveStatus) -> None:
        self._status = status
        self._groups: dict[tuple[str, str], tuple[str, int]] = {}
        self._open_findings: set[str] = set()
        self._changed_ms: dict[str, int] = {}
        self._batch: int | None = None
        self._offsets: dict[int, int] = {}
        self.progressed = False
        self.caught_up = False

    def begin(self, tables: Path) -> None:
        """Take in what the tables hold from earlier runs."""
        reader = Reader(tables)
        for row in reader.read(GROUPS.name, columns=["cluster", "group_id", "system", "members"]).to_pylist():
            self._groups[row["cluster"], row["group_id"]] = (row["system"], row["members"])
        findings = reader.read(FINDINGS.name, columns=["finding_id", "closed_at"]).to_pylist()
        self._open_findings = {row["finding_id"] for row in findings if row["closed_at"] is None}
        self._status.findings = len(self._open_findings)
        self._status.clusters = tuple(self._clusters())

    def decided(self, rebalances: Sequence[Row], changes: Sequence[Row], rejected: int) -> None:
        """Take in what a batch decided; called by the sink."""
        for change in changes:
            self._take(change)
        self._status.findings = len(self._open_findings)
        self._status.rejected += rejected
        self._status.saw(rebalances)
        if rebalances:
            newest = max(row["event_time"] for row in rebalances)
            self._status.delay_ms = max(0, now_ms() - newest)
        self._status.clusters = tuple(self._clusters())

    def _take(self, change: Row) -> None:
        cluster = change["cluster"]
        self._changed_ms[cluster] = max(change["event_time"], self._changed_ms.get(cluster, 0))
        name = (change["cluster"], change["group_id"])
        if change["kind"] == "group_removed":
            self._groups.pop(name, None)
        elif change["kind"] in ("group_changed", "finding_opened", "finding_closed"):
            body = msgspec.json.decode(change["body"])
            if change["kind"] == "group_changed":
                self._groups[name] = (body["system"], body["members"])
            elif change["kind"] == "finding_opened":
                self._open_findings.add(body["finding_id"])
            else:
                self._open_findings.discard(body["finding_id"])

    def progress(self, query: StreamingQuery) -> None:
        """Take in the query's last progress, once."""
        last = query.lastProgress
        if last is None:
            return
        self.caught_up = last["numInputRows"] == 0 or not query.status["isDataAvailable"]
        # Also when nothing came: after a start, and behind the ends of transactions, which are no rows.
        for source in last["sources"]:
            self._note_offsets(source.get("endOffset"))
        if last["batchId"] == self._batch or last["numInputRows"] == 0:
            return
        self._batch = last["batchId"]
        self.progressed = True
        self._status.batch = last["batchId"]
        self._status.batch_ms = last["durationMs"].get("triggerExecution")
        events = _events_of(last["sources"])
        self._status.events += events
        self._status.events_per_second = last.get("processedRowsPerSecond") or 0.0
        _log.info(
            "batch",
            batch=self._batch,
            events=events,
            duration_ms=self._status.batch_ms,
            rebalances=self._status.rebalances_seen,
        )

    def offsets_read(self) -> dict[int, int]:
        """Answer up to where each partition of ``__consumer_offsets`` has been read and decided."""
        return self._offsets

    def _note_offsets(self, end: object) -> None:
        # Spark tells offsets as the JSON of its own log.
        if isinstance(end, str):
            try:
                end = msgspec.json.decode(end)
            except msgspec.DecodeError:
                return
        if isinstance(end, dict) and _OFFSETS_TOPIC in end:
            self._offsets = {int(partition): int(offset) for partition, offset in end[_OFFSETS_TOPIC].items()}

    def _clusters(self) -> list[ClusterStatus]:
        found: dict[str, list[tuple[str, int]]] = {}
        for (cluster, _), group in sorted(self._groups.items()):
            found.setdefault(cluster, []).append(group)
        return [
            ClusterStatus(
                cluster,
                groups[0][0],
                len(groups),
                sum(members for _, members in groups),
                self._changed_ms.get(cluster),
            )
            for cluster, groups in found.items()
        ]


def _events_of(sources: Sequence[Mapping[str, Any]]) -> int:
    """Answer how many rows were events: a folder is two sources of one name, its lines and its files."""
    rows: dict[str, int] = {}
    for source in sources:
        rows.setdefault(source["description"], source["numInputRows"])
    return sum(rows.values())
