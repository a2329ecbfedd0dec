"""The requests and messages of each channel."""

from __future__ import annotations

import json
from typing import Any

from streaming.alerts.channels import Message, Request, channels
from streaming.alerts.notices import bundled, notice_of
from streaming.alerts.templates import Templates
from tests.dashboard.hostile import HOSTILE
from tests.streaming.alerts.planted import finding, settings
from tests.streaming.tables.journals import T0

ALL = {
    "webhook_token": "TOKEN-SECRET",
    "alertmanager_url": "http://127.0.0.1:9/SECRET/",
    "channels": {"chat": "json://127.0.0.1:9/SECRET", "incidents": "json://127.0.0.1:9/SECRET?dedup={finding}"},
    "link": "https://monitor.example",
}


def composed(*notices: Any, **values: object) -> dict[str, list[Request]]:
    given = settings(**{**ALL, **values})
    (bundle,) = bundled(notices, 50)
    found = channels(given, Templates(given.title, given.text, given.link))
    return {name: compose(bundle, T0 + 5_000) for name, compose in found.items()}


OPENED = notice_of(finding("f"), "opened")
CLOSED = notice_of(finding("g", closed_at=T0 + 2_000), "closed")


def test_a_webhook_gets_all_findings_of_a_message_and_a_key_against_repeats() -> None:
    (request,) = composed(OPENED, CLOSED)["webhook"]
    body: Any = request.body
    assert [row["finding_id"] for row in body["findings"]] == ["f", "g"]
    assert (body["status"], body["severity"], body["cluster"], body["group_id"]) == (
        "opened",
        "critical",
        "c1",
        "orders",
    )
    assert body["title"] == "critical: duplicate_ids opened in orders (c1)"
    assert request.headers == {"Idempotency-Key": body["id"], "Authorization": "Bearer TOKEN-SECRET"}
    assert composed(OPENED, CLOSED)["webhook"][0].identity == body["id"]


def test_alertmanager_gets_alerts_with_an_end() -> None:
    (request,) = composed(OPENED, CLOSED)["alertmanager"]
    assert request.url == "http://127.0.0.1:9/SECRET/api/v2/alerts"
    first, second = request.body
    assert first["labels"]["finding_id"] == "f"
    assert (first["startsAt"], first["endsAt"]) == ("2026-01-01T00:00:00.000Z", "2026-01-01T00:04:05.000Z")
    assert second["endsAt"] == "2026-01-01T00:00:02.000Z"
    assert first["generatorURL"] == "https://monitor.example/group?cluster=c1&group=orders"


def test_an_alert_of_a_source_with_a_clock_ahead_never_ends_before_it_starts() -> None:
    ahead = finding("f", opened_at=T0 + 600_000)
    alerts = [
        alert
        for notice in (notice_of(ahead, "opened"), notice_of({**ahead, "closed_at": T0 + 660_000}, "closed"))
        for alert in composed(notice)["alertmanager"][0].body
    ]
    assert [(alert["startsAt"], alert["endsAt"]) for alert in alerts] == [
        ("2026-01-01T00:00:05.000Z", "2026-01-01T00:04:05.000Z"),
        ("2026-01-01T00:00:05.000Z", "2026-01-01T00:00:05.000Z"),
    ]
    backwards = composed(notice_of(finding("f", opened_at=T0 + 2_000, closed_at=T0 + 1_000), "closed"))["alertmanager"]
    (alert,) = backwards[0].body
    assert alert["startsAt"] == alert["endsAt"]


def test_a_message_by_apprise_has_the_worst_of_its_findings_as_its_type() -> None:
    (request,) = composed(OPENED, CLOSED)["chat"]
    assert isinstance(request, Message)
    assert (request.body["title"], request.body["type"]) == (
        "critical: duplicate_ids opened in orders (c1)",
        "failure",
    )
    types = {
        severity: composed(notice_of(finding("f", severity=severity), "opened")) for severity in ("warning", "info")
    }
    assert {severity: sent["chat"][0].body["type"] for severity, sent in types.items()} == {  # type: ignore[call-overload]
        "warning": "warning",
        "info": "info",
    }
    assert composed(CLOSED)["chat"][0].body["type"] == "success"  # type: ignore[call-overload]


def test_an_address_with_a_place_for_the_finding_gets_a_message_for_each_by_its_key() -> None:
    first, second = composed(OPENED, CLOSED)["incidents"]
    (again,) = composed(notice_of(finding("f", closed_at=T0 + 1), "closed"))["incidents"]
    assert first.url == again.url != second.url
    assert "{" not in first.url


def test_only_configured_channels_exist() -> None:
    given = settings(webhook_url="")
    assert channels(given, Templates(given.title, given.text)) == {}


def test_requests_show_no_secret() -> None:
    for requests in composed(OPENED).values():
        for request in requests:
            assert "SECRET" not in f"{request!r} {request.shown()}"


def test_hostile_ids_are_short_printable_values_everywhere() -> None:
    for name in HOSTILE:
        row = finding("f", group=name, cluster=name, kind=name, message=name, advice=name)
        for requests in composed(notice_of(row, "opened")).values():
            for request in requests:
                text = request.content.decode("utf-8")
                assert json.loads(text) == request.body
                assert len(text) < 20_000
                assert all(
                    line.replace("\n", "").replace("@\u200b", "").isprintable() for line in texts_of(request.body)
                )


def texts_of(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for part in value.values() for text in texts_of(part)]
    if isinstance(value, list):
        return [text for part in value for text in texts_of(part)]
    return [value] if isinstance(value, str) else []
