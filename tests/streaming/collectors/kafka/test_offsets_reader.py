"""The reader of group records beside a real broker, and a log that cannot always be written."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from streaming.collectors.event_log import EventFiles, LogFull
from streaming.collectors.kafka.collector import KafkaCollector
from streaming.collectors.kafka.metadata_client import MetadataClient
from streaming.collectors.kafka.offsets_reader import OffsetsReader, fold
from streaming.collectors.kafka.permissions import offsets_partitions
from tests.kit.brokers import Broker, kafka_41
from tests.kit.members import Member
from tests.kit.topics import create_topic, expire_records
from tests.streaming.collectors.kafka.test_collector import events_in, options_of
from udfs.model.events import AnyEvent, Clock, GroupSnapshot, Progress, QueueOffset

_TIMEOUT_S = 120


class Disk(EventFiles):
    """``waits``: takes events, but has not written them yet; ``full``: takes no more events."""

    state = "free"
    refused = 0

    def append(self, events: Sequence[AnyEvent]) -> None:
        if self.state == "full" and events:
            self.refused += 1
            raise LogFull("No space left on device")
        super().append(events)

    def flush(self) -> bool:
        return self.state == "free" and super().flush()


def step_until(reader: OffsetsReader, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while not holds():
        assert time.monotonic() < deadline
        reader.step()


@pytest.mark.broker
def test_unlogged_records_are_re_read_and_reported_once(
    kafka41: Broker, new_member: Callable[..., Member], tmp_path: Path
) -> None:
    def generations() -> list[int | None]:
        snapshots = (event for event in events_in(tmp_path) if isinstance(event, GroupSnapshot))
        return [event.generation for event in snapshots if event.group == "held" and event.members]

    create_topic(kafka41, "held", 2)
    first = new_member(kafka41, "held", ["held"], client_id="a")
    first.wait_until(lambda: len(first.owned) == 2)
    options = options_of(kafka41)
    log = Disk(tmp_path, "groups")
    reader = OffsetsReader(options, log, partitions=offsets_partitions(options))
    log.state = "waits"
    step_until(reader, lambda: log.read_memory() is not None)
    assert reader.offsets_read() == {}
    log.state = "free"
    step_until(reader, lambda: generations() == [1])
    read = dict(reader.offsets_read())
    log.state = "full"
    second = new_member(kafka41, "held", ["held"], client_id="b")
    second.wait_until(lambda: len(second.owned) == 1)
    step_until(reader, lambda: log.refused > 1)
    assert reader.offsets_read() == read
    assert generations() == [1]
    log.state = "free"
    step_until(reader, lambda: second.generation in generations())
    reader.close()
    assert len(set(generations())) == len(generations())
    assert sum(reader.offsets_read().values()) > sum(read.values())


@pytest.mark.broker
def test_records_that_were_deleted_while_it_was_down_are_reported_and_the_rest_is_read(
    new_member: Callable[..., Member], tmp_path: Path
) -> None:
    # The test uses a broker of its own, because it deletes records that other tests need.
    often = {"log.retention.check.interval.ms": "100", "log.initial.task.delay.ms": "100"}
    with kafka_41(tmp_path / "broker", often) as broker:
        create_topic(broker, "cut", 2)
        member = new_member(broker, "cut", ["cut"], client_id="a")
        member.wait_until(lambda: len(member.owned) == 2)
        options = options_of(broker)
        log = EventFiles(tmp_path / "events", "groups")
        reader = OffsetsReader(options, log, partitions=1)
        step_until(reader, lambda: reader.offsets_read().get(0, 0) > 0)
        reader.close()
        read = reader.offsets_read()[0]
        other = new_member(broker, "cut", ["cut"], client_id="b")
        other.wait_until(lambda: len(other.owned) == 1)
        first = expire_records(broker, "__consumer_offsets")
        again = OffsetsReader(options, log, partitions=1)
        third = new_member(broker, "cut", ["cut"], client_id="c")
        third.wait_until(lambda: third.generation == 3)
        step_until(again, lambda: again.offsets_read().get(0, 0) > first)
        again.close()
    [lost] = [event for event in events_in(tmp_path / "events") if isinstance(event, Clock)]
    assert lost.lost is not None
    [loss] = lost.lost
    assert f"(partition 0: offsets {read} to {first - 1})" in loss.what
    generations = {event.generation for event in events_in(tmp_path / "events") if isinstance(event, GroupSnapshot)}
    assert 3 in generations


@pytest.mark.broker
def test_a_collector_alone_reports_what_a_consumer_was_assigned(
    each_kafka: Broker, new_member: Callable[..., Member], tmp_path: Path
) -> None:
    topic = f"collected-{each_kafka.version}"
    create_topic(each_kafka, topic, 3)
    member = new_member(each_kafka, "collected", [topic], client_id="a", commit_interval_ms=100)
    member.wait_until(lambda: len(member.owned) == 3)
    options = options_of(each_kafka)
    records = EventFiles(tmp_path, "groups")
    reader = OffsetsReader(options, records, partitions=offsets_partitions(options))
    collector = KafkaCollector(options, EventFiles(tmp_path, "kafka"), reader.offsets_read)
    assert collector.observe_once()
    while not collector.flush_clock():
        reader.step()
    reader.close()
    collector.stop()

    events = [event for event in events_in(tmp_path) if getattr(event, "group", "collected") == "collected"]
    snapshots = [event for event in events if isinstance(event, GroupSnapshot) and event.generation]
    assert [snapshot.generation for snapshot in snapshots] == [1]
    assert {
        name: tuple((queue.topic, queue.queue_id) for queue in queues)
        for name, queues in (snapshots[0].assignments or {}).items()
    } == {member.member_id: member.owned}
    assert len([event for event in events if isinstance(event, Clock)]) == 1
    again = OffsetsReader(options, records, partitions=1)
    assert again.offsets_read() == reader.offsets_read()
    again.close()


@pytest.mark.broker
def test_an_offset_that_was_committed_within_a_transaction_counts_once_the_transaction_does(
    kafka41: Broker, tmp_path: Path
) -> None:
    create_topic(kafka41, "paid", 1)
    consumer = Consumer({**kafka41.client_settings(), "group.id": "paid"})
    producer = Producer({**kafka41.client_settings(), "transactional.id": "paid"})
    producer.init_transactions(_TIMEOUT_S)
    for offset, is_kept in ((5, True), (9, False), (12, True)):
        producer.begin_transaction()
        place = TopicPartition("paid", 0, offset)
        producer.send_offsets_to_transaction([place], consumer.consumer_group_metadata(), _TIMEOUT_S)
        finish = producer.commit_transaction if is_kept else producer.abort_transaction
        finish(_TIMEOUT_S)
    consumer.close()
    options = options_of(kafka41)

    def commits() -> list[int | None]:
        events = [event for event in events_in(tmp_path) if isinstance(event, Progress) and event.group == "paid"]
        return [queue.offset for event in events for queue in event.queues]

    def ends() -> dict[int, int]:
        return {number: end for number, (_, end) in view.offsets_bounds(1).items()}

    reader = OffsetsReader(options, EventFiles(tmp_path, "groups"), partitions=1)
    with MetadataClient(options) as view:
        # The marker of the last transaction comes after the reply to its commit, and other tests write here too.
        step_until(reader, lambda: commits() == [5, 12])
        step_until(reader, lambda: dict(reader.offsets_read()) == ends())  # the reader skips transaction markers
    reader.close()
    assert commits() == [5, 12]


def test_commits_of_one_group_at_one_time_are_one_event() -> None:
    def commit(time_ms: int, group: str, queue_id: int, offset: int) -> Progress:
        queue = QueueOffset("t", queue_id, offset=offset)
        return Progress(schema_version=1, event_time=time_ms, system="kafka", cluster="c", group=group, queues=(queue,))

    folded = fold([commit(1, "a", 1, 5), commit(1, "b", 0, 1), commit(1, "a", 0, 7), commit(2, "a", 0, 8)])
    assert [(event.event_time, event.group, len(event.queues)) for event in folded] == [  # type: ignore[union-attr]
        (1, "a", 2),
        (1, "b", 1),
        (2, "a", 1),
    ]
    assert folded[0].queues == (QueueOffset("t", 0, offset=7), QueueOffset("t", 1, offset=5))  # type: ignore[union-attr]
