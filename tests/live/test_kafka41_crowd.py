"""Very many members of the new protocol that begin at once: targets depend on the coordinator's order of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from streaming.collectors.event_log import EventFiles
from streaming.collectors.kafka.client_options import KafkaOptions
from streaming.collectors.kafka.standalone import StandaloneKafkaCollector
from tests.kit.brokers import Broker
from tests.kit.java_members import WAIT_S
from tests.kit.topics import create_topic
from tests.simulation.core_run import run_of
from udfs.model.journal import Rebalance

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]
MEMBERS, PARTITIONS = 25, 53
ASSIGNORS = ("uniform", "range")
_POLL_S, _IN_A_ROW = 0.1, 10


class Crowd:
    """Consumers in threads: they cost nothing but their connections."""

    def __init__(self, broker: Broker, assignor: str) -> None:
        self.group = f"crowd-{assignor}"
        self._settings = {
            **broker.client_settings(),
            "group.id": self.group,
            "group.protocol": "consumer",
            "group.remote.assignor": assignor,
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 1_000,
            "log_level": 0,
        }
        self._stop: list[threading.Event] = []
        self._threads: list[threading.Thread] = []
        self._held: dict[int, int] = {}

    def join(self, instance: str | None = None) -> None:
        settings = self._settings if instance is None else {**self._settings, "group.instance.id": instance}
        stop, place = threading.Event(), len(self._threads)
        self._stop.append(stop)
        thread = threading.Thread(target=self._live, args=(Consumer(settings), stop, place))
        self._threads.append(thread)
        thread.start()

    def _live(self, consumer: Consumer, stop: threading.Event, place: int) -> None:
        consumer.subscribe([self.group])
        while not stop.is_set():
            consumer.poll(0.2)
            self._held[place] = len(consumer.assignment())
        consumer.close()
        self._held.pop(place, None)

    def leave(self, place: int) -> None:
        self._stop[place].set()
        self._threads[place].join()

    def has_all(self) -> bool:
        return sum(self._held.values()) == PARTITIONS

    def close(self) -> None:
        for stop in self._stop:
            stop.set()
        for thread in self._threads:
            thread.join()


@contextmanager
def collecting(broker: Broker, folder: Path) -> Iterator[StandaloneKafkaCollector]:
    collector = StandaloneKafkaCollector(
        KafkaOptions(broker.bootstrap, "live"),
        *(EventFiles(folder, name) for name in ("topics", "groups")),
        partitions=1,
        poll_interval_ms=500,
    )
    collector.start()
    try:
        yield collector
    finally:
        collector.stop()


def wait(holds: Callable[[], bool]) -> None:
    """Wait until it holds, and goes on to: a consumer that is closed while it joins may wait for its session's end."""
    deadline, times = time.monotonic() + WAIT_S, 0
    while times < _IN_A_ROW:
        times = times + 1 if holds() else 0
        assert time.monotonic() < deadline
        time.sleep(_POLL_S)


def test_targets_of_many_members_are_recomputed(kafka41: Broker, tmp_path: Path) -> None:
    crowds = [Crowd(kafka41, assignor) for assignor in ASSIGNORS]
    with collecting(kafka41, tmp_path) as collector:
        try:
            for crowd in crowds:
                for number in range(MEMBERS):
                    crowd.join(f"i{number}" if number % 3 == 0 else None)
            for crowd in crowds:
                create_topic(kafka41, crowd.group, PARTITIONS)
            for crowd in crowds:
                wait(crowd.has_all)
            for crowd in crowds:  # a member goes, a static one is started anew, another one comes
                crowd.leave(1)
                crowd.leave(3)
                crowd.join("i3")
                crowd.join()
            for crowd in crowds:
                wait(crowd.has_all)
        finally:
            for crowd in crowds:
                crowd.close()
        assert collector.observe_once()
    run = run_of(line for file in sorted(tmp_path.glob("*.jsonl")) for line in file.read_bytes().splitlines())
    for crowd in crowds:
        check([row for row in run.rebalances if row.group_id == crowd.group])


def check(rows: list[Rebalance]) -> None:
    shown = [(row.generation, row.agrees, row.agrees_reason, [one.kind for one in row.triggers]) for row in rows]
    assert {(row.agrees, row.agrees_reason) for row in rows} <= {
        (True, None), (None, "no_target"), (None, "no_members"),
    }, shown  # fmt: skip
    assert sum(row.agrees is True and row.queues_after == PARTITIONS for row in rows) >= 2, shown
    assert not any(one.kind == "unexplained" for row in rows for one in row.triggers), shown
