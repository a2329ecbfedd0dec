import asyncio
import itertools
import json
import random
import ssl

import pytest

from streaming.collectors.rocketmq.remoting.client import ClientLimits, RocketMqClient
from streaming.collectors.rocketmq.remoting.codes import RequestCode, ResponseCode
from streaming.collectors.rocketmq.remoting.errors import ProtocolError, Refused, RemotingError, Unreachable
from streaming.collectors.rocketmq.remoting.frames import FrameReader, encode
from streaming.collectors.rocketmq.remoting.messages import (
    Assignment,
    LogBounds,
    MessageQueue,
    MessageRequestMode,
    QueueOffsets,
)
from streaming.collectors.rocketmq.remoting.signing import Credentials, sign
from tests.kit import rocketmq_admin
from tests.kit.processes import free_port
from tests.kit.rocketmq import rocketmq_49, rocketmq_55
from tests.kit.rocketmq_members import queues_of, wait_until_assigned
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


async def _at_last(use):
    """Request until there is an answer: on a busy machine a server may give a handshake up."""
    while True:
        try:
            return await use()
        except Unreachable:
            await asyncio.sleep(0.1)


def test_requests_to_a_cluster_are_answered():
    script = orders_script()
    script.modes["orders", "billing"] = ("POP", -1)
    script.groups["billing"].offsets["orders", "broker-a", 1] = (3, 10)
    script.stored_at["orders", "broker-a", 1] = 1_772_334_720_000
    first, second = script.groups["billing"].members
    with ScriptedRocketMq(script) as cluster:

        async def use(client):
            info = await client.cluster_info()
            broker = info.brokers["broker-a"].address
            assert broker == cluster.address_of("broker-a")
            queues = [MessageQueue("orders", "broker-a", number) for number in range(2)]
            route = await client.topic_route("orders")
            assert list(route.readable_queues()) == queues
            assert await client.topic_route("none") is None
            assert (await client.broker_runtime(broker)).version == "V5_5_0"
            assert (await client.topic_configs(broker))["orders"].read_queue_nums == 2
            assert "billing" in await client.groups(broker)
            reported = await client.connections(broker, "billing")
            assert [connection.client_addr for connection in reported.connections] == [first.address, second.address]
            assert await client.connections(broker, "none") is None
            running = await client.running_info(broker, "billing", second.client_id)
            assert list(running.queues) == queues[1:]
            stats = await client.consume_stats(broker, "billing")
            assert stats.offsets[queues[1]] == QueueOffsets(10, 3, 3, 1_772_334_720_000)
            script.starts["orders", "broker-a", 1] = 2
            bounds = await client.topic_stats(broker, "orders")
            assert bounds == {queues[0]: LogBounds(0, 0), queues[1]: LogBounds(2, 10)}
            assert await client.message_request_modes(broker) == (MessageRequestMode("orders", "billing", "POP", -1),)
            expected = (Assignment(MessageQueue("orders", "broker-a", -1), "POP"),)
            assert await client.query_assignment(broker, "billing", "orders", first.client_id) == expected
            assert await client.query_assignment(broker, "billing", "none", first.client_id) is None
            assert client.connections_open == 2

        run_client(cluster, use)
        assert cluster.connections_most == 2


def test_a_broker_of_4_does_not_know_what_5_knows():
    script = orders_script()
    script.brokers["broker-a"].version = "V4_9_7"
    with ScriptedRocketMq(script) as cluster:
        broker = cluster.address_of("broker-a")
        assert run_client(cluster, lambda client: client.message_request_modes(broker)) == ()
        assert run_client(cluster, lambda client: client.query_assignment(broker, "billing", "orders", "x")) is None


def _run_with_own_server(respond, use):
    """Let `use(client, broker)` run against a server that answers each request with `respond(request)`."""

    async def main():
        async def behave(reader, writer):
            cutter = FrameReader()
            while data := await reader.read(65_536):
                for request in cutter.feed(data):
                    writer.write(encode(respond(request)))
            writer.close()

        async with await asyncio.start_server(behave, "127.0.0.1", 0) as server:
            broker = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
            async with RocketMqClient(["127.0.0.1:1"], limits=PATIENT) as client:
                return await use(client, broker)

    return asyncio.run(main())


