"""Shell: where messages are sent: the requests of a webhook, Alertmanager, Slack and PagerDuty. No I/O.

Addresses and keys are secret: a request shows neither.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from streaming.alerts.notices import Bundle, Notice
from streaming.alerts.templates import Texts
from streaming.settings.alerts import Alerts
from streaming.terminal.format import time_text

Body: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]
# PagerDuty, Events API v2: the limit of `summary`.
_PAGERDUTY_SUMMARY = 1_024
# An Alertmanager drops an alert that is not sent again; so long after the last time.
ALERTMANAGER_KEEPS = 4


@dataclass(frozen=True)
class Request:
    """One request; its address and headers are not shown.

    Attributes:
        identity: Of the message: the same whenever it is sent again.
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


# Makes the requests of a message, at a time in epoch milliseconds.
Compose: TypeAlias = Callable[[Bundle, int], list[Request]]


def channels(settings: Alerts, texts: Texts) -> dict[str, Compose]:
    """Return the channels that are configured, by name."""
    found: dict[str, Compose] = {}
    if settings.webhook_url.get_secret_value():
        found["webhook"] = lambda bundle, _: [_webhook(settings, texts, bundle)]
    if settings.alertmanager_url.get_secret_value():
        found["alertmanager"] = lambda bundle, now_ms: [_alertmanager(settings, texts, bundle, now_ms)]
    if settings.slack_url.get_secret_value():
        found["slack"] = lambda bundle, _: [_slack(settings, texts, bundle)]
    if settings.pagerduty_routing_key.get_secret_value():
        found["pagerduty"] = lambda bundle, _: [_pagerduty(settings, texts, one) for one in bundle.notices]
    return found


def _webhook(settings: Alerts, texts: Texts, bundle: Bundle) -> Request:
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
            "findings": [one.shown() for one in bundle.notices],
        },
        settings.webhook_url.get_secret_value(),
        {"Idempotency-Key": bundle.identity} | ({"Authorization": f"Bearer {token}"} if token else {}),
    )


def _alertmanager(settings: Alerts, texts: Texts, bundle: Bundle, now_ms: int) -> Request:
    # API v2, PostableAlerts. Alerts that are open are sent again, with an end ahead of the next time. One that ends
    # before it starts is refused; a source's clock may be ahead of ours.
    ends_at = now_ms + ALERTMANAGER_KEEPS * settings.alertmanager_refresh_ms
    body = []
    for one in bundle.notices:
        title, text = texts.of(Bundle([one]))
        starts_at = min(one.opened_at_ms, now_ms)
        closes_at = ends_at if one.closed_at_ms is None else max(starts_at, min(one.closed_at_ms, now_ms))
        alert: dict[str, Any] = {
            "labels": {
                "alertname": "RebalanceFinding",
                "cluster": one.cluster,
                "group": one.group_id,
                "kind": one.kind,
                "severity": one.severity,
                "finding_id": one.finding_id,
            },
            "annotations": {"summary": title, "description": text},
            "startsAt": time_text(starts_at),
            "endsAt": time_text(closes_at),
        }
        if settings.link:
            alert["generatorURL"] = settings.link
        body.append(alert)
    url = f"{settings.alertmanager_url.get_secret_value().rstrip('/')}/api/v2/alerts"
    return Request("alertmanager", bundle.identity, body, url)


def _slack(settings: Alerts, texts: Texts, bundle: Bundle) -> Request:
    title, text = texts.of(bundle)
    # Slack, "Escaping text": without these no id is a link or calls a whole channel.
    shown = f"{title}\n{text}".replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    body = {"text": shown, "mrkdwn": False, "unfurl_links": False, "unfurl_media": False}
    return Request("slack", bundle.identity, body, settings.slack_url.get_secret_value())


def _pagerduty(settings: Alerts, texts: Texts, one: Notice) -> Request:
    title, text = texts.of(Bundle([one]))
    body: dict[str, Any] = {
        "routing_key": settings.pagerduty_routing_key.get_secret_value(),
        "event_action": "trigger" if one.status == "opened" else "resolve",
        "dedup_key": hashlib.blake2b(one.finding_id.encode(), digest_size=16).hexdigest(),
        "payload": {
            "summary": title[:_PAGERDUTY_SUMMARY],
            "source": one.cluster or "rebalance-monitor",
            "severity": one.severity if one.severity in ("critical", "warning", "info") else "error",
            "timestamp": time_text(one.opened_at_ms),
            "component": one.group_id,
            "class": one.kind,
            "custom_details": {"text": text, **one.shown()},
        },
    }
    if settings.link:
        body["links"] = [{"href": settings.link, "text": "Rebalance monitor"}]
    return Request("pagerduty", Bundle([one]).identity, body, settings.pagerduty_url.get_secret_value())


def without_secrets(request: Request) -> dict[str, Any]:
    """Return a request as it may be shown: the channel and the body without keys."""
    body = request.body
    if isinstance(body, Mapping) and "routing_key" in body:
        body = {**body, "routing_key": "**********"}
    return {"channel": request.channel, "id": request.identity, "body": body}
