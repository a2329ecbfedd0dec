"""Dashboard: `/metrics`, `/healthz` and `/readyz`."""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from starlette.datastructures import State

from dashboard.metrics.families import PREFIX, TABLES_READ, families
from dashboard.metrics.group_labels import GroupLabels
from dashboard.metrics.known_sources import of_knowledge, of_platforms
from dashboard.reading.budget_use import budget_uses
from dashboard.reading.questions import Reading
from dashboard.reading.snapshots import LIVENESS
from dashboard.reading.widespread_findings import widespread
from streaming.machine.clock import now_ms
from streaming.stores.failure import is_unreadable

router = APIRouter()


class _Families:
    """A registry in the form that the encoders of prometheus_client read."""

    def __init__(self, found: Iterable[Metric]) -> None:
        self._found = found

    def collect(self) -> Iterable[Metric]:
        return self._found


def families_of_tables(state: State) -> list[Metric]:
    """Return the metrics of an application's tables."""
    reading: Reading = state.reading
    uses = budget_uses(reading.tables, reading.freshness, now_ms()) if state.budget_s else ()
    found = families(
        reading.tables,
        state.metrics,
        state.sums,
        widespread=widespread(reading),
        widespread_kinds=reading.widespread.kinds,
        freshness=reading.freshness,
        platforms=reading.tables.platforms,
        uses=uses,
        budget_s=state.budget_s,
    )
    return [*found, *of_alerts(state.alerts.is_running)]


def families_of_knowledge(state: State) -> list[Metric]:
    """Return the metrics of whether the present is known, which does not depend on the tables."""
    reading: Reading = state.reading
    names = list(reading.freshness.clusters)
    present = of_knowledge(reading.freshness, names, GroupLabels((), names, state.metrics), PREFIX)
    return [*present, *of_platforms(reading.tables.platforms, PREFIX), *of_alerts(state.alerts.is_running)]


def all_families(state: State) -> list[Metric]:
    """Return the metrics of the tables, or what does not depend on them while they cannot be read."""
    try:
        return families_of_tables(state)
    except Exception as error:
        if not is_unreadable(error):
            raise
        return families_of_knowledge(state)


@router.get("/metrics", include_in_schema=False)
def metrics(request: Request) -> Response:
    """Return the metrics of the tables: OpenMetrics, or the older text format for clients that do not accept it.

    While the tables cannot be read, only the metrics of whether the present is known are returned.
    """
    reading: Reading = request.app.state.reading
    encode, content_type = choose_encoder(request.headers.get("accept", ""))
    state = request.app.state

    def compute() -> bytes:
        encoded: bytes = encode(_Families(families_of_tables(state)))
        return encoded

    try:
        # What was used leaves the day while no table changes.
        minute = now_ms() // 60_000 if state.budget_s else 0
        key = ("metrics", content_type, state.alerts.is_running, widespread(reading), minute)
        content = reading.kept(key, (*TABLES_READ, LIVENESS), compute)
    except Exception as error:
        if not is_unreadable(error):
            raise
        content = encode(_Families(families_of_knowledge(state)))
    return Response(content, media_type=content_type)


def of_alerts(is_running: bool | None) -> Iterable[Metric]:
    """Yield whether alerts run; nothing if no channel is configured."""
    if is_running is not None:
        text = "1 while the alerts of this server follow the findings; none without a channel."
        yield GaugeMetricFamily(f"{PREFIX}alerts_running", text, value=float(is_running))


@router.get("/healthz", include_in_schema=False)
def healthz() -> Response:
    """Return 200: the server answers."""
    return PlainTextResponse("ok\n")


@router.get("/readyz", include_in_schema=False)
def readyz(request: Request) -> Response:
    """Return 200 when there are tables, and all of them can be read, else 503."""
    reading: Reading = request.app.state.reading
    if not reading.tables.has_tables:
        return PlainTextResponse("no tables yet\n", 503)
    if unreadable := reading.tables.unreadable:
        return PlainTextResponse(f"tables cannot be read: {', '.join(unreadable)}\n", 503)
    return PlainTextResponse("ok\n")
