"""Shell: sends requests. Shows neither addresses nor keys."""

from __future__ import annotations

import datetime
import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from typing import Protocol

import httpx2

from streaming.alerts.channels import Request
from streaming.machine.clock import now_ms
from streaming.settings.alerts import Alerts
from streaming.settings.errors import SettingsError

# RFC 9110: what a client may answer by trying again. All other 4xx are about the request.
_TRANSIENT = frozenset({408, 425, 429})
_LONGEST_NUMBER = 12
# These libraries log the address of every request, and at level debug its headers.
_TALKATIVE = ("httpx2", "httpcore2")


class DeliveryError(Exception):
    """A request was not accepted.

    Attributes:
        retry_after_ms: What the receiver requests.
        is_refusal: It is about this request; the receiver may accept others.
    """

    def __init__(self, reason: str, retry_after_ms: int = 0, *, is_refusal: bool = False) -> None:
        super().__init__(reason)
        self.retry_after_ms = retry_after_ms
        self.is_refusal = is_refusal


class Deliver(Protocol):
    """Sends one request.

    Raises:
        DeliveryError: It was not accepted.
    """

    def __call__(self, request: Request) -> None:
        """Send it."""


@contextmanager
def http_delivery(settings: Alerts, now: Callable[[], int] = now_ms) -> Iterator[Deliver]:
    """Give what sends requests over HTTP. Redirects are not followed: they would take keys elsewhere.

    Raises:
        SettingsError: An address cannot be called.
    """
    _check_addresses(settings)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with httpx2.Client(timeout=settings.timeout_ms / 1_000, follow_redirects=False) as client:
        yield _delivery(client, now)


def _delivery(client: httpx2.Client, now: Callable[[], int]) -> Deliver:
    def deliver(request: Request) -> None:
        headers = {"Content-Type": "application/json", **request.headers}
        try:
            answer = client.post(request.url, content=request.content, headers=headers)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            # Its text may hold the address.
            raise DeliveryError(type(error).__name__) from None
        if not answer.is_success:
            after_ms = _retry_after_ms(answer.headers.get("retry-after", ""), now())
            is_refusal = 400 <= answer.status_code < 500 and answer.status_code not in _TRANSIENT
            raise DeliveryError(f"HTTP {answer.status_code}", after_ms, is_refusal=is_refusal)

    return deliver


def _check_addresses(settings: Alerts) -> None:
    mistakes = []
    for name in ("webhook_url", "alertmanager_url", "slack_url", "pagerduty_url"):
        try:
            httpx2.URL(getattr(settings, name).get_secret_value())
        except (httpx2.InvalidURL, ValueError):  # Their texts hold the address.
            mistakes.append(f"alerts.{name}: is no address that can be called")
    if mistakes:
        raise SettingsError(mistakes)


def attempt(deliver: Deliver, request: Request) -> DeliveryError | None:
    """Send one request, and return why it was not accepted."""
    try:
        deliver(request)
    except DeliveryError as error:
        return error
    except Exception as error:  # noqa: BLE001 - a message that cannot be sent keeps no other from being sent
        return unsendable(error)
    return None


def unsendable(error: Exception) -> DeliveryError:
    """Return an unexpected error as that of its message; its text may hold what is secret."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return DeliveryError(f"{type(error).__name__} in {last.name}", is_refusal=True)


def _retry_after_ms(header: str, now_ms: int) -> int:
    """Return the pause that a receiver requests: seconds, or until a date (RFC 9110, 10.2.3); 0: none."""
    try:
        if header.isdecimal():
            return int(header[:_LONGEST_NUMBER]) * 1_000
        until = parsedate_to_datetime(header)
    except ValueError:
        return 0
    # A date without a zone is one of UTC.
    until = until if until.tzinfo is not None else until.replace(tzinfo=datetime.UTC)
    return max(0, round(until.timestamp() * 1_000) - now_ms)
