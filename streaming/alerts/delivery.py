"""Shell: sends requests and messages. Shows neither addresses nor tokens."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from typing import Protocol

import httpx2

from streaming.alerts import apprise_delivery
from streaming.alerts.channels import FINDING, Message, Request
from streaming.alerts.delivery_error import DeliveryError, answered
from streaming.machine.clock import now_ms
from streaming.settings.alerts import Alerts
from streaming.settings.errors import SettingsError

_LONGEST_NUMBER = 12
# These libraries log the address of every request, and its headers at level debug.
_TALKATIVE = ("httpcore2", "httpx2", "oauthlib", "requests_oauthlib", "urllib3")


class Deliver(Protocol):
    """Sends one request.

    Raises:
        DeliveryError: It was not accepted.
    """

    def __call__(self, request: Request) -> None:
        """Send the request."""


@contextmanager
def open_delivery(settings: Alerts, now: Callable[[], int] = now_ms) -> Iterator[Deliver]:
    """Yield a function that sends requests and messages. Redirects are not followed, as they would leak tokens."""
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    timeout_s = settings.timeout_ms / 1_000
    with httpx2.Client(timeout=timeout_s, follow_redirects=False) as client:
        yield _delivery(client, timeout_s, now)


def _delivery(client: httpx2.Client, timeout_s: float, now: Callable[[], int]) -> Deliver:
    def deliver(request: Request) -> None:
        if isinstance(request, Message):
            apprise_delivery.send(request, timeout_s)
        else:
            _post(client, request, now)

    return deliver


def _post(client: httpx2.Client, request: Request, now: Callable[[], int]) -> None:
    headers = {"Content-Type": "application/json", **request.headers}
    try:
        answer = client.post(request.url, content=request.content, headers=headers)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        # The error's text may contain the address.
        raise DeliveryError(type(error).__name__) from None
    if not answer.is_success:
        raise answered(answer.status_code, _retry_after_ms(answer.headers.get("retry-after", ""), now()))


def check_addresses(settings: Alerts) -> None:
    """Raise a ``SettingsError`` that names invalid addresses."""
    mistakes = [
        f"alerts.channels.{name}: is not an address that apprise knows"
        for name, url in sorted(settings.channels.items())
        if (text := url.get_secret_value()) and not apprise_delivery.is_known(text.replace(FINDING, "0"))
    ]
    for name in ("webhook_url", "alertmanager_url"):
        try:
            httpx2.URL(getattr(settings, name).get_secret_value())
        except (httpx2.InvalidURL, ValueError):  # The error's text contains the address.
            mistakes.append(f"alerts.{name}: is not an address that can be called")
    if mistakes:
        raise SettingsError(mistakes)


def _retry_after_ms(header: str, now_ms: int) -> int:
    """Return the pause that a receiver requests: seconds, or until a date (RFC 9110, 10.2.3); 0 for none."""
    try:
        if header.isdecimal():
            return int(header[:_LONGEST_NUMBER]) * 1_000
        until = parsedate_to_datetime(header)
    except ValueError:
        return 0
    # A date without a zone is in UTC.
    until = until if until.tzinfo is not None else until.replace(tzinfo=datetime.UTC)
    return max(0, round(until.timestamp() * 1_000) - now_ms)
