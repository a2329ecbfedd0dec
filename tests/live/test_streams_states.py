"""States of streams groups on the newest broker, beside what `kafka-streams-groups.sh --list --state` prints."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from confluent_kafka import Consumer, TopicPartition

from streaming.views.group_state_texts import state_text
from tests.kit.brokers import NEWEST, Broker, kafka_41
from tests.kit.kafka_tools import STREAMS_GROUPS, states_of
from tests.kit.other_groups import EVERY_KIND, FEATURES, join_streams_group
from tests.kit.topics import create_topic
from tests.live.collecting import collecting, run_of_folder
from tests.simulation.core_run import CoreRun
from udfs.model.journal import GroupChanged

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(600)]
# Heartbeats of a member: after one, its group has no target yet; after ten, the member has taken over its tasks.
_ONE, _ENOUGH = 1, 10
# Kafka writes these states as one word.
_SPELLED = {"NotReady": "not_ready"}


def test_each_state_of_a_streams_group_is_the_one_that_kafkas_own_tool_prints(tmp_path: Path) -> None:
    settings = EVERY_KIND | {"auto.create.topics.enable": "false"}
    with kafka_41(tmp_path / "broker", settings, features=FEATURES, version=NEWEST) as broker:
        create_topic(broker, "orders", 4)
        _find_coordinator(broker)
        with collecting(broker, tmp_path / "events"):
            join_streams_group(broker, "settled", "orders", _ENOUGH)
            join_streams_group(broker, "giving", "orders", _ENOUGH)
            # The first one is away, and gives nothing up.
            join_streams_group(broker, "giving", "orders", _ENOUGH)
            join_streams_group(broker, "waiting", "nowhere", _ENOUGH)
            join_streams_group(broker, "beginning", "orders", _ONE)
            theirs = states_of(broker, STREAMS_GROUPS)
    assert theirs == {
        "settled": "Stable",
        "giving": "Reconciling",
        "waiting": "NotReady",
        "beginning": "Assigning",
    }
    run = run_of_folder(tmp_path / "events")
    ours = {group: _state(run, group) for group in theirs}
    assert ours == {group: f"{_SPELLED.get(state, state.lower())} (not_followed)" for group, state in theirs.items()}
    assert [row for row in run.rebalances if row.group_id in theirs] == []


def _find_coordinator(broker: Broker) -> None:
    """Have the broker make its topic of group records, by a commit."""
    consumer = Consumer({**broker.client_settings(), "group.id": "loader"})
    try:
        consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
    finally:
        consumer.close()


def _state(run: CoreRun, group: str) -> str:
    bodies = [
        change.body for change in run.changes if change.group_id == group and isinstance(change.body, GroupChanged)
    ]
    return state_text(msgspec.structs.asdict(bodies[-1]))
