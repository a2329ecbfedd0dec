"""Dashboard: the protocol over HTTP, at `/mcp` of the server: each request is answered by itself, without a session."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup, TaskStatus
from anyio.to_thread import run_sync
from starlette.types import Receive, Scope, Send

from dashboard.mcp.source import Source
from dashboard.security.frame import MAX_MCP_BYTES

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from dashboard.mcp.tool_server import ToolServer


class McpEndpoint:
    """An ASGI application. It starts with the first request: the library takes a second and 26 MB to load."""

    def __init__(self, source: Source) -> None:
        self._source = source

    async def __aenter__(self) -> McpEndpoint:
        self._manager: StreamableHTTPSessionManager | None = None
        self._starting = asyncio.Lock()
        self._tasks: TaskGroup = anyio.create_task_group()
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(kind, error, trace)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        async with self._starting:
            if self._manager is None:
                self._manager = await self._tasks.start(self._run)
        await self._manager.handle_request(scope, receive, send)

    async def _run(self, *, task_status: TaskStatus[StreamableHTTPSessionManager]) -> None:
        server = await run_sync(self._made)
        from mcp.server.transport_security import TransportSecuritySettings

        # The frame around the application checks hosts and origins.
        unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        server.streamable_http_app(
            json_response=True,
            stateless_http=True,
            max_request_body_size=MAX_MCP_BYTES,
            transport_security=unchecked,
        )
        async with server.session_manager.run():
            task_status.started(server.session_manager)
            await anyio.sleep_forever()

    def _made(self) -> ToolServer:
        from dashboard.mcp.tool_server import ToolServer

        return ToolServer(self._source)
