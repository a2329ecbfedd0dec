"""Shell: sends requests, and says when a channel may be tried again. Shows neither addresses nor keys."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import httpx2

from streaming.alerts.channels import Request
from streaming.machine.logs import logger
from streaming.settings.alerts import Alerts

_log = logger("alerts")
_ANSWER_SHOWN = 200
# These libraries log the address of every request, and at level debug its headers.
_TALKATIVE = ("httpx2", "httpcore2")


class DeliveryError(Exception):
    """A request was not accepted.

    Attributes:
        retry_after_ms: What the receiver asks for.
    """

    def __init__(self, reason: str, retry_after_ms: int = 0) -> None:
        super().__init__(reason)
        self.retry_after_ms = retry_after_ms


class Deliver(Protocol):
    """Sends one request.

    Raises:
        DeliveryError: It was not accepted.
    """

    def __call__(self, request: Request) -> None:
        """Send it."""


@contextmanager
def http_delivery(settings: Alerts) -> Iterator[Deliver]:
    """Give what sends requests over HTTP. Redirects are not followed: they would take keys elsewhere."""
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with httpx2.Client(timeout=settings.timeout_ms / 1_000, follow_redirects=False) as client:
        yield _delivery(client)


def _delivery(client: httpx2.Client) -> Deliver:
    def deliver(request: Request) -> None:
        headers = {"Content-Type": "application/json", **request.headers}
        try:
            answer = client.post(request.url, content=request.content, headers=headers)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            # Its text may hold the address.
            raise DeliveryError(type(error).__name__) from None
        if not answer.is_success:
            after = answer.headers.get("retry-after", "")
            raise DeliveryError(f"HTTP {answer.status_code}", int(after) * 1_000 if after.isdecimal() else 0)

    return deliver


class Backoff:
    """When each channel may be tried again: after 1, 2, 4, ... times the first pause, up to the longest.

    Args:
        first_ms, most_ms: The first and the longest pause.
    """

    def __init__(self, first_ms: int, most_ms: int) -> None:
        self._first, self._most = first_ms, most_ms
        self._failures: dict[str, int] = {}
        self._next_ms: dict[str, int] = {}

    def may_try(self, channel: str, now_ms: int) -> bool:
        """Return whether a channel is not in a pause."""
        return now_ms >= self._next_ms.get(channel, now_ms)

    def failed(self, channel: str, now_ms: int, at_least_ms: int = 0) -> int:
        """Begin a pause; return its length."""
        failures = self._failures[channel] = self._failures.get(channel, 0) + 1
        pause = min(self._most, max(at_least_ms, self._first << min(failures - 1, 30)))
        self._next_ms[channel] = now_ms + pause
        return pause

    def succeeded(self, channel: str) -> None:
        """End the pauses."""
        self._failures.pop(channel, None)
        self._next_ms.pop(channel, None)


def attempt(deliver: Deliver, request: Request, backoff: Backoff, now_ms: Callable[[], int]) -> bool:
    """Send one request and return whether it was accepted; a failure is logged and begins a pause."""
    try:
        deliver(request)
    except DeliveryError as error:
        pause_ms = backoff.failed(request.channel, now_ms(), error.retry_after_ms)
        _log.warning(
            "an alert was not accepted", channel=request.channel, reason=str(error)[:_ANSWER_SHOWN], retry_ms=pause_ms
        )
        return False
    backoff.succeeded(request.channel)
    return True
