"""Shell: one server for the client: its connection, reopened when it breaks, and the number of its requests."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Mapping
from typing import Final

import msgspec

from streaming.collectors.rocketmq.remoting import connection
from streaming.collectors.rocketmq.remoting.codes import ResponseCode
from streaming.collectors.rocketmq.remoting.errors import Refused, Unreachable
from streaming.collectors.rocketmq.remoting.frames import MAX_FRAME_BYTES, Frame
from streaming.collectors.rocketmq.remoting.signing import Credentials, sign
from streaming.settings.defaults import default

# Broker2Client waits 10 s for a member (in the processor of GET_CONSUMER_RUNNING_INFO); one more is for its reply.
_RELAY_S: Final = 11.0
_MAX_REMARK: Final = 500


class ClientLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of the client.

    Attributes:
        request_timeout_s: Timeout for an answer of a name server or a broker, unless a call sets another.
        relayed_timeout_s: Timeout for an answer of a member, which its broker relays.
        connect_timeout_s: Timeout for a connection, including its TLS handshake.
        requests_in_flight: The most requests to one server at a time; the others wait their turn.
        relayed_in_flight: The most requests to members of one broker at a time. Each holds one of the broker's 16
            threads for administration until the member answers, at most 10 s, whether or not the monitor still waits.
        first_backoff_s: Wait after a failed connection; doubled up to `longest_backoff_s`, less a random share of half.
        max_frame_bytes: A longer answer closes the connection.
    """

    request_timeout_s: float = default("rocketmq", "broker_timeout_ms") / 1_000
    relayed_timeout_s: float = default("rocketmq", "client_timeout_ms") / 1_000
    connect_timeout_s: float = default("rocketmq", "broker_timeout_ms") / 1_000
    requests_in_flight: int = default("rocketmq", "requests_in_flight")
    relayed_in_flight: int = default("rocketmq", "relayed_in_flight")
    first_backoff_s: float = 0.5
    longest_backoff_s: float = 10.0
    max_frame_bytes: int = MAX_FRAME_BYTES


class Endpoint:
    """Sends requests to one address, over one connection.

    A connection that broke after it had answered is reopened at once. After a connection that failed or never answered,
    the next is not tried before a growing time has passed; until then every request fails without waiting.
    """

    def __init__(
        self,
        address: str,
        limits: ClientLimits,
        *,
        credentials: Credentials | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.address = address
        self._limits = limits
        self._credentials = credentials
        self._tls = tls
        self._connection: connection.Connection | None = None
        self._connecting = asyncio.Lock()
        self._direct = asyncio.Semaphore(limits.requests_in_flight)
        self._relayed = asyncio.Semaphore(limits.relayed_in_flight)
        self._failures = 0
        self._problem = ""
        self._retry_at = 0.0
        self._is_closed = False
        self._requests = 0

    @property
    def is_connected(self) -> bool:
        """Return whether its connection is open."""
        return self._connection is not None and self._connection.is_open

    @property
    def is_idle(self) -> bool:
        """Return whether no request waits for it."""
        return self._requests == 0

    async def answer(
        self,
        code: int,
        fields: Mapping[str, str],
        body: bytes = b"",
        *,
        timeout_s: float | None = None,
        is_relayed: bool = False,
    ) -> Frame:
        """Send a request, signed if there are credentials, and return the successful response.

        Raises:
            Refused: The response has another code.
            Unreachable, TimedOut, ProtocolError: See `connection.Connection.request`.
        """
        lane = self._relayed if is_relayed else self._direct
        timeout_s = timeout_s or (self._limits.relayed_timeout_s if is_relayed else self._limits.request_timeout_s)
        if self._credentials is not None:
            fields = sign(fields, body, self._credentials)
        self._requests += 1
        try:
            await lane.acquire()
            try:
                connected = await self._connected()
            except BaseException:
                lane.release()
                raise
            response = await connected.request(
                code,
                fields,
                body,
                timeout_s=timeout_s,
                relayed_s=_RELAY_S if is_relayed else None,
                on_end=lane.release,
            )
        finally:
            self._requests -= 1
        if response.code == ResponseCode.GO_AWAY:
            connected.close()
            raise Unreachable(self.address, "the server is shutting down")
        if response.code != ResponseCode.SUCCESS:
            raise Refused(self.address, code, response.code, _first_line(response.remark))
        return response

    async def close(self) -> None:
        """Close the connection permanently."""
        self._is_closed = True
        if self._connection is not None:
            self._connection.close()
            await self._connection.wait_closed()

    async def _connected(self) -> connection.Connection:
        if self._connection is not None and self._connection.is_open:
            return self._connection
        async with self._connecting:
            if self._connection is not None and self._connection.is_open:
                return self._connection
            self._evaluate_last_connection()
            loop = asyncio.get_running_loop()
            if self._is_closed:
                raise Unreachable(self.address, "the client is closed")
            if (wait_s := self._retry_at - loop.time()) > 0:
                raise Unreachable(self.address, f"{self._problem}; tried again in {wait_s:.1f} s")
            try:
                made = await connection.connect(
                    self.address,
                    timeout_s=self._limits.connect_timeout_s,
                    tls=self._tls,
                    max_frame_bytes=self._limits.max_frame_bytes,
                )
            except Unreachable as error:
                self._back_off(error.problem)
                raise
            return self._take(made)

    def _take(self, made: connection.Connection) -> connection.Connection:
        self._connection = made
        if self._is_closed:
            # The endpoint was closed in the meantime.
            made.close()
        return made

    def _evaluate_last_connection(self) -> None:
        """Evaluate the previous connection: if it never answered, it counts as a failure."""
        broken, self._connection = self._connection, None
        if broken is None:
            return
        if broken.answered:
            self._failures = 0
        else:
            self._back_off("the last connection never answered")

    def _back_off(self, problem: str) -> None:
        longest = min(self._limits.longest_backoff_s, self._limits.first_backoff_s * 2 ** min(self._failures, 32))
        self._failures += 1
        self._problem = problem
        self._retry_at = asyncio.get_running_loop().time() + longest * random.uniform(0.5, 1.0)


def _first_line(remark: str | None) -> str | None:
    """Return the text without its stack trace."""
    return remark.strip().split("\n", 1)[0][:_MAX_REMARK] if remark else None
