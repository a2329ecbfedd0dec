"""The command `run`: the settings that its options make, and every mistake at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import streaming.supervisor
from streaming.commands.app import app
from streaming.settings.model import Settings


@pytest.mark.parametrize(
    ("arguments", "mistakes"),
    [
        ("run", ["nothing to read"]),
        ("run --rocketmq h --metaq z --cluster c --flush", ["ambiguous", "--rocketmq needs", "--flush needs"]),
        ("run --kafka h --tables /dev/null --checkpoint /dev/null/x", ["'h' is not HOST:PORT", "--kafka needs"]),
        ("run --kafka h:1 --tables /dev/null --checkpoint /dev/null/x", ["--tables", "--checkpoint", "--kafka needs"]),
        ("run --metaq z --exclude-topic ( --events /nowhere", ["(", "no such folder", "--metaq needs --cluster"]),
        ("run --kafka-events t --allowed-lateness soon", ["--kafka-events needs a broker", "--allowed-lateness"]),
        ("run --events /nowhere --shards 0 --flush", ["state.shards", "no such folder", "--flush needs --once"]),
        (
            "run --events /nowhere --tables s3://lake/t --checkpoint gs://lake/c",
            ["no such folder", "--tables s3://lake/t: the variable AWS_ENDPOINT_URL is", "--checkpoint gs://lake/c: "],
        ),
    ],
)
def test_every_mistake_is_named_at_once(
    arguments: str, mistakes: list[str], complaint: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ENDPOINT_URL", "GOOGLE_BASE_URL"):
        monkeypatch.setenv(name, "minio:9000")
    text = complaint(*arguments.split())
    assert [mistake for mistake in mistakes if mistake not in text] == []


@pytest.mark.parametrize("option", ["--events", "--tables", "--checkpoint", "--config"])
def test_an_empty_path_is_not_the_folder_we_are_in(option: str, complaint: Callable[..., str]) -> None:
    assert "is empty" in complaint("run", option, "")


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., tuple[Settings, dict[str, bool]]]:
    """Run the command up to the start of the job; return the job's arguments."""
    given: list[Any] = []

    def run_job(settings: Settings, **how: bool) -> int:
        given.append((settings, how))
        return 3

    monkeypatch.setattr(streaming.supervisor, "run_job", run_job)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[Settings, dict[str, bool]]:
        result = CliRunner().invoke(app, ["run", *arguments])
        assert result.exit_code == 3, result.output
        return given.pop()

    return run


def test_options_become_settings_and_the_jobs_exit_code_is_that_of_the_command(
    ran: Callable[..., tuple[Settings, dict[str, bool]]], tmp_path: Path
) -> None:
    settings, how = ran("--events", ".", "--once", "--tables", "t", "--allowed-lateness", "1.5s", "--shards", "7")
    assert settings.events.folder == tmp_path
    assert (str(settings.job.tables), settings.time.allowed_lateness_ms, settings.state.shards) == ("t", 1_500, 7)
    assert how == {"once": True, "flush": False}


@pytest.mark.parametrize(
    ("arguments", "servers", "topic", "followed"),
    [
        ("--kafka-events b:1/events", "b:1", "events", {}),
        ("--kafka-events events --kafka b:1", "b:1", "events", {}),
        ("--kafka-events events --kafka b:1 --cluster shop", "b:1", "events", {"kafka": "shop"}),
        ("--kafka-events a:1/events --kafka b:1 --cluster kafka=shop", "a:1", "events", {"kafka": "shop"}),
        ("--kafka-events events --kafka b:1 --metaq z --cluster metaq=old", "b:1", "events", {"metaq": "old"}),
    ],
)
def test_the_broker_of_a_topic_of_events_is_followed_only_under_a_name(
    arguments: str,
    servers: str,
    topic: str,
    followed: dict[str, str],
    ran: Callable[..., tuple[Settings, dict[str, bool]]],
) -> None:
    settings, _ = ran(*arguments.split())
    assert (settings.kafka_events.bootstrap_servers, settings.kafka_events.topic) == (servers, topic)
    assert settings.followed() == followed


def test_on_a_terminal_the_first_line_comes_before_the_job_is_loaded(tmp_path: Path) -> None:
    """Loading takes seconds: the first line is written before Spark and the job are loaded."""
    script = (
        "import sys; from streaming.commands.app import app; from streaming.commands import command_group\n"
        "class Screen:\n"
        "    def isatty(self): return True\n"
        "    def write(self, text): print(sorted({'pyspark', 'streaming.job'} & set(sys.modules)), text)\n"
        "    def flush(self): pass\n"
        "sys.stderr = Screen()\n"
        "app(['run'], standalone_mode=False)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False
    )
    assert found.stdout.splitlines()[0] == "[] rebalance-monitor: loading the job; its view opens in some seconds …"


def test_without_a_terminal_there_is_no_such_line(complaint: Callable[..., str]) -> None:
    assert "loading" not in complaint("run")
