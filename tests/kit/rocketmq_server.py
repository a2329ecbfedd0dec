"""Servers that speak RocketMQ's remoting protocol and answer from a script: name servers and brokers, in one thread.

    script = Script(brokers=["broker-a", "broker-b"])
    script.add_topic("orders", 4)
    script.add_group("billing", ["orders"], members=3)
    with ScriptedRocketMq(script) as cluster:
        ...                                     # cluster.name_servers
        cluster.change(lambda: script.groups["billing"].members.pop())
        cluster.stop("broker-b")                # an outage; `start` takes the same port again

For loads, in a process of its own: ``python -m tests.kit.rocketmq_server --groups 2000 --members 10``; it prints one
line of JSON with its addresses and runs until its standard input is closed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import ssl
import sys
import threading
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Final, TypeVar

from streaming.collectors.rocketmq.remoting.codes import RequestCode, ResponseCode
from streaming.collectors.rocketmq.remoting.frames import Frame, FrameReader, encode
from tests.kit.processes import free_port
from tests.kit.rocketmq_script import Broker, Script

T = TypeVar("T")

_START_S: Final = 30
_ROUNDS: Final = 10  # of the loop: more than it needs from an accepted socket to a transport
Answer = tuple[int, bytes, str | None]  # code, body, remark
_UNANSWERED: Final[Answer] = (-1, b"", None)
_GIVEN_UP: Final[Answer] = (
    ResponseCode.CONSUME_MSG_TIMEOUT,
    b"",
    "consumer <G> <C> Timeout: wait response on the channel timeout, 10000(ms)",
)


@dataclass(eq=False)
class Place:
    """One address: a name server, or a broker, and how it behaves.

    Attributes:
        broker: None is a name server.
        is_frozen: it takes connections and requests and says nothing (half open, SIGSTOP).
        delay_s: before each answer.
        garbage: sent in place of each answer.
        override: asked before the script; None leaves it to the script.
        waiting: how many requests it has not answered yet; `waiting_most`: at most at one moment.
        accepted: how many connections it has taken.
    """

    name: str
    port: int
    broker: Broker | None = None
    is_frozen: bool = False
    delay_s: float = 0.0
    garbage: bytes | None = None
    override: Callable[[Frame], Answer | None] | None = None
    waiting: int = 0
    waiting_most: int = 0
    accepted: int = 0
    is_open: bool = False
    listener: asyncio.Server | None = None
    peers: set[_Peer] = field(default_factory=set)

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"


class ScriptedRocketMq:
    """The running servers of one script.

    Attributes:
        script: what they answer from.
        requests: how many came, by code.
        requests_of: how many came, by place and code.
        relayed: how many 307 came, by client id.
        connections_most: how many connections stood at one moment, at most.
        relay_s: after which a broker says 207 for a silent client (10 s in reality).
    """

    def __init__(
        self, script: Script, *, name_servers: int = 1, relay_s: float = 10.0, tls: ssl.SSLContext | None = None
    ) -> None:
        self.script = script
        self.requests: Counter[int] = Counter()
        self.requests_of: Counter[tuple[str, int]] = Counter()
        self.relayed: Counter[str] = Counter()
        self.connections_most = 0
        self.relay_s = relay_s
        self._tls = tls
        self._silent: dict[asyncio.TimerHandle, Callable[[], None]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="scripted RocketMQ", daemon=True)
        names = [f"name-server-{number}" for number in range(name_servers)]
        self.places = {name: Place(name, free_port()) for name in names}
        for broker in script.brokers.values():
            self._add_place(broker)

    def __enter__(self) -> ScriptedRocketMq:
        self._thread.start()
        for name in self.places:
            self.start(name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in self.places:
            self.stop(name)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def name_servers(self) -> list[str]:
        """The addresses of the name servers."""
        return [place.address for place in self.places.values() if place.broker is None]

    @property
    def connections(self) -> int:
        """How many connections stand."""
        return sum(len(place.peers) for place in self.places.values())

    def address_of(self, name: str) -> str:
        """Return where a broker or name server listens, also while it is stopped."""
        return self.places[name].address

    def change(self, action: Callable[[], T]) -> T:
        """Change the script between two answers."""

        async def do() -> T:
            try:
                return action()
            finally:
                self.script.changed()

        return self._run(do())

    def start(self, name: str) -> None:
        """Let it listen (again), on the port that it had."""
        self._run(self._start(self.places[name]))

    def stop(self, name: str) -> None:
        """Let it listen no more and drop its connections."""
        self._run(self._stop(self.places[name]))

    def add_broker(self, name: str) -> None:
        """Start one more broker and register it. It has no topics yet."""
        broker = Broker(name)
        self._add_place(broker)
        self.start(name)
        self.change(lambda: self.script.brokers.update({name: broker}))

    def move(self, name: str) -> None:
        """Restart a broker under another address."""
        self.stop(name)
        place = self.places[name]
        place.port = free_port()
        assert place.broker is not None
        place.broker.address = place.address
        self.start(name)
        self.change(lambda: None)

    def give_up_silent_members(self) -> None:
        """Let brokers answer 207 now for every silent member that they wait for."""

        async def do() -> None:
            for timer, reply in list(self._silent.items()):
                timer.cancel()
                reply()

        self._run(do())

    def notify(self, name: str, group: str) -> None:
        """Send a notice that nobody asked for over every connection (code 40)."""
        notice = encode(Frame(40, 1, flag=2, fields={"consumerGroup": group}))

        async def do() -> None:
            for peer in self.places[name].peers:
                peer.send(notice)

        self._run(do())

    def _add_place(self, broker: Broker) -> None:
        place = self.places[broker.name] = Place(broker.name, free_port(), broker)
        broker.address = place.address

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_START_S)

    def wait_for_silent_member(self, reply: Callable[[], None]) -> None:
        """Let a broker wait for a member as long as brokers do, and then say so."""

        def give_up() -> None:
            del self._silent[timer]
            reply()

        timer = self._loop.call_later(self.relay_s, give_up)
        self._silent[timer] = give_up

    async def _start(self, place: Place) -> None:
        place.is_open = True
        place.listener = await self._loop.create_server(
            lambda: _Peer(self, place), "127.0.0.1", place.port, ssl=self._tls
        )

    async def _stop(self, place: Place) -> None:
        if place.listener is not None:
            place.is_open = False
            # Nobody more is accepted, and who was half accepted becomes a transport: up to Python 3.11 a server that
            # is closed just then leaves the socket open.
            for listening in place.listener.sockets:
                self._loop.remove_reader(listening.fileno())
            for _ in range(_ROUNDS):
                await asyncio.sleep(0)
            place.listener.close()
            # Until every socket is closed, those too that are in their TLS handshake, which are no peers yet. From
            # Python 3.12 on `wait_closed` waits for them.
            deadline = self._loop.time() + _START_S
            while (len(place.peers) or getattr(place.listener, "_active_count", 0)) and self._loop.time() < deadline:
                for peer in list(place.peers):
                    peer.drop()
                await asyncio.sleep(0.001)
            await place.listener.wait_closed()
            place.listener = None

    def answer(self, place: Place, request: Frame) -> Answer:
        """Decide what a request is answered with; `_UNANSWERED`: the member is silent."""
        self.requests[request.code] += 1
        self.requests_of[place.name, request.code] += 1
        if place.override is not None and (chosen := place.override(request)) is not None:
            return chosen
        if place.broker is None:
            return self._as_name_server(request)
        return self._as_broker(place.broker, request)

    def _as_name_server(self, request: Frame) -> Answer:
        match request.code:
            case RequestCode.GET_BROKER_CLUSTER_INFO:
                return _success(self.script.cluster_info())
            case RequestCode.GET_ROUTEINFO_BY_TOPIC:
                topic = request.fields["topic"]
                return _success_or(
                    self.script.route(topic),
                    ResponseCode.TOPIC_NOT_EXIST,
                    f"No topic route info in name server for the topic: {topic}\nSee the documentation.",
                )
        return _unsupported(request)

    def _as_broker(self, broker: Broker, request: Frame) -> Answer:
        script = self.script
        match request.code:
            case RequestCode.GET_BROKER_RUNTIME_INFO:
                return _success(script.runtime(broker))
            case RequestCode.GET_ALL_TOPIC_CONFIG:
                return _success(script.topic_configs(broker))
            case RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG:
                return _success(script.group_configs(broker))
            case RequestCode.GET_ALL_MESSAGE_REQUEST_MODE if broker.version.startswith("V5"):
                return _success(script.request_modes())
            case RequestCode.GET_TOPIC_STATS_INFO:
                return _success(script.topic_stats(broker, request.fields["topic"]))
            case RequestCode.QUERY_ASSIGNMENT if broker.version.startswith("V5"):
                return self._assignment(json.loads(request.body))
        name = request.fields.get("consumerGroup")
        group = script.groups.get(name or "")
        match request.code:
            case RequestCode.GET_CONSUMER_CONNECTION_LIST:
                return _success_or(
                    script.connections(broker, group) if group else None,
                    ResponseCode.CONSUMER_NOT_ONLINE,
                    f"the consumer group[{name}] not online",
                )
            case RequestCode.GET_CONSUME_STATS:
                body = script.consume_stats(broker, group, request.fields.get("topic")) if group else None
                return _success(body or b'{"consumeTps":0.0,"offsetTable":{}}')
            case RequestCode.GET_CONSUMER_RUNNING_INFO:
                return self._relay(broker, request)
        return _unsupported(request)

    def _relay(self, broker: Broker, request: Frame) -> Answer:
        group, client_id = request.fields["consumerGroup"], request.fields["clientId"]
        self.relayed[client_id] += 1
        group_script = self.script.groups.get(group)
        for member in group_script.members if group_script else ():
            if member.client_id == client_id and broker.name not in member.unseen_by:
                assert group_script is not None
                if member.is_silent:
                    return _UNANSWERED
                if not member.knows_running_info:
                    return ResponseCode.REQUEST_CODE_NOT_SUPPORTED, b"", f" request type {request.code} not supported"
                return ResponseCode.SUCCESS, self.script.running_info(group_script, member), "not set any response code"
        return ResponseCode.SYSTEM_ERROR, b"", f"The Consumer <{group}> <{client_id}> not online"

    def _assignment(self, requested: dict[str, str]) -> Answer:
        group = self.script.groups.get(requested["consumerGroup"])
        topic = requested["topic"]
        if group is None or topic not in self.script.topics:
            return _success(b"{}")
        for member in group.members:
            if member.client_id == requested["clientId"]:
                return _success(self.script.assignment(group, member, topic))
        return _success(b'{"messageQueueAssignments":[]}')


class _Peer(asyncio.Protocol):
    """One connection to a place."""

    def __init__(self, cluster: ScriptedRocketMq, place: Place) -> None:
        self._cluster = cluster
        self._place = place
        self._reader = FrameReader()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if not self._place.is_open:
            transport.abort()
            return
        self._place.accepted += 1
        self._place.peers.add(self)
        self._cluster.connections_most = max(self._cluster.connections_most, self._cluster.connections)

    def connection_lost(self, exc: Exception | None) -> None:
        self._place.peers.discard(self)

    def data_received(self, data: bytes) -> None:
        for request in self._reader.feed(data):
            if self._place.is_frozen:
                self._cluster.requests_of[self._place.name, request.code] += 1
                continue
            self._place.waiting += 1
            self._place.waiting_most = max(self._place.waiting_most, self._place.waiting)
            answer = self._cluster.answer(self._place, request)
            delay_s = self._place.delay_s
            if answer is _UNANSWERED:
                self._cluster.wait_for_silent_member(partial(self._respond, request.opaque, _GIVEN_UP))
            elif delay_s:
                asyncio.get_running_loop().call_later(delay_s, self._respond, request.opaque, answer)
            else:
                self._respond(request.opaque, answer)

    def send(self, data: bytes) -> None:
        """Write bytes as they are."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def drop(self) -> None:
        """Close the connection without a word."""
        if self._transport is not None:
            self._transport.abort()

    def _respond(self, opaque: int, answer: Answer) -> None:
        self._place.waiting -= 1
        if self._place.garbage is not None:
            self.send(self._place.garbage)
            return
        code, body, remark = answer
        remark_field = "" if remark is None else f',"remark":{json.dumps(remark, ensure_ascii=False)}'
        header = (
            f'{{"code":{code:d},"flag":1,"language":"JAVA","opaque":{opaque}{remark_field},'
            '"serializeTypeCurrentRPC":"JSON","version":513}'
        ).encode()
        self.send(b"".join(((4 + len(header) + len(body)).to_bytes(4), len(header).to_bytes(4), header, body)))


