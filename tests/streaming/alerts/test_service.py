"""Alerts as a service of a process."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from pathlib import Path

import pytest

from streaming.alerts import service
from streaming.alerts.follower import AlertsStatus
from streaming.settings.errors import SettingsError
from streaming.settings.model import load
from streaming.setup.errors import SetupError
from tests.streaming.alerts.planted import Receiver, settings, widespread


def to(receiver: Receiver) -> service.Delivery:
    return lambda _: nullcontext(receiver)


def test_due_messages_are_sent_once(tables: Path, tmp_path: Path) -> None:
    given = settings(state_file=tmp_path / "deep" / "state.json")
    receiver = Receiver()
    assert [service.run_once(tables, given, widespread(), to(receiver)) for _ in range(2)] == [1, 0]
    assert receiver.statuses() == [("opened", ["f1"])]


def test_a_single_run_sends_with_the_settings_as_they_are_by_default(tables: Path, tmp_path: Path) -> None:
    given = settings(state_file=tmp_path / "state.json", group_wait_ms=load().alerts.group_wait_ms)
    assert given.group_wait_ms > 0
    receiver = Receiver()
    assert [service.run_once(tables, given, widespread(), to(receiver)) for _ in range(2)] == [1, 0]


def test_a_state_file_that_cannot_be_written_is_named_at_the_start(tables: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match=r"alerts\.state_file .* is not a folder"):
        service.run_once(tables, settings(state_file=tmp_path / "file" / "state.json"), widespread(), to(Receiver()))


def test_beside_a_server_it_runs_until_the_end(tables: Path, tmp_path: Path) -> None:
    status = AlertsStatus()
    with service.in_background(
        tables, settings(state_file=tmp_path / "state.json", poll_interval_ms=1), widespread(), status
    ):
        (thread,) = [running for running in threading.enumerate() if running.name == "alerts"]
    assert not thread.is_alive()
    assert status.is_running is False


def test_it_follows_until_it_is_stopped(tables: Path, tmp_path: Path) -> None:
    receiver = Receiver()
    waits = iter([False, True])
    service.run(tables, settings(state_file=tmp_path / "state.json"), widespread(), lambda _: next(waits), to(receiver))
    assert receiver.statuses() == [("opened", ["f1"])]


def test_a_dry_run_sends_and_remembers_nothing(tables: Path, tmp_path: Path) -> None:
    given = settings(state_file=tmp_path / "state.json")
    (shown,) = service.dry_run(tables, given, widespread())
    assert shown["channel"] == "webhook"
    assert "SECRET" not in str(shown)
    assert list(tmp_path.iterdir()) == []


def test_two_processes_do_not_send_by_one_state(tables: Path, tmp_path: Path) -> None:
    given = settings(state_file=tmp_path / "state.json")
    with service.in_background(tables, given, widespread()), pytest.raises(SetupError, match="another process"):
        service.run_once(tables, given, widespread(), to(Receiver()))
    assert service.run_once(tables, given, widespread(), to(Receiver())) == 1


def test_without_a_channel_nothing_runs_in_the_background_and_the_command_has_a_remedy(
    tables: Path, tmp_path: Path
) -> None:
    given = settings(webhook_url="", state_file=tmp_path / "state.json")
    before = threading.active_count()
    with service.in_background(tables, given, widespread()):
        assert threading.active_count() == before
    with pytest.raises(SetupError, match="no channel"):
        service.run_once(tables, given, widespread(), to(Receiver()))


def test_an_invalid_template_is_a_mistake_of_the_settings(tables: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError):
        service.run_once(
            tables, settings(title="{{ x", state_file=tmp_path / "state.json"), widespread(), to(Receiver())
        )
