"""Dashboard: the content of pages of one client or host: sessions, and the rebalances that they caused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

import pyarrow as pa

from dashboard.pages.folded_episodes import folded
from dashboard.pages.page_addresses import API, address
from dashboard.reading.listing_query import piece, plain_rows
from dashboard.reading.listings import MEMBERS
from dashboard.reading.naming_findings import naming_findings
from dashboard.reading.questions import Reading
from dashboard.reading.time_range import TimeRange
from streaming.tables.errors import NotFoundError
from streaming.tables.schema import Row
from streaming.views.client_rebalances import caused_by
from streaming.views.pods import with_pods
from streaming.views.reader import Within
from streaming.views.rebalance_costs import Cost

SESSIONS = 100
REBALANCES = 100
CLIENTS = 100
NAMES = 10
# Rebalances are looked up in the groups that were joined last.
GROUPS = 100
_SESSION = (
    *("cluster", "group_id", "member_id", "client", "address", "instance_id", "client_version", "language", "protocol"),
    *("joined_at", "left_at", "left_reason"),
)


def client_page(reading: Reading, column: str, name: str, cluster: str, span: TimeRange) -> dict[str, Any]:
    """Return the sessions of a client or host under all member ids, and the rebalances that these helped to cause.

    Args:
        column: The column of ``members``: ``client``, or ``address`` for a host.
        cluster: Restricts the result to it; empty for all clusters.
        span: If it is chosen, only its sessions and rebalances.

    Raises:
        NotFoundError: There is no such member.
    """
    kind = "client" if column == "client" else "host"
    sessions = plain_rows(reading.columns("members", _SESSION, {"cluster": cluster or None, column: name}))
    if not sessions:
        raise NotFoundError(f"there is no {kind} {name}")
    if span.is_chosen:
        sessions = [row for row in sessions if span.meets(row["joined_at"], row["left_at"])]
    sessions.sort(key=lambda row: (-(row["joined_at"] or 0), row["cluster"], row["group_id"]))
    groups = list(dict.fromkeys((row["cluster"], row["group_id"]) for row in sessions))
    clients = sorted({row["client"] for row in sessions if row["client"]})
    caused = _caused(reading, clients, groups[:GROUPS], span)
    by_client = caused_by(caused, clients)
    rows = sorted(plain_rows(caused), key=lambda row: (-row["event_time"], row["rebalance_id"]))
    cost = Cost()
    for row in rows:
        cost = cost.with_rebalance(row)
    chosen = {column: name, "cluster": cluster}
    if span.is_chosen:
        chosen |= {"since": str(span.since_ms), "until": str(span.until_ms)}
    return {
        "is_of_all_times": True,
        "kind": kind,
        "name": name,
        "cluster": cluster,
        "sessions": with_pods(reading.tables, piece(reading, MEMBERS, chosen, limit=SESSIONS).rows),
        "session_count": len(sessions),
        "open": sum(row["left_at"] is None for row in sessions),
        "member_ids": len({row["member_id"] for row in sessions}),
        "groups": len(groups),
        "searched": min(len(groups), GROUPS),
        "ended": Counter(row["left_reason"] for row in sessions if row["left_reason"]).most_common(),
        "hosts": _names(row["address"] for row in sessions),
        "client_versions": _names(" ".join(filter(None, (row["language"], row["client_version"]))) for row in sessions),
        "protocols": _names(row["protocol"] for row in sessions),
        "clients": _clients(sessions, by_client)[:CLIENTS],
        "client_count": len(clients),
        "findings": naming_findings(
            reading,
            {row["cluster"] for row in sessions},
            clients,
            {row["member_id"] for row in sessions},
        ),
        "rebalances": folded(reading, rows[:REBALANCES]),
        "rebalance_count": len(rows),
        "queues_moved": sum(row["queues_moved"] or 0 for row in rows),
        "cost": cost.text,
        "data": {"sessions": address(f"{API}members", chosen, limit=reading.max_rows)},
    }


def _caused(reading: Reading, clients: list[str], groups: Collection[tuple[str, str]], span: TimeRange) -> pa.Table:
    """Return the rebalances of these groups with one of the clients in a cause, in a range that was chosen."""
    where: dict[str, object] = {
        "cluster": {cluster for cluster, _ in groups},
        "group_id": {group for _, group in groups},
    }
    if span.is_chosen:
        where |= {"event_time": Within(span.since_ms, span.until_ms)}
    sql = """
        select * from found
        where list_has_any(list_transform(coalesce(triggers, []), lambda part: part.client), ?)
            and not list_contains(list_transform(triggers, lambda part: part.kind), 'group_created')
    """
    return reading.sql(sql, {"found": reading.tables.read("rebalances", where=where)}, [clients or [""]])


def _clients(sessions: Iterable[Row], caused: dict[str, set[str]]) -> list[Row]:
    """Return one row per client, those that caused most rebalances in front."""
    rows: dict[str, Row] = {}
    for session in sessions:
        if session["client"]:
            row = rows.setdefault(
                session["client"], {"client": session["client"], "sessions": 0, "open": 0, "expired": 0}
            )
            row["sessions"] += 1
            row["open"] += session["left_at"] is None
            row["expired"] += session["left_reason"] == "expired"
    found = [row | {"rebalances": len(caused.get(client, ()))} for client, row in rows.items()]
    return sorted(found, key=lambda row: (-row["rebalances"], -row["sessions"], row["client"]))


def _names(values: Iterable[str | None]) -> list[str]:
    return sorted({value for value in values if value})[:NAMES]
