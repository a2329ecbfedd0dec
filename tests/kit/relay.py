"""Another host: connections that go through it come from another loopback address than those of all other clients."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator

_START_TIMEOUT_S = 30
_CHUNK = 65_536


@contextlib.contextmanager
def relay(port: int, to_port: int, address: str) -> Iterator[None]:
    """Pass connections on from one loopback port to another, from this address, until the block is left.

    Args:
        address: One of 127.0.0.0/8: a broker shows it as the host of those clients.
    """
    loop, listens = asyncio.new_event_loop(), threading.Event()

    async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.open_connection("127.0.0.1", to_port, local_addr=(address, 0))
        except OSError:
            writer.close()
            return
        await asyncio.gather(_copy(reader, there[1]), _copy(there[0], writer))

    async def serve() -> None:
        server = await asyncio.start_server(passed, "127.0.0.1", port)
        listens.set()
        async with server:
            await server.serve_forever()

    async def run() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await serve()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),), daemon=True)
    thread.start()
    if not listens.wait(_START_TIMEOUT_S):
        raise RuntimeError(f"the relay does not listen on port {port}")
    try:
        yield
    finally:
        loop.call_soon_threadsafe(lambda: [task.cancel() for task in asyncio.all_tasks(loop)])
        thread.join(_START_TIMEOUT_S)
        loop.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy one direction until either end closes, and close the other."""
    with contextlib.suppress(OSError, asyncio.CancelledError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    writer.close()
