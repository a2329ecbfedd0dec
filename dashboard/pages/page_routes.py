"""Dashboard: the pages, each rendered once for the tables' versions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, Response

from dashboard.live.stream import event_id
from dashboard.pages import page_columns
from dashboard.pages.client_page import client_page
from dashboard.pages.group_page import group_page
from dashboard.pages.listing_page import OWN, Choice, listing_page
from dashboard.pages.member_page import member_page
from dashboard.pages.page_addresses import API, address
from dashboard.reading import listings
from dashboard.reading.cluster_rows import cluster_rows
from dashboard.reading.dependencies import noted_reads
from dashboard.reading.job_facts import job_facts
from dashboard.reading.known_time import blind_clusters, headline, nothing_to_list, unwritten_findings
from dashboard.reading.listing_query import plain_rows, refuse_others
from dashboard.reading.overview import BUSIEST, churn, churning, clusters, hours, overview
from dashboard.reading.questions import Reading
from dashboard.reading.rebalance_detail import rebalance_detail
from dashboard.reading.widespread_findings import widespread
from dashboard.reading.window import HOUR_MS, HOURS, last_day, page_time
from streaming.tables.schema import Row
from streaming.terminal.format import queue_name
from streaming.views.group_state_texts import TABLE_STATES
from streaming.views.platforms import unknown_texts
from streaming.views.widespread import WidespreadKind

LISTINGS_OF_PAGES = {
    "/": listings.GROUPS,
    "/rebalances": listings.REBALANCES,
    "/members": listings.MEMBERS,
    "/findings": listings.FINDINGS,
    "/rejected-events": listings.REJECTED,
}


def check_parameters(request: Request) -> None:
    """Refuse parameters that a page does not take.

    Raises:
        BadQuestionError: A parameter is unknown, or is given twice.
    """
    route = request.scope["route"]
    shown = LISTINGS_OF_PAGES.get(route.path)
    taken = (
        [parameter.alias for parameter in route.dependant.query_params] if shown is None else [*shown.parameters, *OWN]
    )
    refuse_others((key for key, _ in request.query_params.multi_items()), taken, "this page")


router = APIRouter(include_in_schema=False, dependencies=[Depends(check_parameters)])


def page(request: Request, template: str, compute: Callable[[Reading], dict[str, Any]]) -> Response:
    """Return a page, rendered once for its address and the versions of its tables; 304 for a browser that has it.

    It depends on the tables that are read for it, and on liveness.

    Args:
        compute: Returns the values for the template.
    """
    state = request.app.state
    reading: Reading = state.reading
    shown = f"{request.url.path}?{request.url.query}"
    versions = dict(reading.tables.versions)
    # Most pages do not depend on all the tables that name clusters.
    blind = blind_clusters(reading)

    def render() -> tuple[bytes, set[str]]:
        with noted_reads() as tables:
            found = compute(reading)
            freshness, unreadable = reading.freshness, reading.tables.unreadable
        text = state.templates.get_template(template).render(
            found,
            blind=blind,
            knowledge=headline(reading),
            clock_notes=[running.note for running in freshness.jobs if running.note],
            problem=freshness.problem,
            unreadable=unreadable,
            platforms=unknown_texts(reading.tables.platforms),
            url=shown,
            path=request.url.path,
            depends=" ".join(sorted(tables)),
            window=last_day(reading),
            versions=event_id({name: versions[name] for name in tables}),
        )
        return text.encode("utf-8", "replace"), tables

    # Clusters that no job reports are not part of liveness versions.
    unreported = tuple(status.cluster for status in blind if status.cluster not in reading.freshness.clusters)
    body = reading.kept_as_read(("page", shown, page_time(reading), unreported), render)
    tag = f'"{hashlib.sha256(body).hexdigest()[:24]}"'
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"etag": tag})
    return HTMLResponse(body, headers={"etag": tag})


def _cluster_choice(reading: Reading) -> Choice:
    names = clusters(reading)["cluster"].to_pylist()
    return Choice("cluster", "Cluster", names, "all clusters")


@router.get("/")
def groups(request: Request) -> Response:
    """Show clusters and groups."""

    def compute(reading: Reading) -> dict[str, Any]:
        choices = [
            _cluster_choice(reading),
            Choice("system", "System", listings.VALUES["system"], "all systems"),
            Choice("health", "Health", listings.VALUES["health"], "any health"),
            Choice("state", "State", TABLE_STATES, "any state"),
        ]
        found = listing_page(reading, listings.GROUPS, page_columns.GROUPS, "/", dict(request.query_params), choices)
        _add_hours(reading, found["rows"])
        cluster = found["chosen"].get("cluster")
        busy = plain_rows(churn(reading, cluster=cluster))
        summary = {"clusters": cluster_rows(reading), "busy": busy, "totals": _totals(reading)}
        rebalancing = churning(reading, cluster=cluster)
        drawn = {
            "busiest": min(BUSIEST, rebalancing),
            "churning": rebalancing,
            "churn": address(f"{API}churn", cluster=cluster, limit=BUSIEST),
        }
        more: dict[str, Any] = {"widespread": _widespread(reading, cluster)}
        more["nothing"] = _nothing(reading) if not found["rows"] else ""
        return found | summary | drawn | more

    return page(request, "groups.html", compute)


def _nothing(reading: Reading) -> str:
    """Return why no group is listed, as a sentence."""
    text = nothing_to_list(reading)
    return f"{text[:1].upper()}{text[1:]}."


def _widespread(reading: Reading, cluster: str | None) -> list[WidespreadKind]:
    return [spread for spread in widespread(reading) if cluster in (None, spread.cluster)]


def _totals(reading: Reading) -> Row:
    sql = """
        select count(*) as groups, coalesce(sum(members), 0)::bigint as members,
            count(*) filter (health = 'critical') as critical, count(*) filter (health = 'warning') as warning,
            count(*) filter (health = 'unknown') as unknown,
            coalesce(sum(open_findings), 0)::bigint as open_findings,
            coalesce(sum(rebalances_hour), 0)::bigint as rebalances_hour,
            coalesce(sum(rebalances_day), 0)::bigint as rebalances_day
        from overview
    """
    (row,) = plain_rows(reading.sql(sql, {"overview": overview(reading)}))
    return row


def _add_hours(reading: Reading, rows: list[Row]) -> None:
    """Add to rows of groups the rebalances of the last 24 hours, by whole hours."""
    window = last_day(reading)
    sql = "select * from hours where list_contains(?, group_id)"
    found: dict[tuple[str, str], list[int]] = {}
    names = sorted({row["group_id"] for row in rows}) or [""]
    for hour in plain_rows(reading.sql(sql, {"hours": hours(reading)}, [names])):
        bars = found.setdefault((hour["cluster"], hour["group_id"]), [0] * HOURS)
        bars[(hour["hour"] - window.first_hour_ms) // HOUR_MS] = hour["rebalances"]
    for row in rows:
        row["hours"] = found.get((row["cluster"], row["group_id"]), [0] * HOURS)


@router.get("/group")
def group(request: Request, cluster: str, group: str) -> Response:
    """Show one group."""
    return page(request, "group.html", lambda reading: group_page(reading, cluster, group))


@router.get("/rebalances")
def rebalances(request: Request) -> Response:
    """Show rebalances, newest first."""

    def compute(reading: Reading) -> dict[str, Any]:
        choices = [
            _cluster_choice(reading),
            Choice("trigger", "Cause", listings.VALUES["trigger"], "any cause"),
            Choice("status", "Status", listings.VALUES["status"], "any status"),
            Choice("agrees", "Agrees", listings.VALUES["agrees"], "agrees or not"),
        ]
        parameters = dict(request.query_params)
        return listing_page(reading, listings.REBALANCES, page_columns.REBALANCES, "/rebalances", parameters, choices)

    return page(request, "rebalances.html", compute)


@router.get("/rebalance")
def rebalance(request: Request, id: str) -> Response:  # noqa: A002 - the parameter's name
    """Show one rebalance."""

    def compute(reading: Reading) -> dict[str, Any]:
        found = rebalance_detail(reading.tables, id, near=reading.near)
        for moves in found["moves"].values():
            for move in moves:
                move["queue"] = queue_name(move["topic"], move["broker"], move["queue_id"])
                move["before_text"], move["after_text"] = (", ".join(move[side]) or "–" for side in ("before", "after"))
        found["outages"] = [
            outage | {"queue": queue_name(outage["topic"], outage["broker"], outage["queue_id"])}
            for outage in found["rebalance"]["outages"] or []
        ]
        return found

    return page(request, "rebalance.html", compute)


@router.get("/member")
def member(request: Request, member: str, cluster: str = "") -> Response:
    """Show one member across its groups."""
    return page(request, "member.html", lambda reading: member_page(reading, member, cluster))


@router.get("/client")
def client(request: Request, client: str, cluster: str = "") -> Response:
    """Show one client across its groups and its member ids."""
    return page(request, "client.html", lambda reading: client_page(reading, "client", client, cluster))


@router.get("/host")
def host(request: Request, host: str, cluster: str = "") -> Response:
    """Show one host with its clients."""
    return page(request, "client.html", lambda reading: client_page(reading, "address", host, cluster))


@router.get("/members")
def members(request: Request) -> Response:
    """Show sessions of members, searched by id, client, host or instance."""

    def compute(reading: Reading) -> dict[str, Any]:
        choices = [_cluster_choice(reading), Choice("open", "Session", ("yes", "no"), "open or ended")]
        parameters = dict(request.query_params)
        return listing_page(reading, listings.MEMBERS, page_columns.SESSIONS, "/members", parameters, choices)

    return page(request, "members.html", compute)


@router.get("/findings")
def findings(request: Request) -> Response:
    """Show findings, the open ones unless a filter names others."""

    def compute(reading: Reading) -> dict[str, Any]:
        kinds = set(reading.columns("findings", ["kind"])["kind"].to_pylist())
        kinds.update(row["kind"] for row in unwritten_findings(reading))
        choices = [
            _cluster_choice(reading),
            Choice("severity", "Severity", listings.VALUES["severity"], "any severity"),
            Choice("kind", "Kind", sorted(kinds), "any kind"),
            Choice("open", "Open", ("yes", "no", "any"), "open and closed"),
        ]
        parameters, defaults = dict(request.query_params), {"open": "yes"}
        found = listing_page(
            reading, listings.FINDINGS, page_columns.FINDINGS, "/findings", parameters, choices, defaults
        )
        return found | {"widespread": _widespread(reading, found["chosen"].get("cluster"))}

    return page(request, "findings.html", compute)


@router.get("/rejected-events")
def rejected_events(request: Request) -> Response:
    """Show inputs that were not applied as sent."""

    def compute(reading: Reading) -> dict[str, Any]:
        reasons = sorted(set(reading.columns("rejected_events", ["reason"])["reason"].to_pylist()))
        choices = [_cluster_choice(reading), Choice("reason", "Reason", reasons, "any reason")]
        parameters = dict(request.query_params)
        return listing_page(reading, listings.REJECTED, page_columns.REJECTED, "/rejected-events", parameters, choices)

    return page(request, "rejected_events.html", compute)


@router.get("/job")
def job(request: Request) -> Response:
    """Show the job's status."""
    return page(request, "job.html", job_facts)