def _groups_in_pages(pages, total):
    """Return request 201 page by page, each with its data version; the last one again and again."""
    requests = []

    def respond(request):
        requests.append(dict(request.fields))
        version, names = pages[min(len(requests), len(pages)) - 1]
        table = {name: {"groupName": name} for name in names}
        body = json.dumps({"dataVersion": {"counter": version, "timestamp": 5}, "subscriptionGroupTable": table})
        return request.answer(0, body.encode(), fields={} if total is None else {"totalGroupNum": total})

    return requests, respond


@pytest.mark.parametrize(
    ("pages", "total", "expected", "sequences"),
    [
        ([(1, "abc")], "3", "abc", "0"),
        ([(1, "abc")], None, "abc", "0"),
        ([(1, "abc")], "odd", "abc", "0"),
        ([(1, "ab"), (1, "cd"), (1, "e")], "5", "abcde", "024"),
        # An entry was added meanwhile: the broker starts again, and so does the client.
        ([(1, "bc"), (2, "ab"), (2, "cd")], "4", "abcd", "022"),
        # Entries were deleted, or the total is wrong: an empty page is the end.
        ([(1, "ab"), (1, "")], "9", "ab", "02"),
        ([(1, "")], "9", "", "0"),
    ],
)
def test_a_table_may_come_in_pages(pages, total, expected, sequences):
    requests, respond = _groups_in_pages(pages, total)
    found = _run_with_own_server(respond, lambda client, broker: client.groups(broker))
    assert sorted(found) == list(expected)
    assert [fields["groupSeq"] for fields in requests] == list(sequences)
    assert "dataVersion" not in requests[0]
    for fields, (version, _) in zip(requests[1:], pages, strict=False):
        assert json.loads(fields["dataVersion"]) == {"counter": version, "timestamp": 5}


def test_a_table_that_never_ends_is_given_up():
    counter = itertools.count()

    def respond(request):
        body = {"dataVersion": {"counter": next(counter)}, "subscriptionGroupTable": {"a": {"groupName": "a"}}}
        return request.answer(0, json.dumps(body).encode(), fields={"totalGroupNum": "2"})

    failure = _run_with_own_server(respond, lambda client, broker: failure_of(client.groups(broker)))
    assert isinstance(failure, ProtocolError)
    assert next(counter) == 1_000


@pytest.mark.parametrize(
    ("code", "remark", "first_line"),
    [
        (ResponseCode.NO_PERMISSION, "no\n\tat java.lang.Thread.run(Thread.java:1)", "no"),
        (ResponseCode.SYSTEM_BUSY, None, None),
        (ResponseCode.SYSTEM_ERROR, "x" * 10_000, "x" * 500),
        (4_711, "", None),
    ],
)
def test_a_refusal_carries_code_and_first_line(code, remark, first_line):
    with ScriptedRocketMq(orders_script()) as cluster:
        cluster.places["broker-a"].override = always((code, b"", remark))
        broker = cluster.address_of("broker-a")
        for call in (
            lambda client: client.connections(broker, "billing"),
            lambda client: client.consume_stats(broker, "billing"),
            lambda client: client.running_info(broker, "billing", "x"),
            lambda client: client.message_request_modes(broker),
            lambda client: client.query_assignment(broker, "billing", "orders", "x"),
        ):
            failure = run_client(cluster, lambda client, call=call: failure_of(call(client)))
            assert (type(failure), failure.code, failure.remark) == (Refused, code, first_line)
            assert failure.address == broker


def test_a_body_that_is_wrong_names_server_code_and_field():
    with ScriptedRocketMq(orders_script()) as cluster:
        cluster.places["broker-a"].override = always((0, b'{"connectionSet":[{"clientId":7}]}', None))
        broker = cluster.address_of("broker-a")
        failure = run_client(cluster, lambda client: failure_of(client.connections(broker, "billing")))
        assert (type(failure), failure.code, failure.address) == (ProtocolError, 203, broker)
        assert "clientId" in str(failure)


