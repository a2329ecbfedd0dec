"""Shell: a read-only client of the name servers, brokers and members of a RocketMQ cluster."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import Final, TypeVar

import msgspec

from streaming.collectors.rocketmq.remoting import bodies
from streaming.collectors.rocketmq.remoting.codes import RequestCode, ResponseCode
from streaming.collectors.rocketmq.remoting.endpoint import ClientLimits, Endpoint
from streaming.collectors.rocketmq.remoting.errors import ProtocolError, Refused, RemotingError, Unreachable
from streaming.collectors.rocketmq.remoting.messages import (
    Assignment,
    BrokerRuntime,
    ClusterInfo,
    ConsumerConnections,
    ConsumeStats,
    LogBounds,
    MessageQueue,
    MessageRequestMode,
    RunningInfo,
    SubscriptionGroupConfig,
    TopicConfig,
    TopicRoute,
)
from streaming.collectors.rocketmq.remoting.signing import Credentials

__all__ = ["DEFAULT_LIMITS", "ClientLimits", "RocketMqClient"]

T = TypeVar("T")

DEFAULT_LIMITS: Final = ClientLimits()
# Pages have 1,000 entries by default (BrokerConfig#splitMetadataSize).
_MAX_PAGES: Final = 1_000


class RocketMqClient:
    """Requests name servers and brokers over one connection per address, opened when it is first needed.

    Brokers are named by the addresses of `cluster_info`. Every method may raise `Unreachable`, `TimedOut`, `Refused` or
    `ProtocolError`, all of them `RemotingError`, and nothing else. Timeouts run from the time a request is sent, not
    from when it began to wait for its turn. To be used within one event loop.

    Args:
        name_servers: ``host:port``, at least one. They are tried in turn until one answers; the one that answered last
            is tried first.
        proxies: ``host:port`` of proxies, whose remoting port answers some of the requests to brokers.
        tls: For every connection; None for plain connections.
    """

    def __init__(
        self,
        name_servers: Sequence[str],
        *,
        proxies: Collection[str] = (),
        credentials: Credentials | None = None,
        tls: ssl.SSLContext | None = None,
        limits: ClientLimits = DEFAULT_LIMITS,
    ) -> None:
        if not name_servers:
            raise ValueError("at least one name server is needed")
        self._limits = limits
        self._credentials = credentials
        self._tls = tls
        self._name_servers = [self._server(address) for address in dict.fromkeys(name_servers)]
        self._brokers: dict[str, Endpoint] = {}  # and proxies
        self._proxies = frozenset(proxies)
        self._is_closed = False

    @property
    def connections_open(self) -> int:
        """Return the number of open connections: at most one to each name server, broker and proxy."""
        return sum(server.is_connected for server in (*self._name_servers, *self._brokers.values()))

    async def __aenter__(self) -> RocketMqClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection; requests in flight end with `Unreachable`."""
        self._is_closed = True
        brokers, self._brokers = list(self._brokers.values()), {}
        await asyncio.gather(*(server.close() for server in (*self._name_servers, *brokers)))

    async def cluster_info(self) -> ClusterInfo:
        """Request the brokers from a name server. Connections to removed brokers are closed."""
        found = await self._query_name_servers(
            RequestCode.GET_BROKER_CLUSTER_INFO, {}, bodies.cluster_info, lambda info: bool(info.brokers)
        )
        addresses = {address for broker in found.brokers.values() for address in broker.broker_addrs.values()}
        if addresses:
            await self._forget_brokers_but(addresses | self._proxies)
        return found

    async def topic_route(self, topic: str) -> TopicRoute | None:
        """Request a topic's route from a name server; return None if it has no such topic."""
        return await _unless(
            ResponseCode.TOPIC_NOT_EXIST,
            self._query_name_servers(
                RequestCode.GET_ROUTEINFO_BY_TOPIC,
                {"topic": topic, "acceptStandardJsonOnly": "true"},
                lambda body: bodies.topic_route(topic, body),
            ),
        )

    async def broker_runtime(self, broker: str) -> BrokerRuntime:
        """Request a broker's own report: version, start time."""
        return await self._request(broker, RequestCode.GET_BROKER_RUNTIME_INFO, {}, bodies.broker_runtime)

    async def topic_configs(self, broker: str) -> Mapping[str, TopicConfig]:
        """Request all of a broker's topics, by name."""
        return await self._request_pages(
            broker, RequestCode.GET_ALL_TOPIC_CONFIG, "topicSeq", "totalTopicNum", bodies.topic_configs
        )

    async def groups(self, broker: str) -> Mapping[str, SubscriptionGroupConfig]:
        """Request all consumer groups that a broker has settings for, by name, including system groups."""
        return await self._request_pages(
            broker, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, "groupSeq", "totalGroupNum", bodies.groups
        )

    async def connections(self, broker: str, group: str) -> ConsumerConnections | None:
        """Request the members of a group from a broker or proxy; None if no member of it is connected."""
        return await _unless(
            ResponseCode.CONSUMER_NOT_ONLINE,
            self._request(
                broker, RequestCode.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": group}, bodies.connections
            ),
        )

    async def running_info(
        self, broker: str, group: str, client_id: str, *, timeout_s: float | None = None
    ) -> RunningInfo:
        """Request a member's own report through a broker. If several share a client id, one of them answers.

        Raises:
            Refused: Code 207: it is connected and silent. Code 1 or 206: not connected to this broker, or a missing
                permission. Others: it does not know the request (clients of some languages).
            TimedOut: The broker did not answer 207 within the timeout (it waits for 10 s itself).
        """
        fields = {"consumerGroup": group, "clientId": client_id, "jstackEnable": "false"}
        response = await self._broker(broker).answer(
            RequestCode.GET_CONSUMER_RUNNING_INFO, fields, timeout_s=timeout_s, is_relayed=True
        )
        return _read(broker, bodies.running_info, response.body)

    async def consume_stats(self, broker: str, group: str) -> ConsumeStats:
        """Request a group's offsets in the queues of a broker."""
        return await self._request(
            broker, RequestCode.GET_CONSUME_STATS, {"consumerGroup": group}, bodies.consume_stats
        )

    async def topic_stats(self, broker: str, topic: str) -> Mapping[MessageQueue, LogBounds]:
        """Request where the queues of a topic begin and end on a broker; empty if it has no such topic."""
        stats = await _unless(
            ResponseCode.TOPIC_NOT_EXIST,
            self._request(broker, RequestCode.GET_TOPIC_STATS_INFO, {"topic": topic}, bodies.topic_stats),
        )
        return stats or {}

    async def message_request_modes(self, broker: str) -> tuple[MessageRequestMode, ...]:
        """Request the modes that were set on a broker, sorted by topic and group; () if it knows none (4.x)."""
        modes = await _unless(
            ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
            self._request(broker, RequestCode.GET_ALL_MESSAGE_REQUEST_MODE, {}, bodies.message_request_modes),
        )
        return modes or ()

    async def query_assignment(
        self, broker: str, group: str, topic: str, client_id: str, *, strategy: str = "AVG"
    ) -> tuple[Assignment, ...] | None:
        """Query a broker for a member's assignment; () means none, None that the broker does not decide (also 4.x).

        It is unknown whether the member uses it: only members with ``clientRebalance=false`` do.
        """
        body = {
            "topic": topic,
            "consumerGroup": group,
            "clientId": client_id,
            "strategyName": strategy,
            "messageModel": "CLUSTERING",
        }
        response = await _unless(
            ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
            self._broker(broker).answer(RequestCode.QUERY_ASSIGNMENT, {}, msgspec.json.encode(body)),
        )
        return None if response is None else _read(broker, bodies.assignments, response.body)

    def _server(self, address: str) -> Endpoint:
        return Endpoint(address, self._limits, credentials=self._credentials, tls=self._tls)

    def _broker(self, address: str) -> Endpoint:
        if self._is_closed:
            raise Unreachable(address, "the client is closed")
        server = self._brokers.get(address)
        if server is None:
            server = self._brokers[address] = self._server(address)
        return server

    async def _forget_brokers_but(self, addresses: set[str]) -> None:
        removed = [address for address, server in self._brokers.items() if address not in addresses and server.is_idle]
        await asyncio.gather(*(self._brokers.pop(address).close() for address in removed))

    async def _request(
        self, broker: str, code: RequestCode, fields: Mapping[str, str], decode: Callable[[bytes], T]
    ) -> T:
        response = await self._broker(broker).answer(code, fields)
        return _read(broker, decode, response.body)

    async def _request_pages(
        self, broker: str, code: RequestCode, first: str, total: str, decode: Callable[[bytes], bodies.Page[T]]
    ) -> Mapping[str, T]:
        """Request a whole table, which a 5.x broker may return in pages (``enableSplitMetadata``), sorted by name.

        A broker whose table has changed since the previous page starts over. Version 5.5 writes an error to its log for
        each such request without a start.

        Args:
            first: The field for the number of entries to skip.
            total: The field of the answer with the total number.
        """
        table: dict[str, T] = {}
        data_version = ""
        for _ in range(_MAX_PAGES):
            fields = {first: str(len(table))} | ({"dataVersion": data_version} if table else {})
            response = await self._broker(broker).answer(code, fields)
            page = _read(broker, decode, response.body)
            if page.data_version != data_version:
                table, data_version = {}, page.data_version
            table |= page.entries
            if not page.entries or len(table) >= _whole(response.fields.get(total)):
                return table
        raise ProtocolError(broker, f"more than {_MAX_PAGES} pages, or a table that keeps changing", code)

    async def _query_name_servers(
        self,
        code: RequestCode,
        fields: Mapping[str, str],
        decode: Callable[[bytes], T],
        is_enough: Callable[[T], bool] = lambda _: True,
    ) -> T:
        """Request one name server after the other until one gives a sufficient answer.

        A restarted name server has no routes yet, and answers as if there were none. If all answer so, it is believed.
        """
        poor: list[T] = []
        errors: list[RemotingError] = []
        for server in list(self._name_servers):
            try:
                answer = _read(server.address, decode, (await server.answer(code, fields)).body)
            except RemotingError as error:
                errors.append(error)
                continue
            if is_enough(answer):
                if self._name_servers[0] is not server:
                    self._name_servers.sort(key=lambda other: other is not server)
                return answer
            poor.append(answer)
        if poor:
            return poor[0]
        raise _foremost(errors)


async def _unless(code: ResponseCode, answer: Awaitable[T]) -> T | None:
    """Wait for an answer; return None if the server refuses with the code for a missing item."""
    try:
        return await answer
    except Refused as error:
        if error.code == code:
            return None
        raise


def _read(address: str, decode: Callable[[bytes], T], body: bytes) -> T:
    try:
        return decode(body)
    except bodies.BodyError as error:
        raise ProtocolError(address, error.problem, error.code) from None


def _whole(text: str | None) -> int:
    """Parse a count; 0 if there is none."""
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 11 else 0


def _foremost(errors: Sequence[RemotingError]) -> RemotingError:
    """Return the error to report if no name server was of use; a refusal has the most detail."""
    for error in errors:
        if isinstance(error, Refused):
            return error
    if len(errors) == 1:
        return errors[0]
    return Unreachable(";".join(error.address for error in errors), "; ".join(error.problem for error in errors))
