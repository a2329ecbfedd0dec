"""Consumers on a real Kafka 4.1 broker whose logs are deleted up to their commits, and beyond them.

One stands; when it has left, an administrator resets its commit, and deletes it. One is slow, and retention deletes.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from streaming.simulator.truth import epoch_ms
from tests.core_config import core_config
from tests.kit.brokers import Broker, kafka_41
from tests.kit.kafka_tools import change_offsets
from tests.kit.light_members import start_light_member
from tests.kit.topics import create_topic, delete_records, send
from tests.live.collecting import CLUSTER, collecting, run_of_folder
from tests.simulation.core_run import CoreRun, rows_of

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

GROUP, TOPIC = "overtaken", "deleted-in"
_READ, _WAITING, _LOST, _RESET = 1_000, 500, 120, 1_300
_KINDS = ("retention_risk", "messages_lost", "commits_went_back", "commits_expired")
# Standing queues are evaluated three times within this, so each second.
CONFIG = core_config(stalled_after_ms=3_000, stalled_first_ms=60_000)


def test_a_log_that_overtakes_a_standing_consumer_is_a_risk_and_then_a_loss_of_so_many_messages(
    kafka41: Broker, tmp_path: Path
) -> None:
    create_topic(kafka41, TOPIC, 1)
    with ExitStack() as stack:
        stack.enter_context(collecting(kafka41, tmp_path / "events", ends_interval_ms=500))
        member = stack.enter_context(start_light_member(kafka41, GROUP, [TOPIC], {"client.id": "slow"}))
        member.wait_until(lambda: len(member.owned) == 1)
        send(kafka41, TOPIC, [b"read"] * _READ)
        _wait_for_commit(kafka41, _READ)
        member.freeze()
        send(kafka41, TOPIC, [b"waits"] * _WAITING)
        # The log's start approaches the commit, and comes to lie beyond it.
        for start in (_READ - 200, _READ - 100, _READ - 20):
            time.sleep(1.5)
            delete_records(kafka41, TOPIC, start)
        time.sleep(2.5)
        deleted_at = time.time() * 1_000
        delete_records(kafka41, TOPIC, _READ + _LOST)
        time.sleep(9)
        member.thaw()
        _wait_for_commit(kafka41, _READ + _WAITING)
        time.sleep(3)
        member.stop()
        reset_at = time.time() * 1_000
        reset = ["--reset-offsets", "--to-offset", str(_RESET), "--execute"]
        change_offsets(kafka41, GROUP, "--topic", f"{TOPIC}:0", *reset)
        deleted_commit_at = time.time() * 1_000
        change_offsets(kafka41, GROUP, "--topic", TOPIC, "--delete-offsets")
    # The finding that commits expired waits for metadata, which might show that the topic was deleted with them.
    later = {"event_time": round(time.time() * 1_000) + 90_000, "system": "kafka", "cluster": CLUSTER, "type": "clock"}
    (tmp_path / "events" / "z-later.jsonl").write_text(json.dumps({"schema_version": 1, **later}) + "\n")

    found = [row for row in rows_of(run_of_folder(tmp_path / "events", CONFIG).changes)["findings"] if _is_ours(row)]
    risk, lost, back, expired = sorted(found, key=lambda row: row["opened_at"])
    assert (risk["kind"], lost["kind"], back["kind"], expired["kind"]) == _KINDS
    assert risk["opened_at"] < deleted_at < lost["opened_at"]
    assert "the start of the log has passed a commit" in risk["message"]
    assert f"{_LOST} messages were deleted by retention" in lost["message"]
    assert f"from offset {_READ} on; its log begins at {_READ + _LOST}" in lost["message"]
    assert [queue["queue_id"] for queue in lost["queues"]] == [0]
    assert [named["client"].split("@")[0] for named in lost["members"]] == ["slow"]
    assert lost["closed_at"] is not None
    assert reset_at < back["opened_at"] < deleted_commit_at < expired["opened_at"]
    assert f"{TOPIC}-0 from {_READ + _WAITING} to {_RESET}, at most 200 messages" in back["message"]
    assert "The group had no members" in back["message"]
    assert f"{TOPIC}-0 at {_RESET}." in expired["message"]


_KEPT_MS = 8_000
# Retention deletes whole segments, whenever the broker looks, and ends are read now and then.
_DELETIONS = {"segment.ms": "500", "retention.ms": str(_KEPT_MS)}
_LOOKS = {"log.retention.check.interval.ms": "300", "log.initial.task.delay.ms": "500"}
_TO_A_DELETION_MS = 2_500
_EACH_MS = 20


@pytest.mark.slow
def test_the_time_left_of_a_slow_consumer_is_right_and_then_its_loss_is_counted(tmp_path: Path) -> None:
    """The time left may be twice or half of the true one, and a deletion off."""
    with ExitStack() as stack:
        broker = stack.enter_context(kafka_41(tmp_path / "broker", _LOOKS))
        create_topic(broker, TOPIC, 1, _DELETIONS)
        stack.enter_context(_written(broker))
        stack.enter_context(collecting(broker, tmp_path / "events", ends_interval_ms=500))
        lost_from = _read_slowly(broker)
    run = run_of_folder(tmp_path / "events", msgspec.structs.replace(CONFIG, retention_risk_share=0.5))
    found = [row for row in rows_of(run.changes)["findings"] if _is_ours(row)]
    risk, lost = sorted(found, key=lambda row: row["opened_at"])
    assert (risk["kind"], lost["kind"]) == _KINDS[:2]
    starts = list(_starts(tmp_path / "events"))
    lost_at = next(at for at, start in starts if start > lost_from)
    assert risk["opened_at"] < lost_at < lost["opened_at"]
    for said_at, offset, left_ms in _times_left(run):
        true_ms = next(at for at, start in starts if start > offset) - said_at
        assert true_ms / 2 - _TO_A_DELETION_MS <= left_ms <= 2 * true_ms + _TO_A_DELETION_MS
    said = re.search(r"0: ([\d,]+), from offset (\d+) on; its log begins at (\d+)", lost["message"])
    assert said is not None
    number, read, begins = (int(text.replace(",", "")) for text in said.groups())
    assert (read, number) == (lost_from, begins - lost_from)
    assert begins in {start for _, start in starts}
    assert [queue["queue_id"] for queue in lost["queues"]] == [0]
    assert [named["client"].split("@")[0] for named in lost["members"]] == ["slow"]
    assert "no commit is before the start of its log any more" in lost["message"]
    assert lost["closed_at"] is not None


@contextmanager
def _written(broker: Broker) -> Iterator[None]:
    """Append messages all the time."""
    is_over = threading.Event()

    def write() -> None:
        producer = Producer(broker.client_settings())
        while not is_over.wait(_EACH_MS / 1_000):
            producer.produce(TOPIC, b"x" * 2_000, partition=0)
            producer.poll(0)
        producer.flush(30)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        is_over.set()
        writer.join()


def _read_slowly(broker: Broker) -> int:
    """Read all, then a third of what is written, until retention overtakes it; stand, and begin anew.

    Returns: The offset from which messages were lost.
    """
    settings = {"enable.auto.offset.store": False, "auto.commit.interval.ms": 500, "auto.offset.reset": "error"}
    few = {"queued.max.messages.kbytes": 100, "fetch.message.max.bytes": 50_000, "client.id": "slow", "group.id": GROUP}
    consumer = Consumer({**broker.client_settings(), **settings, **few})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    consumer.unassign()
    consumer.subscribe([TOPIC], on_assign=lambda consumer, _: consumer.assign([TopicPartition(TOPIC, 0, 0)]))
    slow_from = time.monotonic() + 1.3 * _KEPT_MS / 1_000
    while True:
        message = consumer.poll(1)
        error = None if message is None else message.error()
        if error is not None and error.code() == KafkaError._AUTO_OFFSET_RESET:
            break
        if message is not None and error is None:
            consumer.store_offsets(message)
            time.sleep(0 if time.monotonic() < slow_from else 3 * _EACH_MS / 1_000)
    until = time.monotonic() + 8
    while time.monotonic() < until:
        consumer.poll(0.2)
    (lost_from,) = consumer.committed([TopicPartition(TOPIC, 0)], 30)
    start, _ = consumer.get_watermark_offsets(lost_from, 30)
    consumer.assign([TopicPartition(TOPIC, 0, start + 50)])
    until = time.monotonic() + 3
    while time.monotonic() < until:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            consumer.store_offsets(message)
    consumer.close()
    return int(lost_from.offset)


def _starts(events: Path) -> Iterator[tuple[int, int]]:
    """Yield when the log was seen to begin where, in order."""
    lines = (line for file in sorted(events.glob("*.jsonl")) for line in file.read_bytes().splitlines())
    for event in map(json.loads, lines):
        if event["type"] == "queue_ends" and event["topic"] == TOPIC:
            for queue in event["queues"]:
                if "start_offset" in queue:
                    yield event["event_time"], queue["start_offset"]


def _times_left(run: CoreRun) -> Iterator[tuple[int, int, int]]:
    """Yield for each message of the risk its time, the offset that is to be deleted, and in how many ms."""
    for change in run.changes:
        body: Any = change.body
        if getattr(body, "finding", None) != "retention_risk" or not hasattr(body, "message"):
            continue
        said = re.search(r"offset (\d+) (?:in about (\d+) s|with its next deletion); its log", body.message)
        when = re.search(r"the log's start moved at ([^;]+);", body.message)
        assert said is not None
        assert when is not None
        yield epoch_ms(when[1]), int(said[1]), int(said[2] or 0) * 1_000


def _wait_for_commit(broker: Broker, offset: int) -> None:
    reader = Consumer({**broker.client_settings(), "group.id": GROUP})
    deadline = time.monotonic() + 60
    while reader.committed([TopicPartition(TOPIC, 0)], 30)[0].offset < offset:
        assert time.monotonic() < deadline, f"{GROUP} does not commit {offset}"
        time.sleep(0.2)
    reader.close()


def _is_ours(row: dict[str, object]) -> bool:
    return row["group_id"] == GROUP and row["kind"] in _KINDS
