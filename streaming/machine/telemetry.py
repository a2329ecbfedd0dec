"""Shell: metrics and spans of this process, sent to an OpenTelemetry receiver where the usual variables name one.

Metrics are those that Prometheus gets, under the same names. Nothing is loaded or sent unless a receiver is named.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from streaming.machine.logs import logger
from streaming.setup.errors import SetupError
from streaming.setup.packages import command_for

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricExporter, MetricsData
    from opentelemetry.sdk.resources import Resource
    from prometheus_client.core import Metric

TRACER = "rebalance-monitor"
_DEFAULT_INTERVAL_MS = 60_000
# What was not received by then is dropped: a stop does not wait longer for a receiver that is away, hangs or trickles.
_STOP_S = 5.0
# A receiver that stays away is logged once in this time, for each signal.
_LOG_AGAIN_S = 3_600.0
_EXPORTERS = "opentelemetry.exporter.otlp.proto.http"
_log = logger("telemetry")


def is_wanted(signal: str, environment: Mapping[str, str]) -> bool:
    """Return whether a receiver of a signal is named: metrics or traces.

    Example:
        >>> is_wanted("metrics", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}), is_wanted("traces", {})
        (True, False)
    """
    name = signal.upper()
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    if environment.get(f"OTEL_{name}_EXPORTER", "otlp").lower() == "none":
        return False
    return any(environment.get(f"OTEL_EXPORTER_OTLP_{part}ENDPOINT") for part in ("", f"{name}_"))


@contextmanager
def sent(part: str, families: Callable[[], Iterable[Metric]]) -> Iterator[None]:
    """Send metrics and spans while the context is open, if a receiver is named.

    Args:
        part: What of the monitor this process is, e.g. job: ``service.name`` is rebalance-monitor-job.
        families: Returns the metrics; called once for each interval, from a thread of its own.

    Raises:
        SetupError: The packages of the extra [otel] are missing, another protocol than HTTP is asked for, or the
            interval is no number of milliseconds.
    """
    environment = os.environ
    signals = [signal for signal in ("metrics", "traces") if is_wanted(signal, environment)]
    if not signals:
        yield
        return
    for signal in signals:
        given = environment.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
        given = environment.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", given)
        if given != "http/protobuf":
            raise SetupError(f"OTLP is sent by http/protobuf, not by {given}", "unset OTEL_EXPORTER_OTLP_PROTOCOL")
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.resources import Resource
    except ModuleNotFoundError as error:
        missing = "OTEL_EXPORTER_OTLP_ENDPOINT is set, and OpenTelemetry's SDK is not installed"
        raise SetupError(missing, f"unset it, or: {command_for('otel')}") from error
    # The variables OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES have precedence.
    own = {"service.name": f"{TRACER}-{part}", "service.version": version("rebalance-monitor")}
    resource = Resource(own).merge(Resource.create())
    if not environment.get("OTEL_SERVICE_NAME"):
        resource = resource.merge(Resource({"service.name": own["service.name"]}))
    stops: list[Callable[[], None]] = []
    for signal in signals:
        module = "metric_exporter" if signal == "metrics" else "trace_exporter"
        logging.getLogger(f"{_EXPORTERS}.{module}").addFilter(_Seldom())
    if "metrics" in signals:
        sender = _MetricSender(OTLPMetricExporter(), resource, families, _interval_s(environment))
        sender.start()
        stops.append(sender.stop)
    if "traces" in signals:
        stops.append(_start_tracing(resource))
    try:
        yield
    finally:
        _stop_all(stops)


def _interval_s(environment: Mapping[str, str]) -> float:
    """Return how often metrics are sent."""
    given = environment.get("OTEL_METRIC_EXPORT_INTERVAL") or str(_DEFAULT_INTERVAL_MS)
    if not (given.isascii() and given.isdigit() and int(given)):
        raise SetupError(f"OTEL_METRIC_EXPORT_INTERVAL is a number of milliseconds above 0, not {given!r}", "unset it")
    return int(given) / 1_000


def _stop_all(stops: Sequence[Callable[[], None]]) -> None:
    """Let all send what is left, at once, and wait for them no longer than a limit."""
    threads = [threading.Thread(target=stop, name="telemetry-stop", daemon=True) for stop in stops]
    for thread in threads:
        thread.start()
    end = time.monotonic() + _STOP_S
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    if any(thread.is_alive() for thread in threads):
        _log.warning("the receiver of OpenTelemetry does not answer; the last metrics or spans are dropped")


class _Seldom(logging.Filter):
    """Drops what an exporter logs for an hour after the same message, whatever its figures."""

    def __init__(self) -> None:
        super().__init__()
        self._next: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now, text = time.monotonic(), str(record.msg)
        if now < self._next.get(text, now):
            return False
        self._next[text] = now + _LOG_AGAIN_S
        return True


def record_span(name: str, took_ms: int, attributes: Mapping[str, Any]) -> None:
    """Record what has just ended as a span; nothing happens where none are sent."""
    from opentelemetry import trace

    ended_ns = time.time_ns()
    started_ns = ended_ns - took_ms * 1_000_000
    trace.get_tracer(TRACER).start_span(name, start_time=started_ns, attributes=attributes).end(ended_ns)


def _start_tracing(resource: Resource) -> Callable[[], None]:
    """Send the spans of this process from now on; return what ends that."""
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    # Libraries, such as that of the tools for agents, record theirs there, too.
    trace.set_tracer_provider(provider)
    return provider.shutdown


class _MetricSender:
    """Sends metrics once for each interval, and a last time when it is stopped."""

    def __init__(
        self, exporter: MetricExporter, resource: Resource, families: Callable[[], Iterable[Metric]], every_s: float
    ) -> None:
        self._exporter, self._resource, self._families, self._every_s = exporter, resource, families, every_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        self._exporter.shutdown()

    def _run(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._stopped.wait(self._every_s)
            try:
                # A receiver that is away is reported by the exporter, and the next interval has all counters again.
                self._exporter.export(metrics_data(self._families(), self._resource, time.time_ns()))
            except Exception as error:  # noqa: BLE001 - what the monitor does never depends on who watches it
                _log.warning("metrics were not sent", reason=str(error))


def metrics_data(families: Iterable[Metric], resource: Resource, now_ns: int) -> MetricsData:
    """Return families of Prometheus as OpenTelemetry's: gauges, and counters as sums since an unknown time."""
    from opentelemetry.sdk.metrics import export
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    metrics = []
    for family in families:
        is_counter = family.type == "counter"
        points = [
            # Counters of the tables go on from those of earlier processes: 0 says that their begin is not known.
            export.NumberDataPoint(dict(sample.labels), 0, now_ns, sample.value)
            for sample in family.samples
            if not is_counter or sample.name.endswith("_total")
        ]
        if not points:
            continue
        data: export.Sum | export.Gauge = (
            export.Sum(points, export.AggregationTemporality.CUMULATIVE, is_monotonic=True)
            if is_counter
            else export.Gauge(points)
        )
        metrics.append(export.Metric(family.name, family.documentation, family.unit, data))
    scope = export.ScopeMetrics(InstrumentationScope(TRACER), metrics, "")
    return export.MetricsData([export.ResourceMetrics(resource, [scope], "")])
