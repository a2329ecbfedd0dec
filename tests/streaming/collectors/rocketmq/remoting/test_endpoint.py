"""One server: its connection, its number of requests, and when it is tried again."""

import asyncio
import re

import pytest

from streaming.collectors.rocketmq.remoting.client import ClientLimits
from streaming.collectors.rocketmq.remoting.codes import RequestCode, ResponseCode
from streaming.collectors.rocketmq.remoting.errors import ProtocolError, Refused, RemotingError, TimedOut, Unreachable
from streaming.collectors.rocketmq.remoting.signing import Credentials, sign
from tests.kit.rocketmq_server import ScriptedRocketMq
from tests.streaming.collectors.rocketmq.remoting.loop_time import pass_time, until
from tests.streaming.collectors.rocketmq.remoting.scripted_client import (
    LONG_S,
    PATIENT,
    always,
    failure_of,
    orders_script,
    run_client,
)


def test_many_requests_share_one_connection_and_wait_for_their_place():
    with ScriptedRocketMq(orders_script()) as cluster:
        place = cluster.places["broker-a"]
        place.delay_s = 0.01

        async def use(client):
            requests = [client.connections(place.address, "billing") for _ in range(300)]
            assert len(await asyncio.gather(*requests)) == 300

        run_client(cluster, use, limits=ClientLimits(request_timeout_s=LONG_S, requests_in_flight=7))
        assert place.waiting_most <= 7
        assert (place.accepted, cluster.connections_most) == (1, 1)


def test_silent_members_hold_only_the_places_of_members():
    script = orders_script(members=3)
    silent, still, well = script.groups["billing"].members
    silent.is_silent = still.is_silent = True
    with ScriptedRocketMq(script, relay_s=LONG_S) as cluster:
        broker = cluster.address_of("broker-a")

        async def use(client):
            ids = [silent.client_id, still.client_id]
            requests = [client.running_info(broker, "billing", client_id, timeout_s=1.0) for client_id in ids]
            task = asyncio.gather(*requests, return_exceptions=True)
            await until(lambda: [cluster.relayed[client_id] for client_id in ids] == [1, 1])
            pass_time(1.0)
            assert [type(answer) for answer in await task] == [TimedOut] * 2
            # Both slots stay taken until the broker itself gives up; requests that do not concern members go on.
            next_one = asyncio.create_task(client.running_info(broker, "billing", well.client_id))
            for _ in range(20):
                assert await client.connections(broker, "billing")
            assert cluster.relayed[well.client_id] == 0
            cluster.give_up_silent_members()
            assert (await next_one).strategy is not None
            # A request that waits long enough gets the broker's own answer.
            waiting = asyncio.create_task(failure_of(client.running_info(broker, "billing", silent.client_id)))
            await until(lambda: cluster.relayed[silent.client_id] == 2)
            cluster.give_up_silent_members()
            failure = await waiting
            assert (type(failure), failure.code) == (Refused, ResponseCode.CONSUME_MSG_TIMEOUT)

        run_client(
            cluster, use, limits=ClientLimits(request_timeout_s=LONG_S, relayed_timeout_s=LONG_S, relayed_in_flight=2)
        )


def test_a_cancelled_request_returns_its_place():
    with ScriptedRocketMq(orders_script()) as cluster:
        place = cluster.places["broker-a"]
        place.is_frozen = True

        async def use(client):
            for number in range(3):
                task = asyncio.create_task(client.broker_runtime(place.address))
                await until(lambda number=number: cluster.requests_of["broker-a", 28] > number)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            place.is_frozen = False
            assert await client.broker_runtime(place.address)

        run_client(cluster, use, limits=ClientLimits(request_timeout_s=LONG_S, requests_in_flight=1))


def test_a_broker_that_comes_back_is_queried_again():
    with ScriptedRocketMq(orders_script()) as cluster:
        broker = cluster.address_of("broker-a")

        async def use(client):
            assert await client.connections(broker, "billing")
            await asyncio.to_thread(cluster.stop, "broker-a")
            for _ in range(5):
                assert isinstance(await failure_of(client.connections(broker, "billing")), Unreachable)
            await asyncio.to_thread(cluster.start, "broker-a")
            answered = False
            while not answered:
                try:
                    answered = await client.connections(broker, "billing") is not None
                except Unreachable:
                    await asyncio.sleep(0.01)
            assert client.connections_open == 1

        run_client(cluster, use)


