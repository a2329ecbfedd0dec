"""Metrics and spans of the monitor itself, received by OTLP on this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from streaming.machine.telemetry import is_wanted, sent
from streaming.setup.errors import SetupError
from tests.kit.otlp_receiver import OtlpReceiver, running_otlp_receiver
from tests.streaming.views.story import write_story

_MONITOR = [sys.executable, "-c", "from streaming.commands import main; main()"]
_SHOP = frozenset({("cluster", "shop")})


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[OtlpReceiver]:
    """A receiver that the usual variable names."""
    with running_otlp_receiver() as running:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", running.url)
        yield running


def families() -> list[Metric]:
    """Return a gauge and a counter, as Prometheus gets them."""
    gauge = GaugeMetricFamily("rebalance_monitor_groups", "Groups.", labels=["cluster"])
    gauge.add_metric(["shop"], 7)
    counter = CounterMetricFamily("rebalance_monitor_rebalances", "Rebalances.", labels=["cluster"])
    counter.add_metric(["shop"], 12, created=1.0)
    return [gauge, counter]


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, []),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, ["metrics", "traces"]),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, ["traces"]),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_METRICS_EXPORTER": "none"}, ["traces"]),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "true"}, []),
    ],
)
def test_the_usual_variables_say_what_is_sent(variables: dict[str, str], wanted: list[str]) -> None:
    assert [signal for signal in ("metrics", "traces") if is_wanted(signal, variables)] == wanted


def test_metrics_are_sent_under_their_names_at_the_latest_at_the_end(
    receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    with sent("job", families):
        assert receiver.metrics == {}
    assert receiver.metrics == {
        "rebalance_monitor_groups": {_SHOP: 7.0},
        "rebalance_monitor_rebalances": {_SHOP: 12.0},
    }
    assert receiver.kinds == {"rebalance_monitor_groups": "gauge", "rebalance_monitor_rebalances": "sum"}
    assert receiver.services == {"rebalance-monitor-job"}


def test_a_name_of_the_service_that_is_given_counts(receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "watcher")
    with sent("job", families):
        pass
    assert receiver.services == {"watcher"}


def test_without_a_receiver_nothing_of_the_sdk_is_loaded() -> None:
    script = (
        "import sys; from streaming.machine import telemetry\n"
        "with telemetry.sent('job', list): pass\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_missing_sdk_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.metric_exporter", None)
    with pytest.raises(SetupError, match=r"rebalance-monitor\[otel\]"), sent("job", families):
        pass


def test_another_protocol_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    with pytest.raises(SetupError, match="not by grpc"), sent("job", families):
        pass


@pytest.mark.parametrize("given", ["0", "often", "-1", "1.5"])
def test_an_interval_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", given)
    with pytest.raises(SetupError, match="OTEL_METRIC_EXPORT_INTERVAL is a number"), sent("job", families):
        pass


@contextmanager
def trickling_receiver() -> Iterator[str]:
    """Run a receiver that accepts everything, and never ends an answer; return its address."""

    def trickle(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            while True:
                connection.sendall(b" ")
                time.sleep(0.2)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=trickle, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def sending(url: str, seconds: float, **variables: str) -> tuple[float, list[str]]:
    """Send metrics and spans for a time; return how long it took to stop, and the lines of the log."""
    script = (
        "import time; from streaming.machine import logs, telemetry\n"
        "logs.configure('info', 'json')\n"
        "with telemetry.sent('job', list):\n"
        f"    telemetry.record_span('batch', 1, {{}}); time.sleep({seconds}); began = time.monotonic()\n"
        "print(time.monotonic() - began)"
    )
    env = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": url, **variables}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    return float(done.stdout), done.stderr.splitlines()


def test_a_stop_does_not_wait_for_a_receiver_that_never_ends_its_answer() -> None:
    with trickling_receiver() as url:
        took_s, lines = sending(url, 0)
    assert took_s < 8
    assert "does not answer" in lines[-1]


def test_a_receiver_that_is_away_is_logged_once() -> None:
    variables = {"OTEL_METRIC_EXPORT_INTERVAL": "100", "OTEL_EXPORTER_OTLP_TIMEOUT": "0.2"}
    took_s, lines = sending("http://127.0.0.1:1", 3, **variables)
    assert took_s < 5
    assert len([line for line in lines if "Failed to export metrics" in line]) == 1
    assert len([line for line in lines if "Failed to export spans" in line]) == 1
    assert len(lines) == 2


def test_the_pages_send_metrics_of_the_tables_and_a_span_for_each_request(
    receiver: OtlpReceiver, tmp_path: Path
) -> None:
    write_story(tmp_path / "tables")
    command = [*_MONITOR, "serve", "--port", "0", "--tables", str(tmp_path / "tables")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        address = next(line for line in server.stderr if line.startswith("pages: ")).split()[1]
        with urllib.request.urlopen(f"{address}api/v1/groups?cluster=c1", timeout=60) as answer:
            assert answer.status == 200
        server.terminate()
        server.communicate(timeout=60)
    assert server.returncode == 0
    assert receiver.metrics["rebalance_monitor_groups"]
    assert receiver.services == {"rebalance-monitor-serve"}
    (span,) = (span for span in receiver.spans if span.name == "GET /api/v1/groups")
    assert span.end_time_unix_nano > span.start_time_unix_nano
    attributes = {each.key: each.value.int_value or each.value.string_value for each in span.attributes}
    assert (attributes["http.response.status_code"], attributes["url.query"]) == (200, "cluster=c1")


@pytest.mark.spark
def test_the_job_sends_its_metrics_and_a_span_for_each_batch(receiver: OtlpReceiver, tmp_path: Path) -> None:
    for arguments in (
        ("simulate", "--out", tmp_path, "--seed", "1", "--duration", "10s"),
        (
            *("run", "--once", "--events", tmp_path / "events"),
            *("--tables", tmp_path / "tables", "--checkpoint", tmp_path / "checkpoint"),
        ),
    ):
        done = subprocess.run([*_MONITOR, *map(str, arguments)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    (batches,) = receiver.metrics["rebalance_monitor_job_batches"].values()
    spans = [span for span in receiver.spans if span.name == "batch"]
    assert batches == len(spans) > 0
    assert any(each.key.startswith("spark.") for each in spans[0].attributes)
