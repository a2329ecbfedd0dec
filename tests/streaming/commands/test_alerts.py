"""The command `alerts`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.streaming.views.story import run

CHANNEL = "REBALANCE_MONITOR_ALERTS__WEBHOOK_URL"
STATE = "REBALANCE_MONITOR_ALERTS__STATE_FILE"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "alerts.json"
    monkeypatch.setenv(STATE, str(path))
    monkeypatch.setenv(CHANNEL, "http://127.0.0.1:1/SECRET")
    return path


def test_a_dry_run_prints_what_would_be_sent(tables: Path, state: Path) -> None:
    result = run(tables, "alerts", "--dry-run")
    assert result.exit_code == 0
    (line,) = result.stdout.splitlines()
    shown = json.loads(line)
    assert (shown["channel"], shown["body"]["findings"][0]["finding_id"]) == ("webhook", "f1")
    assert "SECRET" not in result.output
    assert not state.exists()


def test_once_counts_what_was_accepted_and_hides_the_address(tables: Path, capfd: pytest.CaptureFixture[str]) -> None:
    result = run(tables, "alerts", "--once")
    assert (result.exit_code, "sent: 0" in result.stderr) == (0, True)
    assert "SECRET" not in result.output + "".join(capfd.readouterr())


def test_without_tables_it_fails_with_a_sentence(tmp_path: Path) -> None:
    result = run(tmp_path / "absent", "alerts", "--dry-run")
    assert (result.exit_code, "no such folder" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("name", "value"),
    [("WEBHOOK_TOKEN", "schlüssel-SECRET"), ("CHANNELS__CHAT", "nosuch://SECRET"), ("STATE_FILE", "/dev/null/x/y")],
)
@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["alerts"]])
def test_settings_that_cannot_work_are_refused_by_name(
    tables: Path,
    monkeypatch: pytest.MonkeyPatch,
    complaint: Callable[..., str],
    command: list[str],
    name: str,
    value: str,
) -> None:
    monkeypatch.setenv(f"REBALANCE_MONITOR_ALERTS__{name}", value)
    refused = complaint(*command, "--tables", str(tables))
    assert f"alerts.{name.lower().replace('__', '.')}" in refused
    assert "SECRET" not in refused