def test_the_next_name_server_is_queried_when_one_is_down_or_silent_or_has_no_answer():
    script = orders_script()
    with ScriptedRocketMq(script, name_servers=3) as cluster:
        down, silent, well = cluster.name_servers
        cluster.stop("name-server-0")
        cluster.places["name-server-1"].is_frozen = True

        async def give_up_the_silent_one(call):
            before = cluster.requests_of["name-server-1", RequestCode.GET_BROKER_CLUSTER_INFO]
            call = asyncio.create_task(call)
            await until(lambda: cluster.requests_of["name-server-1", RequestCode.GET_BROKER_CLUSTER_INFO] > before)
            pass_time(LONG_S)
            return await call

        async def use(client):
            assert (await give_up_the_silent_one(client.cluster_info())).brokers
            # The server that answered gets the first request from then on.
            before = dict(cluster.requests_of)
            assert await client.topic_route("orders")
            assert (await client.cluster_info()).brokers
            for code in (RequestCode.GET_BROKER_CLUSTER_INFO, RequestCode.GET_ROUTEINFO_BY_TOPIC):
                assert cluster.requests_of["name-server-1", code] == before.get(("name-server-1", code), 0)

        run_client(cluster, use, [down, silent, well])
        failure = run_client(
            cluster, lambda client: give_up_the_silent_one(failure_of(client.cluster_info())), [down, silent]
        )
        assert isinstance(failure, Unreachable)
        assert failure.address == f"{down};{silent}"


def test_a_name_server_that_was_just_started_is_not_believed_alone():
    empty = {
        RequestCode.GET_BROKER_CLUSTER_INFO: (0, b'{"brokerAddrTable":{},"clusterAddrTable":{}}', None),
        RequestCode.GET_ROUTEINFO_BY_TOPIC: (ResponseCode.TOPIC_NOT_EXIST, b"", "No topic route info"),
    }
    with ScriptedRocketMq(orders_script(), name_servers=2) as cluster:
        cluster.places["name-server-0"].override = lambda request: empty.get(request.code)

        async def use(client):
            return await client.topic_route("orders"), (await client.cluster_info()).brokers

        assert all(run_client(cluster, use))
        # All of them refuse.
        cluster.places["name-server-1"].override = lambda request: empty.get(request.code)
        assert run_client(cluster, use) == (None, {})


def test_a_request_that_all_name_servers_refuse_is_refused():
    with ScriptedRocketMq(orders_script(), name_servers=2) as cluster:
        cluster.places["name-server-0"].override = always((ResponseCode.NO_PERMISSION, b"", "no"))
        cluster.stop("name-server-1")
        failure = run_client(cluster, lambda client: failure_of(client.cluster_info()))
        assert (type(failure), failure.code) == (Refused, ResponseCode.NO_PERMISSION)


def test_a_client_needs_a_name_server():
    with pytest.raises(ValueError, match="name server"):
        RocketMqClient([])


def test_a_broker_under_another_address_leaves_no_connection_behind():
    with ScriptedRocketMq(orders_script()) as cluster:
        before = cluster.address_of("broker-a")

        async def use(client):
            assert await client.connections(before, "billing")
            await asyncio.to_thread(cluster.move, "broker-a")
            after = (await client.cluster_info()).brokers["broker-a"].address
            assert after == cluster.address_of("broker-a") != before
            assert await client.connections(after, "billing")
            assert client.connections_open == 2  # with the name server's
            assert list(client._brokers) == [after]

        run_client(cluster, use)


def test_a_closed_client_is_closed():
    with ScriptedRocketMq(orders_script()) as cluster:
        place = cluster.places["broker-a"]
        place.is_frozen = True

        async def main():
            client = RocketMqClient(cluster.name_servers, limits=PATIENT)
            await client.cluster_info()
            waiting = asyncio.create_task(client.connections(place.address, "billing"))
            await until(lambda: cluster.requests_of["broker-a", 203])
            await client.close()
            await client.close()
            assert isinstance(await failure_of(waiting), Unreachable)
            assert isinstance(await failure_of(client.cluster_info()), Unreachable)
            assert isinstance(await failure_of(client.connections(place.address, "billing")), Unreachable)
            assert client.connections_open == 0

        asyncio.run(main())


