"""Dashboard: the open findings as problems: with what follows from each, its cost and its culprits."""

from __future__ import annotations

from typing import NamedTuple

from dashboard.reading.known_time import unknown_clusters
from dashboard.reading.listing_query import piece
from dashboard.reading.listings import FINDINGS
from dashboard.reading.questions import Reading
from dashboard.reading.widespread_findings import widespread
from streaming.tables.schema import Row
from streaming.views.rebalance_costs import Cost, costs_before
from streaming.views.related_findings import SOURCE_SILENT, FindingCulprit, culprits, rebalances_of
from streaming.views.unwritten_findings import GONE_KIND, STOPPED_KIND, UNREADABLE_KIND
from streaming.views.widespread import WidespreadKind

# So many open findings are looked at, the most severe first; of a fleet with more of them the page names the number.
READ = 2_000
# Findings that the present is not known.
BLIND_KINDS = (GONE_KIND, STOPPED_KIND, UNREADABLE_KIND, SOURCE_SILENT)
# A problem names at most this many of its members or clients, and findings that follow from it.
NAMED = 3


class OpenProblem(NamedTuple):
    """One open finding.

    Attributes:
        follows: Open findings that it causes, with theirs.
        rebalance: That with which it opened, or the last one of its group before it; None if there was none within an
            hour. cost: That of the group's rebalances within that hour; empty if nothing is known of it.
        is_stale: The present of its cluster is unknown.
    """

    finding: Row
    follows: list[Row]
    rebalance: Row | None
    culprits: list[FindingCulprit]
    cost: str
    is_stale: bool


class Problems(NamedTuple):
    """What is wrong now.

    Attributes:
        worst: The first of them, critical before warning; each is the root of those that follow from it.
        counts: Severity -> number of open findings that count.
        roots: The number of roots that are not merely for information.
        info: The number of findings for information. widespread: Kinds open in many groups, which do not count.
        is_cut: There are more open findings than were looked at.
    """

    worst: list[OpenProblem]
    counts: dict[str, int]
    roots: int
    info: int
    widespread: tuple[WidespreadKind, ...]
    is_cut: bool


def problems(reading: Reading, cluster: str | None, most: int) -> Problems:
    """Return what is open now.

    Args:
        cluster: Only of this one; None for all. most: The number of problems to describe.
    """
    found = piece(reading, FINDINGS, {"open": "yes", "cluster": cluster or ""}, limit=READ)
    spreads = widespread(reading, cluster)
    counted = [row for row in found.rows if not any(spread.has(row) for spread in spreads)]
    serious = [row for row in counted if row["severity"] != "info"]
    caused = _by_root(serious)
    # Where nothing is known, all else is old.
    serious.sort(key=lambda row: row["kind"] not in BLIND_KINDS)
    # Those that follow from others are not problems of their own.
    chosen = [row for row in serious if row["finding_id"] in caused][:most]
    rebalances, costs = rebalances_of(reading.tables, chosen), costs_before(reading.tables, chosen)
    unknown = unknown_clusters(reading)
    return Problems(
        worst=[
            OpenProblem(
                row,
                caused[row["finding_id"]],
                rebalances.get(row["finding_id"]),
                culprits(row)[:NAMED],
                costs.get(row["finding_id"], Cost()).text if row["finding_id"] in costs else "",
                row["cluster"] in unknown,
            )
            for row in chosen
        ],
        counts={severity: sum(row["severity"] == severity for row in serious) for severity in ("critical", "warning")},
        roots=len(caused),
        info=len(counted) - len(serious),
        widespread=spreads,
        is_cut=found.total > len(found.rows),
    )


def _by_root(rows: list[Row]) -> dict[str, list[Row]]:
    """Return the findings that follow from no other of them, each with those that follow from it, by its id."""
    by_id = {row["finding_id"]: row for row in rows}
    found: dict[str, list[Row]] = {}
    followers: list[tuple[str, Row]] = []
    for row in rows:
        root, seen = row, {row["finding_id"]}
        while (cause := by_id.get(root["caused_by"] or "")) is not None and cause["finding_id"] not in seen:
            root = cause
            seen.add(root["finding_id"])
        found.setdefault(root["finding_id"], [])
        if root is not row:
            followers.append((root["finding_id"], row))
    for root_id, row in followers:
        found[root_id].append(row)
    return found
