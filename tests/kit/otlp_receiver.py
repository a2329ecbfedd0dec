"""A receiver of OTLP on this machine: it keeps what it gets, decoded by OpenTelemetry's own messages."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class OtlpReceiver:
    """What was received: metrics by name with the value of each set of labels, and spans.

    Attributes:
        services: The names of the services that sent something.
    """

    def __init__(self) -> None:
        self.metrics: dict[str, dict[frozenset[tuple[str, str]], float]] = {}
        self.kinds: dict[str, str] = {}
        self.spans: list[Any] = []
        self.services: set[str] = set()
        self.url = ""

    def take(self, path: str, body: bytes) -> None:
        """Decode a request."""
        if path == "/v1/metrics":
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                self._note(resource.resource)
                for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                    kind = metric.WhichOneof("data")
                    self.kinds[metric.name] = kind
                    points = getattr(metric, kind).data_points
                    self.metrics[metric.name] = {_labels(point): point.as_double or point.as_int for point in points}
        else:
            assert path == "/v1/traces"
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                self._note(resource.resource)
                self.spans += [span for scope in resource.scope_spans for span in scope.spans]

    def _note(self, resource: Any) -> None:
        self.services |= {value for key, value in _labels(resource) if key == "service.name"}


def _labels(holder: Any) -> frozenset[tuple[str, str]]:
    return frozenset((each.key, each.value.string_value) for each in holder.attributes)


@contextmanager
def running_otlp_receiver() -> Iterator[OtlpReceiver]:
    """Run one until the block is left."""
    receiver = OtlpReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.take(self.path, gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            """Log no request."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
