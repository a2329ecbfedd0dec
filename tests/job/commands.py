"""The monitor's command line, run as users run it, or many times in one process because starting Spark takes long."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

# Settings for small runs.
CONFIG = """
[job]
materialize_interval_ms = 0
trigger_interval_ms = 0

[spark]
driver_memory = "1g"

[state]
shards = 4
shuffle_partitions = 2
"""
MONITOR = [sys.executable, "-m", "tests.job.commands"]
_ROOT = Path(__file__).parents[2]
_POLL_S = 0.02
# Generous: the machine may be busy with other things.
_END_TIMEOUT_S = 240
# Short-lived JVMs: what the second compiler and a parallel collector would cost, they never earn back.
_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def once(events: Path, place: Path, config: Path, more: Sequence[str | Path] = ()) -> list[str | Path]:
    """Return the arguments of a run that reads what is there."""
    return [*follow(events, place, config), "--once", *more]


def follow(events: Path, place: Path, config: Path) -> list[str | Path]:
    """Return the arguments of a run that goes on until stopped."""
    folders = ["--events", events, "--tables", place / "tables", "--checkpoint", place / "checkpoint"]
    return ["run", *folders, "--config", config]


def _environment(scratch: Path) -> dict[str, str]:
    """Return the environment of a job that leaves nothing behind outside this folder, however it ends."""
    # The plainest of locales: file names are read all the same.
    places = {"PYTHONPATH": str(_ROOT), "TMPDIR": str(scratch)}
    return os.environ | {"JDK_JAVA_OPTIONS": _QUICK_START, "LC_ALL": "C", **places}


class Ended(NamedTuple):
    """How a command ended, and what it said on standard error."""

    exit_code: int
    said: str


class Running:
    """A command in a session of its own, so that all of its processes can be found and ended.

    Args:
        arguments: Of the command line.
        said: File for its standard error; what stood there before stays.
        home: The folder in which it runs; temporary files go to ``tmp`` in it, and what is left there stays.
    """

    def __init__(self, arguments: Sequence[str | Path], said: Path, home: Path | None = None) -> None:
        self._said = said
        self._keeps_scratch = home is not None
        self._start = said.stat().st_size if said.exists() else 0
        self._scratch = home / "tmp" if home else Path(tempfile.mkdtemp(prefix="scratch", dir=said.parent))
        with said.open("ab") as file:
            self._process = subprocess.Popen(
                [*MONITOR, *map(str, arguments)],
                cwd=home or _ROOT,
                env=_environment(self._scratch),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=file,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Return the id of its first process, of its process group and of its session."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Return whether its first process has not ended."""
        return self._process.poll() is None

    def said(self) -> str:
        """Return what this start said on standard error."""
        return self._said.read_bytes()[self._start :].decode(errors="replace")

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        """Return as soon as something holds; fail when the command ends before."""
        deadline = time.monotonic() + _END_TIMEOUT_S
        while not holds():
            assert self.is_running, f"ended with {self._process.returncode} before {what}:\n{self.said()[-3000:]}"
            assert time.monotonic() < deadline, f"{_END_TIMEOUT_S} s, and not yet {what}:\n{self.said()[-3000:]}"
            time.sleep(_POLL_S)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to its first process."""
        self._process.send_signal(number)

    def signal_group(self, number: signal.Signals) -> None:
        """Send a signal to its process group, as a terminal does."""
        os.killpg(self.pid, number)

    def wait(self) -> Ended:
        """Wait for its end; then nothing of it is left."""
        code = self._process.wait(_END_TIMEOUT_S)
        self.kill()
        return Ended(code, self.said())

    def kill(self) -> None:
        """End all that it started with SIGKILL: its process group at once, then Spark's Python daemons."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        # The daemons have process groups of their own.
        left = [process for process in psutil.process_iter() if _session(process) == self.pid]
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, timeout=30)
        if not self._keeps_scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)


def _session(process: psutil.Process) -> int | None:
    with contextlib.suppress(ProcessLookupError):
        return os.getsid(process.pid)
    return None


class ManyRuns:
    """One process that runs one command after the other.

    Args:
        said: File for its standard error.
        within: Command that starts the process, and becomes it.
    """

    def __init__(self, said: Path, within: Sequence[str | Path] = ()) -> None:
        self._said = said
        self._scratch = Path(tempfile.mkdtemp(prefix="scratch", dir=said.parent))
        with said.open("ab") as file:
            self._process = subprocess.Popen(
                [*map(str, within), *MONITOR, "--many"],
                cwd=_ROOT,
                env=_environment(self._scratch),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )

    @property
    def pid(self) -> int:
        """Return the process's id."""
        return self._process.pid

    def run(self, arguments: Sequence[str | Path]) -> Ended:
        """Run one command to its end."""
        self.start(arguments)
        return self.wait()

    def start(self, arguments: Sequence[str | Path]) -> None:
        """Start one command; its end is to be waited for before the next."""
        assert self._process.stdin is not None
        self._start = self._said.stat().st_size
        self._process.stdin.write(json.dumps([str(argument) for argument in arguments]) + "\n")
        self._process.stdin.flush()

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        """Return as soon as something holds while a command runs."""
        deadline = time.monotonic() + _END_TIMEOUT_S
        while not holds():
            assert time.monotonic() < deadline, f"{_END_TIMEOUT_S} s, and not yet: {what}"
            time.sleep(_POLL_S)

    def wait(self) -> Ended:
        """Wait for the end of the command that was started."""
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        said = self._said.read_bytes()[self._start :].decode(errors="replace")
        assert answer, f"the process ended:\n{said[-3000:]}"
        return Ended(int(answer), said)

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        finally:
            self._process.kill()
            self._process.stdout.close()
            shutil.rmtree(self._scratch, ignore_errors=True)


def _serve() -> None:
    from streaming.commands import main

    # What the commands print goes elsewhere: this end is for exit codes.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        sys.argv = ["rebalance-monitor", *json.loads(line)]
        answers.write(f"{_exit_code(main)}\n")
        answers.flush()


def _exit_code(main: Callable[[], None]) -> int:
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception:  # noqa: BLE001 - what would end a process ends one run here
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--many"]:
        _serve()
    else:
        from streaming.commands import main

        main()
