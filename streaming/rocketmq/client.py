"""Shell: a client of a RocketMQ cluster that only reads: what name servers, brokers and members tell."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Final

import msgspec

from streaming.rocketmq.model import (
    Assignment,
    BrokerRuntime,
    ClusterInfo,
    ConsumerConnections,
    ConsumeStats,
    MessageRequestMode,
    RunningInfo,
    SubscriptionGroupConfig,
    TopicConfig,
    TopicRoute,
)
from streaming.rocketmq.signing import Credentials


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What the client allows itself.

    Attributes:
        request_timeout_s: For an answer of a name server or a broker, where a call says nothing else.
        relayed_timeout_s: For an answer of a member, which its broker relays.
        connect_timeout_s: For a connection, with its TLS handshake.
        requests_in_flight: At most so many to one server at a time; the others wait their turn.
        relayed_in_flight: At most so many to members of one broker. Each holds one of the broker's 16 threads for
            administration until the member answers, at most 10 s, whether or not the monitor still waits.
        first_backoff_s: After a failed connection; doubled up to `longest_backoff_s`, less a random share of half.
        max_frame_bytes: A longer answer closes the connection.
    """

    request_timeout_s: float = 3.0
    relayed_timeout_s: float = 3.0
    connect_timeout_s: float = 3.0
    requests_in_flight: int = 64
    relayed_in_flight: int = 8
    first_backoff_s: float = 0.5
    longest_backoff_s: float = 30.0
    max_frame_bytes: int = 16 * 1024 * 1024


DEFAULT_LIMITS: Final = Limits()


class RocketMqClient:
    """Asks name servers and brokers; one connection for each address, made when it is first needed.

    Brokers are named by the addresses that `cluster_info` tells. Every method may raise `Unreachable`, `TimedOut`,
    `Refused` or `ProtocolError`, all of them `RemotingError`, and nothing else. Time-outs run from the moment a request
    is sent, not from when it began to wait for its turn. To be used within one event loop.

    Args:
        name_servers: ``host:port``, at least one. They are asked in turn until one answers; the one that answered last
            is asked first.
        credentials: To sign with, where servers ask for it.
        tls: For every connection; None is plain.
    """

    def __init__(
        self,
        name_servers: Sequence[str],
        *,
        credentials: Credentials | None = None,
        tls: ssl.SSLContext | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> RocketMqClient:
        raise NotImplementedError

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        """Close every connection; requests in flight end with `Unreachable`."""

    async def cluster_info(self) -> ClusterInfo:
        """Ask a name server which brokers there are. Connections to brokers that are gone are closed."""
        raise NotImplementedError

    async def topic_list(self) -> tuple[str, ...]:
        """Ask a name server for all topics, sorted: also ``%RETRY%`` topics, system topics, names of brokers."""
        raise NotImplementedError

    async def topic_route(self, topic: str) -> TopicRoute | None:
        """Ask a name server where a topic lies; None: it knows no such topic."""
        raise NotImplementedError

    async def broker_runtime(self, broker: str) -> BrokerRuntime:
        """Ask a broker about itself: version, time of its start."""
        raise NotImplementedError

    async def topic_configs(self, broker: str) -> Mapping[str, TopicConfig]:
        """Ask a broker for all its topics, by name."""
        raise NotImplementedError

    async def groups(self, broker: str) -> Mapping[str, SubscriptionGroupConfig]:
        """Ask a broker for all consumer groups that it has settings of, by name: also system groups."""
        raise NotImplementedError

    async def connections(self, broker: str, group: str) -> ConsumerConnections | None:
        """Ask a broker for the members of a group; None: nobody of this group is connected to it."""
        raise NotImplementedError

    async def consumer_ids(self, broker: str, group: str) -> tuple[str, ...]:
        """Ask a broker for the ids by which members allocate: in no order, duplicates kept; () when there are none."""
        raise NotImplementedError

    async def running_info(
        self, broker: str, group: str, client_id: str, *, timeout_s: float | None = None
    ) -> RunningInfo:
        """Ask a member about itself, through a broker. Of several with one client id, one answers.

        Raises:
            Refused: Code 207: it is connected and silent. Code 1 or 206: not connected to this broker. Others: it
                does not know the question (clients of some languages).
            TimedOut: The broker did not say 207 within the time-out (it waits for 10 s itself).
        """
        raise NotImplementedError

    async def consume_stats(self, broker: str, group: str, topic: str | None = None) -> ConsumeStats:
        """Ask a broker how far a group has come in its queues, of one topic or of all.

        Raises:
            Refused: Code 206 or 1: some versions do not tell when nobody is connected.
        """
        raise NotImplementedError

    async def consumer_offset(self, broker: str, group: str, topic: str, queue_id: int) -> int | None:
        """Ask a broker how far a group has come in one queue; None: it never committed there."""
        raise NotImplementedError

    async def max_offset(self, broker: str, topic: str, queue_id: int) -> int:
        """Ask a broker for the end of one queue."""
        raise NotImplementedError

    async def message_request_modes(self, broker: str) -> tuple[MessageRequestMode, ...]:
        """Ask a broker for the modes that were set, sorted by topic and group; () where it knows none (4.x)."""
        raise NotImplementedError

    async def query_assignment(
        self,
        broker: str,
        group: str,
        topic: str,
        client_id: str,
        *,
        strategy: str = "AVG",
        message_model: str = "CLUSTERING",
    ) -> tuple[Assignment, ...] | None:
        """Ask a broker what it gives a member; () means to drop all, None that it decides nothing (also 4.x).

        It does not say whether the member goes by it: only those with ``clientRebalance=false`` do.
        """
        raise NotImplementedError
