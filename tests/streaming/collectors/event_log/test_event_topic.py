"""Events on a topic of a real broker keep their order; none is lost in an outage; refused ones are logged."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition
from structlog.testing import capture_logs

from streaming.collectors.event_log import EventTopic, LogFull, LogLimits
from tests.kit.brokers import Broker, kafka_41
from tests.kit.processes import free_port
from tests.kit.topics import create_topic, delete_topic
from tests.streaming.collectors.event_log.clocks import clock, clocks
from udfs.model.events import AnyEvent, GroupSnapshot

_TIMEOUT_S = 90
_POLL_S = 0.05
ONE = len(msgspec.json.encode(clock(1))) + 1


def times_on(broker: Broker, topic: str) -> list[int]:
    """Return the times of all events of a topic with one partition."""
    settings = {**broker.client_settings(), "group.id": "reader", "enable.partition.eof": True}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    times: list[int] = []
    while True:
        message = consumer.poll(30)
        assert message is not None, "the broker does not answer"
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            consumer.close()
            return times
        times.append(msgspec.json.decode(message.value() or b"", type=AnyEvent).event_time)


def until(holds: Callable[[], bool]) -> None:
    """Return as soon as something holds."""
    deadline = time.monotonic() + _TIMEOUT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(_POLL_S)


@pytest.mark.broker
def test_events_arrive_in_their_order_on_each_broker(each_kafka: Broker, tmp_path: Path) -> None:
    topic = f"log-{each_kafka.version}"
    create_topic(each_kafka, topic, 1)
    log = EventTopic(topic, each_kafka.client_settings(), tmp_path / "memory/m.json")
    until(log.flush)
    log.append(clocks(*range(5_000)))
    log.append(clocks(5_000))
    log.keep_memory(b"5001")
    until(log.flush)
    assert log.trouble() is None
    assert times_on(each_kafka, topic) == list(range(5_001))
    assert EventTopic(topic, each_kafka.client_settings(), tmp_path / "memory/m.json").read_memory() == b"5001"


@pytest.mark.broker
def test_a_broker_that_is_away_costs_nothing_but_time(tmp_path: Path) -> None:
    with kafka_41(tmp_path / "broker") as broker:
        create_topic(broker, "log", 1)
        memory = tmp_path / "m.json"
        log = EventTopic("log", broker.client_settings(), memory, LogLimits(memory_bytes=40 * ONE), wait_s=1.0)
        log.append(clocks(0, 1))
        log.keep_memory(b"2")
        until(log.flush)
        broker.stop()
        taken = 2
        for _ in range(9):
            log.append(clocks(*range(taken, taken + 4)))
            taken += 4
            log.keep_memory(str(taken).encode())
            assert log.trouble()
        with pytest.raises(LogFull):
            log.append(clocks(*range(1_000, 1_010)))
        assert memory.read_bytes() == b"2"
        broker.start()
        until(log.flush)
        assert log.trouble() is None
        log.append(clocks(taken))
        until(log.flush)
        assert times_on(broker, "log") == list(range(taken + 1))
        assert memory.read_bytes() == str(taken).encode()


@pytest.mark.broker
def test_a_topic_that_is_not_there_yet_is_waited_for(kafka41: Broker, tmp_path: Path) -> None:
    settings = {**kafka41.client_settings(), "allow.auto.create.topics": "false"}
    # The client gives a topic up this soon; then the record is produced again.
    settings |= {"topic.metadata.propagation.max.ms": "500", "topic.metadata.refresh.fast.interval.ms": "50"}
    create_topic(kafka41, "log-later", 1)
    delete_topic(kafka41, "log-later")
    log = EventTopic("log-later", settings, tmp_path / "m.json", wait_s=0.1)
    log.append(clocks(1, 2))
    until(lambda: "nknown topic" in (log.trouble() or "") or log.flush())
    log.append(clocks(3))
    create_topic(kafka41, "log-later", 1)
    until(log.flush)
    assert times_on(kafka41, "log-later") == [1, 2, 3]


@pytest.mark.broker
def test_an_event_longer_than_the_topic_allows_is_left_out_and_logged(kafka41: Broker, tmp_path: Path) -> None:
    create_topic(kafka41, "log-short", 1, {"max.message.bytes": "2000"})
    log = EventTopic("log-short", {**kafka41.client_settings(), "compression.type": "none"}, tmp_path / "m.json")
    long = GroupSnapshot(
        schema_version=1, event_time=2, system="kafka", cluster="c", group="g" * 5_000, generation=1, members=()
    )
    with capture_logs() as logged:
        log.append(clocks(1))
        log.append([long])
        log.append(clocks(3))
        until(log.flush)
    assert times_on(kafka41, "log-short") == [1, 3]
    assert [line["log_level"] for line in logged if "dropped" in line["event"]] == ["error"]


def test_a_broker_that_is_not_there_is_reported_within_the_wait(tmp_path: Path) -> None:
    settings = {"bootstrap.servers": f"127.0.0.1:{free_port()}"}
    log = EventTopic("log", settings, tmp_path / "m.json", wait_s=0.2)
    log.append(clocks(1))
    assert log.trouble()
    assert not log.flush()
