"""A Kafka cluster as the settings name it, and as the job sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from streaming.collectors.kafka import factory, group_source
from streaming.collectors.kafka.collector import KafkaCollector
from streaming.collectors.kafka.factory import KafkaCluster, options_of
from streaming.collectors.kafka.options import KafkaOptions
from streaming.collectors.kafka.permissions import Missing
from streaming.settings.model import load
from streaming.tables.liveness import SourceStatus

EXPIRED = (
    "[2026-11-22 19:28:34,885] INFO [GroupCoordinator 0]: Member {} in group g has failed, removing it from the group\n"
)
GIVEN = {"kafka.bootstrap_servers": "127.0.0.1:1", "kafka.cluster": "c", "kafka.poll_interval_ms": 100}


def test_the_settings_become_the_options_of_the_collector() -> None:
    chosen = {"kafka.options.ssl.ca.location": "/ca", "kafka.exclude_groups": ("x.*",), "kafka.ends_interval_ms": 7}
    settings = load(None, GIVEN | chosen)
    assert options_of(settings.kafka) == KafkaOptions(
        "127.0.0.1:1",
        "c",
        {"ssl.ca.location": "/ca"},
        include_groups=(".*",),
        exclude_groups=("x.*",),
        ends_interval_ms=7,
        unread_groups=20,
    )


@pytest.fixture
def rights(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = Missing("Describe", "topic", "*", "racks stay unknown", needed=False)
    monkeypatch.setattr(group_source, "check_rights", lambda _: [missing])
    monkeypatch.setattr(group_source, "offsets_partitions", lambda _: 5)


@pytest.fixture
def validated(tmp_path: Path, rights: None) -> KafkaCluster:
    with capture_logs() as logged:
        cluster = KafkaCluster.validated(load(None, GIVEN).kafka, tmp_path / "collected", dict)
    assert [line["log_level"] for line in logged] == ["warning", "info"]
    assert isinstance(cluster, KafkaCluster)
    return cluster


def test_the_source_that_was_taken_is_kept_with_its_cluster(validated: KafkaCluster) -> None:
    assert validated.group_source == ("c", "records: the settings say so")


def test_spark_reads_every_partition_that_was_found(validated: KafkaCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def source(_spark: object, options: KafkaOptions, **how: Any) -> object:
        return options.bootstrap_servers, how

    monkeypatch.setattr(factory, "offsets_source", source)
    how = {"max_offsets_per_batch": 9, "is_tolerant": True}
    assert validated.source(None, **how) == ("127.0.0.1:1", {"partitions": 5, **how})  # type: ignore[arg-type]


def test_a_query_that_a_broker_ended_may_start_again_and_any_other_not(validated: KafkaCluster) -> None:
    away = "org.apache.kafka.common.errors.DisconnectException"
    assert str(validated.connection_error(RuntimeError(away))).strip() == away
    assert validated.connection_error(RuntimeError("java.lang.OutOfMemoryError")) is None


def test_without_a_round_no_clock_is_owed(validated: KafkaCluster) -> None:
    assert not validated.flush_clock()
    validated.stop()


@pytest.mark.parametrize("source", ["records", "admin"])
def test_the_brokers_logs_are_read_during_the_job_and_each_line_once(
    tmp_path: Path,
    rights: None,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
) -> None:
    monkeypatch.setattr(group_source, "check_admin_rights", lambda _: [])
    monkeypatch.setattr(KafkaCollector, "observe_once", lambda _: False)  # the broker does not answer
    folder, log = tmp_path / "collected", tmp_path / "server.log"
    settings = load(None, {**GIVEN, "kafka.source": source, "kafka.logs": [str(tmp_path / "server*")]}).kafka
    for member in "ab":
        with log.open("a") as file:
            file.write(EXPIRED.format(member))
        cluster = KafkaCluster.validated(settings, folder, dict)
        assert not cluster.poll()
        with log.open("a") as file:
            file.write(EXPIRED.format(f"{member}-late"))
        cluster.stop()
        log.rename(tmp_path / f"server.log.{'ab'.index(member)}")
    events = [line for file in sorted(folder.glob("*-kafka-log.jsonl")) for line in file.read_text().splitlines()]
    assert [msgspec.json.decode(event)["member_id"] for event in events] == ["a", "a-late", "b", "b-late"]


def test_a_cluster_whose_brokers_logs_are_missing_is_partly_known(tmp_path: Path, rights: None) -> None:
    pattern = str(tmp_path / "server.log*")
    cluster = KafkaCluster.validated(load(None, {**GIVEN, "kafka.logs": [pattern]}).kafka, tmp_path / "collected", dict)
    logs = cluster._logs
    assert logs is not None
    logs.observe_once()
    missing = f"no file matches {pattern}: causes of departures are inferred"
    assert cluster.source_status() == SourceStatus("c", partial=missing)
    (tmp_path / "server.log").touch()
    logs.observe_once()
    assert cluster.source_status() == SourceStatus("c")
    cluster.stop()


def test_without_logs_none_is_read(tmp_path: Path, validated: KafkaCluster) -> None:
    validated.stop()
    assert not list(tmp_path.rglob("*kafka-log*"))