def _success(body: bytes) -> Answer:
    return ResponseCode.SUCCESS, body, None


def _success_or(body: bytes | None, code: ResponseCode, remark: str) -> Answer:
    return (code, b"", remark) if body is None else _success(body)


def _unsupported(request: Frame) -> Answer:
    return ResponseCode.REQUEST_CODE_NOT_SUPPORTED, b"", f" request type {request.code} not supported"


def large_script(groups: int, members: int, brokers: int, topics: int) -> Script:
    """Make a cluster of many groups, each of one topic, with four queues of it on each broker."""
    script = Script([f"broker-{number}" for number in range(brokers)])
    for number in range(topics):
        script.add_topic(f"topic-{number}", 4)
    for number in range(groups):
        group = script.add_group(f"group-{number}", [f"topic-{number % topics}"])
        for member_number in range(members):
            script.add_member(group.name, f"10.{number // 250}.{number % 250}.{member_number}@{number}#{member_number}")
    return script


def main() -> int:
    """Serve a large cluster until standard input ends."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--groups", type=int, default=2_000)
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--brokers", type=int, default=2)
    parser.add_argument("--topics", type=int, default=200)
    chosen = parser.parse_args()
    with ScriptedRocketMq(large_script(chosen.groups, chosen.members, chosen.brokers, chosen.topics)) as cluster:
        addresses = {
            "name_servers": cluster.name_servers,
            "brokers": {n: cluster.address_of(n) for n in cluster.script.brokers},
        }
        sys.stdout.write(json.dumps(addresses) + "\n")
        sys.stdout.flush()
        sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