@pytest.mark.parametrize("seed", range(3))
def test_every_call_ends_with_an_answer_or_a_remoting_error(seed):
    chance = random.Random(seed)
    script = orders_script(("broker-a", "broker-b"), members=3)
    script.groups["billing"].members[0].is_silent = True
    limits = ClientLimits(
        request_timeout_s=0.2, relayed_timeout_s=0.1, connect_timeout_s=1.0, first_backoff_s=0.01, longest_backoff_s=0.1
    )
    with ScriptedRocketMq(script, name_servers=2, relay_s=0.3) as cluster:
        places = list(cluster.places.values())

        def disturb():
            place = chance.choice(places)
            action = chance.randrange(6)
            if action == 0:
                cluster.stop(place.name)
            elif action == 1 and place.listener is None:
                cluster.start(place.name)
            elif action == 2:
                place.is_frozen = not place.is_frozen
            elif action == 3:
                place.garbage = chance.choice([None, b"\x00", chance.randbytes(40), b"\x7f\xff\xff\xff"])
            elif action == 4:
                place.delay_s = chance.choice([0.0, 0.05, 0.5])
            else:
                cluster.change(lambda: [peer.drop() for peer in place.peers])

        async def use(client):
            brokers = [cluster.address_of(name) for name in ("broker-a", "broker-b")]
            ids = [member.client_id for member in script.groups["billing"].members]
            for _ in range(25):
                await asyncio.to_thread(disturb)
                requests = [
                    *(client.connections(broker, "billing") for broker in brokers * 3),
                    *(client.running_info(broker, "billing", client_id) for broker in brokers for client_id in ids),
                    *(client.cluster_info(), client.topic_route("orders")),
                ]
                for answer in await asyncio.gather(*requests, return_exceptions=True):
                    if isinstance(answer, BaseException):
                        assert isinstance(answer, RemotingError), repr(answer)
            # Then quiet: it must come to rest, and answer.
            for place in places:
                place.is_frozen, place.garbage, place.delay_s = False, None, 0.0
                if place.listener is None:
                    await asyncio.to_thread(cluster.start, place.name)
            for broker in brokers:
                answered = False
                while not answered:
                    try:
                        answered = await client.connections(broker, "billing") is not None
                    except RemotingError:
                        await asyncio.sleep(0.01)
            assert client.connections_open <= 4

        run_client(cluster, use, limits=limits)


@pytest.mark.broker
def test_a_real_cluster(each_rocketmq, new_rocketmq_member):
    cluster, topic, group = each_rocketmq, "client-orders", "client-billing"
    cluster.create_topic(topic, 4)
    cluster.send(topic, 2)
    first_member, second_member = (
        new_rocketmq_member(cluster, group, [topic], instance=name) for name in ("one", "two")
    )
    wait_until_assigned([first_member, second_member], queues_of(topic, 4))
    ids = sorted([first_member.wait_until_started(), second_member.wait_until_started()])

    async def use(client):
        broker = (await client.cluster_info()).brokers["broker-a"].address
        assert broker == cluster.broker.address
        queues = [MessageQueue(topic, "broker-a", number) for number in range(4)]
        assert list((await client.topic_route(topic)).readable_queues()) == queues
        assert (await client.broker_runtime(broker)).version == f"V{cluster.version.replace('.', '_')}"
        assert (await client.topic_configs(broker))[topic].read_queue_nums == 4
        assert group in await client.groups(broker)
        reported = await client.connections(broker, group)
        assert sorted(connection.client_id for connection in reported.connections) == ids
        for member in (first_member, second_member):
            info = await client.running_info(broker, group, member.client_id)
            held = [queue for queue in info.queues if queue.topic == topic]
            assert held == [MessageQueue(*queue) for queue in member.held(topic)]
        # A broker lists a group's topic here only once a member has committed an offset of it.
        while not set(queues) <= set((await client.consume_stats(broker, group)).offsets):
            await asyncio.sleep(0.1)
        assert await client.connections(broker, "client-nobody") is None
        assert await client.topic_route("client-nobody") is None
        assert isinstance(await failure_of(client.running_info(broker, group, "client-nobody")), Refused)
        assigned = await client.query_assignment(broker, group, topic, ids[0])
        if cluster.version.startswith("5."):
            assert [assignment.message_queue for assignment in assigned] == queues[:2]
        else:
            assert assigned is None
        assert isinstance(await client.message_request_modes(broker), tuple)
        assert client.connections_open == 2

    run_client(cluster, use, [f"127.0.0.1:{free_port()}", cluster.address])


