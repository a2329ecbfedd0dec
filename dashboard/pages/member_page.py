"""Dashboard: the content of the page of one member."""

from __future__ import annotations

from typing import Any

from dashboard.pages.page_addresses import API, address
from dashboard.reading.listing_query import piece, plain_rows
from dashboard.reading.listings import MEMBERS
from dashboard.reading.naming_findings import naming_findings
from dashboard.reading.questions import Reading
from streaming.tables.errors import NotFoundError
from streaming.tables.schema import Row
from streaming.terminal.format import queue_name
from streaming.views.pods import with_pods

SESSIONS = 100
QUEUES = 200
HOSTS = 10
# A client id may be in very many groups, so queues are looked up only in those that it joined last.
GROUPS = 100
_SPAN = ("cluster", "group_id", "topic", "broker", "queue_id", "origin", "valid_from", "valid_to")
_SESSION = ("cluster", "group_id", "address", "client", "joined_at", "left_at")


def member_page(reading: Reading, member: str, cluster: str) -> dict[str, Any]:
    """Return a member's sessions in all groups, and the queues that it holds in each of them.

    Args:
        cluster: Restricts the result to it; empty for all clusters.

    Returns:
        Counts cover all its sessions; ``searched`` is the number of its ``current`` groups in which queues were looked
        up.

    Raises:
        NotFoundError: No member had this id.
    """
    of_member = {"member_id": member, "cluster": cluster}
    where = {"cluster": cluster or None, "member_id": member}
    all_sessions = plain_rows(reading.columns("members", _SESSION, where))
    if not all_sessions:
        raise NotFoundError(f"there is no member {member}")
    shown = piece(reading, MEMBERS, of_member, limit=SESSIONS)
    newest = sorted(all_sessions, key=lambda row: (-(row["joined_at"] or 0), row["cluster"], row["group_id"]))
    current = list(dict.fromkeys((row["cluster"], row["group_id"]) for row in newest if row["left_at"] is None))
    held = _held(reading, member, set(current[:GROUPS]))
    states = (reading.freshness.of(name) for name in sorted({row["cluster"] for row in all_sessions}))
    return {
        "member": member,
        "cluster": cluster,
        "lost": [state for state in states if state.state == "unknown"],
        "sessions": with_pods(reading.tables, shown.rows),
        "session_count": len(all_sessions),
        "findings": naming_findings(reading, {row["cluster"] for row in all_sessions}, (), (member,)),
        "held": held[:QUEUES],
        "held_count": len(held),
        "groups": len({(row["cluster"], row["group_id"]) for row in all_sessions}),
        "current": len(current),
        "searched": min(len(current), GROUPS),
        "data": {
            "held": address(f"{API}assignments", of_member, open="yes", limit=reading.max_rows),
            "sessions": address(f"{API}members", of_member, limit=reading.max_rows),
        },
        "hosts": sorted({row["address"] for row in all_sessions if row["address"]})[:HOSTS],
        "clients": sorted({row["client"] for row in all_sessions if row["client"]})[:HOSTS],
    }


def _held(reading: Reading, member: str, groups: set[tuple[str, str]]) -> list[Row]:
    """Return the open spans of a member in these groups, each a (cluster, group), by cluster, group and queue."""
    clusters, names = {cluster for cluster, _ in groups}, {name for _, name in groups}
    where = {"cluster": clusters, "group_id": names, "member_id": member}
    found = reading.tables.read("assignments", columns=_SPAN, where=where, keep=lambda rows: rows["valid_to"].is_null())
    spans = [span for span in plain_rows(found) if (span["cluster"], span["group_id"]) in groups]
    spans.sort(
        key=lambda span: (span["cluster"], span["group_id"], span["topic"], span["broker"] or "", span["queue_id"])
    )
    return [span | {"queue": queue_name(span["topic"], span["broker"], span["queue_id"])} for span in spans]
