"""Dashboard: the API `/api/v1`: every listing with filters, orders and cursors; charts' data; one rebalance."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import Response

from dashboard.api import contract
from dashboard.api.answers import csv_answer, following_address, json_answer, plain_json
from dashboard.api.contract import ERRORS
from dashboard.reading.activity import fleet
from dashboard.reading.churn import churn, churn_rows
from dashboard.reading.cluster_rows import cluster_rows
from dashboard.reading.group_detail import current_members, offsets_of
from dashboard.reading.group_timeline import timeline
from dashboard.reading.job_facts import delays
from dashboard.reading.known_time import job_rows, present_rows
from dashboard.reading.lag_history import lag_history
from dashboard.reading.listing import Listing
from dashboard.reading.listing_query import BadQuestionError, piece, plain_rows, refuse_others, time_parameter
from dashboard.reading.listings import LISTINGS
from dashboard.reading.questions import Reading
from dashboard.reading.rebalance_detail import rebalance_detail
from dashboard.reading.requested_advice import DAYS, MOST_DAYS, requested_advice
from dashboard.reading.search import LONGEST, search
from dashboard.reading.time_range import TimeRange
from dashboard.reading.topic_detail import topic_detail
from streaming.tables.schema import Row
from streaming.views.name_checks import one_group


def check_parameters(request: Request) -> None:
    """Refuse parameters that the route or the listing does not take.

    Raises:
        BadQuestionError: A parameter is unknown, or is given twice.
    """
    route = request.scope["route"]
    if route.endpoint is no_listing:
        return
    taken = [parameter.alias for parameter in route.dependant.query_params]
    if route.endpoint is listed:
        taken = [*_listing(request).parameters, *taken]
    refuse_others((key for key, _ in request.query_params.multi_items()), taken, request.url.path[:100])


def _listing(request: Request) -> Listing:
    """Return the listing of an address."""
    return LISTINGS[request.url.path.rpartition("/")[2]]


router = APIRouter(prefix="/api/v1", tags=["tables"], dependencies=[Depends(check_parameters)], responses=ERRORS)

Format = Annotated[Literal["json", "csv"], Query(description="json, or csv with a heading")]
Limit = Annotated[int, Query(ge=1, description="Rows at most; the setting dashboard.max_rows bounds it")]
Text = Annotated[str, Query(max_length=20_000)]
Time = Annotated[str, Query(max_length=100, description=contract.TIME_TEXT)]
DEFAULT_LIMIT = 1_000


def _reading(request: Request) -> Reading:
    found: Reading = request.app.state.reading
    return found


def _rows(rows: list[Row], name: str, form: str, total: int | None = None) -> Response:
    """Return an answer of rows; ``total``: the number of all rows, if more than these."""
    if form == "csv":
        return csv_answer(rows, rows[0] if rows else (), name, total=total)
    return json_answer({"rows": rows, "total": len(rows) if total is None else total, "next_cursor": None})


@router.get("/clusters", responses=contract.CLUSTERS)
def all_clusters(request: Request, format: Format = "json") -> Response:  # noqa: A002 - the parameter's name
    """Return each cluster with its groups, members, findings and rebalances."""
    return _rows(cluster_rows(_reading(request)), "clusters", format)


@router.get("/liveness", responses=contract.LIVENESS)
def jobs_and_clusters(request: Request, format: Format = "json") -> Response:  # noqa: A002 - as above
    """Return which jobs live, and up to when each cluster is known, and why no further; CSV has the clusters."""
    reading = _reading(request)
    present = present_rows(reading)
    if format == "csv":
        return csv_answer(present, present[0] if present else (), "liveness")
    problem = reading.freshness.problem
    return json_answer({"jobs": job_rows(reading), "clusters": present, "problem": problem})


@router.get("/churn", responses=contract.CHURN)
def busiest(
    request: Request,
    cluster: Text = "",
    group_id: Text = "",
    since: Time = "",
    until: Time = "",
    format: Format = "json",  # noqa: A002 - as above
    limit: Limit = 40,
) -> Response:
    """Return the busiest groups' rebalances for each hour of the last day; ``limit`` counts groups, ``total`` rows.

    With ``since`` or ``until`` for each bin of that range: ``hour`` is its beginning.
    """
    reading = _reading(request)
    span = TimeRange.between(reading, since, until) if since or until else None
    of_what: dict[str, Any] = {"cluster": cluster or None, "group": group_id or None, "span": span}
    rows = plain_rows(churn(reading, **of_what, limit=min(limit, 1_000)))
    return _rows(rows, "churn", format, churn_rows(reading, **of_what))


@router.get("/fleet", responses=contract.FLEET)
def fleet_in_time(
    request: Request,
    cluster: Text = "",
    since: Time = "",
    until: Time = "",
    format: Format = "json",  # noqa: A002 - as above
) -> Response:
    """Return each cluster by bins of a range, the last day by default: rebalances, outages, unread and stalled queues.

    ``hour`` is the beginning of a bin; numbers are null where nothing was known of the cluster.
    """
    reading = _reading(request)
    return _rows(plain_rows(fleet(reading, TimeRange.between(reading, since, until), cluster or None)), "fleet", format)


@router.get("/search", responses=contract.FOUND)
def found(
    request: Request,
    q: Annotated[str, Query(max_length=LONGEST, description="a part of a name, of two characters or more")] = "",
    format: Format = "json",  # noqa: A002 - as above
    limit: Annotated[int, Query(ge=1, le=100, description="Hits of each kind at most")] = 25,
) -> Response:
    """Return groups, members, clients, hosts, topics, queues, rebalances and findings with a text in their names."""
    rows = [hit._asdict() for hit in search(_reading(request), q, limit)]
    return _rows(rows, "search", format)


@router.get("/delays", responses=contract.DELAYS)
def decision_delays(request: Request, format: Format = "json", limit: Limit = 5_000) -> Response:  # noqa: A002 - as above
    """Return for each hour of the last day and each cluster how long decisions took after their events."""
    rows = delays(_reading(request))
    return _rows(rows[:limit], "delays", format, len(rows))


@router.get("/timeline", responses=contract.TIMELINE)
def ownership(
    request: Request,
    cluster: Text,
    group_id: Text,
    since: Time = "",
    until: Time = "",
    origin: Literal["", "computed", "reported"] = "",
    format: Format = "json",  # noqa: A002 - as above
) -> Response:
    """Return who owned which queue of a group, and its rebalances; times in epoch ms."""
    bounds = {"since": since, "until": until}
    since_ms, until_ms = (time_parameter(name, text) if text else None for name, text in bounds.items())
    found = timeline(_reading(request), cluster, group_id, since_ms=since_ms, until_ms=until_ms, origin=origin)
    if format == "json":
        # Times stay numbers, because there are many and charts need them like this.
        return Response(_dumped(found), media_type="application/json")
    rows = [
        {"queue": found["queues"][queue], "member_id": found["members"][member], "valid_from": begins, "valid_to": ends}
        for queue, member, begins, ends in found["spans"]
    ]
    return csv_answer(rows, ("queue", "member_id", "valid_from", "valid_to"), "timeline")


def _dumped(value: object) -> bytes:
    import msgspec

    return plain_json(msgspec.json.encode(value).decode("utf-8"))


@router.get("/progress", responses=contract.PROGRESS)
def offsets_of_group(
    request: Request,
    cluster: Text,
    group_id: Text,
    format: Format = "json",  # noqa: A002 - as above
) -> Response:
    """Return how far a group has come in each queue; lag is to be trusted where ``lag_reliable`` is true."""
    reading = _reading(request)
    found = one_group(reading.tables, group_id, cluster)
    rows = offsets_of(reading, found, current_members(reading, cluster, group_id))
    return _rows(rows, "progress", format)


@router.get("/group-advice", responses=contract.GROUP_ADVICE)
def advice_to_group(
    request: Request,
    group_id: Text,
    cluster: Text = "",
    days: Annotated[int, Query(ge=1, le=MOST_DAYS, description="The last days are decided again")] = DAYS,
    format: Format = "json",  # noqa: A002 - as above
) -> Response:
    """Return what would have saved a group most in its last days, as the command `advise`; CSV has a row for each."""
    found = requested_advice(_reading(request), request.app.state.core, cluster or None, group_id, days).row
    if format == "csv":
        return _rows(found.get("advice", []), "group-advice", format)
    return json_answer(found)


@router.get("/lag", responses=contract.LAG)
def lag_in_time(
    request: Request,
    cluster: Text,
    group_id: Text = "",
    topic: Text = "",
    since: Time = "",
    until: Time = "",
    format: Format = "json",  # noqa: A002 - as above
) -> Response:
    """Return the lag of a group over a range, the last day by default, or of the groups with most of a topic's lag.

    ``at`` is the beginning of a step, at whose end the numbers were so. Steps in which the cluster was not known, see
    ``gaps``, have no row.
    """
    reading = _reading(request)
    span = TimeRange.between(reading, since, until)
    if not group_id and not topic:
        raise BadQuestionError("lag: give group_id, or topic, or both")
    groups = [group_id] if group_id else [row["group_id"] for row in topic_detail(reading, cluster, topic, span).groups]
    found = lag_history(reading, cluster, groups, span, topic or None)
    if format == "csv":
        return _rows(found.rows, "lag", format)
    gaps = [{"since": begin, "until": end} for begin, end in found.gaps]
    more = {"step_ms": found.step_ms, "gaps": gaps, "marks": found.marks}
    return json_answer({"rows": found.rows, "total": len(found.rows), "next_cursor": None} | more)


@router.get("/topic", responses=contract.TOPIC)
def one_topic(
    request: Request,
    cluster: Text,
    topic: Text,
    since: Time = "",
    until: Time = "",
    format: Format = "json",  # noqa: A002 - as above
) -> Response:
    """Return a topic with the groups that read it, its queues, each group's commits, and the findings that name it.

    ``since`` and ``until`` are the range over which ``end_rate`` is measured. CSV has the commits.
    """
    reading = _reading(request)
    found = topic_detail(reading, cluster, topic, TimeRange.between(reading, since, until))
    return _rows(found.commits, "topic", format) if format == "csv" else json_answer(found._asdict())


@router.get("/rebalances/{rebalance_id}", responses=contract.REBALANCE)
def one_rebalance(
    request: Request,
    rebalance_id: Annotated[str, Path(max_length=200)],
    format: Format = "json",  # noqa: A002 - as above
) -> Response:
    """Return one rebalance with its causes, moved queues, and members before and after; its id may be cut.

    CSV has one row: the rebalance itself.
    """
    reading = _reading(request)
    found = rebalance_detail(reading.tables, rebalance_id, near=reading.near)
    if format == "csv":
        return csv_answer([found["rebalance"]], LISTINGS["rebalances"].names, "rebalance")
    return json_answer(found)


def listed(
    request: Request,
    sort: Annotated[str, Query(max_length=100, description="an order of the listing; - before it descends")] = "",
    limit: Limit = DEFAULT_LIMIT,
    cursor: Annotated[str, Query(max_length=50_000, description="next_cursor of the piece before")] = "",
    format: Format = "json",  # noqa: A002 - as above
) -> Response:
    """Return rows of a listing."""
    found = _listing(request)
    parameters = {name: value for name, value in request.query_params.items() if name in found.parameters}
    reading = _reading(request)
    most = min(limit, reading.max_rows)
    rows = piece(reading, found, parameters, sort=sort, limit=most, cursor=cursor, is_whole=True)
    if format == "csv":
        following = following_address(request, rows.next_cursor)
        return csv_answer(rows.rows, found.names, found.name, total=rows.total, following=following)
    return json_answer(rows._asdict())


for _one in LISTINGS.values():
    router.add_api_route(
        f"/{_one.name}",
        listed,
        summary=f"Rows of {_one.name}",
        responses=contract.answered(contract.row_schema(contract.columns_of(_one))),
        openapi_extra=contract.listing_parameters(_one),
    )


@router.get("/{listing}", include_in_schema=False)
def no_listing(listing: str) -> Response:
    """Refuse an unknown listing."""
    raise BadQuestionError(f"{listing[:50]!r} is not one of {', '.join(LISTINGS)}")
