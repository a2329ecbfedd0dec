"""Proxies in a round: what they answer, and what those cost that do not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streaming.collectors.rocketmq.remoting import bodies
from streaming.collectors.rocketmq.remoting.codes import RequestCode, ResponseCode
from streaming.collectors.rocketmq.remoting.frames import Frame
from tests.kit.rocketmq_script import Script
from tests.kit.rocketmq_server import Answer, Place, ScriptedRocketMq
from tests.streaming.collectors.rocketmq.collected import Collected, members, rounds_until_answering
from tests.streaming.collectors.rocketmq.golden_answers import recorded
from udfs.model.events import AnyEvent, GroupSettings, GroupSnapshot

PROXIES = ("proxy-1", "proxy-2")
NOT_SUPPORTED: Answer = (ResponseCode.REQUEST_CODE_NOT_SUPPORTED, b"", "request type not supported")
_LONG_MS = 60_000


def answer_of_proxy(request: Frame) -> Answer:
    """Return what a real one answered, which was recorded: it has a client of gRPC in one group."""
    if request.code != RequestCode.GET_CONSUMER_CONNECTION_LIST:
        return NOT_SUPPORTED
    name = "proxy-modern" if request.fields["consumerGroup"] == "modern" else "proxy-nobody"
    found = recorded("5.5.0", name)
    return found.code, found.body, found.remark


@pytest.fixture
def cluster(script: Script) -> Iterator[ScriptedRocketMq]:
    with with_proxies(script) as cluster:
        yield cluster


@contextmanager
def with_proxies(script: Script) -> Iterator[ScriptedRocketMq]:
    """Run two proxies beside the brokers; no name server knows them."""
    for name in PROXIES:
        script.brokers[name] = type(script.brokers["broker-a"])(name, is_registered=False)
        for topic in script.topics.values():
            topic.queues.pop(name, None)
    script.add_group("modern", ["orders"])
    with ScriptedRocketMq(script) as cluster:
        for name in PROXIES:
            cluster.places[name].override = answer_of_proxy
        yield cluster


@contextmanager
def collecting(cluster: ScriptedRocketMq, folder: Path, **options: object) -> Iterator[Collected]:
    chosen = {"broker_timeout_ms": _LONG_MS, "client_timeout_ms": _LONG_MS, **options}
    proxies = tuple(cluster.address_of(name) for name in PROXIES)
    collected = Collected(cluster, folder, proxies=proxies, include_groups=("billing", "modern"), **chosen)
    try:
        yield collected
    finally:
        collected.collector.stop()


def of_group(events: list[AnyEvent], name: str) -> list[GroupSnapshot]:
    return [event for event in events if isinstance(event, GroupSnapshot) and event.group == name]


def detail(collected: Collected) -> str:
    return collected.collector.status().detail or ""


def place(cluster: ScriptedRocketMq, name: str) -> Place:
    return cluster.places[name]


def test_each_proxy_is_asked_for_each_group_and_for_nothing_else(cluster: ScriptedRocketMq, tmp_path: Path) -> None:
    with collecting(cluster, tmp_path) as collected:
        events = collected.round()
        (snapshot,) = of_group(events, "modern")
        (client,) = bodies.connections(recorded("5.5.0", "proxy-modern").body).connections
        assert [(member.member_id, member.host) for member in snapshot.members] == [
            (client.client_id, client.client_addr)
        ]
        assert [event.mode for event in events if isinstance(event, GroupSettings) and event.group == "modern"] == [
            "message"
        ]
        assert snapshot.observations == ()
        assert len(of_group(events, "billing")[0].members) == 3
        assert collected.round() == []
    for name in PROXIES:
        asked = {code: count for (where, code), count in cluster.requests_of.items() if where == name}
        assert asked == {RequestCode.GET_CONSUMER_CONNECTION_LIST: 4}
        assert place(cluster, name).accepted == 1  # the connection is kept
    assert client.client_id not in cluster.relayed


def test_a_proxy_that_is_away_is_named_and_its_members_stay(cluster: ScriptedRocketMq, tmp_path: Path) -> None:
    with collecting(cluster, tmp_path) as collected:
        collected.round()
        cluster.stop("proxy-1")
        assert members(collected.round()) == []
        assert f"the proxy {cluster.address_of('proxy-1')} does not answer since 20" in detail(collected)
        since = detail(collected).split(" (")[0]
        cluster.stop("proxy-2")
        (snapshot,) = of_group(collected.round(), "modern")
        assert [len(snapshot.members), [found.kind for found in snapshot.observations or ()]] == [1, ["not_polled"]]
        assert collected.collector.status().state == "connected"
        assert since in detail(collected)
        assert f"the proxy {cluster.address_of('proxy-2')} does not answer" in detail(collected)
        for name in PROXIES:
            cluster.start(name)
        (snapshot,) = of_group(rounds_until_answering(collected), "modern")
        assert snapshot.observations == ()
        assert collected.collector.status().detail is None


def test_a_proxy_that_hangs_gets_one_request_and_costs_no_other_server(
    cluster: ScriptedRocketMq, script: Script, tmp_path: Path
) -> None:
    with collecting(cluster, tmp_path, broker_timeout_ms=2_000) as collected:
        rounds_until_answering(collected)
        place(cluster, "proxy-1").is_frozen = True
        place(cluster, "proxy-2").override = lambda request: (
            (ResponseCode.CONSUMER_NOT_ONLINE, b"", "not online")
            if request.code == RequestCode.GET_CONSUMER_CONNECTION_LIST
            else NOT_SUPPORTED
        )
        before = cluster.requests_of["proxy-1", RequestCode.GET_CONSUMER_CONNECTION_LIST]
        cluster.change(lambda: script.groups["billing"].members.pop())
        events = collected.round()
        assert cluster.requests_of["proxy-1", RequestCode.GET_CONSUMER_CONNECTION_LIST] == before + 1
        assert [len(snapshot.members) for snapshot in of_group(events, "billing")] == [2]
        # It had been listed by both; the one that answers received the heartbeats of all clients.
        assert [snapshot.members for snapshot in of_group(events, "modern")] == [()]
        assert "does not answer since" in detail(collected)
        place(cluster, "proxy-1").is_frozen = False
        rounds_until_answering(collected)


def test_a_proxy_that_refuses_access_is_named_so(cluster: ScriptedRocketMq, tmp_path: Path) -> None:
    for name in PROXIES:
        place(cluster, name).override = lambda _: (ResponseCode.NO_PERMISSION, b"", "no permission")
    with collecting(cluster, tmp_path) as collected:
        assert of_group(collected.round(), "modern") == []
        assert f"the proxy {cluster.address_of('proxy-1')} refuses access since 20" in detail(collected)


def test_a_group_that_a_proxy_refuses_is_not_polled_and_the_others_are(
    cluster: ScriptedRocketMq, tmp_path: Path
) -> None:
    def refuse_billing(request: Frame) -> Answer:
        is_refused = request.fields.get("consumerGroup") == "billing"
        return (ResponseCode.NO_PERMISSION, b"", "no permission") if is_refused else answer_of_proxy(request)

    place(cluster, "proxy-1").override = refuse_billing
    with collecting(cluster, tmp_path) as collected:
        (snapshot,) = of_group(collected.round(), "modern")
        assert len(snapshot.members) == 1
        assert collected.collector.status().unpolled == 1
        assert "proxy" not in detail(collected)


def test_without_groups_no_proxy_is_asked(tmp_path: Path) -> None:
    with with_proxies(Script(["broker-a"])) as cluster, collecting(cluster, tmp_path) as collected:
        cluster.change(cluster.script.groups.clear)
        collected.round()
        assert not any(name in PROXIES for name, _ in cluster.requests_of)
