"""The collector against servers that speak the protocol: outages, silent clients, restarts, and how much it asks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from streaming.collectors.event_log import EventFiles, Limits
from streaming.collectors.rocketmq.collector import RocketMqCollector
from streaming.collectors.rocketmq.remoting.codes import RequestCode, ResponseCode
from streaming.collectors.rocketmq.remoting.frames import Frame
from tests.cluster_options import rocketmq_options
from tests.kit.rocketmq_script import Script
from tests.kit.rocketmq_server import ScriptedRocketMq
from udfs.model.events import AnyEvent, AssignmentReported, Clock, GroupSnapshot, Progress, TopicQueues

_EVENT = msgspec.json.Decoder(AnyEvent)


@pytest.fixture
def script() -> Script:
    script = Script(["broker-a", "broker-b"])
    script.add_topic("orders", 4)
    script.add_group("billing", ["orders"], members=3)
    return script


@pytest.fixture
def cluster(script: Script) -> Iterator[ScriptedRocketMq]:
    with ScriptedRocketMq(script, relay_s=0.2) as cluster:
        yield cluster


class Collected:
    """A collector, and what it wrote."""

    def __init__(self, cluster: ScriptedRocketMq, folder: Path, **options: object) -> None:
        self.folder = folder
        self.log = EventFiles(folder, "rocketmq")
        self.collector = RocketMqCollector(
            rocketmq_options(*cluster.name_servers, cluster="test", **options),
            self.log,
        )
        self._read = len(self._events())

    def _events(self) -> list[AnyEvent]:
        lines = [line for file in sorted(self.folder.glob("*.jsonl")) for line in file.read_bytes().splitlines()]
        return [_EVENT.decode(line) for line in lines]

    def news(self) -> list[AnyEvent]:
        """Return what was written since this was asked last."""
        events = self._events()
        read, self._read = self._read, len(events)
        return events[read:]

    def round(self) -> list[AnyEvent]:
        """Take a complete round; return its events without the clock."""
        assert self.collector.observe_once()
        *events, clock = self.news()
        assert isinstance(clock, Clock)
        return events


@pytest.fixture
def collected(cluster: ScriptedRocketMq, tmp_path: Path) -> Iterator[Collected]:
    collected = Collected(cluster, tmp_path, broker_timeout_ms=2_000, client_timeout_ms=2_000)
    yield collected
    collected.collector.stop()


def members(events: list[AnyEvent]) -> list[list[str]]:
    return [[one.member_id for one in event.members] for event in events if isinstance(event, GroupSnapshot)]


def test_the_first_round_tells_topics_group_and_what_each_holds_and_the_second_the_time(collected: Collected) -> None:
    events = collected.round()
    topics = {event.topic: len(event.queues or ()) for event in events if isinstance(event, TopicQueues)}
    assert topics == {"orders": 8, "%RETRY%billing": 2}
    assert [len(ids) for ids in members(events)] == [3]
    held = {event.member_id: len(event.queues) for event in events if isinstance(event, AssignmentReported)}
    assert sorted(held.values()) == [2, 4, 4]
    assert collected.round() == []
    status = collected.collector.status()
    assert (status.state, status.detail, status.groups, status.topics, status.unpolled) == ("connected", None, 1, 2, 0)


def test_system_groups_and_topics_and_those_that_are_excluded_are_left_alone(
    script: Script, cluster: ScriptedRocketMq, tmp_path: Path
) -> None:
    script.add_topic("other", 1)
    script.add_group("audit", ["orders"], members=1)
    collected = Collected(cluster, tmp_path, exclude_groups=("aud.*",), include_topics=("orders",))
    events = collected.round()
    assert {event.group for event in events if isinstance(event, GroupSnapshot)} == {"billing"}
    assert {event.topic for event in events if isinstance(event, TopicQueues)} == {"orders", "%RETRY%billing"}
    collected.collector.stop()


def test_a_member_that_goes_and_queues_that_come_are_told_with_what_the_others_hold_then(
    script: Script, cluster: ScriptedRocketMq, collected: Collected
) -> None:
    collected.round()
    cluster.change(lambda: script.groups["billing"].members.pop())
    events = collected.round()
    assert [len(ids) for ids in members(events)] == [2]
    assert sum(len(event.queues) for event in events if isinstance(event, AssignmentReported)) == 10
    cluster.change(lambda: script.topics["orders"].queues.update({"broker-a": 7}))
    (grown, *reports) = collected.round()
    assert isinstance(grown, TopicQueues)
    assert len(grown.queues or ()) == 11
    assert {type(event) for event in reports} <= {AssignmentReported}


def test_what_waits_for_members_that_stand_still_is_told_round_after_round_without_another_question(
    script: Script, cluster: ScriptedRocketMq, collected: Collected
) -> None:
    stuck, moving = ("orders", "broker-a", 1), ("orders", "broker-b", 0)
    offsets = script.groups["billing"].offsets

    def told() -> list[tuple[tuple[str, str | None, int], int | None, int | None, bool]]:
        queues = [queue for event in collected.round() if isinstance(event, Progress) for queue in event.queues]
        return [((one.topic, one.broker, one.queue_id), one.offset, one.end_offset, one.moved) for one in queues]

    cluster.change(lambda: offsets.update({stuck: (3, 10), moving: (4, 4)}))
    assert told() == [(stuck, 3, 10, False)]
    assert told() == []
    asked = cluster.requests[RequestCode.GET_CONSUME_STATS]
    cluster.change(lambda: offsets.update({stuck: (3, 20), moving: (9, 9)}))
    assert told() == [(stuck, 3, 20, False), (moving, 9, 9, True)]
    cluster.change(lambda: offsets.update({stuck: (20, 20)}))
    assert told() == [(stuck, 20, 20, True)]
    assert cluster.requests[RequestCode.GET_CONSUME_STATS] - asked == 2 * 2  # each round, each broker


def test_a_broker_that_stops_and_starts_again_changes_nobodys_membership(
    script: Script, cluster: ScriptedRocketMq, collected: Collected
) -> None:
    collected.round()
    cluster.change(lambda: setattr(script.groups["billing"].members[2], "unseen_by", frozenset({"broker-a"})))
    collected.round()
    cluster.stop("broker-b")
    for _ in range(2):
        assert all(len(ids) == 3 for ids in members(collected.round()))
    assert "broker-b" in (collected.collector.status().detail or "")
    cluster.change(lambda: setattr(script.brokers["broker-b"], "booted_ms", 2_000_000_000_000))
    cluster.change(lambda: setattr(script.groups["billing"].members[2], "unseen_by", frozenset(script.brokers)))
    cluster.start("broker-b")
    events = [event for _ in range(3) for event in _rounds_until_answering(collected)]
    assert all(len(ids) == 3 for ids in members(events))


def test_brokers_that_start_anew_in_the_middle_of_a_round_are_no_evidence(
    script: Script, cluster: ScriptedRocketMq, collected: Collected
) -> None:
    collected.round()

    def start_anew(request: Frame) -> None:
        if request.code == RequestCode.GET_CONSUMER_CONNECTION_LIST:
            for broker in script.brokers.values():
                broker.booted_ms = 2_000_000_000_000
            for member in script.groups["billing"].members:
                member.unseen_by = frozenset(script.brokers)
            script.changed()

    for name in script.brokers:
        cluster.places[name].override = start_anew
    for _ in range(3):
        assert all(len(ids) == 3 for ids in members(collected.round()))


def _rounds_until_answering(collected: Collected) -> list[AnyEvent]:
    """Take rounds until no broker is in backoff."""
    events = collected.round()
    while collected.collector.status().detail is not None:
        events += collected.round()
    return events


def test_a_name_server_that_knows_nothing_yet_changes_nothing(
    script: Script, cluster: ScriptedRocketMq, collected: Collected
) -> None:
    collected.round()
    cluster.change(lambda: setattr(script, "has_routes", False))
    assert [collected.round() for _ in range(3)] == [[], [], []]
    cluster.change(lambda: setattr(script, "has_routes", True))
    assert collected.round() == []


def test_without_a_name_server_the_brokers_that_are_known_are_polled(
    script: Script, cluster: ScriptedRocketMq, collected: Collected
) -> None:
    collected.round()
    cluster.stop("name-server-0")
    cluster.change(lambda: script.groups["billing"].members.pop())
    assert [len(ids) for ids in members(collected.round())] == [2]
    status = collected.collector.status()
    assert status.state == "connected"
    assert "name server" in (status.detail or "")


def test_where_nobody_answers_nothing_is_told_and_the_state_says_so(
    cluster: ScriptedRocketMq, collected: Collected
) -> None:
    collected.round()
    for name in cluster.places:
        cluster.stop(name)
    assert not collected.collector.observe_once()
    assert collected.news() == []
    assert collected.collector.status().state == "away"
    for name in cluster.places:
        cluster.start(name)
    while not collected.collector.observe_once():
        pass
    assert members(collected.news()) == []


def test_a_cluster_that_does_not_let_us_in_has_refused(cluster: ScriptedRocketMq, collected: Collected) -> None:
    for name in ("broker-a", "broker-b"):
        cluster.places[name].override = lambda _: (ResponseCode.NO_PERMISSION, b"", "AclException: who are you")
    assert not collected.collector.observe_once()
    status = collected.collector.status()
    assert status.state == "refused"
    assert "who are you" in (status.detail or "")


def test_a_broker_that_takes_requests_and_answers_none_costs_its_own_time_and_no_evidence(
    script: Script, cluster: ScriptedRocketMq, collected: Collected
) -> None:
    collected.round()
    cluster.places["broker-b"].is_frozen = True
    cluster.change(lambda: script.groups["billing"].members.pop())
    assert [len(ids) for ids in members(collected.round())] == [2]
    cluster.places["broker-b"].is_frozen = False
    assert members(_rounds_until_answering(collected)) == []


def test_a_broker_that_is_slow_and_was_away_is_heard_though_no_round_waits_so_long(
    cluster: ScriptedRocketMq, tmp_path: Path
) -> None:
    collected = Collected(cluster, tmp_path, broker_timeout_ms=120_000)
    cluster.stop("broker-b")
    assert collected.collector.poll()
    cluster.places["broker-b"].delay_s = 1.5
    cluster.start("broker-b")

    def is_heard() -> bool:
        assert collected.collector.poll()
        return "broker-b" not in (collected.collector.status().detail or "")

    assert any(is_heard() for _ in range(200))
    collected.collector.stop()


def test_a_broker_under_another_address_is_found_again(cluster: ScriptedRocketMq, collected: Collected) -> None:
    collected.round()
    cluster.move("broker-b")
    assert members(collected.round()) == []
    assert collected.collector.status().detail is None


def test_a_client_that_never_answers_delays_nobody_and_is_asked_ever_more_seldom(
    script: Script, cluster: ScriptedRocketMq, tmp_path: Path
) -> None:
    for number in range(30):
        script.add_group(f"group-{number}", ["orders"], members=0)
        script.add_member(f"group-{number}", f"10.2.0.{number}@1")
    hanging = script.groups["billing"].members[0]
    hanging.is_silent = True
    cluster.relay_s = 60.0
    # Whoever waited for it would wait for longer than a test may last.
    collected = Collected(cluster, tmp_path, client_timeout_ms=250_000, running_info_share=1.0)
    for _ in range(4):
        assert collected.collector.poll()
    assert cluster.relayed[hanging.client_id] == 1  # it is still being asked
    others = [count for client_id, count in cluster.relayed.items() if client_id != hanging.client_id]
    assert len(others) == 32
    assert min(others) >= 3
    collected.collector.stop()


def test_members_are_asked_though_brokers_take_longer_to_answer_than_an_interval_is(
    cluster: ScriptedRocketMq, tmp_path: Path
) -> None:
    for place in cluster.places.values():
        place.delay_s = 0.1
    collected = Collected(cluster, tmp_path, poll_interval_ms=100)
    assert collected.collector.poll()
    events = collected.news()
    assert [len(ids) for ids in members(events)] == [3]
    assert len([event for event in events if isinstance(event, AssignmentReported)]) == 3
    collected.collector.stop()


def test_there_is_one_connection_to_each_server_whatever_is_asked(
    script: Script, cluster: ScriptedRocketMq, collected: Collected
) -> None:
    for number in range(200):
        script.add_group(f"group-{number}", ["orders"], members=3)
    collected.round()
    assert cluster.connections_most == 3
    # Each group once at each broker, each member once.
    assert cluster.requests[RequestCode.GET_CONSUMER_CONNECTION_LIST] == 201 * 2
    assert cluster.requests[RequestCode.GET_CONSUMER_RUNNING_INFO] == 201 * 3


def test_in_a_round_only_a_share_is_asked_and_a_group_that_changed_at_once(
    script: Script, cluster: ScriptedRocketMq, tmp_path: Path
) -> None:
    for number in range(39):
        script.add_group(f"group-{number}", ["orders"], members=1)
        script.groups[f"group-{number}"].members[0].client_id = f"c{number}@1"
    first = Collected(cluster, tmp_path)
    first.round()
    first.collector.stop()
    # Another process knows them all: no group is new to it.
    again = Collected(cluster, tmp_path, running_info_share=0.1)
    cluster.relayed.clear()
    assert again.collector.poll()
    assert sum(cluster.relayed.values()) == 5  # a tenth of 42
    cluster.relayed.clear()
    cluster.change(lambda: script.add_member("group-7", "new@1"))
    assert again.collector.poll()
    assert {"new@1", "c7@1"} <= cluster.relayed.keys()
    assert [sorted(ids) for ids in members(again.news())] == [["c7@1", "new@1"]]
    again.collector.stop()


def test_another_process_goes_on_where_this_one_stopped(
    script: Script, cluster: ScriptedRocketMq, tmp_path: Path
) -> None:
    first = Collected(cluster, tmp_path)
    first.round()
    first.collector.stop()
    second = Collected(cluster, tmp_path)
    assert second.round() == []
    second.collector.stop()
    cluster.change(lambda: script.groups["billing"].members.pop())
    third = Collected(cluster, tmp_path)
    assert [len(ids) for ids in members(third.round())] == [2]
    third.collector.stop()


def test_a_memory_that_is_unreadable_is_not_believed(
    cluster: ScriptedRocketMq, collected: Collected, tmp_path: Path
) -> None:
    collected.log.keep_memory(b"{broken")
    again = Collected(cluster, tmp_path)
    assert [len(ids) for ids in members(again.round())] == [3]
    again.collector.stop()


def test_what_the_log_does_not_take_is_told_again(
    script: Script, cluster: ScriptedRocketMq, collected: Collected, monkeypatch: pytest.MonkeyPatch
) -> None:
    collected.round()
    cluster.change(lambda: script.groups["billing"].members.pop())

    def refuse(events: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(collected.log, "append", refuse)
        assert not collected.collector.observe_once()
    assert collected.collector.status().state == "unwritable"
    assert [len(ids) for ids in members(collected.round())] == [2]
    assert collected.collector.status().state == "connected"


def test_times_never_go_back_though_the_machines_clock_does(
    cluster: ScriptedRocketMq, collected: Collected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collected.round()
    last_ms = collected.collector.status().clock_ms
    assert last_ms is not None
    collected.collector.stop()
    monkeypatch.setattr("time.time_ns", lambda: 0)
    again = Collected(cluster, tmp_path)
    assert again.round() == []
    assert (again.collector.status().clock_ms or 0) > last_ms
    again.collector.stop()


def test_started_it_tells_by_itself_and_stops_at_once_also_while_a_server_says_nothing(
    script: Script, cluster: ScriptedRocketMq, tmp_path: Path
) -> None:
    class Watched(EventFiles):
        """Reports when something was appended."""

        appended = threading.Semaphore(0)

        def append(self, events: object) -> None:
            super().append(events)
            self.appended.release()

    log = Watched(tmp_path, "rocketmq", Limits())
    options = rocketmq_options(*cluster.name_servers, cluster="test", poll_interval_ms=100, broker_timeout_ms=120_000)
    with RocketMqCollector(options, log):
        for _ in range(3):
            assert log.appended.acquire(timeout=60)
        for place in cluster.places.values():
            place.is_frozen = True
    assert len(list(tmp_path.glob("*.jsonl"))) >= 3
