"""A topic that is deleted and made again under its name while groups of a real Kafka 4.1 broker read it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from tests.kit.brokers import Broker, kafka_41
from tests.kit.java_members import wait_until
from tests.kit.members import Member
from tests.kit.topics import create_topic, send
from tests.live.collecting import collecting, run_of_folder
from tests.simulation.core_run import CoreRun, rows_of

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]
StartMember = Callable[..., Member]
GROUPS: dict[str, dict[str, object]] = {
    "again-range": {},
    "again-cooperative": {"strategies": ["cooperative-sticky"]},
    "again-uniform": {"settings": {"group.protocol": "consumer"}},
}
_TIMEOUT_S = 60


@pytest.mark.slow
@pytest.mark.parametrize("poll_ms", [300, 60_000], ids=["seen-by-polls", "between-polls"])
def test_the_queues_of_a_topic_that_is_made_again_are_others(
    new_member: StartMember, tmp_path: Path, poll_ms: int
) -> None:
    # Consumers would make the topic again by themselves, with one partition.
    with kafka_41(tmp_path / "broker", {"auto.create.topics.enable": "false"}) as broker:
        for group in GROUPS:
            create_topic(broker, f"{group}.gone", 4)
            create_topic(broker, f"{group}.stays", 2)
        with collecting(broker, tmp_path, poll_ms), ThreadPoolExecutor(len(GROUPS)) as pool:
            played = [
                pool.submit(story, broker, new_member, *group_and_settings) for group_and_settings in GROUPS.items()
            ]
            made_again = [future.result() for future in played]
    run = run_of_folder(tmp_path)
    for group, at in zip(GROUPS, made_again, strict=True):
        check(run, group, at)


def story(broker: Broker, start: StartMember, group: str, options: dict[str, object]) -> int:
    """Let two members read, and make one of their topics again with more partitions; return when (epoch ms)."""
    topics = [f"{group}.gone", f"{group}.stays"]
    for partition in range(4):
        send(broker, topics[0], [b"x"] * 10, partition)
    members: list[Member] = []
    for name in ("a", "b"):
        members.append(start(broker, group, topics, client_id=name, **options))
        wait_for(6, members)
    wait_until(members, lambda: sum(member.records_read for member in members) >= 40)
    for member in members:
        member.commit()
    at = make_again(broker, topics[0], 6)
    wait_for(8, members)
    for member in members:
        member.stop()
    return at


def make_again(broker: Broker, topic: str, partitions: int) -> int:
    """Delete a topic and create it at once; return when it was deleted."""
    client = AdminClient(broker.client_settings())
    client.delete_topics([topic], operation_timeout=_TIMEOUT_S)[topic].result(_TIMEOUT_S)
    at = int(time.time() * 1000)
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        try:
            client.create_topics([NewTopic(topic, partitions, 1)])[topic].result(_TIMEOUT_S)
        except KafkaException:  # it is being deleted
            assert time.monotonic() < deadline
        else:
            return at


def wait_for(partitions: int, members: Sequence[Member]) -> None:
    wait_until(
        members,
        lambda: sum(len(member.owned) for member in members) == partitions and all(member.owned for member in members),
    )


def check(run: CoreRun, group: str, at: int) -> None:
    """All rebalances have causes and agree; the topic is named as made again once, and its spans are cut there."""
    mine = [row for row in run.rebalances if row.group_id == group]
    causes = [cause for row in mine for cause in row.triggers]
    assert "unexplained" not in [cause.kind for cause in causes], causes
    assert all(row.agrees is not False for row in mine), [(row.generation, row.agrees_reason) for row in mine]
    [again] = [
        cause for cause in causes if cause.kind == "queue_count_changed" and "made again" in (cause.detail or "")
    ]
    assert again.topic == f"{group}.gone"
    # The coordinator of the new protocol may notice the moment without the topic.
    assert again.detail in ("4 -> 6, made again", "0 -> 6, made again")
    tables = rows_of(run.changes)
    deleted = [span for span in tables["assignments"] if span["group_id"] == group and span["topic"] == f"{group}.gone"]
    owned = [span for span in deleted if span["origin"] == "reported"]
    for queue in range(4):
        former = [span for span in owned if span["queue_id"] == queue and span["valid_from"] < at]
        later = [span for span in owned if span["queue_id"] == queue and span["valid_from"] >= at]
        assert former, queue
        assert later, queue
        assert all(span["valid_to"] is not None for span in former)
    opened = {finding["kind"] for finding in tables["findings"] if finding["group_id"] == group}
    assert not opened & {"expected_differs", "unassigned_queues"}, opened
