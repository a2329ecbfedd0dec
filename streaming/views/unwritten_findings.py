"""Shell: the rows of findings that no job can write: that none is alive, or learns nothing of a cluster. No I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from streaming.machine.clock import now_ms
from streaming.tables.schema import TABLES
from streaming.terminal.format import second_text
from udfs.model.first_few import first_few
from udfs.shard.source_gaps import KIND, silent_found

if TYPE_CHECKING:
    from streaming.views.freshness import ClusterFreshness, JobFreshness

GONE_KIND, STOPPED_KIND, UNREADABLE_KIND = "job_silent", "job_stopped", "tables_unreadable"
_NAMED = 5


def job_finding(job: JobFreshness, lost: Sequence[ClusterFreshness]) -> dict[str, Any]:
    """Return the finding that a job is gone, and which clusters are unknown because of it."""
    is_meant = job.state in ("stopped", "finished")
    names = first_few([cluster.cluster for cluster in lost], _NAMED)
    return _finding(
        STOPPED_KIND if is_meant else GONE_KIND,
        names,
        job.app_id,
        job.seen_at,
        "warning" if is_meant else "critical",
        f"Nothing is known of {names} since {second_text(job.seen_at)}: {job.text}.",
        "Start the job again: it continues from its checkpoint, and catches up.",
    )


def unreported_finding(clusters: Sequence[str], reason: str, newest: int | None) -> dict[str, Any]:
    """Return the finding that the tables know clusters that no liveness has."""
    names = first_few(clusters, _NAMED)
    since_ms = now_ms() if newest is None else newest
    message = f"Nothing is known of the present of {names}: {reason}."
    advice = (
        "Start the job that follows them, with its checkpoint; if it runs, see that it writes to these tables, and that"
        " this process has the same version and may read the files in _liveness beside them."
    )
    row = _finding(GONE_KIND, names, "", since_ms, "critical", message, advice)
    # It stays the same finding while its clusters and its time change.
    return {**row, "finding_id": _finding(GONE_KIND, None, "unreported", 0, "critical", "", "")["finding_id"]}


def source_finding(lost: ClusterFreshness) -> dict[str, Any]:
    """Return the finding that the job also writes if it can, with the same id."""
    assert lost.silent_at is not None
    opened = silent_found(lost.cluster, lost.known_until or lost.silent_at, lost.silent_at, lost.reason)
    row = _finding(KIND, lost.cluster, "", lost.silent_at, opened.severity, opened.message, opened.advice)
    return {**row, "finding_id": opened.finding_id}


def unreadable_finding(since_ms: int, reason: str) -> dict[str, Any]:
    """Return the finding that the tables themselves cannot be read."""
    message = f"The tables cannot be read since {second_text(since_ms)}: {reason}."
    advice = "Check the store, and its access from this machine: what happens meanwhile is not shown."
    return _finding(UNREADABLE_KIND, None, UNREADABLE_KIND, since_ms, "critical", message, advice)


def _finding(
    kind: str, cluster: str | None, what: str, since_ms: int, severity: str, message: str, advice: str
) -> dict[str, Any]:
    """Return an open row of ``findings``; ``what``, kind and time identify it."""
    identity = hashlib.blake2b(f"{what}\x00{kind}\x00{since_ms}".encode(), digest_size=16).hexdigest()
    return {
        **dict.fromkeys(TABLES["findings"].names),
        "finding_id": identity,
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
