"""Core: the finding ``clocks_ahead``: all clocks of a cluster are ahead of the machine that runs the job. No I/O."""

from __future__ import annotations

from typing import Any

from udfs.model.journal import Change, FindingChanged, FindingClosed, FindingOpened
from udfs.shard.source_gaps import SourceGaps, finding_id

KIND = "clocks_ahead"
# A batch's timestamp is taken before its newest events are read, so a smaller lead proves nothing.
_OPENS_BEYOND_MS = 2_000
_CLOSES_BELOW_MS = 1_000
# The lead varies with each batch; the open finding is updated once it has doubled or halved.
_CHANGES_BY = 2


def advance_skew(history: SourceGaps, cluster: str, ahead_ms: int, batch_ms: int) -> list[Change]:
    """Return the finding that opens, changes or closes, in the cluster's history.

    Args:
        ahead_ms: How far the cluster's own time is ahead of the batch's timestamp.
    """
    changes: list[Change] = []
    since = history.ahead_since
    if since is None and ahead_ms > _OPENS_BEYOND_MS:
        history.ahead_since, history.ahead_ms = batch_ms, ahead_ms
        history.write(cluster, batch_ms, FindingOpened(**_found(cluster, batch_ms, ahead_ms)), changes)
    elif since is not None and ahead_ms < _CLOSES_BELOW_MS:
        history.ahead_since, history.ahead_ms = None, 0
        closed_at = max(batch_ms, since)
        history.write(
            cluster, closed_at, FindingClosed(finding_id=finding_id(cluster, since, KIND), closed_at=closed_at), changes
        )
    elif since is not None and not history.ahead_ms / _CHANGES_BY < ahead_ms < history.ahead_ms * _CHANGES_BY:
        history.ahead_ms, changed_at = ahead_ms, max(batch_ms, since)
        history.write(
            cluster, changed_at, FindingChanged(**_found(cluster, since, ahead_ms), changed_at=changed_at), changes
        )
    return changes


def _found(cluster: str, since: int, ahead_ms: int) -> dict[str, Any]:
    return {
        "finding_id": finding_id(cluster, since, KIND),
        "finding": KIND,
        "severity": "warning",
        "message": f"The clocks of cluster {cluster} are {ahead_ms / 1000:.1f} s ahead of this machine's.",
        "advice": "Synchronize the clocks (NTP) of the machines that send events and of the one that runs the job: "
        "events ahead of this machine's clock wait until it reaches their time.",
        "evidence": [],
        "opened_at": since,
    }
