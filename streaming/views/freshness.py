"""Shell: decides whether the tables show the present, for commands, pages, metrics and alerts alike.

A cluster is *known* while some of its events came within ``time.source_silent_after_ms`` and the job is not behind;
otherwise it is *unknown* since the last event that came, for a stated reason. A *recording* that was read once is
complete: it does not grow old. If no job has left its liveness, the state is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from streaming.machine.clock import now_ms as clock_now_ms
from streaming.machine.process import boot_id, is_same_machine, is_stopped, process_identity, since_boot_ms
from streaming.tables.liveness import (
    ENDED,
    ClusterLiveness,
    CollectorLiveness,
    JobLiveness,
    ProcessLiveness,
    SourceStatus,
)
from streaming.terminal.format import second_text, span_text

State: TypeAlias = Literal["known", "partly_known", "unknown", "recording"]
# Two clocks that differ by more are not compared.
_CLOCKS_DIFFER_MS = 5_000
# A job that has missed this many reports is the likelier reason than its clusters.
_MISSED = 3
# If tables cannot be read for this long, that is a finding.
UNREADABLE_AFTER_MS = 30_000
_ENDINGS = {
    "stopped": "the job was stopped at {at}",
    "finished": "the job read once, and ended at {at}",
    "failed": "the job failed at {at}",
}
_DOING = {
    "starting": "the job starts",
    "catching_up": "the job reads all there is",
    "reconnecting": "the job waits for a source",
}
_NO_SIGN = "no job has left its liveness beside these tables"
_NOT_REPORTED = "no job has reported it beside these tables"


@dataclass(frozen=True)
class ClusterFreshness:
    """Whether the present of one cluster is known.

    Attributes:
        known_until: Event time of the last knowledge, epoch ms; None if there is none.
        reason: Why the cluster, or which part of it, is unknown; otherwise empty.
        silent_at: The time from which silence is a finding, epoch ms, as the core computes it.
    """

    cluster: str
    system: str | None
    state: State
    known_until: int | None
    reason: str = ""
    silent_at: int | None = None

    def unknown_now(self) -> ClusterFreshness | None:
        """Return it if its present, the end of a recording, is unknown or partly so; otherwise None."""
        return None if self.state in ("known", "recording") else self

    def unknown_at(self, at_ms: int, first_ms: int | None, now_ms: int) -> ClusterFreshness | None:
        """Return what is unknown of it at a time and why; None if everything is known.

        A clock that was ahead may have dated the last knowledge later than now; the present is unknown all the same.

        Args:
            first_ms: The time of the first row about it; None if no row is about it.
        """
        first = self.known_until if first_ms is None else first_ms
        if first is not None and at_ms < first:
            return self._unknown(f"nothing is known before {second_text(first)}")
        if self.state == "unknown":
            return None if self.known_until is not None and at_ms <= self.known_until else self
        end = max(self.known_until or 0, 0 if self.state == "recording" else now_ms)
        if at_ms > end:
            return self._unknown(f"nothing is known after {second_text(end)}")
        return self.unknown_now()

    def _unknown(self, reason: str) -> ClusterFreshness:
        return ClusterFreshness(self.cluster, self.system, "unknown", None, reason)

    @property
    def text(self) -> str:
        """Return a phrase such as ``blind since 2026-01-01T23:33:04Z: the broker does not answer``."""
        until = "" if self.known_until is None else second_text(self.known_until)
        if self.state == "unknown":
            return f"blind since {until}: {self.reason}" if until else f"blind: {self.reason}"
        if self.state == "recording":
            return f"a recording that ends at {until}"
        return f"partly known: {self.reason}" if self.state == "partly_known" else "known"

    @property
    def row(self) -> dict[str, Any]:
        """Return a row for commands and API."""
        names = ("cluster", "system", "state", "known_until", "reason", "text")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class JobFreshness:
    """The state of one job, as far as it is known.

    Attributes:
        is_alive: Whether it has reported in time. state: The state that it reported, or ``gone``.
        seen_at: When it last reported, epoch ms.
        is_overdue: It has missed several reports, which may be why something is unknown.
        text: Its activity, or since when it is inactive, and why. note: Oddities of clocks; empty if none.
        host, pid: Where it runs, or ran. since: When its state began, epoch ms.
        unknown_after_ms: It counts as gone this long after its last report.
    """

    app_id: str
    is_alive: bool
    is_overdue: bool
    state: str
    seen_at: int
    text: str
    note: str = ""
    host: str = ""
    pid: int = 0
    since: int = 0
    unknown_after_ms: int = 0


@dataclass(frozen=True)
class Freshness:
    """What is known about the present.

    Attributes:
        clusters: By name, those in the liveness of a job. jobs: The one that last reported comes first.
        problem: Why liveness could not be read; empty if it could.
        unread: The reason if no liveness could be read just now; the previous reading counts, and grows old.
    """

    clusters: Mapping[str, ClusterFreshness] = field(default_factory=dict)
    jobs: Sequence[JobFreshness] = ()
    problem: str = ""
    unread: str = ""

    def of(self, cluster: str) -> ClusterFreshness:
        """Return what is known of a cluster; a cluster that no job reports is unknown."""
        found = self.clusters.get(cluster)
        reason = self.problem or (_NOT_REPORTED if self.jobs else _NO_SIGN)
        return found or ClusterFreshness(cluster, None, "unknown", None, reason)

    def nothing(self) -> ClusterFreshness:
        """Return the freshness of tables without any cluster: nothing is known, and the reason."""
        reason = self.problem or (self.jobs[0].text if self.jobs else _NO_SIGN)
        return ClusterFreshness("", None, "unknown", None, reason)

    def blind(self, clusters: Iterable[str] = ()) -> list[ClusterFreshness]:
        """Return the clusters whose present is unknown or partly so, by name; including these, which tables know."""
        names = sorted({*self.clusters, *clusters})
        return [found for name in names if (found := self.of(name)).state in ("unknown", "partly_known")]

    def known_until(self, cluster: str, now_ms: int) -> int | None:
        """Return how far the history of a cluster may be drawn: up to now while it is known; None for not at all."""
        found = self.of(cluster)
        return now_ms if found.state in ("known", "partly_known") else found.known_until


@dataclass(frozen=True)
class Now:
    """The time of an evaluation: by the clock, and since the boot of this machine; ``boot`` identifies the boot."""

    wall_ms: int
    boot_ms: int
    boot: str

    @classmethod
    def read(cls) -> Now:
        """Return the current time."""
        return cls(clock_now_ms(), since_boot_ms(), boot_id())


def evaluate_liveness(jobs: Sequence[JobLiveness], now: Now, problem: str = "", *, unread: str = "") -> Freshness:
    """Evaluate jobs' liveness at a given time; if two know a cluster, the fresher one counts."""
    found = sorted((_JobNow(job, now, unread) for job in jobs), key=lambda job: (job.age_ms, job.job.app_id))
    clusters: dict[str, ClusterFreshness] = {}
    ages: dict[str, int] = {}
    for job_now in found:
        for cluster in job_now.job.clusters:
            age_ms = job_now.age_ms + cluster.age_ms
            if age_ms < ages.get(cluster.cluster, age_ms + 1):
                ages[cluster.cluster] = age_ms
                clusters[cluster.cluster] = job_now.cluster(cluster)
    return Freshness(dict(sorted(clusters.items())), [job_now.freshness() for job_now in found], problem, unread)


