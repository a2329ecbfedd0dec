"""One round over a cluster: what a slow, restarted or moved broker costs, and how much is requested."""

from __future__ import annotations

from pathlib import Path

from streaming.collectors.rocketmq.remoting.codes import RequestCode
from streaming.collectors.rocketmq.remoting.frames import Frame
from tests.kit.rocketmq_script import Script
from tests.kit.rocketmq_server import ScriptedRocketMq
from tests.streaming.collectors.rocketmq.collected import Collected, members, rounds_until_answering
from udfs.model.events import AnyEvent


def poll(collected: Collected) -> list[AnyEvent]:
    """Take one round that may end without an answer; return its events."""
    collected.collector.poll()
    return collected.news()


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


def test_without_a_name_server_the_remembered_brokers_are_polled(
    script: Script, cluster: ScriptedRocketMq, collected: Collected
) -> None:
    collected.round()
    cluster.stop("name-server-0")
    cluster.change(lambda: script.groups["billing"].members.pop())
    assert [len(ids) for ids in members(collected.round())] == [2]
    status = collected.collector.status()
    assert status.state == "connected"
    assert "name server" in (status.detail or "")


def test_a_broker_that_takes_requests_and_answers_none_costs_its_own_time_and_no_evidence(
    script: Script, cluster: ScriptedRocketMq, tmp_path: Path
) -> None:
    collected = Collected(cluster, tmp_path, broker_timeout_ms=2_000)
    rounds_until_answering(collected)
    cluster.places["broker-b"].is_frozen = True
    cluster.change(lambda: script.groups["billing"].members.pop())
    # A round has no evidence if the other broker is late too.
    assert next(found for _ in range(50) if (found := [len(ids) for ids in members(poll(collected))])) == [2]
    cluster.places["broker-b"].is_frozen = False
    assert members(rounds_until_answering(collected)) == []
    collected.collector.stop()


def test_a_slow_broker_that_was_away_answers_though_no_round_waits_so_long(
    cluster: ScriptedRocketMq, tmp_path: Path
) -> None:
    collected = Collected(cluster, tmp_path, broker_timeout_ms=120_000)
    cluster.stop("broker-b")
    assert collected.collector.poll()
    cluster.places["broker-b"].delay_s = 1.5
    cluster.start("broker-b")

    def has_answered() -> bool:
        assert collected.collector.poll()
        return "broker-b" not in (collected.collector.status().detail or "")

    assert any(has_answered() for _ in range(200))
    collected.collector.stop()


def test_a_broker_under_another_address_is_found_again(cluster: ScriptedRocketMq, collected: Collected) -> None:
    collected.round()
    cluster.move("broker-b")
    assert members(collected.round()) == []
    assert collected.collector.status().detail is None


def test_there_is_one_connection_to_each_server_whatever_is_requested(
    script: Script, cluster: ScriptedRocketMq, collected: Collected
) -> None:
    for number in range(200):
        script.add_group(f"group-{number}", ["orders"], members=3)
    collected.round()
    assert cluster.connections_most == 3
    # Each group once at each broker, each member once.
    assert cluster.requests[RequestCode.GET_CONSUMER_CONNECTION_LIST] == 201 * 2
    assert cluster.requests[RequestCode.GET_CONSUMER_RUNNING_INFO] == 201 * 3
