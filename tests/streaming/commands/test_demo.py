"""The command `demo`: its folder, its settings and how it ends."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from typer.testing import CliRunner, Result

import dashboard.app
import streaming.job
import streaming.simulator.live_writer
import streaming.supervisor
from streaming.commands.app import app
from streaming.commands.demo import _own_folder
from streaming.setup.errors import SetupError
from streaming.terminal.live_view import LiveStatus


def test_a_demo_does_not_empty_the_folder_of_one_that_runs(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with _own_folder(folder):
        (folder / "truth.jsonl").touch()
        with pytest.raises(SetupError, match="another demo runs"), _own_folder(folder):
            pass
        assert (folder / "truth.jsonl").exists()
    with _own_folder(folder):
        assert sorted(path.name for path in folder.iterdir()) == [".rebalance-monitor-demo", "events"]


def test_a_demo_leaves_other_folders_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch()
    with pytest.raises(SetupError, match="not made by a demo"), _own_folder(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_targets_of_links_in_the_folder_are_not_emptied(tmp_path: Path) -> None:
    folder, mine = tmp_path / "demo", tmp_path / "mine"
    mine.mkdir()
    (mine / "kept.txt").touch()
    with _own_folder(folder):
        (folder / "link").symlink_to(mine)
    with _own_folder(folder):
        assert not (folder / "link").exists()
    assert (mine / "kept.txt").exists()


class NoJob:
    """Replaces the job: only the program around it is tested here."""

    def __init__(self, settings: Any) -> None:
        self.settings = settings
        self.stop = streaming.job.StopRequest()
        self.status = LiveStatus()

    def when_running(self, call: Any) -> None:
        call()


@pytest.fixture
def run_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the command with a job that waits for the request to stop; return how it ended, and that job."""
    jobs: list[NoJob] = []

    def supervise(job: NoJob) -> int:
        jobs.append(job)
        return 0 if job.stop.wait(60) else 9

    monkeypatch.setattr(streaming.job, "Job", NoJob)
    monkeypatch.setattr(streaming.supervisor, "supervise", supervise)

    def run(*arguments: str) -> tuple[Result, NoJob]:
        folder = str(tmp_path / "demo")
        result = CliRunner().invoke(app, ["demo", "--folder", folder, "--for", "100ms", *arguments])
        return result, jobs.pop()

    return run


def test_it_reads_what_its_simulator_writes_and_ends_by_itself(run_demo: Any, tmp_path: Path) -> None:
    result, job = run_demo("--groups", "3", "--members", "9")
    assert result.exit_code == 0, result.output
    assert job.settings.events.folder == tmp_path / "demo" / "events"
    assert job.settings.job.tables == tmp_path / "demo" / "tables"
    lines = [line for file in (tmp_path / "demo" / "events").iterdir() for line in file.read_bytes().splitlines()]
    assert lines
    assert all(isinstance(json.loads(line), dict) for line in lines)


def test_a_simulator_that_failed_is_a_failure(run_demo: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(streaming.simulator.live_writer.LiveWriter, "write_until", refuse)
    result, _ = run_demo()
    assert result.exit_code == streaming.supervisor.FAILED_EXIT


def test_its_pages_are_served_beside_it_at_the_address_that_it_prints_once_they_are_warm(
    run_demo: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[tuple[str, int]] = []
    supervise = streaming.supervisor.supervise

    def read_pages(job: NoJob) -> int:
        found.append((job.status.pages, httpx2.get(job.status.pages, trust_env=False, timeout=60).status_code))
        return supervise(job)

    monkeypatch.setattr(streaming.supervisor, "supervise", read_pages)
    monkeypatch.setattr(dashboard.app, "warm_up", lambda *_: sys.stderr.write("warm\n"))
    result, _ = run_demo()
    ((url, code),) = found
    assert f"warm\npages: {url}\n" in result.output
    assert code == 200
