"""The collector without a job: it reads the group records and writes the clock that they allow."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from structlog.testing import capture_logs

from streaming.collectors.event_log import EventFiles
from streaming.collectors.kafka import standalone_kafka_collector
from streaming.collectors.kafka.options import KafkaOptions
from streaming.collectors.kafka.standalone_kafka_collector import StandaloneKafkaCollector
from streaming.machine.stop_request import StopRequest

_TIMEOUT_S = 60


class Parts:
    """The reader of records and the collector of topics, both played: what is called is noted in its order."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.unread = 2
        self.answers = True
        self.rejected = 0
        self.failure: Exception | None = None
        self.on_step: Callable[[], None] = lambda: None

    # Methods of the reader of records.

    def offsets_read(self) -> dict[int, int]:
        return {}

    def step(self) -> None:
        self.calls.append("step")
        self.unread -= 1
        self.on_step()
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure

    def close(self) -> None:
        self.calls.append("close")

    # Methods of the collector of topics.

    def observe_once(self) -> bool:
        self.calls.append("observe")
        return self.answers

    def flush_clock(self) -> bool:
        self.calls.append("flush_clock")
        return self.unread <= 0

    def start(self) -> None:
        self.calls.append("start")

    def stop(self) -> None:
        self.calls.append("stop")

    def status(self) -> str:
        return "status"


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Parts:
    played = Parts()
    monkeypatch.setattr(standalone_kafka_collector, "OffsetsReader", lambda *_, **__: played)
    monkeypatch.setattr(standalone_kafka_collector, "KafkaCollector", lambda *_, **__: played)
    return played


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., StandaloneKafkaCollector]:
    def make(**more: Any) -> StandaloneKafkaCollector:
        logs = [EventFiles(tmp_path, name) for name in ("topics", "groups")]
        return StandaloneKafkaCollector(KafkaOptions("h:1", "c"), *logs, partitions=3, poll_interval_ms=1, **more)

    return make


def test_a_full_read_ends_once_the_clock_of_its_round_is_written(
    parts: Parts, make: Callable[..., StandaloneKafkaCollector]
) -> None:
    assert make().observe_once()
    assert parts.calls == ["observe", "flush_clock", "step", "flush_clock", "step", "flush_clock"]


def test_a_cluster_that_does_not_answer_is_not_waited_for(
    parts: Parts, make: Callable[..., StandaloneKafkaCollector]
) -> None:
    parts.answers = False
    assert not make().observe_once()
    assert parts.calls == ["observe"]


def test_a_stop_ends_a_full_read(parts: Parts, make: Callable[..., StandaloneKafkaCollector]) -> None:
    stop = StopRequest()
    parts.unread, parts.on_step = 1_000_000, stop.request
    assert make(stop=stop).observe_once()
    assert parts.calls == ["observe", "flush_clock", "step"]


def test_records_are_read_until_it_is_stopped_and_a_failure_is_not_the_end(
    parts: Parts, make: Callable[..., StandaloneKafkaCollector], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standalone_kafka_collector, "_PAUSE_S", 0.0)
    has_read = threading.Event()
    parts.failure = KafkaException(KafkaError(KafkaError._TRANSPORT))
    parts.on_step = lambda: has_read.set() if parts.calls.count("step") > 2 else None
    parts.rejected = 4
    with capture_logs() as logged:
        collector = make()
        collector.start()
        assert has_read.wait(_TIMEOUT_S)
        collector.stop()
    assert parts.calls[0] == "start"
    # The clock that the last records allow is written before the end.
    assert parts.calls[-3:] == ["close", "flush_clock", "stop"]
    assert [line["event"] for line in logged] == ["group records cannot be read", "records that could not be decoded"]
    assert logged[1]["records"] == 4
