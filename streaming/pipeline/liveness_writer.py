"""Shell: writes the job's liveness every few seconds, in its own thread, as one small file."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from streaming.machine.clock import now_ms
from streaming.machine.logs import logger
from streaming.machine.process import process_identity, since_boot_ms
from streaming.machine.stop_request import StopRequest
from streaming.pipeline.outage_findings import SilentCluster
from streaming.settings.locations import Location
from streaming.settings.model import Settings
from streaming.stores.failure import one_line
from streaming.stores.places import place_of
from streaming.tables.liveness import (
    ENDED,
    LONGEST_REASON,
    MAX_CLUSTERS,
    ClusterLiveness,
    JobLiveness,
    JobState,
    SourceStatus,
    liveness_place,
    read_collectors,
    read_liveness,
    write_liveness,
)
from streaming.views.freshness import Now, collector_status
from udfs.model.journal import ClusterObserved

# A clock that jumps by less was adjusted rather than set.
_STEP_MS = 2_000
# With longer batches a cluster's clock takes so long to be read that none is left out.
_PROMPT_MS = 2_000
_log = logger("job")


@dataclass
class _Known:
    """One cluster: its newest event, and when that arrived, by a clock that is never set."""

    system: str | None
    known_until: int
    newest_ms: int
    came_at_ms: int
    is_live: bool = False
    behind_ms: int = 0


class LivenessWriter:
    """Writes the job's liveness and its knowledge of clusters next to the tables, from ``start`` to ``end``.

    Args:
        every_ms: How often it is written. unknown_after_ms: The staleness limit used by readers.
        live_within_ms: A cluster whose events are no older than this on arrival is live rather than a recording.
        is_caught_up: Returns whether the query has read everything.
        sources: Returns the reports of the collectors in this process.
    """

    def __init__(
        self,
        *,
        every_ms: int,
        unknown_after_ms: int,
        live_within_ms: int,
        is_caught_up: Callable[[], bool] = lambda: True,
        sources: Callable[[], Sequence[SourceStatus]] = lambda: (),
    ) -> None:
        self._app_id = ""
        self._every_ms = every_ms
        self._unknown_after_ms = unknown_after_ms
        self._live_within_ms = live_within_ms
        self.is_caught_up = is_caught_up
        self._sources = sources
        self._clusters: dict[str, _Known] = {}
        self._state: tuple[JobState, int, str] = ("starting", now_ms(), "")
        self._batch: tuple[int, int] | None = None
        self._batch_took_ms = 0
        self._started_at = now_ms()
        self._clock_ms = now_ms() - since_boot_ms()
        self._step: tuple[int, int] | None = None
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._ending = threading.Event()
        self._root: Location | None = None
        self._has_failed = False
        self._thread = threading.Thread(target=self._run, name="liveness", daemon=True)

    @classmethod
    def of(
        cls, settings: Settings, *, is_caught_up: Callable[[], bool], sources: Callable[[], Sequence[SourceStatus]]
    ) -> LivenessWriter:
        """Return the writer of a job with these settings."""
        return cls(
            every_ms=settings.job.liveness_interval_ms,
            unknown_after_ms=settings.time.source_silent_after_ms,
            live_within_ms=settings.time.max_clock_skew_ms,
            is_caught_up=is_caught_up,
            # The job's own collectors come last and take precedence.
            sources=lambda: [*_collectors_beside(settings.events.folder), *sources()],
        )

    # -- what the job reports -----------------------------------------------------------------------------------

    def enter(self, state: JobState) -> None:
        """Record the job's activity from now on."""
        if state != self._state[0]:
            self._state = (state, now_ms(), "")

    @contextmanager
    def batch(self, number: int) -> Iterator[None]:
        """Set the running batch while inside."""
        self._batch, began_ms = (number, now_ms()), since_boot_ms()
        try:
            yield
        finally:
            self._batch, self._batch_took_ms = None, since_boot_ms() - began_ms

    def is_prompt(self) -> bool:
        """Return whether no batch takes long: neither the last one nor that which is running."""
        batch = self._batch
        return max(self._batch_took_ms, now_ms() - batch[1] if batch else 0) < _PROMPT_MS

    def observed(self, rows: Iterable[ClusterObserved]) -> None:
        """Update the clusters from which a batch has brought events."""
        now, came_at_ms = now_ms(), since_boot_ms()
        is_behind = not self.is_caught_up()
        with self._lock:
            for row in rows:
                self._observe(row, now, came_at_ms, is_behind=is_behind)

    def _observe(self, row: ClusterObserved, now: int, came_at_ms: int, *, is_behind: bool) -> None:
        before = self._clusters.get(row.cluster)
        lag_ms = max(0, now - row.latest_ms)
        # Events far behind the cluster's own clock are late, from a slow file or a clock that was set back. They show
        # nothing about the present.
        if before is not None and row.clock_ms is not None and row.latest_ms + self._unknown_after_ms < row.clock_ms:
            return
        self._clusters[row.cluster] = _Known(
            row.system or (before.system if before else None),
            max(row.latest_ms, before.known_until if before and before.known_until <= now else 0),
            row.newest_ms,
            came_at_ms,
            is_live=lag_ms <= self._live_within_ms or (before is not None and before.is_live),
            behind_ms=lag_ms if is_behind else 0,
        )

    def touch(self, clusters: Iterable[str]) -> None:
        """Mark these clusters as known up to now though nothing came: silence counts as evidence for them."""
        with self._lock:
            for cluster in clusters:
                if (known := self._clusters.get(cluster)) is not None:
                    known.came_at_ms, known.known_until = since_boot_ms(), max(known.known_until, now_ms())

    def silent(self) -> dict[str, SilentCluster]:
        """Return the live clusters from which nothing has come for too long."""
        found = {source.cluster: source for source in self._sources()}
        now = since_boot_ms()
        with self._lock:
            return {
                cluster: SilentCluster(known.newest_ms, _reason(found.get(cluster)))
                for cluster, known in self._clusters.items()
                if known.is_live and now - known.came_at_ms > self._unknown_after_ms
            }

    def known_until(self) -> dict[str, int]:
        """Return the event time of the last knowledge of each cluster."""
        with self._lock:
            return {cluster: known.known_until for cluster, known in self._clusters.items()}

    # -- writing ------------------------------------------------------------------------------------------------

    def start(self, root: Location, app_id: str) -> None:
        """Read the liveness of an earlier run, and begin to write.

        Args:
            root: The location of the tables; not a schema of a catalog. app_id: The checkpoint's id.
        """
        self._root, self._app_id = root, app_id
        self._continue(root)
        self.write()
        self._thread.start()

    @contextmanager
    def until_end(self, stop: StopRequest, *, is_once: bool) -> Iterator[None]:
        """Write how the job ended when the context is left.

        Args:
            stop: Whether a stop was requested. is_once: Whether the job was to end by itself.
        """
        try:
            yield
        except BaseException as error:
            if stop.is_requested:
                self.end("stopped")
            else:
                self.end("failed", one_line(error) or type(error).__name__)
            raise
        self.end("finished" if is_once and not stop.is_requested else "stopped")

    def end(self, state: JobState, reason: str = "") -> None:
        """Write how the job ended, and stop."""
        if self._root is None or self._ending.is_set():
            return
        self._ending.set()
        self._thread.join(self._every_ms / 1_000)
        self._state, self._batch = (state, now_ms(), reason[:LONGEST_REASON]), None
        self.write()

    def _continue(self, root: Location) -> None:
        """Continue from how far an earlier run knew each cluster."""
        try:
            jobs, _ = read_liveness(root)
        except OSError:
            return  # writing will fail as well, and is logged there
        for job in jobs:
            if job.app_id == self._app_id:
                age_ms = max(0, now_ms() - job.written_at)
                for cluster in job.clusters:
                    came_at_ms = since_boot_ms() - age_ms - cluster.age_ms
                    self._clusters[cluster.cluster] = _Known(
                        cluster.system, cluster.known_until, cluster.newest, came_at_ms, is_live=cluster.is_live
                    )

    def _run(self) -> None:
        while not self._ending.wait(self._every_ms / 1_000):
            self.write()

    def write(self) -> None:
        """Write the current liveness; a failure is logged once."""
        assert self._root is not None
        place = liveness_place(self._root, self._app_id)
        with self._writing:
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                write_liveness(place, self.now())
            except OSError as error:
                if not self._has_failed:
                    _log.warning("the liveness cannot be written", place=str(place), reason=one_line(error))
                self._has_failed = True
                return
        if self._has_failed:
            _log.info("the liveness can be written again", place=str(place))
        self._has_failed = False

    def now(self) -> JobLiveness:
        """Return the current liveness."""
        self._note_clock()
        problems = _by_cluster(self._sources())
        now, boot_ms, pid = now_ms(), since_boot_ms(), os.getpid()
        (state, since, reason), batch, step = self._state, self._batch, self._step
        with self._lock:
            clusters = sorted(self._clusters.items(), key=lambda item: -item[1].came_at_ms)[:MAX_CLUSTERS]
        return JobLiveness(
            app_id=self._app_id,
            host=socket.gethostname(),
            pid=pid,
            process=process_identity(pid),
            written_at=now,
            written_boot_ms=boot_ms,
            every_ms=self._every_ms,
            unknown_after_ms=self._unknown_after_ms,
            state=state,
            state_since=since,
            reason=reason,
            started_at=self._started_at,
            batch=batch[0] if batch and state not in ENDED else None,
            batch_since=batch[1] if batch and state not in ENDED else None,
            clock_step_ms=step[0] if step else 0,
            clock_step_at=step[1] if step else None,
            clusters=[
                _cluster(name, known, boot_ms - known.came_at_ms, problems.get(name))
                for name, known in sorted(clusters, key=lambda item: item[0])
            ],
        )

    def _note_clock(self) -> None:
        """Record when this machine's clock is set, which shows at once as a drift from the time since boot."""
        clock_ms = now_ms() - since_boot_ms()
        if abs(clock_ms - self._clock_ms) > _STEP_MS:
            self._step = (clock_ms - self._clock_ms, now_ms())
            _log.warning("the clock of this machine was set", by_ms=self._step[0])
        self._clock_ms = clock_ms