class _JobNow:
    """One job's liveness at a given time.

    Attributes:
        age_ms: Its age; on the job's machine by a clock that is never set.
    """

    def __init__(self, job: JobLiveness, now: Now, unread: str) -> None:
        self.job = job
        self._unread = unread
        self._now = now
        is_here, wall_ms = _is_here(job, now), now.wall_ms - job.written_at
        self.age_ms = _age_ms(job, now)
        self._ahead_ms = 0 if is_here else max(0, -wall_ms)
        self._set_ms = wall_ms - self.age_ms if is_here else 0

    @property
    def _is_timely(self) -> bool:
        return self.age_ms <= self.job.unknown_after_ms and self._ahead_ms <= _CLOCKS_DIFFER_MS

    @property
    def is_overdue(self) -> bool:
        is_missed = not self._is_timely or self.age_ms > _MISSED * self.job.every_ms
        return self.job.state in ENDED or (is_missed and not self._unread)

    @property
    def is_alive(self) -> bool:
        return self._is_timely and self.job.state not in ENDED

    def freshness(self) -> JobFreshness:
        """Return what is known of the job itself."""
        job = self.job
        state = job.state if self.is_alive or job.state in ENDED else "gone"
        doing = _DOING.get(job.state, "the job runs") if self.is_alive else self._unread
        text = self._ending() if self.is_overdue else doing
        return JobFreshness(
            *(job.app_id, self.is_alive, self.is_overdue, state, job.written_at, text, self._note()),
            *(job.host, job.pid, job.state_since, job.unknown_after_ms),
        )

    def cluster(self, cluster: ClusterLiveness) -> ClusterFreshness:
        """Return what is known of one of its clusters."""
        job, age_ms = self.job, self.age_ms + cluster.age_ms
        state: State = "known"
        reason = ""
        if job.state == "finished" and not cluster.is_live:
            state = "recording"
        elif age_ms > job.unknown_after_ms or self._ahead_ms > _CLOCKS_DIFFER_MS:
            state, reason = "unknown", self._reason(cluster)
        elif cluster.behind_ms > job.unknown_after_ms:
            behind = span_text(cluster.behind_ms)
            state, reason = "unknown", f"the job catches up: it has read up to {behind} ago"
        elif cluster.partial:
            state, reason = "partly_known", cluster.partial
        silent_at = cluster.newest + job.unknown_after_ms
        return ClusterFreshness(cluster.cluster, cluster.system, state, cluster.known_until, reason, silent_at)

    def _reason(self, cluster: ClusterLiveness) -> str:
        job = self.job
        if self.is_overdue:
            return self._ending()
        if self._unread:
            return self._unread
        if cluster.problem:
            return cluster.problem
        came_at = job.written_at - cluster.age_ms
        if job.clock_step_at is not None and job.clock_step_at >= came_at - job.unknown_after_ms:
            return self._clock_step()
        if job.state == "starting":
            return "the job starts"
        if job.batch_since is not None and self._now.wall_ms - job.batch_since > job.unknown_after_ms:
            return f"the job's batch {job.batch} has been running since {second_text(job.batch_since)}"
        if cluster.behind_ms > job.unknown_after_ms:
            return "the job catches up"
        return "the cluster does not answer" if cluster.is_followed else "no event has come since"

    def _ending(self) -> str:
        """Return how the job ended, or since when it is silent."""
        job = self.job
        if job.state in ENDED:
            text = _ENDINGS[job.state].format(at=second_text(job.state_since))
            return f"{text}: {job.reason}" if job.reason else text
        if self._ahead_ms > _CLOCKS_DIFFER_MS:
            return (
                f"the job (process {job.pid} on {job.host}) dates its liveness {span_text(self._ahead_ms)} ahead of"
                " this machine's clock: one of the two clocks is wrong"
            )
        return _fallen_silent("the job", job, "tables")

    def _note(self) -> str:
        job = self.job
        if _is_here(job, self._now) and abs(self._set_ms) > _CLOCKS_DIFFER_MS:
            return f"the clock of {job.host} was set {_direction(self._set_ms)} since {second_text(job.written_at)}"
        return self._clock_step() if job.clock_step_ms else ""

    def _clock_step(self) -> str:
        job = self.job
        at = "" if job.clock_step_at is None else f" at {second_text(job.clock_step_at)}"
        return f"the clock of {job.host} was set {_direction(job.clock_step_ms)}{at}"


