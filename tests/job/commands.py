"""The monitor's command line, run as users run it, or many times in one process because starting Spark takes long."""

from __future__ import annotations

import contextlib
import json
import os
import pkgutil
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self
from unittest import mock

import psutil

from streaming.stores.places import Place
from tests.kit.processes import QUICK_START

# Settings for small runs. Without a pause a query that has nothing to do would look for input a hundred times a second.
CONFIG = """
[job]
materialize_interval_ms = 0
trigger_interval_ms = 200

[spark]
driver_memory = "1g"

[state]
shards = 4
shuffle_partitions = 2
"""
MONITOR = [sys.executable, "-m", "tests.job.commands"]
_ROOT = Path(__file__).parents[2]
_POLL_S, _LONGEST_PAUSE_S = 0.02, 1.0
# Generous: the machine may be busy with other things.
_END_TIMEOUT_S = 600


def once(events: Place, place: Place, config: Path, more: Sequence[str | Path] = ()) -> list[str | Place]:
    """Return the arguments of a run that reads what is there."""
    return [*follow(events, place, config), "--once", *more]


def follow(events: Place, place: Place, config: Path) -> list[str | Place]:
    """Return the arguments of a run that goes on until stopped."""
    folders = ["--events", events, "--tables", place / "tables", "--checkpoint", place / "checkpoint"]
    return ["run", *folders, "--config", config]


def _environment(scratch: Path) -> dict[str, str]:
    """Return the environment of a job that leaves nothing behind outside this folder, however it ends."""
    # The plainest of locales: file names are read all the same.
    places = {"PYTHONPATH": str(_ROOT), "TMPDIR": str(scratch)}
    return os.environ | {"JDK_JAVA_OPTIONS": " ".join(QUICK_START), "LC_ALL": "C", **places}


class Ended(NamedTuple):
    """The exit code of a command, and its standard error."""

    exit_code: int
    stderr: str


class Command(ABC):
    """A command that was started."""

    @property
    @abstractmethod
    def is_running(self) -> bool:
        """Return whether it has not ended."""

    @abstractmethod
    def stderr(self) -> str:
        """Return everything that it wrote to standard error since its start."""

    @abstractmethod
    def signal(self, number: signal.Signals) -> None:
        """Send a signal to its process."""

    @abstractmethod
    def wait(self) -> Ended:
        """Wait for its end."""

    @abstractmethod
    def kill(self) -> None:
        """End it by force, if it has not ended."""

    def wait_until(self, holds: Callable[[], bool], what: str, timeout_s: float = _END_TIMEOUT_S) -> None:
        """Return as soon as something holds; fail when the command ends before."""
        deadline = time.monotonic() + timeout_s
        while True:
            began = time.monotonic()
            if holds():
                return
            assert self.is_running, f"ended before {what}:\n{self.stderr()[-4000:]}"
            assert time.monotonic() < deadline, f"{timeout_s} s, and not yet {what}:\n{self.stderr()[-4000:]}"
            # A look at tables takes computing away from the job: about a sixth of the time is for looking.
            time.sleep(min(max(_POLL_S, 5 * (time.monotonic() - began)), _LONGEST_PAUSE_S))


