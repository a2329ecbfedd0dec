"""Dashboard: `/metrics`, `/healthz` and `/readyz`."""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder

from dashboard.metrics.families import PREFIX, TABLES_READ, families
from dashboard.metrics.group_labels import GroupLabels
from dashboard.metrics.known_sources import of_knowledge, of_platforms
from dashboard.reading.questions import Reading
from dashboard.reading.snapshots import LIVENESS
from dashboard.reading.widespread_findings import widespread
from streaming.alerts.follower import AlertsStatus
from streaming.settings.model import Metrics
from streaming.stores.failure import is_unreadable

router = APIRouter()


class _Families:
    """A registry in the form that the encoders of prometheus_client read."""

    def __init__(self, found: Iterable[Metric]) -> None:
        self._found = found

    def collect(self) -> Iterable[Metric]:
        return self._found


@router.get("/metrics", include_in_schema=False)
def metrics(request: Request) -> Response:
    """Return the metrics of the tables: OpenMetrics, or the older text format for clients that do not accept it.

    While the tables cannot be read, only the metrics of whether the present is known are returned.
    """
    reading: Reading = request.app.state.reading
    settings: Metrics = request.app.state.metrics
    encode, content_type = choose_encoder(request.headers.get("accept", ""))

    alerts: AlertsStatus = request.app.state.alerts
    is_running = alerts.is_running

    def compute() -> bytes:
        found = families(
            reading.tables,
            settings,
            request.app.state.sums,
            widespread=widespread(reading),
            widespread_kinds=reading.widespread.kinds,
            freshness=reading.freshness,
            platforms=reading.tables.platforms,
        )
        encoded: bytes = encode(_Families([*found, *of_alerts(is_running)]))
        return encoded

    try:
        key = ("metrics", content_type, is_running, widespread(reading))
        content = reading.kept(key, (*TABLES_READ, LIVENESS), compute)
    except Exception as error:
        if not is_unreadable(error):
            raise
        # The tables cannot be read, but whether the present is known does not depend on them.
        names = list(reading.freshness.clusters)
        present = of_knowledge(reading.freshness, names, GroupLabels((), names, settings), PREFIX)
        pods = of_platforms(reading.tables.platforms, PREFIX)
        content = encode(_Families([*present, *pods, *of_alerts(is_running)]))
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
