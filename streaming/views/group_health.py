"""Shell: the health of groups by one rule for commands, pages, API and metrics; its words, and those of severities."""

from __future__ import annotations

# Worst first.
SEVERITIES = ("critical", "warning", "info")
HEALTH = (*SEVERITIES, "ok", "unknown")
# A group that rebalanced so often within ten minutes is not calm, whatever is usual for it and without any finding: as
# findings.flapping_rebalances by default, below which a rolling restart of a small group stays.
RESTLESS, RESTLESS_REBALANCES, RESTLESS_WITHIN_MS = "restless", 6, 600_000


def health(*, state: str, worst: str | None, unassigned_queues: int | None, is_known: bool = True) -> str:
    """Return the health of a group: the worst of its findings, or what its own state shows.

    Args:
        is_known: Whether the present of its cluster is known.
        worst: The worst severity of its open findings, with ``info`` for widespread ones; None if there are none.

    Example:
        >>> [health(state="stable", worst=None, unassigned_queues=number) for number in (0, 2)]
        ['ok', 'warning']
        >>> health(state="not_followed", worst=None, unassigned_queues=None)
        'unknown'
    """
    if not is_known:
        return "unknown"
    if state == "failed" or worst == "critical":
        return "critical"
    if worst == "warning" or (unassigned_queues or 0) > 0:
        return "warning"
    if worst is not None:
        return worst
    return "unknown" if state == "not_followed" else "ok"