def test_a_broker_that_hangs_is_given_up_and_queried_again_when_it_wakes():
    with ScriptedRocketMq(orders_script()) as cluster:
        place = cluster.places["broker-a"]

        async def use(client):
            assert await client.connections(place.address, "billing")
            place.is_frozen = True
            task = asyncio.create_task(failure_of(client.connections(place.address, "billing")))
            await until(lambda: cluster.requests_of["broker-a", RequestCode.GET_CONSUMER_CONNECTION_LIST] == 2)
            pass_time(LONG_S)
            assert isinstance(await task, TimedOut)
            assert client.connections_open == 0
            place.is_frozen = False
            answered = False
            while not answered:
                try:
                    answered = await client.connections(place.address, "billing") is not None
                except RemotingError:
                    await asyncio.sleep(0.01)
            assert place.accepted >= 2

        run_client(cluster, use, limits=PATIENT)


def test_a_server_that_never_answers_is_tried_ever_less_often():
    with ScriptedRocketMq(orders_script()) as cluster:
        place = cluster.places["broker-a"]
        place.garbage = b"\xff" * 8

        async def use(client):
            began, waits = asyncio.get_running_loop().time(), []
            failures = [await failure_of(client.connections(place.address, "billing"))]
            assert isinstance(failures[0], ProtocolError)
            while place.accepted < 5:
                failure = await failure_of(client.connections(place.address, "billing"))
                waits += [float(text) for text in re.findall(r"tried again in ([\d.]+) s", str(failure))]
                await asyncio.sleep(0.005)
            # Each wait is up to twice as long as the one before, less a random half at most.
            assert asyncio.get_running_loop().time() - began >= (0.1 + 0.2 + 0.4 + 0.8) / 2
            assert max(waits) <= 0.1 * 2**4
            # Hundreds of requests that fail without waiting, and not one connection more.
            accepted = place.accepted
            requests = [client.connections(place.address, "billing") for _ in range(200)]
            failures = await asyncio.gather(*requests, return_exceptions=True)
            assert {type(error) for error in failures} <= {Unreachable, ProtocolError}
            assert place.accepted <= accepted + 1

        run_client(
            cluster, use, limits=ClientLimits(request_timeout_s=LONG_S, first_backoff_s=0.1, longest_backoff_s=LONG_S)
        )


def test_a_connection_that_has_answered_is_made_again_at_once():
    with ScriptedRocketMq(orders_script()) as cluster:
        place = cluster.places["broker-a"]

        async def use(client):
            for _ in range(5):
                assert await client.connections(place.address, "billing")
                await asyncio.to_thread(cluster.change, lambda: [peer.drop() for peer in place.peers])
                await until(lambda: client.connections_open == 0)
            assert place.accepted == 5

        run_client(cluster, use, limits=ClientLimits(request_timeout_s=LONG_S, first_backoff_s=LONG_S))


def test_a_server_that_shuts_down_is_unreachable_until_it_is_back():
    with ScriptedRocketMq(orders_script()) as cluster:
        place = cluster.places["broker-a"]

        async def use(client):
            assert await client.broker_runtime(place.address)
            place.override = always((ResponseCode.GO_AWAY, b"", "please go away"))
            assert isinstance(await failure_of(client.broker_runtime(place.address)), Unreachable)
            await until(lambda: client.connections_open == 0)
            place.override = None
            assert await client.broker_runtime(place.address)
            assert place.accepted == 2

        run_client(cluster, use)


def test_requests_are_signed():
    credentials = Credentials("key", "secret", "token")
    observed = []
    with ScriptedRocketMq(orders_script()) as cluster:
        place = cluster.places["broker-a"]
        place.override = observed.append
        broker = place.address

        async def use(client):
            await client.connections(broker, "billing")
            await client.query_assignment(broker, "billing", "orders", "x")

        run_client(cluster, use, credentials=credentials)
    assert dict(observed[0].fields) == sign({"consumerGroup": "billing"}, b"", credentials)
    assert dict(observed[1].fields) == sign({}, observed[1].body, credentials)
