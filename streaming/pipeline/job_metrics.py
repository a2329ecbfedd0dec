"""Shell: metrics of the running job for Prometheus, over HTTP: its input, its decisions and their duration."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from streaming.machine.http_access import AllowedHosts, bearer, is_token, require_token
from streaming.setup.errors import SetupError
from streaming.terminal.escape import printable
from streaming.terminal.live_view import LiveStatus

PREFIX = "rebalance_monitor_job_"
# Longer names of clusters, which users choose, are cut.
LONGEST = 120
_NOT_READY = ("starting", "checking", "stopping", "stopped")


class JobCollector(Collector):
    """Provides the status of a job as metrics, at the time of the scrape."""

    def __init__(self, status: LiveStatus) -> None:
        self._status = status

    def collect(self) -> Iterable[Metric]:
        """Return the families. Counters begin at 0 with the process; those of the tables (`serve`) do not."""
        status = self._status
        for name, text, value in (
            ("batches", "Batches that read input.", status.batches),
            ("batch_seconds", "Time that those batches took.", status.batches_ms / 1_000),
            ("events", "Events read.", status.events),
            ("rejected_events", "Inputs that were not applied as sent.", status.rejected),
            ("rebalances", "Rebalances decided.", status.rebalance_count),
        ):
            yield CounterMetricFamily(PREFIX + name, text, value=value)
        for name, text, level in (
            ("last_batch_seconds", "Time that the last batch took.", _seconds(status.batch_ms)),
            ("source_delay_seconds", "From the newest rebalance to its decision.", _seconds(status.delay_ms)),
            ("open_findings", "Open findings.", status.findings),
            ("start_timestamp_seconds", "When the job started.", status.started_at_ms / 1_000),
        ):
            if level is not None:
                yield GaugeMetricFamily(PREFIX + name, text, value=level)
        parts = CounterMetricFamily(
            PREFIX + "batch_part_seconds", "Time that parts of the batches took, as Spark names them.", labels=["part"]
        )
        for part, took_ms in status.parts_ms.items():
            parts.add_metric([part], took_ms / 1_000)
        yield parts
        yield GaugeMetricFamily(PREFIX + "ready", "1 while the job reads its sources.", value=float(is_ready(status)))
        yield from self._of_clusters()

    def _of_clusters(self) -> Iterable[Metric]:
        groups = GaugeMetricFamily(PREFIX + "cluster_groups", "Groups of a cluster.", labels=["cluster", "system"])
        members = GaugeMetricFamily(PREFIX + "cluster_members", "Members of a cluster.", labels=["cluster", "system"])
        changed = GaugeMetricFamily(
            PREFIX + "cluster_last_change_timestamp_seconds",
            "Event time of the last change of a cluster.",
            labels=["cluster", "system"],
        )
        shown: set[str] = set()
        for cluster in self._status.clusters:
            name = printable(cluster.name)[:LONGEST]
            if name in shown:
                continue
            shown.add(name)
            groups.add_metric([name, cluster.system], cluster.groups)
            members.add_metric([name, cluster.system], cluster.members)
            if cluster.changed_ms is not None:
                changed.add_metric([name, cluster.system], cluster.changed_ms / 1_000)
        yield from (groups, members, changed)


def is_ready(status: LiveStatus) -> bool:
    """Return whether the job has started and is not stopping."""
    return not status.state.startswith(_NOT_READY)


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1_000


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    timeout = 10

    def log_message(self, *args: Any) -> None:
        """Log no request."""


@contextmanager
def serve_metrics(
    status: LiveStatus, host: str, port: int, *, token: str = "", names: Iterable[str] = ()
) -> Iterator[int]:
    """Serve `/metrics`, `/healthz` and `/readyz` of a job while the context is open; yield the port.

    Args:
        token: The token required for `/metrics`; empty if none is required, because only this machine reaches it.
        names: Accepted host names, in addition to its address.

    Raises:
        SetupError: The address cannot be used, or is reachable from elsewhere without a token.
    """
    require_token(host, token, "metrics.host")
    hosts = AllowedHosts(host, names)
    registry = CollectorRegistry()
    registry.register(JobCollector(status))
    exposition = make_wsgi_app(registry)

    def app(environ: Mapping[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ.get("PATH_INFO")
        headers = [("Content-Type", "text/plain; charset=utf-8")]
        if not hosts.allows(environ.get("HTTP_HOST", "")):
            code = "421 Misdirected Request"
        elif path == "/metrics":
            if not token or is_token(token, bearer(environ.get("HTTP_AUTHORIZATION", "")) or ""):
                found: Iterable[bytes] = exposition(environ, start_response)
                return found
            code = "401 Unauthorized"
            headers.append(("WWW-Authenticate", "Bearer"))
        else:
            ready = path == "/healthz" or (path == "/readyz" and is_ready(status))
            code = "200 OK" if ready else "503 Service Unavailable" if path == "/readyz" else "404 Not Found"
        start_response(code, headers)
        return [f"{code}\n".encode()]

    try:
        server = make_server(host, port, app, _Server, _Quiet)
    except OSError as error:
        raise SetupError(
            f"metrics cannot be served at {host}:{port}: {error.strerror or error}", "name another port; 0 = none"
        ) from error
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
