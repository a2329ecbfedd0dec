"""Sending over HTTP, and the pauses after failures."""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from streaming.alerts.channels import Request
from streaming.alerts.delivery import Backoff, DeliveryError, http_delivery
from tests.streaming.alerts.planted import settings


class Hook(ThreadingHTTPServer):
    """A receiver on a loopback port.

    Attributes:
        answers: Status and headers of the next answers; then 200. bodies: What came.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[tuple[int, dict[str, str]]] = []
        self.bodies: list[tuple[str, dict[str, str], Any]] = []

    @property
    def url(self) -> str:
        """Return its address."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.bodies.append((self.path, dict(self.headers), body))
        status, headers = self.server.answers.pop(0) if self.server.answers else (200, {})
        self.send_response(status)
        for name, value in {"Content-Length": "0", **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def hook() -> Iterator[Hook]:
    with Hook() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def request(url: str) -> Request:
    return Request("webhook", "id-1", {"text": "日本 \ud800"}, url, {"Idempotency-Key": "id-1"})


def send(url: str) -> None:
    with http_delivery(settings()) as deliver:
        deliver(request(url))


def test_a_request_arrives_with_its_headers(hook: Hook) -> None:
    send(f"{hook.url}/hook")
    ((path, headers, body),) = hook.bodies
    assert (path, headers["Idempotency-Key"], headers["Content-Type"]) == ("/hook", "id-1", "application/json")
    assert body == {"text": "日本 ?"}


@pytest.mark.parametrize(
    ("status", "headers", "retry_ms"),
    [
        (500, {}, 0),
        (404, {}, 0),
        (429, {"Retry-After": "7"}, 7_000),
        (503, {"Retry-After": "soon"}, 0),
        (302, {"Location": "http://127.0.0.1:1/elsewhere"}, 0),
    ],
)
def test_all_but_success_is_a_failure(hook: Hook, status: int, headers: dict[str, str], retry_ms: int) -> None:
    hook.answers = [(status, headers)]
    with pytest.raises(DeliveryError, match=f"HTTP {status}") as caught:
        send(hook.url)
    assert caught.value.retry_after_ms == retry_ms
    assert len(hook.bodies) == 1


def test_no_log_shows_the_address_or_a_key(hook: Hook, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for answer in ((200, {}), (500, {})):
        hook.answers = [answer]
        with http_delivery(settings()) as deliver, contextlib.suppress(DeliveryError):
            deliver(replace(request(f"{hook.url}/SECRET"), headers={"Authorization": "Bearer SECRET"}))
    assert len(hook.bodies) == 2
    assert "SECRET" not in caplog.text


def test_a_failure_does_not_show_the_address() -> None:
    with pytest.raises(DeliveryError) as caught:
        send("http://127.0.0.1:1/SECRET")
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_pauses_double_up_to_the_longest_and_end_with_a_success() -> None:
    backoff = Backoff(1_000, 5_000)
    assert [backoff.failed("a", 0) for _ in range(5)] == [1_000, 2_000, 4_000, 5_000, 5_000]
    assert not backoff.may_try("a", 4_999)
    assert backoff.may_try("a", 5_000)
    assert backoff.may_try("b", 0)
    backoff.succeeded("a")
    assert backoff.may_try("a", 0)
    assert backoff.failed("a", 0, 3_000) == 3_000