def _cluster(name: str, known: _Known, age_ms: int, source: SourceStatus | None) -> ClusterLiveness:
    return ClusterLiveness(
        cluster=name,
        system=known.system,
        known_until=known.known_until,
        newest=known.newest_ms,
        age_ms=max(0, age_ms),
        is_live=known.is_live,
        is_followed=source is not None and source.is_own,
        behind_ms=known.behind_ms,
        problem=source.problem[:LONGEST_REASON] if source else "",
        partial=source.partial[:LONGEST_REASON] if source else "",
    )


def _by_cluster(sources: Sequence[SourceStatus]) -> dict[str, SourceStatus]:
    """Return one report for each cluster: the last one, with the parts that others do not know either."""
    found: dict[str, SourceStatus] = {}
    for source in sources:
        earlier = found.get(source.cluster)
        parts = dict.fromkeys(filter(None, (earlier.partial if earlier else "", source.partial)))
        found[source.cluster] = source._replace(partial="; ".join(parts))
    return found


def _reason(source: SourceStatus | None) -> str:
    if source is not None and (source.problem or source.is_own):
        return source.problem or "the cluster does not answer"
    return "no event has come since"


def _collectors_beside(folder: Location | None) -> list[SourceStatus]:
    """Return the liveness of standalone collectors in the folder of events that the job reads."""
    if folder is None:
        return []
    try:
        found = read_collectors(place_of(folder))
    except OSError:
        return []  # the query reads that folder, too, and reports it
    return [
        collector_status(collector, Now.read())
        for collector in sorted(found, key=lambda collector: collector.written_at)
    ]
