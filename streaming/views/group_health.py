"""Shell: the health of groups: one rule, for commands, pages, API and metrics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streaming.settings.model import Widespread
from streaming.tables.schema import Row
from streaming.views.finding_lists import SEVERITIES, findings
from streaming.views.reader import Reader
from streaming.views.widespread import WidespreadKind, widespread_kinds

# Worst first.
HEALTH = ("critical", "warning", "info", "ok", "unknown")
_DAY_MS, _MINUTE_MS = 86_400_000, 60_000


def health(*, state: str, worst: str | None, unassigned_queues: int | None) -> str:
    """Return the health of a group: the worst of its findings, or what its own state shows.

    Args:
        worst: The worst severity of its open findings, with ``info`` for what is widespread; None: there are none.

    Example:
        >>> [health(state="stable", worst=None, unassigned_queues=number) for number in (0, 2)]
        ['ok', 'warning']
        >>> health(state="not_followed", worst=None, unassigned_queues=None)
        'unknown'
    """
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


def with_health(reader: Reader, groups: Sequence[Row], widespread: Widespread, now_ms: int) -> list[Row]:
    """Return rows of ``groups`` with ``health``, ``open_findings`` and ``finding_kinds``, as the pages have them.

    Args:
        groups: Of any clusters.
        now_ms: Now; of tables that no job writes any more their end counts instead.
    """
    clusters = {row["cluster"] for row in groups}
    chosen = next(iter(clusters)) if len(clusters) == 1 else None
    opened: dict[tuple[str, str | None], list[Row]] = {}
    for row in findings(reader, cluster=chosen):
        opened.setdefault((row["cluster"], row["group_id"]), []).append(row)
    newest = [row["last_rebalance_at"] for row in groups]
    newest += [row["opened_at"] for rows in opened.values() for row in rows]
    until_ms = shown_until(max((time for time in newest if time is not None), default=None), now_ms) + _MINUTE_MS
    many = widespread_kinds(reader, widespread, until_ms // _MINUTE_MS * _MINUTE_MS, cluster=chosen)
    found = []
    for row in groups:
        own = opened.get((row["cluster"], row["group_id"]), [])
        worst = worst_severity(own, many)
        added = {
            "health": health(state=row["state"], worst=worst, unassigned_queues=row["unassigned_queues"]),
            "open_findings": len(own),
            "finding_kinds": " ".join(sorted({one["kind"] for one in own})) or None,
        }
        found.append(row | added)
    return found


def shown_until(newest_ms: int | None, now_ms: int) -> int:
    """Return up to when tables are shown: now, or the end of those whose newest change is older than a day.

    Example:
        >>> shown_until(None, 5), shown_until(0, 86_400_001), shown_until(2, 86_400_001)
        (5, 0, 86400001)
    """
    return now_ms if newest_ms is None or newest_ms > now_ms - _DAY_MS else newest_ms
