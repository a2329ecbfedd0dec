"""Groups of other client libraries on a real Kafka 4.1 broker: causes, libraries, recomputed = reported."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import msgspec
import pytest
from confluent_kafka import Consumer, TopicPartition

from streaming.collectors.kafka.metadata_client import OFFSETS_TOPIC
from tests.kit.brokers import Broker
from tests.kit.java_members import WAIT_S
from tests.kit.python_members import STRATEGIES, PythonMember
from tests.kit.topics import create_topic
from tests.udfs.group.group_script import T0, Script
from udfs.kafka.consumer_offsets import events_of
from udfs.model.comparability import LEADER_METADATA_STALE
from udfs.model.events import GroupSnapshot, TopicQueues
from udfs.model.journal import FindingOpened, Rebalance

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]

_COUNTS = (5, 3)
_GROUPS = [(library, strategy) for library, strategies in STRATEGIES.items() for strategy in strategies]


def test_each_generation_is_recomputed_as_its_leaders_library_assigns(kafka41: Broker) -> None:
    with ThreadPoolExecutor(len(_GROUPS)) as pool:
        playing = {pair: pool.submit(_play, kafka41, *pair) for pair in _GROUPS}
        histories = {pair: history.result() for pair, history in playing.items()}
    for (library, strategy), history in histories.items():
        script = _decided(history)
        rows = [row for row in script.rebalances if row.members_after]
        assert len(rows) >= 4, (library, strategy)
        for row in rows:
            shown = (library, strategy, row.generation, row.triggers, row.queues_differing)
            assert row.library == library, shown
            assert row.strategy == f"kafka.{strategy}"
            assert row.agrees or (row.agrees is None and row.agrees_reason == LEADER_METADATA_STALE), shown
            assert _is_explained(row, library), shown
        joined = [trigger for row in rows for trigger in row.triggers if trigger.kind == "member_joined"]
        assert len(joined) == 3, (library, strategy, joined)
        found = {body.finding for body in script.bodies(FindingOpened)}
        assert "expected_differs" not in found


def _is_explained(row: Rebalance, library: str) -> bool:
    kinds = {trigger.kind for trigger in row.triggers}
    expected = {"group_created", "member_joined", "member_left", "member_gone", "cooperative_follow_up"}
    if library != "kafka-python":
        return bool(kinds) and kinds <= expected
    # Its leader may have no metadata when it assigns first; and it joins again by itself, which nothing records.
    changed = row.queues_assigned + row.queues_revoked + row.queues_moved + row.members_after - row.members_before
    return kinds <= expected | {"topic_learned"} or (kinds == {"unexplained"} and not changed)


def _play(broker: Broker, library: str, strategy: str) -> list[GroupSnapshot]:
    """Let three members join, one with a client id of its own, one static; then let the first leave."""
    group = f"libraries-{library}-{strategy}"
    topics = [f"{group}.{number}" for number in range(len(_COUNTS))]
    for topic, count in zip(topics, _COUNTS, strict=True):
        create_topic(broker, topic, count)
    with ExitStack() as stack:
        first = PythonMember(library, broker, group, topics, strategy)
        stack.callback(first.stop)
        _wait_for(broker, group, 1)
        stack.enter_context(PythonMember(library, broker, group, topics, strategy, client_id="billing"))
        _wait_for(broker, group, 2)
        stack.enter_context(PythonMember(library, broker, group, topics, strategy, instance_id="static"))
        _wait_for(broker, group, 3)
        first.stop()
        return _wait_for(broker, group, 2)


def _wait_for(broker: Broker, group: str, members: int) -> list[GroupSnapshot]:
    """Return the group's generations once the last one has these members and all partitions have owners."""
    found: list[GroupSnapshot] = []

    def is_there() -> bool:
        found[:] = _generations(broker, group)
        held = [queue for queues in (found[-1].assignments or {}).values() for queue in queues] if found else []
        # kafka-python may leave members out: some of its generations give everything to few.
        return bool(found) and len(found[-1].members) == members and len(held) == sum(_COUNTS)

    _wait_until(is_there, f"{group}: {members} members")
    return found


def _wait_until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 2 * WAIT_S  # many groups live beside each other
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


def _generations(broker: Broker, group: str) -> list[GroupSnapshot]:
    consumer = Consumer(
        {**broker.client_settings(), "group.id": "reader", "enable.auto.commit": False, "enable.partition.eof": True}
    )
    try:
        consumer.assign([TopicPartition(OFFSETS_TOPIC, 0, 0)])
        found: list[GroupSnapshot] = []
        while True:
            message = consumer.poll(WAIT_S)
            assert message is not None
            if message.error() is not None:
                return found
            for event in events_of(message.key(), message.value(), message.timestamp()[1], "c"):
                if isinstance(event, GroupSnapshot) and event.group == group:
                    found.append(event)
    finally:
        consumer.close()


def _decided(history: list[GroupSnapshot]) -> Script:
    """Return what the core decides of a group's records."""
    script = Script()
    start = history[0].event_time - T0 - 1000
    names = sorted(
        {topic for snapshot in history for member in snapshot.members for topic in member.subscriptions or ()}
    )
    for topic, count in zip(names, _COUNTS, strict=True):
        script.event(TopicQueues, start, topic=topic, queue_count=count)
    for place, snapshot in enumerate(history):
        script.waiting.append(msgspec.structs.replace(snapshot, group="g", event_id=f"r{place}"))
    return script.run(history[-1].event_time - T0 + 1000)