def collector_status(collector: CollectorLiveness, now: Now) -> SourceStatus:
    """Return what a standalone collector reports of its cluster: that it has ended, hangs, or gets no answer."""
    seen = second_text(collector.written_at)
    if collector.state != "running":
        problem = (
            f"its collector {'read once, and ended' if collector.state == 'finished' else 'was stopped'} at {seen}"
        )
        return SourceStatus(collector.cluster, problem, is_own=False)
    if _age_ms(collector, now) > _MISSED * collector.every_ms:
        return SourceStatus(collector.cluster, _fallen_silent("its collector", collector, "events"), is_own=False)
    return SourceStatus(collector.cluster, collector.problem, collector.partial, is_own=False)


def _is_here(process: ProcessLiveness, now: Now) -> bool:
    return process.process.split(" ")[0] == now.boot


def _age_ms(process: ProcessLiveness, now: Now) -> int:
    """Return how long ago it was written; on the process's machine by a clock that is never set."""
    return max(0, now.boot_ms - process.written_boot_ms if _is_here(process, now) else now.wall_ms - process.written_at)


def _fallen_silent(who: str, process: ProcessLiveness, beside: str) -> str:
    """Return since when a process is silent, and why, as far as this machine shows."""
    who, seen = f"{who} (process {process.pid} on {process.host})", second_text(process.written_at)
    if not is_same_machine(process.process):
        return f"{who} has not reported since {seen}"
    if process_identity(process.pid) != process.process:
        return f"{who} has ended without reporting it after {seen}: it was killed"
    how = "is stopped by a signal" if is_stopped(process.pid) else f"hangs, or cannot write beside the {beside}"
    return f"{who} has not reported since {seen}: it {how}"


def _direction(step_ms: int) -> str:
    return f"{'ahead' if step_ms > 0 else 'back'} by {span_text(abs(step_ms))}"
