"""The collector beside real brokers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest

from streaming.collectors.collector import source_status_of
from streaming.collectors.event_log import EventFiles
from streaming.collectors.kafka.collector import KafkaCollector
from streaming.collectors.kafka.metadata_client import MetadataClient
from streaming.collectors.kafka.options import KafkaOptions
from streaming.collectors.kafka.permissions import offsets_partitions
from streaming.collectors.kafka.topic_diff import ObservedTopic
from streaming.machine.clock import now_ms
from streaming.machine.process import since_boot_ms
from tests.kit.brokers import Broker, kafka_41
from tests.kit.members import Member
from tests.kit.processes import free_port
from tests.kit.topics import add_partitions, create_topic, delete_topic
from udfs.model.events import AnyEvent, Clock, GroupSnapshot, TopicQueues


def events_in(folder: Path) -> list[AnyEvent]:
    return [
        msgspec.json.decode(line, type=AnyEvent)
        for file in sorted(folder.glob("*.jsonl"))
        for line in file.read_bytes().splitlines()
    ]


def options_of(broker: Broker) -> KafkaOptions:
    properties = {key: value for key, value in broker.java_settings().items() if key != "bootstrap.servers"}
    return KafkaOptions(broker.bootstrap, "c", properties)


def topic_counts(folder: Path, topic: str) -> list[int | None]:
    return [event.queue_count for event in events_in(folder) if isinstance(event, TopicQueues) and event.topic == topic]


@pytest.mark.broker
def test_topics_that_are_made_grow_and_are_deleted_are_reported_once_each(each_kafka: Broker, tmp_path: Path) -> None:
    collector = KafkaCollector(options_of(each_kafka), EventFiles(tmp_path, "kafka"), dict)
    create_topic(each_kafka, "watched", 2)
    # A broker that is asked for its first time makes the offsets topic, which has no leader for a moment.
    assert any(collector.observe_once() for _ in range(50))
    for change in (lambda: add_partitions(each_kafka, "watched", 3), lambda: delete_topic(each_kafka, "watched"), None):
        assert collector.observe_once()
        assert collector.observe_once()
        if change is not None:
            change()
    collector.stop()
    assert topic_counts(tmp_path, "watched") == [2, 3, 0]
    assert not topic_counts(tmp_path, "__consumer_offsets")


@pytest.mark.broker
def test_a_clock_is_written_only_once_all_that_was_there_has_been_read(
    each_kafka: Broker, new_member: Callable[..., Member], tmp_path: Path
) -> None:
    topic = f"clocked-{each_kafka.version}"
    create_topic(each_kafka, topic, 1)
    member = new_member(each_kafka, "clocked", [topic], client_id="a")
    member.wait_until(lambda: len(member.owned) == 1)  # its generation is a record
    options = options_of(each_kafka)
    partitions = offsets_partitions(options)

    def ends() -> dict[int, int]:
        with MetadataClient(options) as view:
            return {number: end for number, (_, end) in view.offsets_bounds(partitions).items()}

    read = {number: max(0, end - 1) for number, end in ends().items()}
    collector = KafkaCollector(options, EventFiles(tmp_path, "kafka"), lambda: read)
    assert collector.observe_once()
    assert not collector.flush_clock()
    read.update(ends())  # at least the topics that the round noted
    assert [collector.flush_clock(), collector.flush_clock()] == [True, False]
    collector.stop()
    clocks = [event for event in events_in(tmp_path) if isinstance(event, Clock)]
    assert len(clocks) == 1
    assert clocks[0].event_time == collector.status().clock_ms


@pytest.mark.broker
def test_a_broker_that_is_away_is_visible_and_found_again(tmp_path: Path) -> None:
    with kafka_41(tmp_path / "broker") as broker:
        collector = KafkaCollector(
            options_of(broker),
            EventFiles(tmp_path / "events", "kafka"),
            dict,
            view=lambda options: MetadataClient(options, timeout_s=2.0),
        )
        # A broker that has only just started may leave a request without an answer.
        assert any(collector.observe_once() for _ in range(50))
        assert collector.status().state == "connected"
        broker.stop()
        assert not collector.observe_once()
        assert collector.status().state == "away"
        assert collector.status().detail
        broker.start()
        assert any(collector.observe_once() for _ in range(50))
        assert collector.status().state == "connected"
        collector.stop()


def test_a_cluster_that_is_not_there_is_away(tmp_path: Path) -> None:
    options = KafkaOptions(f"127.0.0.1:{free_port()}", "c")
    collector = KafkaCollector(
        options, EventFiles(tmp_path, "kafka"), dict, view=lambda wanted: MetadataClient(wanted, timeout_s=0.5)
    )
    assert not collector.observe_once()
    assert not collector.flush_clock()
    collector.stop()
    assert collector.status().state == "away"
    assert events_in(tmp_path) == []


class LosingView:
    """A cluster of one partition whose records before ``first`` have been deleted."""

    partial: str | None = None

    def __init__(self, first: int) -> None:
        self.first = first
        self.listed: dict[str, ObservedTopic | None] = {}

    def offsets_partitions(self) -> int:
        return 1

    def offsets_bounds(self, partitions: int) -> Mapping[int, tuple[int, int]]:
        return {0: (self.first, 100)}

    def record_time(self, partition: int, offset: int) -> int | None:
        return None

    def groups_under_way(self) -> dict[str, str]:
        return {}

    def new_protocol_groups(self) -> list[str]:
        return []

    def topics(self, former: object) -> dict[str, ObservedTopic | None]:
        return self.listed

    def complaints(self) -> list[object]:
        return []

    def close(self) -> None:
        pass


def collector_of(view: LosingView, log: EventFiles, read: Callable[[], dict[int, int]] = dict) -> KafkaCollector:
    """Return a collector of what a view shows; ``read``: up to where the query has read."""
    return KafkaCollector(
        KafkaOptions("h:1", "c"),
        log,
        read,
        view=lambda _options: view,  # type: ignore[arg-type,return-value]
    )


def test_a_log_that_cannot_be_written_is_visible_and_what_was_pending_is_reported_later(tmp_path: Path) -> None:
    class FullDisk(EventFiles):
        full = True

        def append(self, events: Sequence[AnyEvent]) -> None:
            if self.full:
                raise OSError(28, "No space left on device")
            super().append(events)

    log = FullDisk(tmp_path, "kafka")
    view = LosingView(first=0)
    collector = collector_of(view, log, lambda: {0: 100})
    view.listed = {"a": ObservedTopic(2)}
    assert not collector.observe_once()
    assert collector.status().state == "unwritable"
    log.full = False
    assert collector.observe_once()
    assert topic_counts(tmp_path, "a") == [2]
    log.full = True
    assert not collector.flush_clock()
    log.full = False
    assert collector.flush_clock()
    assert sum(isinstance(event, Clock) for event in events_in(tmp_path)) == 1


def test_partitions_without_a_leader_are_a_part_that_is_not_known(tmp_path: Path) -> None:
    view = LosingView(first=0)
    collector = collector_of(view, EventFiles(tmp_path, "kafka"))
    view.partial = "partitions without a leader: orders-1"
    assert collector.observe_once()
    assert source_status_of(collector.status(), since_boot_ms()).partial == "partitions without a leader: orders-1"
    view.partial = None
    assert collector.observe_once()
    assert source_status_of(collector.status(), since_boot_ms()).partial == ""


def test_a_rebalance_that_begins_while_a_poll_is_under_way_is_reported_by_the_next(tmp_path: Path) -> None:
    """A poll is dated by its beginning: its reports must not contain anything later."""

    class Rebalancing(LosingView):
        has_begun = False

        def offsets_bounds(self, partitions: int) -> Mapping[int, tuple[int, int]]:
            self.has_begun = True
            return super().offsets_bounds(partitions)

        def groups_under_way(self) -> dict[str, str]:
            return {"g": "PreparingRebalance"} if self.has_begun else {}

    view = Rebalancing(first=0)
    collector = collector_of(view, EventFiles(tmp_path, "kafka"))
    shown = []
    for _ in range(2):
        assert collector.observe_once()
        shown.append([event.group for event in events_in(tmp_path) if isinstance(event, GroupSnapshot)])
    assert shown == [[], ["g"]]


def test_a_rebalance_that_two_polls_lack_is_reported_as_over(tmp_path: Path) -> None:
    class Rebalanced(LosingView):
        polls = 0

        def groups_under_way(self) -> dict[str, str]:
            self.polls += 1
            return {"g": "PreparingRebalance"} if self.polls == 1 else {}

    view = Rebalanced(first=0)
    collector = collector_of(view, EventFiles(tmp_path, "kafka"))
    for _ in range(4):
        assert collector.observe_once()
    shown = [(event.state, event.members) for event in events_in(tmp_path) if isinstance(event, GroupSnapshot)]
    assert shown == [("PreparingRebalance", ()), ("Stable", ())]


def test_a_collector_that_starts_again_reports_that_a_rebalance_is_over(tmp_path: Path) -> None:
    class Rebalances(LosingView):
        now: ClassVar[dict[str, str]] = {"g": "PreparingRebalance", "h": "PreparingRebalance"}

        def groups_under_way(self) -> dict[str, str]:
            return dict(self.now)

    view = Rebalances(first=0)
    view.listed = {"a": ObservedTopic(2)}
    assert collector_of(view, EventFiles(tmp_path, "kafka")).observe_once()
    del view.now["g"]
    again = collector_of(view, EventFiles(tmp_path, "kafka"))
    for _ in range(3):
        assert again.observe_once()
    shown = [(event.group, event.state) for event in events_in(tmp_path) if isinstance(event, GroupSnapshot)]
    preparing = [(group, "PreparingRebalance") for group in "gh"]
    assert shown == [*preparing, preparing[1], ("g", "Stable")]
    assert topic_counts(tmp_path, "a") == [2]


@pytest.mark.parametrize(("took_ms", "dated", "shown"), [(1_500, 0, 1), (1_600, 100, 1), (10_000, 8_500, 0)])
def test_a_poll_that_a_hanging_broker_delays_reports_nothing_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, took_ms: int, dated: int, shown: int
) -> None:
    began = now = now_ms()

    class Hangs(LosingView):
        def groups_under_way(self) -> dict[str, str]:
            nonlocal now
            now += took_ms
            return {"g": "PreparingRebalance"}

    monkeypatch.setattr("streaming.collectors.kafka.collector.now_ms", lambda: now)
    view = Hangs(first=0)
    view.listed = {"a": ObservedTopic(2)}
    assert collector_of(view, EventFiles(tmp_path, "kafka")).observe_once()
    (topic,) = (event for event in events_in(tmp_path) if isinstance(event, TopicQueues))
    assert topic.event_time == began + dated
    groups = [event.event_time for event in events_in(tmp_path) if isinstance(event, GroupSnapshot)]
    assert groups == [began] * shown


def test_after_a_damaged_memory_all_topics_are_reported_again(tmp_path: Path) -> None:
    log = EventFiles(tmp_path, "kafka")
    log.keep_memory(b"{")
    view = LosingView(first=0)
    view.listed = {"a": ObservedTopic(2)}
    collector = collector_of(view, log)
    assert collector.observe_once()
    assert topic_counts(tmp_path, "a") == [2]


@pytest.mark.parametrize(("age_ms", "clocks"), [(30_000, 0), (60_001, 1)])
def test_records_read_by_the_query_get_a_clock_once_the_lateness_has_passed(
    tmp_path: Path, age_ms: int, clocks: int
) -> None:
    class Written(LosingView):
        """Its newest record is so old."""

        def record_time(self, partition: int, offset: int) -> int | None:
            return now_ms() - age_ms if offset == 99 else None

    read = {0: 99}
    collector = KafkaCollector(
        KafkaOptions("h:1", "c"),
        EventFiles(tmp_path, "kafka"),
        lambda: read,
        lateness_ms=60_000,
        view=lambda _options: Written(first=0),  # type: ignore[arg-type,return-value]
    )
    collector.write_early_clock()  # it is not connected yet
    assert collector.observe_once()
    collector.write_early_clock()
    assert not any(isinstance(event, Clock) for event in events_in(tmp_path))
    read[0] = 100
    collector.write_early_clock()
    collector.write_early_clock()
    assert sum(isinstance(event, Clock) for event in events_in(tmp_path)) == clocks


def test_a_record_just_read_bounds_the_brokers_clock_closer_than_the_last_round(
    tmp_path: Path,
) -> None:
    class Written(LosingView):
        """Its last round read records written three seconds before; the query reads the ones written just now."""

        def record_time(self, partition: int, offset: int) -> int | None:
            return now_ms() - (3_000 if offset == 99 else 0)

    read = {0: 100}
    collector = KafkaCollector(
        KafkaOptions("h:1", "c"),
        EventFiles(tmp_path, "kafka"),
        lambda: read,
        view=lambda _options: Written(first=0),  # type: ignore[arg-type,return-value]
    )
    assert collector.observe_once()
    collector.write_early_clock()
    assert collector.status().ahead_ms >= 3_000
    read[0] = 101
    collector.write_early_clock()
    assert collector.observe_once()
    assert collector.status().ahead_ms < 1_000


def test_a_new_record_is_sought_between_rounds_while_the_brokers_clock_has_no_close_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_000_000

    class Growing(LosingView):
        """Another record with each look, just written by a broker whose clock is 40 ms behind."""

        polls = 0

        def ends(self, partitions: Mapping[str, int]) -> dict[tuple[str, int], int]:
            self.polls += 1
            return {(topic, 0): 100 + self.polls for topic in partitions}

        def record_time(self, partition: int, offset: int) -> int | None:
            return now - 40 if offset > 100 else now - 3_000

    view = Growing(first=0)
    monkeypatch.setattr("streaming.collectors.kafka.collector.now_ms", lambda: now)
    collector = collector_of(view, EventFiles(tmp_path, "kafka"))
    assert collector.observe_once()
    polls, ahead = [], []
    for _ in range(6):
        now += 150
        collector.seek_new_record()
        polls.append(view.polls)
        assert collector.observe_once()
        ahead.append(collector.status().ahead_ms)
    # Every 300 ms at most, and no more once the bounds are close.
    assert polls == [1, 1, 2, 2, 2, 2]
    assert ahead[0] > 1_000 > ahead[2]
    assert ahead[2:] == [40] * 4
