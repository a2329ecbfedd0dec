"""A receiver on a loopback port, which stands for a webhook or a chat service."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Hook(ThreadingHTTPServer):
    """Accepts posted requests.

    Attributes:
        answers: Status and headers of the next answers; then 200. content: Of every answer.
        bodies: What came: path, headers, body.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[tuple[int, dict[str, str]]] = []
        self.content = b""
        self.bodies: list[tuple[str, dict[str, str], Any]] = []

    @property
    def url(self) -> str:
        """Return its address."""
        return f"http://{self.host}"

    @property
    def host(self) -> str:
        """Return its host and port."""
        return f"127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.bodies.append((self.path, dict(self.headers), body))
        status, headers = self.server.answers.pop(0) if self.server.answers else (200, {})
        self.send_response(status)
        for name, value in {"Content-Length": str(len(self.server.content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(self.server.content)

    def log_message(self, *_: object) -> None:
        """Log nothing."""
