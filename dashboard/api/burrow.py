"""Dashboard: the read-only part of Burrow's HTTP API that applies: clusters, consumers, their topics and status."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote

from fastapi import APIRouter, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope

from dashboard.api.answers import PlainJson
from dashboard.api.contract import ERRORS
from dashboard.reading.group_detail import current_members, offsets_of
from dashboard.reading.known_time import UnknownError
from dashboard.reading.listing_query import piece, plain_rows
from dashboard.reading.listings import GROUPS
from dashboard.reading.overview import clusters
from dashboard.reading.questions import Reading
from streaming.tables.errors import NotFoundError
from streaming.views.progress import groups_of_topic


class EncodedPathRoute(APIRoute):
    """A route that is matched before its path is decoded, so that ``%2F`` is part of a name and does not end it."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match the path as it was sent, and decode the names in it."""
        sent = scope.get("raw_path") or quote(scope["path"]).encode("ascii")
        match, found = super().matches({**scope, "path": sent.decode("latin-1").partition("?")[0]})
        if match is not Match.NONE:
            found["path_params"] = {name: unquote(value) for name, value in found["path_params"].items()}
        return match, found


router = APIRouter(prefix="/v3/kafka", tags=["burrow"], route_class=EncodedPathRoute, responses=ERRORS)

# Burrow's words for a consumer's status, which it derives from lag and this API from findings. There is no word for a
# cluster that is unknown now, and NOTFOUND would be wrong, so the request fails.
STATUS = {"critical": "ERR", "warning": "WARN", "info": "OK", "ok": "OK", "unknown": "NOTFOUND"}


def _answer(request: Request, message: str, **more: Any) -> Response:
    requested = {"url": request.url.path, "host": request.headers.get("host", "")}
    return PlainJson({"error": False, "message": message, **more, "request": requested})


def _reading(request: Request) -> Reading:
    found: Reading = request.app.state.reading
    return found


def _cluster(reading: Reading, cluster: str) -> None:
    if cluster not in clusters(reading)["cluster"].to_pylist():
        raise NotFoundError(f"there is no cluster {cluster}")


def _require_known(reading: Reading, cluster: str) -> None:
    """Refuse to answer about the present of a cluster that is unknown now.

    Raises:
        UnknownError: The cluster is unknown now.
    """
    known = reading.freshness.of(cluster)
    if known.state == "unknown":
        raise UnknownError(f"cluster {cluster} is {known.text}")


def _topics(reading: Reading, cluster: str) -> dict[str, int]:
    rows = reading.tables.rows("topics", where={"cluster": cluster}, keep=lambda found: found["valid_to"].is_null())
    return {row["topic"]: row["queue_count"] for row in rows}


@router.get("")
def all_clusters(request: Request) -> Response:
    """Return the names of the clusters."""
    names = [row["cluster"] for row in plain_rows(clusters(_reading(request)))]
    return _answer(request, "cluster list returned", clusters=names)


@router.get("/{cluster}/consumer")
def consumers(request: Request, cluster: str) -> Response:
    """Return the names of a cluster's groups."""
    reading = _reading(request)
    _cluster(reading, cluster)
    names = reading.columns("groups", ["group_id"], {"cluster": cluster})["group_id"].to_pylist()
    return _answer(request, "consumer list returned", consumers=sorted(names))


@router.get("/{cluster}/topic")
def topics(request: Request, cluster: str) -> Response:
    """Return the names of a cluster's topics."""
    reading = _reading(request)
    _cluster(reading, cluster)
    return _answer(request, "topic list returned", topics=sorted(_topics(reading, cluster)))


@router.get("/{cluster}/consumer/{group:path}/status")
def status(request: Request, cluster: str, group: str) -> Response:
    """Return a group's status: its health, its total lag, and the queue that lags most."""
    return _status(request, cluster, group, is_full=False)


@router.get("/{cluster}/consumer/{group:path}/lag")
def full_status(request: Request, cluster: str, group: str) -> Response:
    """Return a group's status with all its queues, their owners, last commits and lags."""
    return _status(request, cluster, group, is_full=True)


def _status(request: Request, cluster: str, group: str, *, is_full: bool) -> Response:
    reading = _reading(request)
    found = piece(reading, GROUPS, {"cluster": cluster, "group_id": group}, limit=1).rows
    if not found:
        raise NotFoundError("cluster or consumer not found")
    _require_known(reading, cluster)
    rows = _progress(reading, found[0])
    partitions = [_partition(row) for row in rows]
    read = [row for row in rows if row["lag"] is not None and not row["is_left_over"]]
    lags = {(row["topic"], row["broker"], row["queue_id"]): row["lag"] for row in read}
    behind = [_partition(row) for row in read]
    body = {
        "cluster": cluster,
        "group": group,
        "status": STATUS[found[0]["health"]],
        # The share of the known part; the size of the part that does not answer is unknown.
        "complete": 1.0 if reading.freshness.of(cluster).state != "partly_known" else 0.0,
        "partitions": partitions if is_full else [],
        "partition_count": len({(row["topic"], row["broker"], row["queue_id"]) for row in rows}),
        "members": found[0]["members"],
        "maxlag": max(behind, key=lambda part: part["current_lag"], default=None),
        "totallag": sum(lags.values()),
    }
    return _answer(request, "consumer status returned", status=body)


def _progress(reading: Reading, group: dict[str, Any]) -> list[dict[str, Any]]:
    """Return each queue of a group, with each of its owners and its offsets as last written."""
    return offsets_of(reading, group, current_members(reading, group["cluster"], group["group_id"]))


def _partition(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "topic": row["topic"],
        "partition": row["queue_id"],
        "owner": row["host"] or "",
        "client_id": row["client_id"] or row["member_id"] or "",
        "status": "OK",
        "start": None,
        "end": _last_commit(row),
        "current_lag": row["lag"],
    }


def _last_commit(row: dict[str, Any]) -> dict[str, Any] | None:
    if row["committed_offset"] is None:
        return None
    return {"offset": row["committed_offset"], "timestamp": row["committed_at"], "lag": row["lag"]}


@router.get("/{cluster}/consumer/{group:path}")
def consumer(request: Request, cluster: str, group: str) -> Response:
    """Return a group's topics, each with its queues and their owners."""
    reading = _reading(request)
    if not (rows := piece(reading, GROUPS, {"cluster": cluster, "group_id": group}, limit=1).rows):
        raise NotFoundError("cluster or consumer not found")
    _require_known(reading, cluster)
    found: dict[str, list[dict[str, Any]]] = {}
    for part in map(_partition, _progress(reading, rows[0])):
        offsets = [] if part["end"] is None else [part["end"]]
        shown = {name: part[name] for name in ("partition", "owner", "client_id")}
        found.setdefault(part["topic"], []).append(shown | {"offsets": offsets, "current-lag": part["current_lag"]})
    return _answer(request, "consumer detail returned", topics=found)


@router.get("/{cluster}/topic/{topic:path}/consumers")
def topic_consumers(request: Request, cluster: str, topic: str) -> Response:
    """Return the groups that have owners of a topic's queues now, or have committed there lately."""
    reading = _reading(request)
    _cluster(reading, cluster)
    _require_known(reading, cluster)
    return _answer(request, "consumers of topic returned", consumers=groups_of_topic(reading.tables, cluster, topic))


@router.get("/{cluster}")
def one_cluster(request: Request, cluster: str) -> Response:
    """Return a cluster."""
    _cluster(_reading(request), cluster)
    return _answer(request, "cluster module detail returned", module={"class-name": "rebalance-monitor", "servers": []})
