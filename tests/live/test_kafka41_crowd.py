"""Very many members of the new protocol that begin at once: targets depend on the coordinator's order of them."""

from __future__ import annotations

import itertools
import json
import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException

from tests.kit.brokers import Broker
from tests.kit.java_members import WAIT_S
from tests.kit.topics import add_partitions, create_topic
from tests.live.collecting import collecting, run_of_folder
from udfs.model.journal import Rebalance

# Of many librdkafka clients in one process, one now and then does not end.
pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(600)]
MEMBERS, PARTITIONS = 25, 53
ASSIGNORS = ("uniform", "range")
RANDOM_S = 120.0
_POLL_S = 0.3
_CLOSE_S = 20.0  # librdkafka may wait for its queues to be revoked; the process does not wait
_VALID = ((True, None), (True, "growth_not_due"), (None, "no_target"), (None, "no_members"), (None, "topics_unknown"))


class Crowd:
    """Consumers in threads: they cost nothing but their connections."""

    def __init__(self, broker: Broker, assignor: str | None, group: str) -> None:
        self.group = group
        self._settings = {
            **broker.client_settings(),
            "group.id": self.group,
            "group.protocol": "consumer",
            **({} if assignor is None else {"group.remote.assignor": assignor}),
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 1_000,
            "log_level": 0,
        }
        self._stop: list[threading.Event] = []
        self._threads: list[threading.Thread] = []
        self._wanted: dict[int, Sequence[str]] = {}
        self.instances: dict[int, str] = {}

    def join(self, instance: str | None = None, topics: Sequence[str] = ()) -> None:
        settings = self._settings if instance is None else {**self._settings, "group.instance.id": instance}
        stop, place = threading.Event(), len(self._threads)
        self._stop.append(stop)
        if instance is not None:
            self.instances[place] = instance
        self._wanted[place] = topics or [self.group]
        thread = threading.Thread(target=self._live, args=(Consumer(settings), stop, place), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _live(self, consumer: Consumer, stop: threading.Event, place: int) -> None:
        subscribed: Sequence[str] = ()
        while not stop.is_set():
            if subscribed is not self._wanted[place]:
                subscribed = self._wanted[place]
                try:
                    consumer.subscribe(list(subscribed))
                except KafkaException as error:
                    if not error.args[0].fatal():
                        raise
                    break  # as a rule another one came with its instance id, and it was fenced
            consumer.poll(0.2)
        consumer.close()

    def present(self) -> list[int]:
        return [place for place, stop in enumerate(self._stop) if not stop.is_set()]

    def subscribe(self, place: int, topics: Sequence[str]) -> None:
        self._wanted[place] = topics

    def leave(self, place: int) -> None:
        self._stop[place].set()
        self._threads[place].join(_CLOSE_S)

    def close(self) -> None:
        for stop in self._stop:
            stop.set()
        deadline = time.monotonic() + _CLOSE_S
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))


def has_target_of_all(folder: Path, group: str, members: int) -> bool:
    """Return whether the coordinator has published a target in which so many members have partitions."""
    with_some: set[str] = set()
    for file in folder.glob("*.jsonl"):
        events = (json.loads(line) for line in file.read_bytes().splitlines())
        with_some.update(
            event["member_id"] for event in events if event.get("group") == group and event.get("partitions")
        )
    return len(with_some) == members


def wait(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(_POLL_S)


def test_targets_of_many_members_are_recomputed(kafka41: Broker, tmp_path: Path) -> None:
    crowds = [Crowd(kafka41, assignor, f"crowd-{assignor}") for assignor in ASSIGNORS]
    with collecting(kafka41, tmp_path):
        try:
            for crowd in crowds:
                for number in range(MEMBERS):
                    crowd.join(f"i{number}" if number % 3 == 0 else None)
            for crowd in crowds:
                create_topic(kafka41, crowd.group, PARTITIONS)
            for crowd in crowds:
                wait(partial(has_target_of_all, tmp_path, crowd.group, MEMBERS))
            for crowd in crowds:  # another one comes
                crowd.join()
            for crowd in crowds:
                wait(partial(has_target_of_all, tmp_path, crowd.group, MEMBERS + 1))
        finally:
            for crowd in crowds:
                crowd.close()
    rows = rebalances(tmp_path)
    for crowd in crowds:
        mine = [row for row in rows if row.group_id == crowd.group]
        check(mine)
        assert any(row.agrees is True and row.queues_after == PARTITIONS for row in mine)


@pytest.mark.parametrize("seed", range(3))
def test_targets_of_random_groups_are_recomputed(kafka41: Broker, tmp_path: Path, seed: int) -> None:
    """Members come, go, return and subscribe otherwise, many at once; topics come and grow."""
    assignors = (*ASSIGNORS, None, *ASSIGNORS, "uniform")
    crowds = [Crowd(kafka41, assignor, f"random-{seed}-{place}") for place, assignor in enumerate(assignors)]
    with collecting(kafka41, tmp_path):
        try:
            with ThreadPoolExecutor(len(crowds)) as pool:
                list(pool.map(play, crowds, [kafka41] * len(crowds), range(seed * 100, seed * 100 + len(crowds))))
        finally:
            for crowd in crowds:
                crowd.close()
    rows = rebalances(tmp_path)
    check(rows)
    assert sum(row.agrees is True for row in rows) > 200


def play(crowd: Crowd, broker: Broker, seed: int) -> None:
    chance, until, instances = random.Random(seed), time.monotonic() + RANDOM_S, itertools.count()
    topics = [f"{crowd.group}-{number}" for number in range(chance.choice((1, 3, 6)))]
    counts = {topic: chance.randint(1, 20) for topic in topics if chance.random() < 0.7}
    for topic, count in counts.items():
        create_topic(broker, topic, count)
    most, are_equal = chance.choice((4, 14, 28)), chance.random() < 0.4

    def some() -> list[str]:
        return list(topics) if are_equal else chance.sample(topics, chance.randint(1, len(topics)))

    while time.monotonic() < until:
        present, kind = crowd.present(), chance.random()
        if not present or (kind < 0.45 and len(present) < most):
            for _ in range(chance.choice((1, 1, 2, 5))):
                crowd.join(f"i{next(instances)}" if chance.random() < 0.3 else None, some())
        elif kind < 0.65:
            place = chance.choice(present)
            crowd.leave(place)
            if place in crowd.instances and chance.random() < 0.5:
                crowd.join(crowd.instances[place], some())
        elif kind < 0.75:
            crowd.subscribe(chance.choice(present), some())
        elif kind < 0.85:
            topic = chance.choice(topics)
            if topic in counts:
                counts[topic] += chance.randint(1, 4)
                add_partitions(broker, topic, counts[topic])
            else:
                counts[topic] = chance.randint(1, 20)
                create_topic(broker, topic, counts[topic])
        time.sleep(chance.choice((0, 0.1, 1, 4)))


def rebalances(folder: Path) -> list[Rebalance]:
    return run_of_folder(folder).rebalances


def check(rows: Sequence[Rebalance]) -> None:
    """No target is another one than is recomputed, and each epoch has a cause."""
    shown = [
        (row.group_id, row.generation, row.agrees, row.agrees_reason, [trigger.kind for trigger in row.triggers])
        for row in rows
        if (row.agrees, row.agrees_reason) not in _VALID
        or any(trigger.kind == "unexplained" for trigger in row.triggers)
    ]
    assert shown == []
