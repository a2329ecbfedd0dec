"""Sending over HTTP, and the pauses after failures."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import replace

import pytest

from streaming.alerts.channels import Request
from streaming.alerts.delivery import check_addresses, open_delivery
from streaming.alerts.delivery_error import DeliveryError
from streaming.settings.errors import SettingsError
from streaming.settings.model import load
from tests.streaming.alerts.hook import Hook
from tests.streaming.alerts.planted import settings
from tests.streaming.tables.journals import T0


def request(url: str) -> Request:
    return Request("webhook", "id-1", {"text": "日本 \ud800"}, url, {"Idempotency-Key": "id-1"})


def send(url: str) -> None:
    with open_delivery(settings(), lambda: T0) as deliver:
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
    ("name", "address"),
    [
        ("webhook_url", "http://☃.example/SECRET"),
        ("channels.chat", "nosuch://SECRET"),
        ("channels.chat", "slack://SECRET"),
        ("channels.chat", "https://hooks.example/SECRET"),
        ("channels.chat", "SECRET"),
        ("channels.chat", "json://[::SECRET"),
    ],
)
def test_an_address_that_cannot_be_called_is_a_mistake_of_the_settings(
    name: str, address: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SettingsError, match=rf"alerts\.{name}: is not an address") as caught:
        check_addresses(load(overrides={f"alerts.{name}": address}).alerts)
    assert "SECRET" not in str(caught.value) + "".join(capfd.readouterr())


@pytest.mark.parametrize(
    "address",
    [
        "https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ",
        f"pagerduty://{'I' * 32}@{'A' * 20}/?action=map&dedup={{finding}}",
        "mailto://user:password@mail.example.com?to=oncall@example.com",
    ],
)
def test_addresses_that_services_give_out_are_known(address: str) -> None:
    check_addresses(settings(channels={"chat": address}))


def test_no_log_shows_the_address_or_a_key(hook: Hook, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for answer in ((200, {}), (500, {})):
        hook.answers = [answer]
        with open_delivery(settings()) as deliver, contextlib.suppress(DeliveryError):
            deliver(replace(request(f"{hook.url}/SECRET"), headers={"Authorization": "Bearer SECRET"}))
    assert len(hook.bodies) == 2
    assert "SECRET" not in caplog.text


def test_a_failure_does_not_show_the_address() -> None:
    with pytest.raises(DeliveryError) as caught:
        send("http://127.0.0.1:1/SECRET")
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None
