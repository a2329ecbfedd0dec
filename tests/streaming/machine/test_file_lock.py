"""A lock for things that only one process may use: it ends with the process, however that ends."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from streaming.commands.output_logs import OutputLogs
from streaming.machine import file_lock
from streaming.machine.file_lock import exclusive_lock
from streaming.settings.model import load
from streaming.setup.errors import SetupError
from streaming.spark.checkpoint import Checkpoint

_HOLD = (
    "import fcntl, sys; f = open(sys.argv[1], 'a'); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); input()"
)


def test_a_lock_ends_with_the_process_that_held_it(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(SetupError, match="taken"), exclusive_lock(file, problem="taken", remedy="wait"):
            pass
        other.kill()
    with exclusive_lock(file, problem="taken", remedy="wait"):
        pass


def test_the_holder_of_a_lock_is_named_with_its_age(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "lock"
    file.write_text("of an earlier holder, longer than the next one writes")
    holder = rf"taken: process {os.getpid()} on {socket.gethostname()} has held it for 86 s\n"
    monkeypatch.setattr(file_lock, "now_ms", lambda: 1_000_000)
    with exclusive_lock(file, problem="taken", remedy="wait"):
        monkeypatch.setattr(file_lock, "now_ms", lambda: 1_086_999)
        with pytest.raises(SetupError, match=holder), exclusive_lock(file, problem="taken", remedy="wait"):
            pass


def test_nothing_is_guarded_on_file_systems_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_file: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with exclusive_lock(tmp_path / "lock", problem="taken", remedy="wait"):
        pass


def test_one_job_runs_on_a_checkpoint_at_a_time(tmp_path: Path) -> None:
    first, second = Checkpoint(tmp_path / "c"), Checkpoint(tmp_path / "c")
    for checkpoint in (first, second):
        checkpoint.open(shards=1, shuffle_partitions=1, sources=["control"])
    with first.exclusive_lock(), pytest.raises(SetupError, match="another job runs on"), second.exclusive_lock():
        pass
    with second.exclusive_lock():
        pass


def test_a_cluster_has_one_collector_in_a_folder(tmp_path: Path) -> None:
    settings = load(overrides={"metaq.zookeeper": "zk:2181", "metaq.cluster": "c"})
    first, second = (OutputLogs(settings, "metaq", tmp_path / "events", None, tmp_path) for _ in range(2))
    first.log("a")
    second.log("b")
    with pytest.raises(SetupError, match="another collector of c"):
        second.log("a")
