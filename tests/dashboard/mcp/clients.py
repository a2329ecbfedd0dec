"""The library's own client, over both transports."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult

_PROGRAM = "from streaming.commands import main; main()"


@asynccontextmanager
async def over_stdio(tables: Path, *, mode: str = "auto") -> AsyncIterator[Client]:
    """Start `rebalance-monitor mcp` over tables, as a client on this machine does."""
    arguments = ["-c", _PROGRAM, "mcp", "--tables", str(tables)]
    server = StdioServerParameters(command=sys.executable, args=arguments, env={"PATH": os.environ["PATH"]})
    async with Client(stdio_client(server), mode=mode) as client:
        yield client


@asynccontextmanager
async def over_http(url: str, *, token: str = "", mode: str = "auto") -> AsyncIterator[Client]:
    """Connect to `/mcp` of a server."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as connection,
        Client(streamable_http_client(f"{url}mcp", http_client=connection), mode=mode) as client,
    ):
        yield client


def text_of(result: CallToolResult) -> str:
    """Return the text of a result, which has one."""
    (content,) = result.content
    text: Any = content
    assert text.type == "text"
    return str(text.text)
