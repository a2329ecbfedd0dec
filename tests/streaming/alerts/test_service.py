"""Alerts as a service of a process."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from pathlib import Path

import pytest

from streaming.alerts import service
from streaming.settings.errors import SettingsError
from streaming.setup.errors import SetupError
from tests.streaming.alerts.planted import Receiver, settings


def to(receiver: Receiver) -> service.Delivery:
    return lambda _: nullcontext(receiver)


def test_what_is_due_is_sent_once(tables: Path, tmp_path: Path) -> None:
    given = settings(state_file=tmp_path / "deep" / "state.json")
    receiver = Receiver()
    assert [service.run_once(tables, given, to(receiver)) for _ in range(2)] == [1, 0]
    assert receiver.statuses() == [("opened", ["f1"])]


def test_it_follows_until_it_is_stopped(tables: Path, tmp_path: Path) -> None:
    receiver = Receiver()
    waits = iter([False, True])
    service.run(tables, settings(state_file=tmp_path / "state.json"), lambda _: next(waits), to(receiver))
    assert receiver.statuses() == [("opened", ["f1"])]


def test_a_dry_run_sends_and_remembers_nothing(tables: Path, tmp_path: Path) -> None:
    given = settings(state_file=tmp_path / "state.json")
    (shown,) = service.dry_run(tables, given)
    assert shown["channel"] == "webhook"
    assert "SECRET" not in str(shown)
    assert list(tmp_path.iterdir()) == []


def test_two_processes_do_not_send_by_one_state(tables: Path, tmp_path: Path) -> None:
    given = settings(state_file=tmp_path / "state.json")
    with service.in_background(tables, given), pytest.raises(SetupError, match="another process"):
        service.run_once(tables, given, to(Receiver()))
    assert service.run_once(tables, given, to(Receiver())) == 1


def test_without_a_channel_nothing_runs_in_the_background_and_the_command_has_a_remedy(
    tables: Path, tmp_path: Path
) -> None:
    given = settings(webhook_url="", state_file=tmp_path / "state.json")
    before = threading.active_count()
    with service.in_background(tables, given):
        assert threading.active_count() == before
    with pytest.raises(SetupError, match="no channel"):
        service.run_once(tables, given, to(Receiver()))


def test_what_is_no_template_is_a_mistake_of_the_settings(tables: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError):
        service.run_once(tables, settings(title="{{ x", state_file=tmp_path / "state.json"), to(Receiver()))
