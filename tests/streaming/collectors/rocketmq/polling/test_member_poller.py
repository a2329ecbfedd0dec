"""Members queried through their brokers: without waiting for silent ones, and no more than a share."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest

from streaming.collectors.rocketmq.polling.member_poller import SILENT_AT_A_TIME, MemberPoller
from streaming.collectors.rocketmq.polling.member_schedule import MemberSchedule, PollRequest
from streaming.collectors.rocketmq.polling.survey import ObservedGroup
from streaming.collectors.rocketmq.remoting.codes import ResponseCode
from streaming.collectors.rocketmq.remoting.errors import ProtocolError, Refused, TimedOut, Unreachable
from streaming.collectors.rocketmq.remoting.messages import RunningInfo
from tests.kit.rocketmq_script import Script
from tests.kit.rocketmq_server import ScriptedRocketMq
from tests.streaming.collectors.rocketmq.collected import Collected, members
from tests.streaming.collectors.rocketmq.surveys import OPTIONS, connections, info


def test_a_client_that_never_answers_delays_no_other_and_is_queried_ever_more_rarely(
    script: Script, cluster: ScriptedRocketMq, tmp_path: Path
) -> None:
    for number in range(30):
        script.add_group(f"group-{number}", ["orders"], members=0)
        script.add_member(f"group-{number}", f"10.2.0.{number}@1")
    hanging = script.groups["billing"].members[0]
    hanging.is_silent = True
    cluster.relay_s = 60.0
    # The timeout is longer than a test may last: a test that waited for it would fail.
    collected = Collected(cluster, tmp_path, client_timeout_ms=250_000, running_info_share=1.0)
    for _ in range(4):
        assert collected.collector.poll()
    assert cluster.relayed[hanging.client_id] == 1  # its request still waits
    others = [count for client_id, count in cluster.relayed.items() if client_id != hanging.client_id]
    assert len(others) == 32
    assert min(others) >= 3
    collected.collector.stop()


def test_in_a_round_only_a_share_is_queried_and_a_group_that_changed_at_once(
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


class Client:
    """Replies as the test lets it."""

    def __init__(self, **answers: RunningInfo | Exception | None) -> None:
        self.answers = answers
        self.waiting: dict[str, asyncio.Future[RunningInfo]] = {}
        self.requests: list[tuple[str, str]] = []
        self.assigned: dict[str, str] = {}

    async def running_info(self, address: str, _group: str, client_id: str) -> RunningInfo:
        self.requests.append((address, client_id))
        answer = self.answers[client_id]
        if answer is None:
            self.waiting[client_id] = asyncio.get_running_loop().create_future()
            return await self.waiting[client_id]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def query_assignment(
        self, _address: str, _group: str, topic: str, _client_id: str, *, strategy: str
    ) -> list[SimpleNamespace]:
        self.assigned[topic] = strategy
        return [SimpleNamespace(mode="POP")]


def group_of(*ids: str) -> dict[str, ObservedGroup]:
    return {"g": ObservedGroup(lists={"a": connections(ids), "b": connections(ids)})}


def requests_for(*ids: str, is_silent: bool = False) -> list[PollRequest]:
    return [PollRequest("g", client_id, is_silent) for client_id in ids]


def poller(client: Client) -> MemberPoller:
    return MemberPoller(client, OPTIONS, MemberSchedule(1.0), lambda: 7)  # type: ignore[arg-type]


AT = {"a": "a:1", "b": "b:1"}


def test_each_answer_has_its_meaning() -> None:
    failures = {
        "timed_out": TimedOut("a:1", 307, 3.0),
        "relay_timed_out": Refused("a:1", 307, ResponseCode.CONSUME_MSG_TIMEOUT, None),
        "not_online": Refused("a:1", 307, ResponseCode.CONSUMER_NOT_ONLINE, "gone"),
        "too_old": Refused("a:1", 307, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, None),
        "garbled": ProtocolError("a:1", "no JSON"),
        "cut_off": Unreachable("a:1", "reset"),
    }
    groups = group_of("well", *failures)

    async def poll() -> None:
        client = Client(well=info(("t", "a", 0)), **failures)
        assert await poller(client).poll(requests_for("well", *failures), groups, AT, until=None) == 0

    asyncio.run(poll())
    found = {client_id: member.failure for client_id, member in groups["g"].members.items()}
    assert found == {
        "well": None,
        "timed_out": "silent",
        "relay_timed_out": "silent",
        "not_online": "offline",
        "too_old": "unable",
        "garbled": "unable",
    }
    assert groups["g"].members["not_online"].problem == "code 206: gone"


def test_an_answer_that_is_late_counts_in_a_later_round_and_is_not_requested_twice() -> None:
    client = Client(slow=None, quick=info())

    async def poll() -> None:
        polling, soon = poller(client), asyncio.get_running_loop().time() + 60
        first = group_of("slow", "quick")
        both = [*requests_for("slow", is_silent=True), *requests_for("quick")]
        await polling.poll(both, first, AT, until=soon)
        assert list(first["g"].members) == ["quick"]
        second = group_of("slow", "quick")
        await polling.poll(both, second, AT, until=soon)
        client.waiting["slow"].set_result(info())
        third = group_of("slow", "quick")
        await asyncio.sleep(0)
        await polling.poll([], third, AT, until=soon)
        assert list(third["g"].members) == ["slow"]
        await polling.close()

    asyncio.run(poll())
    assert [client_id for _, client_id in client.requests] == ["slow", "quick", "quick"]


def test_silent_members_take_few_places_of_a_broker() -> None:
    ids = [f"s{number}" for number in range(6)]
    client = Client(**dict.fromkeys(ids))
    groups = {"g": ObservedGroup(lists={"a": connections(ids)})}

    async def poll() -> None:
        polling = poller(client)
        await polling.poll(requests_for(*ids, is_silent=True), groups, AT, until=asyncio.get_running_loop().time() + 60)
        await asyncio.sleep(0)  # each task that was made begins
        await polling.close()

    asyncio.run(poll())
    assert len(client.requests) == SILENT_AT_A_TIME


def test_after_its_time_nothing_is_requested_and_what_was_left_out_is_counted() -> None:
    client = Client(c1=info(), c2=info())

    async def poll() -> int:
        begun = [*requests_for("c1", "c2"), *requests_for("c3", is_silent=True)]
        return await poller(client).poll(begun, group_of("c1", "c2"), AT, until=asyncio.get_running_loop().time())

    assert asyncio.run(poll()) == 2
    assert client.requests == []


def test_requests_alternate_among_the_brokers_that_list_a_member() -> None:
    client = Client(c1=info())

    async def poll() -> None:
        polling = poller(client)
        for _ in range(4):
            await polling.poll(requests_for("c1", "absent"), group_of("c1"), AT, until=None)

    asyncio.run(poll())
    assert sorted(address for address, _ in client.requests) == ["a:1", "a:1", "b:1", "b:1"]


def test_the_mode_of_a_topic_is_requested_where_members_leave_assigning_to_the_broker() -> None:
    server = info(topics=("t", "%RETRY%g"), clientRebalance="false")
    groups = group_of("c1", "c2")

    async def poll() -> None:
        client = Client(c1=server, c2=info())
        await poller(client).poll(requests_for("c1", "c2"), groups, AT, until=None)
        assert client.assigned == {"t": "AVG"}

    asyncio.run(poll())
    assert groups["g"].topic_modes == {"t": "POP"}


def test_a_defect_is_raised_and_not_taken_for_silence() -> None:
    async def poll() -> None:
        await poller(Client(c1=ZeroDivisionError())).poll(requests_for("c1"), group_of("c1"), AT, until=None)

    with pytest.raises(ZeroDivisionError):
        asyncio.run(poll())
