"""The collector that has only admin calls, beside a real broker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from streaming.collectors.event_log import EventFiles
from streaming.collectors.kafka.admin_kafka_collector import AdminKafkaCollector
from streaming.collectors.kafka.options import KafkaOptions
from tests.kit.brokers import Broker
from tests.kit.members import Member
from tests.kit.topics import create_topic, delete_topic
from tests.streaming.collectors.kafka.test_collector import events_in, topic_counts
from udfs.model.events import Clock, GroupDeleted, GroupSnapshot, TopicQueues

pytestmark = pytest.mark.broker


def collector_of(broker: Broker, folder: Path) -> AdminKafkaCollector:
    options = KafkaOptions(broker.bootstrap, "c", include_groups=("polled",))
    topics, groups = EventFiles(folder, "kafka"), EventFiles(folder, "kafka-polls")
    return AdminKafkaCollector(options, topics, groups, poll_interval_ms=100)


def poll(collector: AdminKafkaCollector) -> None:
    """Poll once; a coordinator that was just started says that it is loading."""
    assert any(collector.observe_once() for _ in range(100))


def sizes(folder: Path) -> list[int]:
    """Return the number of members in each new snapshot of the group."""
    reported = [
        event for event in events_in(folder) if isinstance(event, GroupSnapshot) and event.state in ("Stable", "Empty")
    ]
    return [len(snapshot.members) for snapshot in sorted(reported, key=lambda snapshot: snapshot.event_time)]


def test_a_group_is_reported_from_its_first_member_to_its_deletion_and_nothing_twice(
    kafka41: Broker, new_member: Callable[..., Member], tmp_path: Path
) -> None:
    create_topic(kafka41, "polled-topic", 2)
    member = new_member(kafka41, "polled", ["polled-topic"], client_id="a")
    member.wait_until(lambda: len(member.owned) == 2)
    collector = collector_of(kafka41, tmp_path)
    poll(collector)
    assert (collector.status().source, collector.status().groups) == ("admin", 1)
    collector.stop()

    collector = collector_of(kafka41, tmp_path)
    poll(collector)
    assert sizes(tmp_path) == [1], "what was reported before a restart is not reported again"
    member.stop()
    poll(collector)
    assert sizes(tmp_path) == [1, 0]

    admin = AdminClient(kafka41.client_settings())
    for answer in admin.delete_consumer_groups(["polled"]).values():
        answer.result(30)
    poll(collector)
    poll(collector)
    collector.stop()
    events = events_in(tmp_path)
    assert len([event for event in events if isinstance(event, GroupDeleted)]) == 1
    clocks = [event.event_time for event in events if isinstance(event, Clock)]
    assert len(clocks) == 5, "one with each poll"


def test_a_topic_that_is_made_again_under_its_name_has_another_id(kafka41: Broker, tmp_path: Path) -> None:
    create_topic(kafka41, "made-again", 2)
    collector = collector_of(kafka41, tmp_path)
    poll(collector)
    delete_topic(kafka41, "made-again")
    create_topic(kafka41, "made-again", 2)
    poll(collector)
    collector.stop()
    assert topic_counts(tmp_path, "made-again") == [2, 0, 2]
    named = [event for event in events_in(tmp_path) if isinstance(event, TopicQueues) and event.topic == "made-again"]
    assert len({event.topic_id for event in named if event.topic_id}) == 2
