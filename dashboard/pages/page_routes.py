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
from dashboard.pages.folded_episodes import folded
from dashboard.pages.group_page import group_page
from dashboard.pages.listing_page import OWN, Choice, listing_page
from dashboard.pages.member_page import member_page
from dashboard.pages.overview_page import overview_page
from dashboard.pages.page_addresses import RANGE, keeping
from dashboard.pages.page_range import kept_parameters, range_bar, range_of
from dashboard.pages.topic_page import QueueName, topic_page
from dashboard.reading import listings
from dashboard.reading.dependencies import noted_reads
from dashboard.reading.job_facts import job_facts
from dashboard.reading.known_time import blind_clusters, headline, unwritten_findings
from dashboard.reading.listing import VALUES
from dashboard.reading.listing_query import refuse_others
from dashboard.reading.overview import clusters
from dashboard.reading.problems import NAMED
from dashboard.reading.questions import Reading
from dashboard.reading.rebalance_detail import rebalance_detail
from dashboard.reading.rebalance_neighbours import NEAR_MS, neighbours
from dashboard.reading.time_range import TimeRange
from dashboard.reading.widespread_findings import widespread
from dashboard.reading.window import last_day, page_time
from streaming.terminal.format import queue_name
from streaming.views.group_state_texts import TABLE_STATES
from streaming.views.platforms import unknown_texts
from streaming.views.pods import with_pods
from streaming.views.rebalance_sentences import rebalance_sentences
from streaming.views.related_findings import with_ways

LISTINGS_OF_PAGES = {
    "/": listings.GROUPS,
    "/rebalances": listings.REBALANCES,
    "/members": listings.MEMBERS,
    "/findings": listings.FINDINGS,
    "/rejected-events": listings.REJECTED,
    "/advice": listings.ADVICE,
}

NO_RANGE: dict[str, Any] = {"has_range": False}


def check_parameters(request: Request) -> None:
    """Refuse parameters that a page does not take.

    Raises:
        BadQuestionError: A parameter is unknown, or is given twice.
    """
    route = request.scope["route"]
    shown = LISTINGS_OF_PAGES.get(route.path)
    taken = [parameter.alias for parameter in route.dependant.query_params]
    taken += [] if shown is None else [*shown.parameters, *OWN]
    refuse_others((key for key, _ in request.query_params.multi_items()), [*taken, *RANGE], "this page")


router = APIRouter(include_in_schema=False, dependencies=[Depends(check_parameters)])


def page(request: Request, template: str, compute: Callable[[Reading, TimeRange], dict[str, Any]]) -> Response:
    """Return a page, rendered once for its address and the versions of its tables; 304 for a browser that has it.

    It depends on the tables that are read for it, and on liveness.

    Args:
        compute: Returns the values for the template, for the range of time in the address.

    Raises:
        BadQuestionError: The address names no range that there is.
    """
    state = request.app.state
    reading: Reading = state.reading
    shown = f"{request.url.path}?{request.url.query}"
    versions = dict(reading.tables.versions)
    # Most pages do not depend on all the tables that name clusters.
    blind = blind_clusters(reading)

    parameters = dict(request.query_params)
    span = range_of(reading, parameters)

    def render() -> tuple[bytes, set[str]]:
        with keeping(kept_parameters(parameters)):
            with noted_reads() as tables:
                found = compute(reading, span)
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
                span=span,
                # Where nothing follows the range it is merely kept in addresses.
                ranges=range_bar(
                    request.url.path, parameters, span, is_shown=span.is_chosen or not found.get("is_of_all_times")
                )
                if found.get("has_range", True)
                else None,
                kept=kept_parameters(parameters),
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


def cluster_choice(reading: Reading) -> Choice:
    """Return the filter by cluster."""
    names = clusters(reading)["cluster"].to_pylist()
    return Choice("cluster", "Cluster", names, "all clusters")


@router.get("/")
def groups(request: Request) -> Response:
    """Show what is wrong now, the fleet over time, and the groups."""

    def compute(reading: Reading, span: TimeRange) -> dict[str, Any]:
        choices = [
            cluster_choice(reading),
            Choice("system", "System", VALUES["system"], "all systems"),
            Choice("health", "Health", VALUES["health"], "any health"),
            Choice("state", "State", TABLE_STATES, "any state"),
        ]
        return overview_page(reading, span, dict(request.query_params), choices, request.app.state.budget_s)

    return page(request, "groups.html", compute)


@router.get("/group")
def group(request: Request, cluster: str, group: str) -> Response:
    """Show one group."""
    return page(
        request,
        "group.html",
        lambda reading, span: group_page(reading, cluster, group, span, request.app.state.budget_s),
    )


@router.get("/topic")
def topic(request: Request, cluster: str, topic: str, broker: str = "", queue: str = "") -> Response:
    """Show one topic, or one queue of it."""
    return page(
        request, "topic.html", lambda reading, span: topic_page(reading, cluster, topic, span, QueueName(broker, queue))
    )