class Running(Command):
    """A command in a session of its own, so that all of its processes can be found and ended.

    Args:
        arguments: Of the command line.
        stderr: File for its standard error; what stood there before stays.
        home: The folder in which it runs; temporary files go to ``tmp`` in it, and what is left there stays.
        monitor: How the program is called.
        environment: Further variables.
    """

    def __init__(
        self,
        arguments: Sequence[str | Place],
        stderr: Path,
        home: Path | None = None,
        *,
        monitor: Sequence[str | Path] = MONITOR,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._stderr = stderr
        self._keeps_scratch = home is not None
        self._start = stderr.stat().st_size if stderr.exists() else 0
        self._scratch = home / "tmp" if home else Path(tempfile.mkdtemp(prefix="scratch", dir=stderr.parent))
        with stderr.open("ab") as file:
            self._process = subprocess.Popen(
                [*map(str, monitor), *map(str, arguments)],
                cwd=home or _ROOT,
                env=_environment(self._scratch) | dict(environment or {}),
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

    def stderr(self) -> str:
        """Return what this start said on standard error."""
        return self._stderr.read_bytes()[self._start :].decode(errors="replace")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to its first process."""
        self._process.send_signal(number)

    def signal_group(self, number: signal.Signals) -> None:
        """Send a signal to its process group, as a terminal does."""
        os.killpg(self.pid, number)

    def wait(self) -> Ended:
        """Wait for its end; then nothing of it is left."""
        try:
            code = self._process.wait(_END_TIMEOUT_S)
        finally:
            self.kill()
        return Ended(code, self.stderr())

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


class ManyRuns(Command):
    """One process that runs one command after the other: Spark starts in it once.

    Args:
        stderr: File for its standard error.
        within: Command that starts the process, and becomes it.
    """

    def __init__(self, stderr: Path, within: Sequence[str | Path] = ()) -> None:
        self._stderr = stderr
        self._within = within
        self._open()

    def _open(self) -> None:
        self._scratch = Path(tempfile.mkdtemp(prefix="scratch", dir=self._stderr.parent))
        self._start = 0
        self._is_busy = False
        with self._stderr.open("ab") as file:
            self._process = subprocess.Popen(
                [*map(str, self._within), *MONITOR, "--many"],
                cwd=_ROOT,
                env=_environment(self._scratch),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
            )

    @property
    def pid(self) -> int:
        """Return the process's id."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Return whether the command that was started last has not ended."""
        return self._is_busy and not select.select([self._process.stdout], [], [], 0)[0]

    def stderr(self) -> str:
        """Return what the last command said on standard error."""
        return self._stderr.read_bytes()[self._start :].decode(errors="replace")

    def run(self, arguments: Sequence[str | Place], within: str | None = None) -> Ended:
        """Run one command to its end.

        Args:
            within: ``module:name`` of a context manager that the command runs in.
        """
        return self.start(arguments, within=within).wait()

    def start(
        self,
        arguments: Sequence[str | Place],
        *,
        within: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Self:
        """Start one command; its end is to be waited for before the next."""
        self._order([within, dict(environment or {}), *map(str, arguments)])
        return self

    def call(self, function: str, *arguments: str | Place) -> Ended:
        """Call a function in the process, in which Spark is as the commands have left it.

        Args:
            function: ``module:name``; it takes texts, and what it raises ends it with code 1.
        """
        self._order({"function": function, "arguments": [*map(str, arguments)]})
        return self.wait()

    def _order(self, order: object) -> None:
        self.kill()
        assert self._process.stdin is not None
        self._start = self._stderr.stat().st_size
        self._is_busy = True
        self._process.stdin.write(f"{json.dumps(order)}\n".encode())
        self._process.stdin.flush()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process, while a command runs."""
        os.kill(self.pid, number)

    def wait(self) -> Ended:
        """Wait for the end of the command that was started."""
        assert self._process.stdout is not None
        # Only the test's own limit ends this.
        answer = self._process.stdout.readline()
        assert answer, f"the process ended:\n{self.stderr()[-4000:]}"
        self._is_busy = False
        return Ended(int(answer), self.stderr())

    def kill(self) -> None:
        """End the process by force if it is still at a command; another one begins."""
        if self._is_busy:
            self._process.kill()
            self.close()
            self._open()

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        finally:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()
            shutil.rmtree(self._scratch, ignore_errors=True)


def _keep_spark() -> None:
    """Let a session that is stopped leave Spark itself and its Python workers to the next command."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from streaming.pipeline.query import stop_query

    stop = SparkSession.stop

    def end_session(session: SparkSession) -> None:
        for query in session.streams.active:
            stop_query(query)
        with mock.patch.object(SparkContext, "stop"):
            stop(session)

    SparkSession.stop = end_session  # type: ignore[method-assign]


def _serve() -> None:
    from streaming.commands import main

    _keep_spark()
    # The output of commands is sent elsewhere: this end carries exit codes.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        order = json.loads(line)
        if isinstance(order, dict):
            code = _exit_code(partial(pkgutil.resolve_name(order["function"]), *order["arguments"]))
        else:
            within, environment, *arguments = order
            sys.argv = ["rebalance-monitor", *arguments]
            patched = pkgutil.resolve_name(within)() if within else contextlib.nullcontext()
            with patched, mock.patch.dict(os.environ, environment):
                code = _exit_code(main)
        answers.write(f"{code}\n")
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
