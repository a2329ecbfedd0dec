"""Dashboard: checks of every request: host, method, size, rate, token, time; and the headers of every answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from urllib.parse import urlencode

from starlette.datastructures import Headers, MutableHeaders, State
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dashboard.security.headers import HEADERS, UNLESS_SET
from dashboard.security.rate_limit import RateLimit
from dashboard.security.token import is_session, session_of
from streaming.machine.http_access import AllowedHosts, bearer, is_token

LOGIN = "/login"
ANNOTATIONS = "/annotations"
MCP = "/mcp"
# Every client may request these, which reveal nothing of the tables.
OPEN_PATHS = frozenset({LOGIN, "/healthz", "/readyz"})
OPEN_FOLDER = "/static/"
# Answers of these are endless.
STREAMS = frozenset({"/live"})
READING = frozenset({"GET", "HEAD"})
MAX_PATH_BYTES = 64 << 10  # an id has at most 10 kB, and each byte may take three
MAX_BODY_BYTES = 4 << 10
MAX_ANNOTATION_BYTES = 64 << 10
MAX_MCP_BYTES = 128 << 10  # an argument may be an id of 10 kB, with up to ten bytes for each character


class SecurityFrame:
    """Wraps the application.

    Args:
        state: The state that the application shares with its routers; the server reads it.
        token: Empty if none is required.
        annotation_token: The only one that may write annotations, and may do nothing else; empty if nobody may.
        timeout_s: The time limit of an answer.
        now_s: The wall clock, for sessions.
        elapsed_s: A monotonic clock, for the limit.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str,
        hosts: AllowedHosts,
        limit: RateLimit,
        timeout_s: float,
        state: State | None = None,
        annotation_token: str = "",
        now_s: Callable[[], float] = time.time,
        elapsed_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self.state = state or State()
        self._token = token
        self._annotation_token = annotation_token
        self._hosts = hosts
        self._limit = limit
        self._timeout_s = timeout_s
        self._now_s, self._elapsed_s = now_s, elapsed_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        begun = False

        async def framed(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                for name, value in UNLESS_SET.items():
                    headers.setdefault(name, value)
            if is_head and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        is_head = scope["method"] == "HEAD"
        refused = self._refusal(scope)
        if refused is not None:
            await refused(scope, receive, framed)
            return
        if scope["path"] in STREAMS:
            if is_head:
                await Response(media_type="text/event-stream")(scope, receive, framed)
            else:
                await self._app(scope, receive, framed)
            return
        if is_head:
            # Every answer has the headers of a GET.
            scope = {**scope, "method": "GET"}
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._app(scope, receive, framed)
        except TimeoutError:
            if not begun:
                await PlainTextResponse("This took too long. Ask for less.", 503)(scope, receive, framed)

    def _refusal(self, scope: Scope) -> Response | None:
        headers, path, method = Headers(scope=scope), scope["path"], scope["method"]
        if not self._hosts.allows(headers.get("host", "")):
            return PlainTextResponse("Unknown host: add it to dashboard.allowed_hosts.", 421)
        writes = (method, path) == ("POST", ANNOTATIONS) and bool(self._annotation_token)
        # A tool reads, too; its arguments are in a body.
        if method not in READING and (method, path) not in (("POST", LOGIN), ("POST", MCP)) and not writes:
            allowed = "GET, HEAD, POST" if path == LOGIN else "POST" if path == MCP else "GET, HEAD"
            return PlainTextResponse("These pages only read.", 405, {"allow": allowed})
        if path == MCP and not self._is_from_here(headers.get("origin")):
            return PlainTextResponse("Unknown origin: add its host to dashboard.allowed_hosts.", 403)
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > MAX_PATH_BYTES:
            return PlainTextResponse("The address is too long.", 414)
        length = headers.get("content-length", "0")
        most = MAX_ANNOTATION_BYTES if writes else MAX_MCP_BYTES if path == MCP else MAX_BODY_BYTES
        if not length.isdecimal() or int(length) > most or "transfer-encoding" in headers:
            return PlainTextResponse("A request has no such body.", 413)
        address = (scope.get("client") or ("", 0))[0]
        if not self._limit.allows(address, self._elapsed_s()):
            return PlainTextResponse("Too many requests.", 429, {"retry-after": "1"})
        if writes:
            given = bearer(headers.get("authorization", ""))
            return None if given is not None and is_token(self._annotation_token, given) else _unauthorized()
        if self._may_pass(path, headers):
            return None
        if "text/html" in headers.get("accept", ""):
            requested = path + ("?" + scope["query_string"].decode("latin-1") if scope["query_string"] else "")
            return RedirectResponse(f"{LOGIN}?{urlencode({'next': requested})}", 303)
        return _unauthorized()

    def _is_from_here(self, origin: str | None) -> bool:
        """Return whether no browser sent a request, or a page of this server did."""
        return origin is None or self._hosts.allows(origin.partition("://")[2])

    def _may_pass(self, path: str, headers: Headers) -> bool:
        if not self._token or path in OPEN_PATHS or path.startswith(OPEN_FOLDER):
            return True
        given = bearer(headers.get("authorization", ""))
        if given is not None:
            return is_token(self._token, given)
        session = session_of(headers.get("cookie", ""))
        return session is not None and is_session(self._token, session, int(self._now_s()))


def _unauthorized() -> Response:
    return PlainTextResponse("A token is needed.", 401, {"www-authenticate": "Bearer"})
