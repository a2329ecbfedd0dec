import asyncio
import contextlib
import random
import ssl

import pytest

from streaming.collectors.rocketmq.remoting.codes import RequestCode, ResponseCode
from streaming.collectors.rocketmq.remoting.connection import connect, host_and_port
from streaming.collectors.rocketmq.remoting.errors import ProtocolError, RemotingError, TimedOut, Unreachable
from streaming.collectors.rocketmq.remoting.frames import MAX_HEADER_BYTES, Frame, FrameReader, encode
from tests.kit.processes import free_port
from tests.kit.rocketmq_script import Script
from tests.kit.rocketmq_server import ScriptedRocketMq
from tests.streaming.collectors.rocketmq.remoting.loop_time import pass_time, until

# The longest wait for something that must come; only a failing test waits this long.
_LONG_S = 60


@contextlib.asynccontextmanager
async def _peer(behave):
    """Listen on a port and let a coroutine serve each connection; return the address."""
    tasks = set()

    async def handle(reader, writer):
        tasks.add(asyncio.current_task())
        try:
            await behave(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _requests(reader, count):
    """Read this many requests."""
    frames, cutter = [], FrameReader()
    while len(frames) < count:
        data = await reader.read(65_536)
        if not data:
            break
        frames += cutter.feed(data)
    return frames


@contextlib.asynccontextmanager
async def _connected(address, **more):
    connection = await connect(address, timeout_s=_LONG_S, **more)
    try:
        yield connection
    finally:
        connection.close()
        await connection.wait_closed()


async def _failure(task):
    with pytest.raises(RemotingError) as caught:
        await task
    return caught.value


@pytest.mark.parametrize("seed", range(5))
def test_answers_come_in_any_order_between_notices(seed):
    chance = random.Random(seed)

    async def behave(reader, writer):
        out = []
        for request in await _requests(reader, 100):
            answer = encode(request.answer(0, request.fields["name"].encode()))
            # Twice: the second is an answer to nothing.
            out += [answer, answer, encode(Frame(40, request.opaque, flag=2)), encode(Frame(0, 10_000, flag=1))]
        chance.shuffle(out)
        stream = b"".join(out)
        while stream:
            size = chance.randint(1, 4_000)
            writer.write(stream[:size])
            await writer.drain()
            stream = stream[size:]
        await reader.read()

    async def main():
        async with _peer(behave) as address, _connected(address) as connection:
            requests = [connection.request(1, {"name": f"request {n}"}, timeout_s=_LONG_S) for n in range(100)]
            answers = await asyncio.gather(*requests)
            assert [answer.body for answer in answers] == [f"request {n}".encode() for n in range(100)]
            assert connection.in_flight == 0

    asyncio.run(main())


def test_a_request_of_the_server_is_no_answer():
    async def behave(reader, writer):
        (request,) = await _requests(reader, 1)
        writer.write(encode(Frame(307, request.opaque, fields={"clientId": "you"})))
        writer.write(encode(request.answer(0, b"answer")))
        await reader.read()

    async def main():
        async with _peer(behave) as address, _connected(address) as connection:
            assert (await connection.request(1, {}, timeout_s=_LONG_S)).body == b"answer"

    asyncio.run(main())


def test_a_silent_server_is_given_up_with_all_that_waits():
    async def main(cluster):
        async with _connected(cluster.name_servers[0]) as connection:
            waiting = asyncio.create_task(
                connection.request(RequestCode.GET_CONSUMER_RUNNING_INFO, {}, timeout_s=2 * _LONG_S)
            )
            task = asyncio.create_task(_failure(connection.request(105, {}, timeout_s=_LONG_S)))
            await until(lambda: cluster.requests_of["name-server-0", 105])
            pass_time(_LONG_S)
            failure = await task
            assert isinstance(failure, TimedOut)
            assert (failure.code, failure.timeout_s, failure.address) == (105, _LONG_S, cluster.name_servers[0])
            assert not connection.is_open
            assert "half open" in str(await _failure(waiting))
            assert "half open" in str(await _failure(connection.request(105, {}, timeout_s=_LONG_S)))

    with ScriptedRocketMq(Script()) as cluster:
        cluster.places["name-server-0"].is_frozen = True
        asyncio.run(main(cluster))


def test_a_slow_answer_costs_only_its_own_request():
    async def behave(reader, writer):
        slow, quick = await _requests(reader, 2)
        writer.write(encode(quick.answer(0, b"quick")))
        (again,) = await _requests(reader, 1)
        writer.write(encode(slow.answer(0, b"too late")))
        writer.write(encode(again.answer(0, b"again")))
        await reader.read()

    async def main():
        async with _peer(behave) as address, _connected(address) as connection:
            slow = asyncio.create_task(connection.request(1, {}, timeout_s=_LONG_S))
            quick = asyncio.create_task(connection.request(2, {}, timeout_s=_LONG_S))
            assert (await quick).body == b"quick"
            pass_time(_LONG_S)
            assert isinstance(await _failure(slow), TimedOut)
            # Something has come since the request: the connection works, and a reply that comes too late is dropped.
            assert (await connection.request(3, {}, timeout_s=_LONG_S)).body == b"again"

    asyncio.run(main())


def test_a_silent_member_is_waited_for_no_longer_than_its_broker_does():
    ended = []

    async def main(cluster):
        async with _connected(cluster.address_of("broker-a")) as connection:
            fields = {"consumerGroup": "billing", "clientId": "silent"}
            limits = {"timeout_s": _LONG_S, "relayed_s": 2 * _LONG_S}
            task = asyncio.create_task(
                _failure(connection.request(307, fields, **limits, on_end=lambda: ended.append(1)))
            )
            await until(lambda: cluster.relayed["silent"] == 1)
            pass_time(_LONG_S)
            assert isinstance(await task, TimedOut)
            # The broker is still busy with the request.
            assert (connection.is_open, connection.in_flight, ended) == (True, 1, [])
            assert (await connection.request(28, {}, timeout_s=_LONG_S)).code == ResponseCode.SUCCESS
            cluster.give_up_silent_members()
            await until(lambda: not connection.in_flight)
            assert ended == [1]
            # Now the broker does not answer either: after `relayed_s` it counts as done with the request.
            task = asyncio.create_task(
                _failure(connection.request(307, fields, **limits, on_end=lambda: ended.append(2)))
            )
            await until(lambda: cluster.relayed["silent"] == 2)
            pass_time(_LONG_S)
            assert isinstance(await task, TimedOut)
            assert (connection.in_flight, ended) == (1, [1])
            pass_time(_LONG_S)
            await until(lambda: not connection.in_flight)
            assert ended == [1, 2]
            assert connection.is_open

    script = Script()
    script.add_group("billing", [])
    script.add_member("billing", "silent", is_silent=True)
    with ScriptedRocketMq(script, relay_s=10 * _LONG_S) as cluster:
        asyncio.run(main(cluster))


@pytest.mark.parametrize(
    ("sent", "kind"),
    [
        (None, Unreachable),
        (b"\x7f\xff\xff\xff", ProtocolError),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", ProtocolError),
        (b"\x00\x00\x00\x06\x00\x00\x00\x02{}", ProtocolError),
        (b"\x00\x00", Unreachable),
    ],
)
def test_a_server_that_closes_or_sends_garbage_ends_all_that_waits(sent, kind):
    async def behave(reader, writer):
        await _requests(reader, 3)
        if sent is not None:
            writer.write(sent)
            await writer.drain()

    async def main():
        ended = []
        async with _peer(behave) as address, _connected(address) as connection:
            requests = [
                connection.request(n, {}, timeout_s=_LONG_S, relayed_s=_LONG_S, on_end=lambda: ended.append(1))
                for n in range(3)
            ]
            failures = await asyncio.gather(*requests, return_exceptions=True)
            assert [type(failure) for failure in failures] == [kind] * 3
            assert {failure.address for failure in failures} == {address}
            assert len({id(failure) for failure in failures}) == 3
            assert len(ended) == 3
            assert (connection.is_open, connection.in_flight) == (False, 0)
            assert isinstance(
                await _failure(connection.request(1, {}, timeout_s=1, on_end=lambda: ended.append(1))), Unreachable
            )
            assert len(ended) == 4

    asyncio.run(main())


def test_an_answer_longer_than_the_limit_closes_the_connection():
    async def behave(reader, writer):
        (request,) = await _requests(reader, 1)
        writer.write(encode(request.answer(0, b"x" * 2_000)))
        await reader.read()

    async def main():
        async with _peer(behave) as address, _connected(address, max_frame_bytes=1_000) as connection:
            assert isinstance(await _failure(connection.request(1, {}, timeout_s=_LONG_S)), ProtocolError)

    asyncio.run(main())


def test_a_request_that_is_too_long_is_not_sent():
    async def main(cluster):
        async with _connected(cluster.name_servers[0]) as connection:
            failure = await _failure(connection.request(105, {"topic": "x" * MAX_HEADER_BYTES}, timeout_s=_LONG_S))
            assert isinstance(failure, ProtocolError)
            assert failure.code == 105
            assert (await connection.request(106, {}, timeout_s=_LONG_S)).code == 0

    with ScriptedRocketMq(Script()) as cluster:
        asyncio.run(main(cluster))
        assert cluster.requests == {106: 1}


def test_closing_ends_what_waits_and_is_final():
    async def main(cluster):
        async with _connected(cluster.name_servers[0]) as connection:
            waiting = asyncio.create_task(connection.request(106, {}, timeout_s=_LONG_S))
            await asyncio.sleep(0)
            connection.close()
            connection.close()
            await connection.wait_closed()
            assert isinstance(await _failure(waiting), Unreachable)
            assert isinstance(await _failure(connection.request(106, {}, timeout_s=_LONG_S)), Unreachable)

    with ScriptedRocketMq(Script()) as cluster:
        cluster.places["name-server-0"].is_frozen = True
        asyncio.run(main(cluster))


def test_a_server_that_does_not_read_holds_requests_back_and_not_the_client():
    async def behave(reader, writer):
        await asyncio.sleep(_LONG_S)

    async def main():
        async with _peer(behave) as address, _connected(address) as connection:
            body = b"x" * 8_000_000
            requests = [connection.request(n, {}, body, timeout_s=_LONG_S) for n in range(5)]
            task = asyncio.gather(*requests, return_exceptions=True)
            await until(lambda: connection.in_flight == 5)
            pass_time(_LONG_S)
            failures = await task
            assert {type(failure) for failure in failures} <= {TimedOut, Unreachable}
            assert (connection.in_flight, connection.is_open) == (0, False)

    asyncio.run(main())


def test_cancelling_gives_the_place_back():
    async def main(cluster):
        ended = []
        async with _connected(cluster.name_servers[0]) as connection:
            task = asyncio.create_task(connection.request(106, {}, timeout_s=_LONG_S, on_end=lambda: ended.append(1)))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (connection.in_flight, ended, connection.is_open) == (0, [1], True)

    with ScriptedRocketMq(Script()) as cluster:
        cluster.places["name-server-0"].is_frozen = True
        asyncio.run(main(cluster))


@pytest.mark.parametrize(
    "address", ["", "host", "host:", ":1", "host:x", "host:0", "host:65536", "h:²", "a:" + "9" * 5_000]
)
def test_an_invalid_address_is_unreachable(address):
    assert isinstance(asyncio.run(_failure(connect(address, timeout_s=1))), Unreachable)


@pytest.mark.parametrize(
    ("address", "expected"), [("a.b:1", ("a.b", 1)), ("[::1]:9876", ("::1", 9876)), ("::1:9876", ("::1", 9876))]
)
def test_addresses(address, expected):
    assert host_and_port(address) == expected


def test_an_absent_server_is_unreachable():
    assert isinstance(asyncio.run(_failure(connect(f"127.0.0.1:{free_port()}", timeout_s=_LONG_S))), Unreachable)
    failure = asyncio.run(_failure(connect("no-such-host.invalid:9876", timeout_s=_LONG_S)))
    assert isinstance(failure, Unreachable)
    assert "no-such-host.invalid" in str(failure)
    assert isinstance(asyncio.run(_failure(connect("x" * 70 + ".invalid:1", timeout_s=_LONG_S))), Unreachable)


def _tls(key, authority):
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(key)
    return server, ssl.create_default_context(cafile=authority)


def test_tls(tls_of_this_machine):
    server, client = _tls(*tls_of_this_machine)

    async def main(cluster):
        async with _connected(cluster.name_servers[0], tls=client) as connection:
            requests = [connection.request(106, {}, timeout_s=_LONG_S) for _ in range(50)]
            assert {answer.code for answer in await asyncio.gather(*requests)} == {0}

    with ScriptedRocketMq(Script(), tls=server) as cluster:
        asyncio.run(main(cluster))


def test_an_unknown_certificate_is_unreachable(tls_of_this_machine):
    server, client = _tls(tls_of_this_machine[0], None)
    with ScriptedRocketMq(Script(), tls=server) as cluster:
        failure = asyncio.run(_failure(connect(cluster.name_servers[0], timeout_s=_LONG_S, tls=client)))
    assert isinstance(failure, Unreachable)
    assert "certificate" in str(failure).lower()


def test_a_handshake_without_an_answer_is_unreachable(tls_of_this_machine):
    _, client = _tls(*tls_of_this_machine)

    greeted = []

    async def behave(reader, writer):
        greeted.append(await reader.read(1))
        await asyncio.sleep(_LONG_S)

    async def main():
        async with _peer(behave) as address:
            task = asyncio.create_task(_failure(connect(address, timeout_s=_LONG_S, tls=client)))
            await until(lambda: greeted)
            pass_time(_LONG_S)
            assert isinstance(await task, Unreachable)

    asyncio.run(main())
