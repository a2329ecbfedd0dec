"""The outages in rows contain those that consumers of real brokers note themselves."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.kit import rocketmq_admin as admin
from tests.kit.metaq import MetaqCluster
from tests.kit.metaq_members import MetaqMember, partitions_of, wait_until_shared
from tests.kit.rocketmq import RocketMq
from tests.kit.rocketmq_members import RocketMqMember, queues_of, wait_until_assigned
from tests.live import metaq_story, rocketmq_story
from tests.live.outages import REGIMES, Checked, checked_by_owner, measure
from tests.simulation.core_run import run_of

pytestmark = [pytest.mark.broker, pytest.mark.timeout(900)]
NAMES = ("librdkafka, range", "librdkafka, cooperative-sticky", "librdkafka, new protocol", "aiokafka, roundrobin")
SETTLED_S = 8.0


def test_of_kafka_by_every_way_in_which_an_owner_changes() -> None:
    found = measure([one for one in REGIMES if one.name in NAMES], 4, at_once=4)
    for name in NAMES:
        check(found[name], 16)
        assert {one.kind for one in found[name]} >= {"kill", "hang", "leave", "join", "static restart"}, name


def test_of_rocketmq_by_its_clients_pulls(
    rocketmq55: RocketMq, new_rocketmq_member: Callable[..., RocketMqMember], tmp_path: Path
) -> None:
    group, topic, queues = "unread", "outages", queues_of("outages", 4)
    rocketmq55.create_topic(topic, 4)
    address = rocketmq55.broker.address
    lives: dict[str, list[RocketMqMember]] = {}

    def member(instance: str) -> RocketMqMember:
        settings: dict[str, Any] = {"notes": "true"}
        found = new_rocketmq_member(rocketmq55, group, [topic], instance=instance, settings=settings)
        lives.setdefault(f"127.0.0.1@{instance}", []).append(found)
        return found

    def send() -> None:
        for _, _, queue_id in queues:
            admin.put_message(address, topic, queue_id, b"m")

    with (
        rocketmq_story.collecting(rocketmq55, tmp_path / "events", include_groups=(group,)) as collected,
        repeated(send, 0.1),
        repeated(collected.poll, 1.0),
    ):
        stays = member("a")
        wait_until_assigned([stays], queues)
        for is_killed in (False, True):
            time.sleep(SETTLED_S)
            other = member("b")
            wait_until_assigned([stays, other], queues)
            time.sleep(SETTLED_S)
            other.kill() if is_killed else other.stop()
            wait_until_assigned([stays], queues)
        time.sleep(SETTLED_S)
    check(checked_by_owner(run_of(collected.lines()), group, lives), 6)


def test_of_metaq_by_its_nodes(
    metaq: MetaqCluster, new_metaq_member: Callable[..., MetaqMember], tmp_path: Path
) -> None:
    group, topic = "unread", "kit-orders"
    partitions = partitions_of(topic, 12)
    lives: dict[str, list[MetaqMember]] = {}

    def member(name: str) -> MetaqMember:
        found = new_metaq_member(metaq, group, [topic], consumer_id=name)
        lives.setdefault(f"{group}_{name}", []).append(found)
        return found

    def send() -> None:
        for _, _, number in partitions:
            metaq.broker.put(topic, number, [b"m"])

    with metaq_story.collecting(metaq, tmp_path / "events") as collected:
        with repeated(send, 0.1):
            stays = member("a")
            wait_until_shared([stays], partitions)
            for is_killed in (False, True):
                time.sleep(SETTLED_S)
                other = member("b")
                wait_until_shared([stays, other], partitions)
                time.sleep(SETTLED_S)
                other.kill() if is_killed else other.stop()
                wait_until_shared([stays], partitions)
            time.sleep(SETTLED_S)
        collected.stop()
    check(checked_by_owner(run_of(collected.lines()), group, lives), 12)


def check(found: Sequence[Checked], at_least: int) -> None:
    """Assert that the truth is within all bounds, and that bounds are there."""
    assert [one for one in found if not one.holds] == []
    bounded = [one.most - (one.least or 0) for one in found if one.most is not None]
    assert len(bounded) >= at_least, found
    print(f"{len(found)} outages, {len(bounded)} bounded, median width {statistics.median(bounded)} ms")  # noqa: T201


@contextmanager
def repeated(work: Callable[[], None], every_s: float) -> Iterator[None]:
    """Do something again and again, in a thread of its own."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(every_s):
            work()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
