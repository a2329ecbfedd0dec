"""Shell: the health of groups: one rule, for commands, pages, API and metrics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streaming.settings.model import Widespread
from streaming.tables.schema import Row
from streaming.views.finding_lists import SEVERITIES, findings
from streaming.views.freshness import Freshness
from streaming.views.reader import Reader
from streaming.views.widespread import WidespreadKind, widespread_kinds

# Worst first.
HEALTH = ("critical", "warning", "info", "ok", "unknown")
_MINUTE_MS = 60_000


def health(*, state: str, worst: str | None, unassigned_queues: int | None, is_known: bool = True) -> str:
    """Return the health of a group: the worst of its findings, or what its own state shows.

    Args:
        is_known: Whether the present of its cluster is.
        worst: The worst severity of its open findings, with ``info`` for what is widespread; None: there are none.

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


def worst_severity(rows: Iterable[Row], many: Sequence[WidespreadKind]) -> str | None:
    """Return the worst severity of findings, with ``info`` for what is widespread; None: there are none."""
    severities = {"info" if any(one.has(row) for one in many) else row["severity"] for row in rows}
    return next((one for one in SEVERITIES if one in severities), None)


def with_health(
    reader: Reader, groups: Sequence[Row], widespread: Widespread, now_ms: int, freshness: Freshness
) -> list[Row]:
    """Return rows of ``groups`` with ``health``, ``open_findings`` and ``finding_kinds``, as the pages have them.

    Args:
        groups: Of any clusters.
        now_ms: Now. freshness: What is known of each cluster: the health of a group is unknown with its cluster; and of
            recordings, and of what nothing is known any more, their end counts.
    """
    clusters = {row["cluster"] for row in groups}
    chosen = next(iter(clusters)) if len(clusters) == 1 else None
    opened: dict[tuple[str, str | None], list[Row]] = {}
    for row in findings(reader, cluster=chosen):
        opened.setdefault((row["cluster"], row["group_id"]), []).append(row)
    until_ms = shown_until(freshness, clusters, now_ms) + _MINUTE_MS
    many = widespread_kinds(reader, widespread, until_ms // _MINUTE_MS * _MINUTE_MS, cluster=chosen)
    found = []
    for row in groups:
        own = opened.get((row["cluster"], row["group_id"]), [])
        worst = worst_severity(own, many)
        added = {
            "health": health(
                state=row["state"],
                worst=worst,
                unassigned_queues=row["unassigned_queues"],
                is_known=freshness.of(row["cluster"]).state != "unknown",
            ),
            "open_findings": len(own),
            "finding_kinds": " ".join(sorted({one["kind"] for one in own})) or None,
        }
        found.append(row | added)
    return found


def shown_until(freshness: Freshness, clusters: Iterable[str], now_ms: int) -> int:
    """Return up to when clusters are shown: now, or where the knowledge of all of them ends."""
    ends = [freshness.known_until(cluster, now_ms) for cluster in clusters]
    return max((end for end in ends if end is not None), default=now_ms)
