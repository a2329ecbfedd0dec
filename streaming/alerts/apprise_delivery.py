"""Shell: sends messages to people by apprise, which supports the services. Never shows addresses, which hold tokens."""

from __future__ import annotations

import logging
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from streaming.alerts.channels import Message
from streaming.alerts.delivery_error import DeliveryError, answered

if TYPE_CHECKING:
    from apprise import NotifyBase

# Its services log the status of an answer in this form, next to texts that may contain secrets.
_STATUS = re.compile(r"\berror=(\d{3})\b")

# Its log lines may contain parts of an address, so only the handlers that it adds itself get them.
_LOGGER = logging.getLogger("apprise")
_LOGGER.propagate = False
_LOGGER.setLevel(logging.WARNING)
_LOGGER.addHandler(logging.NullHandler())


def is_known(url: str) -> bool:
    """Return whether there is a service with such an address."""
    return _service(url, 1) is not None


def send(message: Message, timeout_s: float) -> None:
    """Send a message; wait first if the service limits the rate of messages.

    Raises:
        DeliveryError: The service did not accept it.
    """
    # The import takes 0.4 s, and only processes with such a channel need it.
    from apprise import Apprise

    service = _service(message.url, timeout_s)
    assert service is not None, "addresses are checked at the start"
    body = message.body
    with Apprise(service).notify(body["text"] or body["title"], body["title"], body["type"], "text") as result:
        if result:
            return
        found = [match for entry in result.logs() if (match := _STATUS.search(entry.message))]
    raise answered(int(found[-1][1])) if found else DeliveryError("the service did not accept it, or did not answer")


@lru_cache(maxsize=64)
def _service(url: str, timeout_s: float) -> NotifyBase | None:
    """Return the service with an address, the same object each time, so that it knows when it was last used."""
    from apprise import Apprise, AppriseAsset, OverflowMode

    asset = AppriseAsset(
        app_id="rebalance-monitor",
        app_desc="Rebalance monitor",
        app_url="",
        # Its pictures would be loaded from a third-party server.
        image_url_mask="",
        image_url_logo="",
        http_redirects=False,
        storage_mode="memory",
        # Messages are sent in this thread.
        async_mode=False,
        service_timeout=0,
    )
    service = Apprise.instantiate(url, asset=asset)
    if service is not None:
        service.socket_connect_timeout = service.socket_read_timeout = timeout_s
        # One attempt is enough here: a failure is retried later.
        service.retry, service.optional = 0, False
        if service.overflow_mode == OverflowMode.UPSTREAM:
            service.overflow_mode = OverflowMode.TRUNCATE
    return service
