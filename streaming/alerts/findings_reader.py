"""Shell: the current rows of the findings that alerts follow."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from deltalake.exceptions import DeltaError

from streaming.machine.logs import logger
from streaming.settings.locations import Location
from streaming.settings.model import Widespread
from streaming.stores.failure import one_line
from streaming.tables.errors import NoTablesError
from streaming.tables.location import table_to_read
from streaming.tables.schema import Row
from streaming.views.freshness import UNREADABLE_AFTER_MS, Freshness
from streaming.views.known_clusters import newest_by_cluster
from streaming.views.liveness_reader import LivenessReader
from streaming.views.platforms import followed_rows, platform_states
from streaming.views.reader import Reader
from streaming.views.rebalance_costs import Cost, costs_before
from streaming.views.related_annotations import DEFAULT_SPANS, AnnotationSpans, of_findings
from streaming.views.unwritten_findings import platform_findings, unreadable_finding, unwritten_rows
from streaming.views.widespread import WidespreadKind, widespread_kinds

# A kind also ceases to be widespread as time passes without a change of tables, so it is computed this often.
_EVERY_MS = 10_000
# More than the time from one liveness of a job to its next.
_CLUSTERS_EVERY_MS = 30_000
_log = logger("alerts")


@dataclass(frozen=True)
class CurrentFindings:
    """The current rows.

    Attributes:
        current: Open findings by id. closed: Those of a set of ids that closed, by id.
        missing: The ids of the set without a row.
        widespread: Kinds that are open in many groups at once.
    """

    current: Mapping[str, Row]
    closed: Mapping[str, Row]
    missing: Set[str] = frozenset()
    widespread: Sequence[WidespreadKind] = ()


class FindingsReader:
    """Reads the findings again if their table has a new version."""

    def __init__(
        self,
        root: Location,
        widespread: Widespread,
        now_ms: Callable[[], int],
        near: AnnotationSpans = DEFAULT_SPANS,
    ) -> None:
        self._root = root
        self._near = near
        self._liveness = LivenessReader(root)
        self._freshness = Freshness()
        self._widespread = widespread
        self._now_ms = now_ms
        self._version: int | None = None
        self._current: Mapping[str, Row] = {}
        self._absent: Set[str] = frozenset()
        self._ended: Mapping[str, Row] = {}
        self._many: Sequence[WidespreadKind] = ()
        self._many_at_ms = 0
        # Findings that no job can write, as of the last read; and since when the tables cannot be read.
        self._unwritten: Mapping[str, Row] = {}
        self._unreadable_since_ms: int | None = None
        self._answered_s: float | None = None
        # The clusters of the tables, and those that were there a read before: a job may write tables before its next
        # liveness.
        self._clusters: Mapping[str, int | None] | None = None
        self._settled: Mapping[str, int | None] = {}
        self._clusters_at_ms = 0
        # The annotations that say until when pods are known.
        self._followed: Sequence[Row] = ()

    def read(self, awaited: set[str]) -> CurrentFindings:
        """Return the open findings, and those of ``awaited`` that closed or have no row.

        Raises:
            DeltaError, OSError: The tables cannot be read.
        """
        # Liveness is read first, because its read gives up sooner on an unavailable store than a table's does.
        self._freshness = self._liveness.read()
        if self._freshness.unread:
            raise OSError(self._freshness.unread)
        table = table_to_read(self._root, "findings")
        if table is None:
            return self._with_unwritten(CurrentFindings({}, {}, awaited))
        version = table.version()
        reader = Reader(self._root)
        is_new = version != self._version
        if is_new:
            rows = reader.rows("findings", keep=lambda table: table["closed_at"].is_null())
            self._current = {row["finding_id"]: row for row in rows}
        absent = awaited - self._current.keys()
        if is_new or absent != self._absent:
            rows = reader.rows("findings", where={"finding_id": absent}) if absent else []
            self._absent, self._ended = absent, {row["finding_id"]: row for row in rows}
        self._compute_widespread(reader, is_new=is_new)
        self._version = version
        closed = {name: row for name, row in self._ended.items() if row["closed_at"] is not None}
        return self._with_unwritten(CurrentFindings(self._current, closed, absent - self._ended.keys(), self._many))

    def unreadable(self, reason: str) -> CurrentFindings | None:
        """Return the last read findings, and the finding that they cannot be read; None if that is too recent."""
        now_ms = self._now_ms()
        # A store that hangs is recognized as unavailable only late.
        waited_ms = 0 if self._answered_s is None else round(1_000 * (time.monotonic() - self._answered_s))
        since_ms = self._unreadable_since_ms = self._unreadable_since_ms or now_ms - waited_ms
        if now_ms - since_ms < UNREADABLE_AFTER_MS:
            return None
        row = unreadable_finding(since_ms, reason)
        self._unwritten = {**self._unwritten, row["finding_id"]: row}
        return CurrentFindings({**self._current, **self._unwritten}, {}, frozenset(), self._many)

    def _with_unwritten(self, found: CurrentFindings) -> CurrentFindings:
        """Add findings that no job can write: that no job is alive, or that it learns nothing of a cluster."""
        self._unreadable_since_ms, self._answered_s = None, time.monotonic()
        before = self._unwritten
        self._read_clusters()
        rows = unwritten_rows(self._freshness, found.current.values(), self._settled)
        rows += platform_findings(platform_states(self._followed, self._now_ms()))
        self._unwritten = {row["finding_id"]: row for row in rows}
        over = found.missing & before.keys() - self._unwritten.keys()
        ended = {name: {**before[name], "closed_at": self._now_ms()} for name in over}
        return CurrentFindings(
            {**found.current, **self._unwritten},
            {**found.closed, **ended},
            found.missing - self._unwritten.keys() - over,
            found.widespread,
        )

    def _read_clusters(self) -> None:
        """Read the clusters and platforms of the tables now and then; a new cluster counts from the next time."""
        now_ms = self._now_ms()
        if self._clusters is not None and now_ms < self._clusters_at_ms + _CLUSTERS_EVERY_MS:
            return
        self._clusters_at_ms = now_ms
        try:
            reader = Reader(self._root)
            found, self._followed = newest_by_cluster(reader), followed_rows(reader)
        except NoTablesError:
            found = {}
        except (OSError, DeltaError) as error:
            # Findings are followed all the same; this table may concern none of them.
            _log.warning("the clusters of the tables cannot be read", reason=one_line(error))
            return
        before = found if self._clusters is None else self._clusters
        self._clusters, self._settled = found, {name: at for name, at in found.items() if name in before}

    def _compute_widespread(self, reader: Reader, *, is_new: bool) -> None:
        now_ms = self._now_ms()
        if not is_new and now_ms < self._many_at_ms + _EVERY_MS:
            return
        # While none of these kinds is open, nothing is held back.
        is_any = any(row["kind"] in self._widespread.kinds for row in self._current.values())
        self._many = widespread_kinds(reader, self._widespread, now_ms) if is_any else ()
        self._many_at_ms = now_ms

    def costs(self, findings: Iterable[Row]) -> Mapping[str, Cost]:
        """Return the costs of the rebalances before findings, by the id of the finding; some have none.

        Raises:
            DeltaError, OSError: The table cannot be read.
        """
        return costs_before(Reader(self._root), findings)

    def annotations(self, findings: Iterable[Row]) -> Mapping[str, Sequence[Row]]:
        """Return the annotations related to findings, by the id of the finding; some have none.

        Raises:
            DeltaError, OSError: A table cannot be read.
        """
        return of_findings(Reader(self._root), findings, self._near)
