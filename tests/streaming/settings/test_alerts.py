"""The section ``alerts``: the values that it refuses, and maintenance windows."""

from __future__ import annotations

import pytest

from streaming.settings.alerts import in_maintenance
from streaming.settings.errors import SettingsError
from streaming.settings.model import load
from tests.streaming.tables.journals import T0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("webhook_url", "ftp://host/SECRET"),
        ("channels", "slack://SECRET"),
        ("channels.chat", ["SECRET"]),
        *((f"channels.{wrong}", "json://SECRET") for wrong in ("webhook", "alertmanager", "Chat", "", "x" * 51)),
        ("alertmanager_url", "http://"),
        ("slack_url", "https://hooks.slack.com/services/SECRET"),
        ("pagerduty_routing_key", "SECRET"),
        *(
            ("webhook_url", f"http://{wrong}")
            for wrong in ("user:SECRET", "host:99999/", "[::1/", "a..b/", "host/a b", "host/\n", "host/\ud800")
        ),
        ("webhook_token", 5),
        ("min_severity", "loud"),
        ("groups", ["("]),
        ("title", " "),
        ("link", "javascript:alert(1)"),
        ("maintenance", ["tonight"]),
        ("maintenance", ["2026-01-01T01:00:00Z/2026-01-01T00:00:00Z"]),
        ("maintenance", ["2026-01-01T01:00:00/2026-01-01T02:00:00"]),
        ("maintenance", ["2026-01-01T01:00:00Z/2026-01-01T02:00:00Z host=x"]),
        ("maintenance", ["2026-01-01T01:00:00Z/2026-01-01T02:00:00Z group=("]),
        ("group_wait_ms", -1),
    ],
)
def test_a_mistake_is_named_without_what_is_secret(name: str, value: object) -> None:
    with pytest.raises(SettingsError) as caught:
        load(overrides={f"alerts.{name}": value})
    assert f"alerts.{name}" in str(caught.value.mistakes)
    assert "SECRET" not in str(caught.value.mistakes)


def test_settings_show_no_secret() -> None:
    names = ("webhook_url", "alertmanager_url", "channels.chat")
    values = {f"alerts.{name}": "http://127.0.0.1/SECRET" for name in names}
    assert "SECRET" not in repr(load(overrides={**values, "alerts.webhook_token": "SECRET"}))


def test_channels_are_given_by_variables_too() -> None:
    given = {"REBALANCE_MONITOR_ALERTS__CHANNELS__ON-CALL": "json://a", "REBALANCE_MONITOR_ALERTS__CHANNELS__CHAT": "b"}
    assert {name: url.get_secret_value() for name, url in load(env=given).alerts.channels.items()} == {
        "on-call": "json://a",
        "chat": "b",
    }


@pytest.mark.parametrize(
    ("window", "cluster", "group", "at_ms", "inside"),
    [
        ("2026-01-01T00:00:00Z/2026-01-01T01:00:00Z", "c", "g", 0, True),
        ("2026-01-01T00:00:00Z/2026-01-01T01:00:00Z", "c", "g", -1, False),
        ("2026-01-01T00:00:00Z/2026-01-01T01:00:00Z", "c", "g", 3_600_000, False),
        ("2026-01-01T01:00:00+01:00/2026-01-01T02:00:00+01:00", "c", "g", 0, True),
        ("2026-01-01T00:00:00Z/2026-01-01T01:00:00Z cluster=prod-.*", "prod-a\n", "g", 0, True),
        ("2026-01-01T00:00:00Z/2026-01-01T01:00:00Z cluster=prod-.*", "test", "g", 0, False),
        ("2026-01-01T00:00:00Z/2026-01-01T01:00:00Z cluster=c group=g", "c", "gg", 0, False),
        ("2026-01-01T00:00:00Z/2026-01-01T01:00:00Z group=g=h", "c", "g=h", 0, True),
    ],
)
def test_a_window_is_a_span_of_some_clusters_and_groups(
    window: str, cluster: str, group: str, at_ms: int, inside: bool
) -> None:
    settings = load(overrides={"alerts.maintenance": [window]}).alerts
    assert in_maintenance(settings.maintenance, cluster, group, T0 + at_ms) is inside