_AUTHENTICATION = "org.apache.rocketmq.auth.authentication.provider"
_SETTINGS_OF_ACCESS_CONTROL = {
    "4.9.7": {"aclEnable": "true"},
    "5.5.0": {
        "authenticationEnabled": "true",
        "authenticationProvider": f"{_AUTHENTICATION}.DefaultAuthenticationProvider",
        "authenticationMetadataProvider": f"{_AUTHENTICATION}.LocalAuthenticationMetadataProvider",
        "initAuthenticationUser": '{"username":"monitor","password":"its secret"}',
        "innerClientAuthenticationCredentials": '{"accessKey":"monitor","secretKey":"its secret"}',
        # Tables in pages.
        "enableSplitMetadata": "true",
        "splitMetadataSize": "3",
    },
}


@pytest.mark.broker
@pytest.mark.timeout(600)  # two servers make their keys: twice as long a start, a minute on a busy machine
@pytest.mark.parametrize(("version", "start"), [("4.9.7", rocketmq_49), ("5.5.0", rocketmq_55)])
def test_a_real_cluster_with_access_control_and_tls(version, start, tmp_path, monkeypatch):
    credentials = Credentials("monitor", "its secret")
    unsigned = rocketmq_admin.request

    def signed(address, code, fields=None, body=b""):
        texts = {
            name: str(value).lower() if value is not str(value) else value for name, value in (fields or {}).items()
        }
        return unsigned(address, code, sign(texts, body, credentials), body)

    monkeypatch.setattr(rocketmq_admin, "request", signed)
    accounts = tmp_path / "broker-a" / "conf" / "plain_acl.yml"
    accounts.parent.mkdir(parents=True)
    accounts.write_text("accounts:\n- accessKey: monitor\n  secretKey: its secret\n  admin: true\n")
    tls = ssl.create_default_context()
    tls.check_hostname = False
    tls.verify_mode = ssl.CERT_NONE  # the servers made their certificates themselves
    with start(tmp_path, _SETTINGS_OF_ACCESS_CONTROL[version], tls=True) as cluster:
        cluster.create_topic("orders", 3)

        async def use(client):
            broker = (await _at_last(client.cluster_info)).brokers["broker-a"].address
            assert await _at_last(lambda: client.broker_runtime(broker))
            assert (await client.topic_configs(broker))["orders"].read_queue_nums == 3
            assert {"TOOLS_CONSUMER", "SELF_TEST_C_GROUP"} <= set(await client.groups(broker))
            assert await client.query_assignment(broker, "billing", "orders", "x") is None
            return await client.topic_configs(broker)

        for layer in (tls, None):
            found = run_client(cluster, use, [cluster.address], tls=layer, credentials=credentials)
            assert {"orders", "TBW102", "broker-a"} <= set(found)
            for stranger in (None, Credentials("monitor", "a guess")):
                failure = run_client(
                    cluster, lambda client: failure_of(use(client)), [cluster.address], tls=layer, credentials=stranger
                )
                assert isinstance(failure, Refused)


def test_tls_is_used_for_every_connection(tls_of_this_machine):
    key, authority = tls_of_this_machine
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(key)
    with ScriptedRocketMq(orders_script(), tls=server) as cluster:

        async def use(client):
            broker = (await client.cluster_info()).brokers["broker-a"].address
            return await client.connections(broker, "billing")

        assert run_client(cluster, use, tls=ssl.create_default_context(cafile=authority))
        # The server closes a connection without a handshake by itself: no limit is needed.
        assert isinstance(run_client(cluster, lambda client: failure_of(use(client))), Unreachable)
