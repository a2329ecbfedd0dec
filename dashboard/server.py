"""Dashboard: the server that `serve` and `demo` start."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from dashboard.api.annotation_hook import AnnotationHook
from dashboard.app import create_app
from dashboard.mcp.source import ToolSettings
from dashboard.security.frame import SecurityFrame
from streaming.alerts.follower import AlertsStatus
from streaming.machine.http_access import is_local, require_token
from streaming.settings.locations import Location
from streaming.settings.model import Dashboard, Metrics, Widespread
from streaming.setup.errors import SetupError
from streaming.views.related_annotations import DEFAULT_SPANS, AnnotationSpans

# An id of 10 kB takes three bytes for each character in an address.
MAX_REQUEST_HEAD_BYTES = 96 << 10
BACKLOG = 128
STOP_S = 3


class DashboardServer:
    """Serves pages over the tables; it listens as soon as it is created, so that its address is known.

    Args:
        metrics, widespread: The sections of these names; None for their defaults.
        alerts: The alerts that this process sends; None if it sends none.
        near, hook, tools: See ``create_app``; addresses are those of this server where no other is set.

    Raises:
        SetupError: The address cannot be used, or is reachable from elsewhere without a token.
    """

    def __init__(
        self,
        root: Location,
        settings: Dashboard,
        *,
        metrics: Metrics | None = None,
        widespread: Widespread | None = None,
        alerts: AlertsStatus | None = None,
        near: AnnotationSpans = DEFAULT_SPANS,
        hook: AnnotationHook | None = None,
        tools: ToolSettings | None = None,
    ) -> None:
        require_token(settings.host, settings.token.get_secret_value(), "dashboard.host")
        self._socket = _listen(settings.host, settings.port)
        self.port: int = self._socket.getsockname()[1]
        scheme = "https" if settings.tls_certificate else "http"
        name = f"[{settings.host}]" if ":" in settings.host else settings.host
        self.url = f"{scheme}://{name}:{self.port}/"
        if tools is not None and not tools.link and is_local(settings.host):
            tools = tools._replace(link=self.url)
        try:
            app = create_app(
                root,
                settings,
                metrics=metrics,
                widespread=widespread,
                alerts=alerts,
                near=near,
                hook=hook,
                tools=tools,
                must_exist=False,  # the job that writes them may start later
            )
        except BaseException:
            self._socket.close()
            raise
        self._server = _Server(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                log_level="warning",
                server_header=False,
                lifespan="on",
                h11_max_incomplete_event_size=MAX_REQUEST_HEAD_BYTES,
                limit_concurrency=4 * settings.max_streams,
                timeout_keep_alive=30,
                timeout_graceful_shutdown=STOP_S,
                ssl_certfile=settings.tls_certificate or None,
                ssl_keyfile=settings.tls_key or None,
                ws="none",
                http="h11",
            )
        )
        self._server.application = self.application = app

    def run(
        self, is_stopped: Callable[[], bool] = lambda: False, when_ready: Callable[[], None] = lambda: None
    ) -> None:
        """Serve until SIGINT or SIGTERM, or not at all if it was stopped before it handled signals itself.

        Args:
            when_ready: Called once, when the server answers; not if it was stopped before.
        """
        self._server.is_stopped, self._server.when_ready = is_stopped, when_ready
        try:
            self._server.run([self._socket])
        finally:
            self.close()

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()

    @contextmanager
    def in_background(self) -> Iterator[DashboardServer]:
        """Serve from a thread while the context is open, which begins when the server answers."""
        ready = threading.Event()

        def serve() -> None:
            try:
                self.run(when_ready=ready.set)
            finally:
                # A server that cannot start must not block waiters.
                ready.set()

        thread = threading.Thread(target=serve, name="pages", daemon=True)
        thread.start()
        try:
            ready.wait()
            yield self
        finally:
            self._server.should_exit = True
            thread.join(2 * STOP_S)


class _Server(uvicorn.Server):
    """Ends the streams of open pages before it waits for its requests to end."""

    application: SecurityFrame
    is_stopped: Callable[[], bool]
    when_ready: Callable[[], None]

    async def main_loop(self) -> None:
        self.should_exit |= self.is_stopped()
        if not self.should_exit:
            self.when_ready()
        await super().main_loop()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.application.state.poller.close()
        await super().shutdown(sockets)
        # These clients were too slow to read their answers.
        for connection in self.server_state.connections:
            if connection.transport is not None:
                connection.transport.abort()
        await asyncio.sleep(0)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise SetupError(f"{host} is not an address of this machine: {error.strerror}", "set dashboard.host") from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise SetupError(
            f"cannot listen on {host}:{port}: {error.strerror}", "name another port with --port; 0 = a free one"
        ) from error
    return listening
