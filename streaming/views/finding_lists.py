"""Shell: current and past problems."""

from __future__ import annotations

from streaming.tables.schema import Row
from streaming.views.freshness import Freshness
from streaming.views.reader import Reader

SEVERITIES = ("critical", "warning", "info")


def findings(
    reader: Reader,
    *,
    group: str | None = None,
    cluster: str | None = None,
    closed: bool = False,
    kind: str | None = None,
    freshness: Freshness | None = None,
) -> list[Row]:
    """Return the open findings (or all), the gravest first, then the newest.

    Args:
        freshness: Adds what no job can write down: that none lives, or that it learns nothing of a cluster.
    """
    keep = None if closed else lambda rows: rows["closed_at"].is_null()
    where = {"cluster": cluster, "group_id": group, "kind": kind}
    found = reader.rows("findings", where=where, keep=keep)
    if freshness is not None and group is None:
        unwritten = freshness.findings(found)
        found += [row for row in unwritten if kind in (None, row["kind"]) and _is_of(row, cluster)]
    return sorted(found, key=_gravity)


def _is_of(row: Row, cluster: str | None) -> bool:
    return cluster is None or cluster in (row["cluster"] or "").split(", ")


def _gravity(row: Row) -> tuple[object, ...]:
    return row["closed_at"] is not None, SEVERITIES.index(row["severity"]), -row["opened_at"], row["finding_id"]
