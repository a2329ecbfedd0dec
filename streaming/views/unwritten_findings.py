"""Shell: the rows of findings that no job can write: that none is alive, or learns nothing of a cluster or of pods."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from streaming.machine.clock import now_ms
from streaming.tables.schema import TABLES
from streaming.terminal.format import second_text
from streaming.views.freshness import ClusterFreshness, Freshness, JobFreshness
from streaming.views.platforms import PlatformState
from udfs.model.first_few import first_few
from udfs.shard.source_gaps import KIND, silent_found

GONE_KIND, STOPPED_KIND, UNREADABLE_KIND = "job_silent", "job_stopped", "tables_unreadable"
PODS_KIND = "pods_unknown"
_NAMED = 5


def unwritten_rows(
    freshness: Freshness, open_findings: Iterable[Mapping[str, Any]], clusters: Mapping[str, int | None]
) -> list[dict[str, Any]]:
    """Return the findings that no job can write: that a job is gone, and the clusters unknown since.

    Args:
        open_findings: Open rows of ``findings``; problems that one of them reports are not repeated.
        clusters: Those that the tables know, and the event time of the newest row of each, epoch ms; if no liveness
            has some of them, that is a finding as well.
    """
    if freshness.unread:
        return []  # jobs may have left more since, which is unknown
    reported = {row["finding_id"] for row in open_findings}
    lost = [cluster for cluster in freshness.clusters.values() if cluster.state == "unknown"]
    gone = [_job_finding(job, lost) for job in freshness.jobs[:1] if lost and job.is_overdue]
    rows = gone or [_source_finding(cluster) for cluster in lost if cluster.silent_at is not None]
    if unreported := sorted(clusters.keys() - freshness.clusters.keys()):
        newest = max((at for name in unreported if (at := clusters[name]) is not None), default=None)
        rows.append(_unreported_finding(unreported, freshness.of(unreported[0]).reason, newest))
    return [row for row in rows if row["finding_id"] not in reported]


def platform_findings(platforms: Iterable[PlatformState]) -> list[dict[str, Any]]:
    """Return the findings that the pods of platforms are not known, the same in each process."""
    advice = (
        "Start `collect --kubernetes` again, or give it access. Rebalances are known all the same, but members that"
        " joined since name no pod."
    )
    return [
        _finding(
            PODS_KIND,
            _identity(found.platform, PODS_KIND, found.since),
            found.cluster,
            found.since,
            "warning",
            f"{found.text[0].upper()}{found.text[1:]}.",
            advice,
        )
        for found in platforms
        if found.state == "unknown"
    ]


def unreadable_finding(since_ms: int, reason: str) -> dict[str, Any]:
    """Return the finding that the tables themselves cannot be read."""
    message = f"The tables cannot be read since {second_text(since_ms)}: {reason}."
    advice = "Check the store, and its access from this machine: what happens meanwhile is not shown."
    finding_id = _identity(UNREADABLE_KIND, UNREADABLE_KIND, since_ms)
    return _finding(UNREADABLE_KIND, finding_id, None, since_ms, "critical", message, advice)


def _job_finding(job: JobFreshness, lost: Sequence[ClusterFreshness]) -> dict[str, Any]:
    """Return the finding that a job is gone, and which clusters are unknown because of it."""
    names = first_few([cluster.cluster for cluster in lost], _NAMED)
    message = f"Nothing is known of {names} since {second_text(job.seen_at)}: {job.text}."
    advice = "Start the job again: it continues from its checkpoint, and catches up."
    if job.state in ("stopped", "finished"):
        finding_id = _identity(job.app_id, STOPPED_KIND, job.seen_at)
        return _finding(STOPPED_KIND, finding_id, names, job.seen_at, "warning", message, advice)
    finding_id = _identity(job.app_id, GONE_KIND, job.seen_at)
    return _finding(GONE_KIND, finding_id, names, job.seen_at, "critical", message, advice)


def _unreported_finding(clusters: Sequence[str], reason: str, newest: int | None) -> dict[str, Any]:
    """Return the finding that the tables know clusters that no liveness has."""
    names = first_few(clusters, _NAMED)
    message = f"Nothing is known of the present of {names}: {reason}."
    advice = (
        "Start the job that follows them, with its checkpoint; if it runs, see that it writes to these tables, and that"
        " this process has the same version and may read the files in _liveness beside them."
    )
    # It stays the same finding while its clusters and its time change.
    finding_id = _identity("unreported", GONE_KIND, 0)
    since_ms = now_ms() if newest is None else newest
    return _finding(GONE_KIND, finding_id, names, since_ms, "critical", message, advice)


def _source_finding(lost: ClusterFreshness) -> dict[str, Any]:
    """Return the finding that the job also writes if it can, with the same id."""
    assert lost.silent_at is not None
    found = silent_found(lost.cluster, lost.known_until or lost.silent_at, lost.silent_at, lost.reason)
    return _finding(KIND, found.finding_id, lost.cluster, lost.silent_at, found.severity, found.message, found.advice)


def _identity(what: str, kind: str, since_ms: int) -> str:
    return hashlib.blake2b(f"{what}\x00{kind}\x00{since_ms}".encode(), digest_size=16).hexdigest()


def _finding(
    kind: str, finding_id: str, cluster: str | None, since_ms: int, severity: str, message: str, advice: str
) -> dict[str, Any]:
    """Return an open row of ``findings``."""
    return {
        **dict.fromkeys(TABLES["findings"].names),
        "finding_id": finding_id,
        "cluster": cluster,
        "group_id": None,
        "kind": kind,
        "severity": severity,
        "message": message,
        "advice": advice,
        "evidence": [],
        "opened_at": since_ms,
        "closed_at": None,
    }