@router.get("/rebalances")
def rebalances(request: Request) -> Response:
    """Show rebalances, newest first."""

    def compute(reading: Reading, span: TimeRange) -> dict[str, Any]:
        choices = [
            cluster_choice(reading),
            Choice("trigger", "Cause", VALUES["trigger"], "any cause"),
            Choice("status", "Status", VALUES["status"], "any status"),
            Choice("agrees", "Agrees", VALUES["agrees"], "agrees or not"),
        ]
        parameters = dict(request.query_params)
        found = listing_page(
            reading, listings.REBALANCES, page_columns.REBALANCES, "/rebalances", parameters, choices, span=span
        )
        return found | {"rows": folded(reading, found["rows"], found["sort"])}

    return page(request, "rebalances.html", compute)


@router.get("/rebalance")
def rebalance(request: Request, id: str) -> Response:  # noqa: A002 - the parameter's name
    """Show one rebalance."""

    def compute(reading: Reading, _: TimeRange) -> dict[str, Any]:
        found = rebalance_detail(reading.tables, id, near=reading.near)
        for moves in found["moves"].values():
            for move in moves:
                move["queue"] = queue_name(move["topic"], move["broker"], move["queue_id"])
                move["before_text"], move["after_text"] = (", ".join(move[side]) or "–" for side in ("before", "after"))
        found["outages"] = [
            outage | {"queue": queue_name(outage["topic"], outage["broker"], outage["queue_id"])}
            for outage in found["rebalance"]["outages"] or []
        ]
        found["findings"] = with_ways(reading.tables, found["findings"], NAMED)
        around = neighbours(reading, found["rebalance"])
        return NO_RANGE | found | {"around": around, "near_ms": NEAR_MS, "sentences": rebalance_sentences(found)}

    return page(request, "rebalance.html", compute)


@router.get("/member")
def member(request: Request, member: str, cluster: str = "") -> Response:
    """Show one member across its groups."""
    return page(request, "member.html", lambda reading, _: NO_RANGE | member_page(reading, member, cluster))


@router.get("/client")
def client(request: Request, client: str, cluster: str = "") -> Response:
    """Show one client across its groups and its member ids."""
    return page(request, "client.html", lambda reading, span: client_page(reading, "client", client, cluster, span))


@router.get("/host")
def host(request: Request, host: str, cluster: str = "") -> Response:
    """Show one host with its clients."""
    return page(request, "client.html", lambda reading, span: client_page(reading, "address", host, cluster, span))


@router.get("/members")
def members(request: Request) -> Response:
    """Show sessions of members, searched by id, client, host or instance."""

    def compute(reading: Reading, span: TimeRange) -> dict[str, Any]:
        choices = [cluster_choice(reading), Choice("open", "Session", ("yes", "no"), "open or ended")]
        parameters = dict(request.query_params)
        shown = listing_page(
            reading, listings.MEMBERS, page_columns.SESSIONS, "/members", parameters, choices, span=span
        )
        return shown | {"rows": with_pods(reading.tables, shown["rows"])}

    return page(request, "members.html", compute)


@router.get("/findings")
def findings(request: Request) -> Response:
    """Show findings, the open ones unless a filter names others."""

    def compute(reading: Reading, span: TimeRange) -> dict[str, Any]:
        kinds = set(reading.columns("findings", ["kind"])["kind"].to_pylist())
        kinds.update(row["kind"] for row in unwritten_findings(reading))
        choices = [
            cluster_choice(reading),
            Choice("severity", "Severity", VALUES["severity"], "any severity"),
            Choice("kind", "Kind", sorted(kinds), "any kind"),
            Choice("open", "Open", ("yes", "no", "any"), "open and closed"),
        ]
        parameters, defaults = dict(request.query_params), {"open": "yes"}
        found = listing_page(
            reading, listings.FINDINGS, page_columns.FINDINGS, "/findings", parameters, choices, defaults, span=span
        )
        found["rows"] = with_ways(reading.tables, found["rows"], NAMED)
        return found | {"widespread": widespread(reading, found["chosen"].get("cluster"))}

    return page(request, "findings.html", compute)


@router.get("/rejected-events")
def rejected_events(request: Request) -> Response:
    """Show inputs that were not applied as sent."""

    def compute(reading: Reading, span: TimeRange) -> dict[str, Any]:
        reasons = sorted(set(reading.columns("rejected_events", ["reason"])["reason"].to_pylist()))
        choices = [cluster_choice(reading), Choice("reason", "Reason", reasons, "any reason")]
        parameters = dict(request.query_params)
        return listing_page(
            reading, listings.REJECTED, page_columns.REJECTED, "/rejected-events", parameters, choices, span=span
        )

    return page(request, "rejected_events.html", compute)


@router.get("/job")
def job(request: Request) -> Response:
    """Show the job's status."""
    return page(request, "job.html", lambda reading, _: NO_RANGE | job_facts(reading))
