"""Shell: the channels of messages: requests to a webhook and an Alertmanager, messages of apprise. No I/O.

Addresses and tokens are secret: a request shows neither.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from streaming.alerts.notices import Bundle
from streaming.alerts.templates import Templates
from streaming.settings.alerts import Alerts
from streaming.terminal.format import time_text

Body: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]
# In an address of apprise, this marks the key of the only finding in a message.
FINDING = "{finding}"
# By these types, apprise's services choose a colour, a priority, and whether to open or resolve an incident.
_TYPES = {"critical": "failure", "warning": "warning"}
# An @ notifies people in chats, or a whole channel; before a digit it is part of a RocketMQ client's id.
_CALL = re.compile(r"@(?!\d)|(?<=<)@")
# An Alertmanager drops an alert that is not repeated within this time.
ALERTMANAGER_KEEPS = 4


@dataclass(frozen=True)
class Request:
    """One request; its address and headers are not shown.

    Attributes:
        identity: The message's id, the same whenever it is sent again.
    """

    channel: str
    identity: str
    body: Body
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False, default_factory=dict)

    @property
    def content(self) -> bytes:
        """Return the body as bytes."""
        return json.dumps(self.body, ensure_ascii=False).encode("utf-8", "replace")

    def shown(self) -> Mapping[str, object]:
        """Return what may be shown, which excludes the address."""
        return {"channel": self.channel, "id": self.identity, "body": self.body}


@dataclass(frozen=True)
class Message(Request):
    """A message of apprise to people.

    Attributes:
        body: The title, the text, and the type by apprise's names.
    """

    body: Mapping[str, str]


# A function of this type makes the requests of a message, at a time in epoch milliseconds.
Compose: TypeAlias = Callable[[Bundle, int], list[Request]]


def channels(settings: Alerts, texts: Templates) -> dict[str, Compose]:
    """Return the channels that are configured, by name."""
    found: dict[str, Compose] = {}
    if settings.webhook_url.get_secret_value():
        found["webhook"] = lambda bundle, _: [_webhook(settings, texts, bundle)]
    if settings.alertmanager_url.get_secret_value():
        found["alertmanager"] = lambda bundle, now_ms: [_alertmanager(settings, texts, bundle, now_ms)]
    for name, url in sorted(settings.channels.items()):
        if url.get_secret_value():
            found[name] = partial(_messages, name, url.get_secret_value(), texts)
    return found


def _webhook(settings: Alerts, texts: Templates, bundle: Bundle) -> Request:
    title, text = texts.of(bundle)
    token = settings.webhook_token.get_secret_value()
    return Request(
        "webhook",
        bundle.identity,
        {
            "version": 1,
            "id": bundle.identity,
            "status": bundle.status,
            "severity": bundle.severity,
            "cluster": bundle.notices[0].cluster,
            "group_id": bundle.notices[0].group_id,
            "title": title,
            "text": text,
            "findings": [notice.shown() for notice in bundle.notices],
        },
        settings.webhook_url.get_secret_value(),
        {"Idempotency-Key": bundle.identity} | ({"Authorization": f"Bearer {token}"} if token else {}),
    )


def _alertmanager(settings: Alerts, texts: Templates, bundle: Bundle, now_ms: int) -> Request:
    # This is PostableAlerts of API v2. Open alerts are repeated, each with an end after the next repetition. An alert
    # that ends before it starts is refused, and a source's clock may be ahead of this machine's.
    ends_at = now_ms + ALERTMANAGER_KEEPS * settings.alertmanager_refresh_ms
    body = []
    for notice in bundle.notices:
        title, text = texts.of(Bundle([notice]))
        starts_at = min(notice.opened_at_ms, now_ms)
        closes_at = ends_at if notice.closed_at_ms is None else max(starts_at, min(notice.closed_at_ms, now_ms))
        alert: dict[str, Any] = {
            "labels": {
                "alertname": "RebalanceFinding",
                "cluster": notice.cluster,
                "group": notice.group_id,
                "kind": notice.kind,
                "severity": notice.severity,
                "finding_id": notice.finding_id,
            },
            "annotations": {"summary": title, "description": text},
            "startsAt": time_text(starts_at),
            "endsAt": time_text(closes_at),
        }
        if link := texts.link(bundle):
            alert["generatorURL"] = link
        body.append(alert)
    url = f"{settings.alertmanager_url.get_secret_value().rstrip('/')}/api/v2/alerts"
    return Request("alertmanager", bundle.identity, body, url)


def _messages(name: str, url: str, texts: Templates, bundle: Bundle, _: int) -> list[Request]:
    parts = [Bundle([notice]) for notice in bundle.notices] if FINDING in url else [bundle]
    return [_message(name, url, texts, part) for part in parts]


def _message(name: str, url: str, texts: Templates, bundle: Bundle) -> Message:
    title, text = (_CALL.sub(r"\g<0>" + "\N{ZERO WIDTH SPACE}", part) for part in texts.of(bundle))
    kind = "success" if bundle.status == "closed" else _TYPES.get(bundle.severity, "info")
    key = hashlib.blake2b(bundle.notices[0].finding_id.encode(), digest_size=16).hexdigest()
    body = {"title": title, "text": text, "type": kind}
    return Message(name, bundle.identity, body, url.replace(FINDING, key))
