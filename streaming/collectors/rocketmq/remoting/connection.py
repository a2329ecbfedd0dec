"""Shell: one connection to one RocketMQ server: many requests in flight, answers in any order, notices skipped."""

from __future__ import annotations

import asyncio
import itertools
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from streaming.collectors.rocketmq.remoting.errors import ProtocolError, TimedOut, Unreachable
from streaming.collectors.rocketmq.remoting.frames import MAX_FRAME_BYTES, Frame, FrameError, FrameReader, encode

_OPAQUE_LIMIT: Final = 2**31  # a Java int
# A lost peer (power, cable, a firewall's expired state) is detected by the operating system: probed after 10 s of
# silence, and given up if sent data is not acknowledged.
_KEEP_ALIVE: Final = (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 20_000))


class _Pending(msgspec.Struct):
    """A request without an answer so far."""

    code: int
    answer: asyncio.Future[Frame]
    on_end: Callable[[], None] | None


class Connection(asyncio.Protocol):
    """Sends requests and matches the answers by their numbers. Created by `connect`; for one event loop.

    A server that is silent on the whole connection while one of its requests times out counts as lost: the
    connection may be half open, and is closed.
    """

    def __init__(self, address: str, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self.address = address
        self._loop = asyncio.get_running_loop()
        self._reader = FrameReader(max_frame_bytes)
        self._transport: asyncio.Transport | None = None
        self._opaques = itertools.count()
        self._pending: dict[int, _Pending] = {}
        self._lost: str | None = None
        self._closed = self._loop.create_future()
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._last_received = self._loop.time()
        self.answered = 0

    @property
    def is_open(self) -> bool:
        """Return whether requests can be sent."""
        return self._transport is not None and self._lost is None

    @property
    def in_flight(self) -> int:
        """Return the number of requests without an answer, including abandoned ones that still use memory."""
        return len(self._pending)

    async def request(
        self,
        code: int,
        fields: Mapping[str, str],
        body: bytes = b"",
        *,
        timeout_s: float,
        relayed_s: float | None = None,
        on_end: Callable[[], None] | None = None,
    ) -> Frame:
        """Send a request and return its response, whatever its code.

        Args:
            timeout_s: From now.
            relayed_s: A member behind the server answers, and may be silent while the server works: silence shows
                nothing about the connection, and the server itself answers within this time.
            on_end: Called once, when the server is done with the request: it has answered, `relayed_s` have passed
                since it was sent, or the connection is lost; that may be after the timeout.

        Raises:
            Unreachable: The connection is closed, or was closed while waiting.
            TimedOut: No answer in time.
            ProtocolError: The received bytes are not a frame, or the request itself is longer than frames may be.
        """
        if self._lost is not None or self._transport is None:
            _call(on_end)
            raise Unreachable(self.address, self._lost or "the connection was never opened")
        opaque = next(self._opaques) % _OPAQUE_LIMIT
        try:
            data = encode(Frame(code, opaque, fields=fields, body=body))
        except FrameError as error:
            _call(on_end)
            raise ProtocolError(self.address, str(error), code) from None
        pending = self._pending[opaque] = _Pending(code, self._loop.create_future(), on_end)
        sent_at = self._loop.time()
        leaves_at = sent_at + relayed_s if relayed_s is not None else None
        try:
            async with asyncio.timeout(timeout_s):
                await self._may_write.wait()
                self._write(data)
                return await pending.answer
        except TimeoutError:
            if relayed_s is None and self._last_received < sent_at:
                self._lose(f"silent for {timeout_s:g} s: the connection may be half open")
            raise TimedOut(self.address, code, timeout_s) from None
        finally:
            self._leave(opaque, leaves_at)

    def close(self) -> None:
        """Close the connection; requests in flight end with `Unreachable`."""
        self._lose("the client closed the connection")

    async def wait_closed(self) -> None:
        """Return once the socket is closed."""
        if self._transport is not None:
            await asyncio.shield(self._closed)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Set a new connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if (raw := transport.get_extra_info("socket")) is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in _KEEP_ALIVE:
                if hasattr(socket, name):  # not every system has all of them
                    raw.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def data_received(self, data: bytes) -> None:
        """Pass answers to the waiting requests."""
        self._last_received = self._loop.time()
        try:
            frames = self._reader.feed(data)
        except FrameError as error:
            self._lose(str(error), ProtocolError)
            return
        for frame in frames:
            # Notices of the server are skipped; an answer without a request is too late.
            if frame.is_response and (pending := self._pending.pop(frame.opaque, None)) is not None:
                self.answered += 1
                _call(pending.on_end)
                if not pending.answer.done():
                    pending.answer.set_result(frame)

    def eof_received(self) -> None:
        """Close when the server does."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the waiting requests."""
        self._lose(f"the connection broke: {exc}" if exc else "the server closed the connection")
        if not self._closed.done():
            self._closed.set_result(None)

    def pause_writing(self) -> None:
        """Hold requests back, because the server does not read."""
        self._may_write.clear()

    def resume_writing(self) -> None:
        """Allow requests again."""
        self._may_write.set()

    def _write(self, data: bytes) -> None:
        # The connection may have been closed while the request waited for the lock; its answer is set then.
        if self._transport is not None and self._lost is None:
            self._transport.write(data)

    def _leave(self, opaque: int, leaves_at: float | None) -> None:
        """Drop an abandoned request, at once or when the server must have finished it."""
        if opaque not in self._pending:
            return
        if leaves_at is None or leaves_at <= self._loop.time():
            _call(self._pending.pop(opaque).on_end)
        else:
            self._loop.call_at(leaves_at, self._leave, opaque, None)

    def _lose(self, problem: str, kind: type[Unreachable] | type[ProtocolError] = Unreachable) -> None:
        if self._lost is not None:
            return
        self._lost = problem
        self._may_write.set()
        pending, self._pending = self._pending, {}
        for request in pending.values():
            _call(request.on_end)
            if not request.answer.done():
                request.answer.set_exception(kind(self.address, problem))
                # No caller is waiting for it any longer.
                request.answer.exception()
        if self._transport is not None:
            self._transport.abort()


async def connect(
    address: str,
    *,
    timeout_s: float,
    tls: ssl.SSLContext | None = None,
    max_frame_bytes: int = MAX_FRAME_BYTES,
) -> Connection:
    """Open a connection.

    Raises:
        Unreachable: The port is closed, the name is unknown, the handshake failed, or it took too long.
    """
    host, port = host_and_port(address)
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout_s):
            _, connection = await loop.create_connection(
                lambda: Connection(address, max_frame_bytes), host, port, ssl=tls
            )
    except TimeoutError:
        raise Unreachable(address, f"no connection within {timeout_s:g} s") from None
    except (OSError, UnicodeError) as error:
        # Some errors have no text, such as a close by the server during the TLS handshake.
        raise Unreachable(address, f"no connection: {str(error) or type(error).__name__}") from None
    return connection


def host_and_port(address: str) -> tuple[str, int]:
    """Split ``host:port``; an IPv6 host may be in brackets.

    Raises:
        Unreachable: The text is not an address.
    """
    host, colon, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (colon and host and port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65_536):
        raise Unreachable(address, "no address of the form host:port")
    return host, int(port)


def _call(on_end: Callable[[], None] | None) -> None:
    if on_end is not None:
        on_end()
