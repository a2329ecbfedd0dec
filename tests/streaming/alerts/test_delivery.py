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
from streaming.alerts.delivery import DeliveryError, attempt, http_delivery
from streaming.settings.errors import SettingsError
from tests.streaming.alerts.planted import settings
from tests.streaming.tables.journals import T0

# Statuses that are about the receiver, not about the request.
CHANNELS = (302, 408, 425, 429, 500, 503)


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
    with http_delivery(settings(), lambda: T0) as deliver:
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
        (503, {"Retry-After": "9" * 5_000}, 999_999_999_999_000),
        (503, {"Retry-After": "Thu, 01 Jan 2026 00:00:30 GMT"}, 30_000),
        (503, {"Retry-After": "Thursday, 01-Jan-26 00:00:30 GMT"}, 30_000),
        (503, {"Retry-After": "Thu Jan  1 00:00:30 2026"}, 30_000),
        (503, {"Retry-After": "Wed, 31 Dec 2025 23:59:59 GMT"}, 0),
        (503, {"Retry-After": "Thu, 99 Jan 2026 00:00:30 GMT"}, 0),
        (302, {"Location": "http://127.0.0.1:1/elsewhere"}, 0),
    ],
)
def test_all_but_success_is_a_failure(hook: Hook, status: int, headers: dict[str, str], retry_ms: int) -> None:
    hook.answers = [(status, headers)]
    with pytest.raises(DeliveryError, match=f"HTTP {status}") as caught:
        send(hook.url)
    assert caught.value.retry_after_ms == retry_ms
    assert len(hook.bodies) == 1


@pytest.mark.parametrize(
    ("status", "is_refusal"), [(400, True), (404, True), (413, True), (422, True)] + [(one, False) for one in CHANNELS]
)
def test_what_is_about_the_request_is_a_refusal(hook: Hook, status: int, is_refusal: bool) -> None:
    hook.answers = [(status, {})]
    with pytest.raises(DeliveryError) as caught:
        send(hook.url)
    assert caught.value.is_refusal is is_refusal


def test_an_unexpected_error_is_a_refusal_that_does_not_show_its_text() -> None:
    wrong = replace(request("http://127.0.0.1:1/"), headers={"Authorization": "Bearer schlüssel-SECRET"})
    with http_delivery(settings()) as deliver:
        error = attempt(deliver, wrong)
    assert error is not None
    assert error.is_refusal
    assert "UnicodeEncodeError" in str(error)
    assert "SECRET" not in str(error)


def test_an_address_that_cannot_be_called_is_a_mistake_of_the_settings() -> None:
    with (
        pytest.raises(SettingsError, match=r"alerts\.slack_url") as caught,
        http_delivery(settings(slack_url="http://☃.example/SECRET")),
    ):
        pass
    assert "SECRET" not in str(caught.value)


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
