"""A Kafka cluster as the settings name it, and as the job sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from streaming.collectors.kafka import factory, group_source
from streaming.collectors.kafka.client_options import KafkaOptions
from streaming.collectors.kafka.factory import KafkaCluster, options_of
from streaming.collectors.kafka.permissions import Missing
from streaming.settings.model import load

GIVEN = {"kafka.bootstrap_servers": "h:1", "kafka.cluster": "c", "kafka.poll_interval_ms": 100}


def test_the_settings_become_the_options_of_the_collector() -> None:
    chosen = {"kafka.options.ssl.ca.location": "/ca", "kafka.exclude_groups": ("x.*",), "kafka.ends_interval_ms": 7}
    settings = load(None, GIVEN | chosen)
    assert options_of(settings.kafka) == KafkaOptions(
        "h:1", "c", {"ssl.ca.location": "/ca"}, include_groups=(".*",), exclude_groups=("x.*",), ends_interval_ms=7
    )


@pytest.fixture
def validated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KafkaCluster:
    missing = Missing("Describe", "topic", "*", "racks stay unknown", needed=False)
    monkeypatch.setattr(group_source, "check_rights", lambda _: [missing])
    monkeypatch.setattr(group_source, "offsets_partitions", lambda _: 5)
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
    assert validated.source(None, **how) == ("h:1", {"partitions": 5, **how})  # type: ignore[arg-type]


def test_a_query_that_a_broker_ended_may_start_again_and_any_other_not(validated: KafkaCluster) -> None:
    away = "org.apache.kafka.common.errors.DisconnectException"
    assert str(validated.connection_error(RuntimeError(away))).strip() == away
    assert validated.connection_error(RuntimeError("java.lang.OutOfMemoryError")) is None


def test_without_a_round_no_clock_is_owed(validated: KafkaCluster) -> None:
    assert not validated.flush_clock()
    validated.stop()
