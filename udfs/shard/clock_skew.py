"""Core: the finding ``clocks_ahead``: all clocks of a cluster are ahead of the machine that runs the job. No I/O."""

from __future__ import annotations

from udfs.model.journal import Change, FindingClosed, FindingOpened
from udfs.shard.source_gaps import Silence, finding_id

KIND = "clocks_ahead"
# A batch's timestamp is taken before its newest events are read: a smaller lead proves nothing.
_OPENS_BEYOND_MS = 2_000
_CLOSES_BELOW_MS = 1_000


def advance_skew(history: Silence, cluster: str, ahead_ms: int, batch_ms: int) -> list[Change]:
    """Return the finding that opens or closes, in the cluster's history.

    Args:
        ahead_ms: How far the cluster's own time is ahead of the batch's timestamp.
    """
    changes: list[Change] = []
    since = history.ahead_since
    if since is None and ahead_ms > _OPENS_BEYOND_MS:
        history.ahead_since = batch_ms
        opened = FindingOpened(
            finding_id=finding_id(cluster, batch_ms, KIND),
            finding=KIND,
            severity="warning",
            message=f"The clocks of cluster {cluster} are {ahead_ms / 1000:.1f} s ahead of this machine's.",
            advice="Synchronize the clocks (NTP) of the machines that send events and of the one that runs the job: "
            "events ahead of this machine's clock wait until it reaches their time.",
            evidence=[],
            opened_at=batch_ms,
        )
        history.write(cluster, batch_ms, opened, changes)
    elif since is not None and ahead_ms < _CLOSES_BELOW_MS:
        history.ahead_since = None
        closed_at = max(batch_ms, since)
        history.write(
            cluster, closed_at, FindingClosed(finding_id=finding_id(cluster, since, KIND), closed_at=closed_at), changes
        )
    return changes
