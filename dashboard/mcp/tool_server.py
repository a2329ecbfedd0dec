"""Dashboard: the server of the protocol: its tools, resources and prompts, limits, and errors in words."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any

import anyio
from anyio.to_thread import run_sync
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resources import FunctionResource
from mcp.types import CallToolResult, InputRequiredResult, TextContent, ToolAnnotations
from pydantic import ValidationError

from dashboard.mcp import texts
from dashboard.mcp.advice_tool import AdviceTool
from dashboard.mcp.group_tools import GroupTools
from dashboard.mcp.history_tools import HistoryTools
from dashboard.mcp.source import Source
from dashboard.mcp.tool_answer import Document, shown, written
from dashboard.mcp.what_if_tool import WhatIfTool
from dashboard.reading.known_time import UnknownError
from dashboard.reading.listing_query import BadQuestionError
from dashboard.reading.queries import QueryTimeoutError
from streaming.machine.logs import logger
from streaming.stores.failure import is_unreadable, reason_of
from streaming.tables.errors import AmbiguousError, NotFoundError
from streaming.tables.schema import TABLES
from udfs.model.errors import StrategyError

# Further calls wait: agents leave threads to the pages.
CALLS_AT_ONCE = 4
_READ_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_ANSWERABLE = (AmbiguousError, BadQuestionError, NotFoundError, QueryTimeoutError, StrategyError, UnknownError)
# Errors are the commands' own; this is what agents have in place of commands and options.
_WORDS: Sequence[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = (
    (re.compile(r"`show rebalances[^`]*`"), "timeline"),
    (re.compile(r"`query` alone"), "run_question without question_name"),
    (re.compile(r"; --help lists what can"), ""),
    (re.compile(r"(?<!\S)--([a-z-]+)"), lambda option: option[1].replace("-", "_")),
)
_log = logger("dashboard")


class ToolServer(MCPServer[Any]):
    """Serves the tools over one set of tables.

    Args:
        source: What tools read. refresh: Called in a thread before each call.
    """

    def __init__(self, source: Source, refresh: Callable[[], object] = lambda: None) -> None:
        # Each session's beginning and end is no news.
        logging.getLogger("mcp").setLevel(logging.WARNING)
        super().__init__(
            "rebalance-monitor",
            title="Rebalance monitor",
            version=version("rebalance-monitor"),
            instructions=texts.INSTRUCTIONS,
            # Answers are not pushed, so no stream stays open.
            subscriptions=False,
        )
        self._refresh = refresh
        self._calls = anyio.Semaphore(CALLS_AT_ONCE)
        groups, history = GroupTools(source), HistoryTools(source)
        for tool in (
            *(groups.find_groups, groups.what_is_wrong, history.explain_rebalance, history.timeline),
            *(groups.who_owned, groups.members, groups.lag, history.run_question, WhatIfTool(source).what_if),
            AdviceTool(source).advise,
        ):
            self.add_tool(tool, annotations=_READ_ONLY)
        for registered in self._tool_manager.list_tools():
            _shorten(registered.parameters)
            _shorten(registered.fn_metadata.output_schema)
            (registered.fn_metadata.output_schema or {}).pop("description", None)
        for table in TABLES.values():
            read = partial(texts.table_text, table.name)
            uri = f"{texts.SCHEME}{table.name}"
            self.add_resource(FunctionResource(uri=uri, name=table.name, description=table.comment, fn=read))
        for prompt in (texts.incident, texts.weekly_review):
            self.prompt()(prompt)

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; an error is a sentence, and unknown arguments are refused."""
        tools = {tool.name: tool for tool in await self.list_tools()}
        if name in tools:
            taken = tools[name].input_schema["properties"]
            if others := sorted(arguments.keys() - taken.keys()):
                return _refused(f"{name} does not take {others[0][:50]!r}; it takes {', '.join(taken)}")
        async with self._calls:
            try:
                await run_sync(self._refresh)
                found = await super().call_tool(name, arguments, context)
            except ToolError as error:
                return _refused(_sentence(error))
        if not isinstance(found, CallToolResult) or found.structured_content is None:
            return found
        text = written(Document.model_validate(found.structured_content))
        return found.model_copy(update={"content": [TextContent(type="text", text=text)]})


def _shorten(schema: Any) -> None:
    """Leave out of a schema what repeats its names: agents pay for each word, in each of their sessions."""
    if isinstance(schema, dict):
        if isinstance(schema.get("title"), str):
            del schema["title"]
        for each in schema.values():
            _shorten(each)


def _refused(sentence: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=shown(sentence))], is_error=True)


def _sentence(error: ToolError) -> str:
    cause = error.__cause__
    if isinstance(cause, ValidationError):
        return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in cause.errors()[:5])
    if isinstance(cause, _ANSWERABLE) or type(cause) is ValueError:
        sentence = str(cause)
        for pattern, words in _WORDS:
            sentence = pattern.sub(words, sentence)
        return sentence
    if cause is None:
        return str(error)
    if isinstance(cause, Exception) and is_unreadable(cause):
        reason = reason_of(cause)
        _log.warning("tables could not be read for a tool", reason=reason)
        return f"the tables cannot be read: {reason}"
    _log.error("a tool failed", error=repr(cause))
    return "this tool failed; the log of the server has the reason"
