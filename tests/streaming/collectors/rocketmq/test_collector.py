"""The collector against servers that speak the protocol: outages, silent clients, restarts, how much it requests."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from streaming.collectors.event_log import EventFiles, LogLimits
from streaming.collectors.rocketmq.collector import RocketMqCollector
from streaming.collectors.rocketmq.remoting.codes import RequestCode, ResponseCode
from streaming.machine import clock
from tests.cluster_options import rocketmq_options
from tests.kit.own_view import patch_in
from tests.kit.rocketmq_script import Script
from tests.kit.rocketmq_server import ScriptedRocketMq
from tests.streaming.collectors.rocketmq.collected import Collected, members, rounds_until_answering
from udfs.model.events import AssignmentReported, GroupSnapshot, Progress, QueueEnds, TopicQueues


def test_the_first_round_reports_topics_group_and_assignments_and_the_second_the_time(collected: Collected) -> None:
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


def test_departures_and_new_queues_are_reported_with_the_other_members_queues(
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
    assert {type(event) for event in reports} <= {AssignmentReported, QueueEnds}


def test_lag_of_paused_members_is_reported_each_round_without_another_request(
    script: Script, cluster: ScriptedRocketMq, collected: Collected
) -> None:
    stuck, moving = ("orders", "broker-a", 1), ("orders", "broker-b", 0)
    offsets = script.groups["billing"].offsets

    def offsets_reported() -> list[tuple[tuple[str, str | None, int], int | None, int | None, bool]]:
        events = [event for event in collected.round() if isinstance(event, Progress)]
        queues = [queue for event in events for queue in event.queues if queue.offset is not None]
        return [
            ((queue.topic, queue.broker, queue.queue_id), queue.offset, queue.end_offset, queue.moved)
            for queue in queues
        ]

    cluster.change(lambda: offsets.update({stuck: (3, 10), moving: (4, 4)}))
    first = offsets_reported()
    assert {(stuck, 3, 10, False), (moving, 4, 4, False)} <= set(first)
    assert offsets_reported() == []
    requests = cluster.requests[RequestCode.GET_CONSUME_STATS]
    cluster.change(lambda: offsets.update({stuck: (3, 20), moving: (9, 9)}))
    assert offsets_reported() == [(stuck, 3, 20, False), (moving, 9, 9, True)]
    cluster.change(lambda: offsets.update({stuck: (20, 20)}))
    assert offsets_reported() == [(stuck, 20, 20, True)]
    assert cluster.requests[RequestCode.GET_CONSUME_STATS] - requests == 2 * 2  # each round, each broker


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
    events = [event for _ in range(3) for event in rounds_until_answering(collected)]
    assert all(len(ids) == 3 for ids in members(events))


def test_a_name_server_that_knows_nothing_yet_changes_nothing(
    script: Script, cluster: ScriptedRocketMq, collected: Collected
) -> None:
    collected.round()
    cluster.change(lambda: setattr(script, "has_routes", False))
    assert [collected.round() for _ in range(3)] == [[], [], []]
    cluster.change(lambda: setattr(script, "has_routes", True))
    assert collected.round() == []


def test_without_an_answer_nothing_is_reported_and_the_state_is_away(
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


def test_another_process_continues_where_this_one_stopped(
    script: Script, cluster: ScriptedRocketMq, tmp_path: Path
) -> None:
    first = Collected(cluster, tmp_path)
    first.round()
    first.collector.stop()
    second = Collected(cluster, tmp_path)
    # Where queues begin is read again, as offsets are.
    assert {type(event) for event in second.round()} == {QueueEnds}
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


def test_events_refused_by_the_log_are_reported_again(
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
    patch_in(monkeypatch, clock, "time", time_ns=lambda: 0)
    again = Collected(cluster, tmp_path)
    assert {type(event) for event in again.round()} == {QueueEnds}
    assert (again.collector.status().clock_ms or 0) > last_ms
    again.collector.stop()


def test_started_it_reports_by_itself_and_stops_at_once_also_while_a_server_is_silent(
    script: Script, cluster: ScriptedRocketMq, tmp_path: Path
) -> None:
    class Watched(EventFiles):
        """Reports when something was appended."""

        appended = threading.Semaphore(0)

        def append(self, events: object) -> None:
            super().append(events)  # type: ignore[arg-type]
            self.appended.release()

    log = Watched(tmp_path, "rocketmq", LogLimits())
    options = rocketmq_options(*cluster.name_servers, cluster="test", poll_interval_ms=100, broker_timeout_ms=120_000)
    with RocketMqCollector(options, log):
        for _ in range(3):
            assert log.appended.acquire(timeout=60)
        for place in cluster.places.values():
            place.is_frozen = True
    assert len(list(tmp_path.glob("*.jsonl"))) >= 3


def test_members_are_queried_though_brokers_take_longer_to_answer_than_an_interval_is(
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
