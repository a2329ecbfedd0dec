"""Metrics of the running job, as Prometheus reads them."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from streaming.pipeline.job_metrics import serve_metrics
from streaming.setup.errors import SetupError
from streaming.terminal.live_view import ClusterStatus, LiveStatus
from tests.dashboard.hostile import HOSTILE


def fetched(port: int, path: str, **headers: str) -> tuple[int, str]:
    accepted = {"Accept": "application/openmetrics-text; version=1.0.0"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={**accepted, **headers})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.fixture
def status() -> LiveStatus:
    return LiveStatus(state="running", started_at_ms=1_000)


@pytest.fixture
def port(status: LiveStatus) -> Iterator[int]:
    with serve_metrics(status, "127.0.0.1", 0) as given:
        yield given


def values(port: int) -> dict[tuple[str, ...], float]:
    families = text_string_to_metric_families(fetched(port, "/metrics")[1])
    return {
        (sample.name.removeprefix("rebalance_monitor_job_"), *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }


def test_each_scrape_gives_the_numbers_of_its_time(status: LiveStatus, port: int) -> None:
    assert values(port)["events_total",] == 0
    status.events, status.batches, status.batches_ms, status.batch_ms = 500, 2, 1_500, 700
    status.parts_ms = {"addBatch": 1_200, "writing": 300}
    status.rejected, status.rebalance_count, status.delay_ms, status.findings = 3, 4, 2_500, 5
    status.clusters = (ClusterStatus("c", "kafka", 6, 7, 8_000), ClusterStatus("d", "metaq", 1, 0))
    found = values(port)
    assert found["events_total",] == 500
    assert (found["batches_total",], found["batch_seconds_total",], found["last_batch_seconds",]) == (2, 1.5, 0.7)
    assert (found["batch_part_seconds_total", "addBatch"], found["batch_part_seconds_total", "writing"]) == (1.2, 0.3)
    assert (found["rejected_events_total",], found["rebalances_total",]) == (3, 4)
    assert (found["source_delay_seconds",], found["open_findings",]) == (2.5, 5)
    assert (found["cluster_groups", "c", "kafka"], found["cluster_members", "c", "kafka"]) == (6, 7)
    assert found["cluster_last_change_timestamp_seconds", "c", "kafka"] == 8
    assert ("cluster_last_change_timestamp_seconds", "d", "metaq") not in found


def test_a_metric_without_a_measurement_has_no_sample(port: int) -> None:
    assert not {("last_batch_seconds",), ("source_delay_seconds",), ("open_findings",)} & set(values(port))


@pytest.mark.parametrize(
    ("state", "ready"),
    [
        ("starting Spark", False),
        ("checking clusters", False),
        ("running", True),
        ("catching up", True),
        ("stopping", False),
    ],
)
def test_it_is_ready_while_it_reads_its_sources(status: LiveStatus, port: int, state: str, ready: bool) -> None:
    status.state = state
    assert fetched(port, "/healthz")[0] == 200
    assert fetched(port, "/readyz")[0] == (200 if ready else 503)
    assert values(port)["ready",] == ready
    assert fetched(port, "/../etc/passwd")[0] == 404


def test_hostile_names_of_clusters_are_short_printable_labels(status: LiveStatus, port: int) -> None:
    status.clusters = tuple(ClusterStatus(name, "kafka", 1, 1, 1_000) for name in HOSTILE)
    text = fetched(port, "/metrics")[1]
    assert all(line.isprintable() for line in text.split("\n"))
    assert max(map(len, text.split("\n"))) < 400
    assert ("cluster_groups", HOSTILE[0], "kafka") in values(port)


def test_a_port_in_use_is_named(port: int) -> None:
    with pytest.raises(SetupError, match=f"127.0.0.1:{port}"), serve_metrics(LiveStatus(), "127.0.0.1", port):
        pass


def test_at_an_address_for_others_metrics_need_a_token_and_health_does_not(status: LiveStatus) -> None:
    with pytest.raises(SetupError, match=r"metrics\.host: 0\.0\.0\.0 .* no token"), serve_metrics(status, "0.0.0.0", 0):
        pass
    with serve_metrics(status, "0.0.0.0", 0, token="t" * 16) as port:
        assert fetched(port, "/metrics")[0] == fetched(port, "/metrics", Authorization="Bearer wrong")[0] == 401
        assert fetched(port, "/metrics", Authorization=f"Bearer {'t' * 16}")[0] == 200
        assert fetched(port, "/healthz")[0] == fetched(port, "/readyz")[0] == 200


def test_it_answers_by_its_own_names_only(status: LiveStatus, port: int) -> None:
    for path in ("/metrics", "/healthz"):
        assert fetched(port, path, Host="evil.example")[0] == 421
    with serve_metrics(status, "127.0.0.1", 0, names=["monitor.example"]) as other:
        assert fetched(other, "/metrics", Host="Monitor.example:9188")[0] == 200
