"""How old unread messages are on a real Kafka 4.1 broker: as old as the clock of their producer says.

The collector begins when the consumer is behind already, so no history of ends can say it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from streaming.pipeline.decided_rows import progress_rows
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.schema import QUEUE_PROGRESS
from streaming.tables.writer import Mark
from streaming.views.progress import progress
from streaming.views.reader import Reader
from tests.core_config import core_config
from tests.kit.brokers import Broker
from tests.kit.topics import create_topic
from tests.live.collecting import CLUSTER, collecting, run_of_folder

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

GROUP, TOPIC = "behind-in-time", "aged-in"
_EACH_S = 0.02
_STANDS_AT = 100
_BEHIND_S, _COLLECTED_S = 20, 12
CONFIG = core_config(queue_progress_ms=1_000)


@contextmanager
def _running(work: Callable[[threading.Event], None]) -> Iterator[None]:
    is_over = threading.Event()
    worker = threading.Thread(target=work, args=(is_over,))
    worker.start()
    try:
        yield
    finally:
        is_over.set()
        worker.join()


def test_lag_in_time_is_that_of_the_producers_clock_from_the_first_read_on(kafka41: Broker, tmp_path: Path) -> None:
    create_topic(kafka41, TOPIC, 2)
    clock_of: dict[tuple[int, int], float] = {}

    def write(is_over: threading.Event) -> None:
        def note(_: object, message: Message) -> None:
            clock_of[message.partition() or 0, message.offset() or 0] = float(message.value() or b"")

        producer = Producer(kafka41.client_settings())
        while not is_over.wait(_EACH_S):
            for number in range(2):
                producer.produce(TOPIC, str(time.time() * 1_000).encode(), partition=number, on_delivery=note)
            producer.poll(0)
        producer.flush(30)

    def read(is_over: threading.Event) -> None:
        """Read half of what is written to the first partition; stand in the second."""
        settings = {"group.id": GROUP, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
        consumer = Consumer({**kafka41.client_settings(), **settings})
        consumer.commit(offsets=[TopicPartition(TOPIC, 1, _STANDS_AT)], asynchronous=False)
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        number = 0
        while not is_over.wait(2 * _EACH_S):
            message = consumer.poll(1)
            number += message is not None
            if message is not None and number % 10 == 0:
                consumer.commit(message, asynchronous=False)
        consumer.close()

    with _running(write), _running(read):
        time.sleep(_BEHIND_S)
        with collecting(kafka41, tmp_path / "events", ends_interval_ms=1_000, unread_groups=20):
            time.sleep(_COLLECTED_S)

    run = run_of_folder(tmp_path / "events", CONFIG)
    rows = [row for decided in run.progress for row in progress_rows(msgspec.json.encode(decided).decode())]
    DeltaRsTable(tmp_path / "tables", QUEUE_PROGRESS).append(to_arrow(QUEUE_PROGRESS, rows), Mark("progress", 0))
    shown = progress(Reader(tmp_path / "tables"), {"cluster": CLUSTER, "group_id": GROUP, "state": "empty"}, [])
    known_ms = max(row[name] for row in shown for name in ("committed_at", "end_at"))
    assert [row["queue_id"] for row in shown] == [0, 1]
    for row in shown:
        true_ms = known_ms - clock_of[row["queue_id"], row["committed_offset"]]
        assert true_ms > _BEHIND_S * 1_000 / 3
        assert row["lag_source"] == "brokers"
        assert row["lag_ms"] == pytest.approx(true_ms, rel=0.1)
        # A message gets its time a moment after the producer's clock was read, and is found to a hundredth of its age.
        assert row["lag_min_ms"] <= 1.02 * true_ms <= 1.04 * row["lag_max_ms"] + 100
    assert shown[1]["committed_offset"] == _STANDS_AT
