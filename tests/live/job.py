"""The monitor itself as a child process beside a real broker, and what it wrote."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.kit.brokers import Broker
from tests.live.tables import Row, rows_of

# Generous: the machine may be busy with other things.
_WAIT_S = 300.0
_LOOK_EVERY_S = 0.5
_STOP_S = 120.0
CLUSTER = "live"
# A short-lived JVM: what the second compiler and a parallel collector would cost, it never earns back.
_QUICK_START = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


class RunningJob:
    """`rebalance-monitor run`, and its tables.

    Args:
        log: What it writes to its standard error; what stood there before it was started is not its own.
    """

    def __init__(self, command: Sequence[str], tables: Path, log: Path, environment: Mapping[str, str]) -> None:
        self.tables = tables
        self._log = log
        self._start = log.stat().st_size if log.exists() else 0
        with log.open("a") as said:
            self.process = subprocess.Popen(command, stderr=said, text=True, cwd=log.parent, env=environment)

    def said(self) -> str:
        """Return all that it wrote to its standard error."""
        return self._log.read_bytes()[self._start :].decode()

    def rows(self, table: str) -> list[Row]:
        """Return a table as it is now; nothing while it is not there."""
        return rows_of(self.tables, table)

    def generations(self, group: str) -> dict[int, Row]:
        """Return a group's rebalances by generation; two rows for one generation are an error."""
        found = [row for row in self.rows("rebalances") if row["group_id"] == group]
        by_generation = {row["generation"]: row for row in found}
        assert len(by_generation) == len(found), [row["generation"] for row in found]
        return by_generation

    def wait_for(self, claim: Callable[[], bool], what: str, timeout_s: float = _WAIT_S) -> None:
        """Return as soon as a claim about the job or its tables holds."""
        deadline = time.monotonic() + timeout_s
        while not claim():
            assert self.process.poll() is None, f"the job ended with {self.process.returncode}:\n{self.said()[-4000:]}"
            assert time.monotonic() < deadline, f"{what}: not within {timeout_s} s\n{self.said()[-4000:]}"
            time.sleep(_LOOK_EVERY_S)

    def wait_for_generation(self, group: str, generation: int) -> None:
        """Return as soon as a group's generation is in the tables."""
        self.wait_for(lambda: generation in self.generations(group), f"generation {generation} of {group}")

    def stop(self) -> int:
        """Request it to stop, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(_STOP_S)


@contextlib.contextmanager
def running_job(
    broker: Broker, folder: Path, *, user: str | None = None, more: Sequence[str] = ()
) -> Iterator[RunningJob]:
    """Follow a Kafka broker until the block is left; it is up when it has read the broker's topics."""
    source = ["--kafka", broker.bootstrap, *_options(broker.java_settings(user))]
    with job_that_follows(source, folder, more=more) as job:
        yield job


@contextlib.contextmanager
def job_that_follows(
    source: Sequence[str], folder: Path, *, more: Sequence[str] = (), settings: Mapping[str, str] | None = None
) -> Iterator[RunningJob]:
    """Follow a cluster until the block is left.

    Args:
        source: The options that name it. more: Other options.
        settings: As environment variables.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tables, log = folder / "tables", folder / "job.log"
    command = [
        str(Path(sys.executable).with_name("rebalance-monitor")),
        *("run", *source, "--cluster", CLUSTER),
        *("--tables", str(tables), "--checkpoint", str(folder / "checkpoint")),
        *more,
    ]
    job = RunningJob(command, tables, log, os.environ | _QUICK_START | dict(settings or {}))
    try:
        job.wait_for(lambda: '"batch"' in job.said(), "the first batch")
        yield job
    finally:
        if job.process.poll() is None:
            job.process.kill()
        job.process.wait()


def _options(settings: Mapping[str, str]) -> list[str]:
    return [
        word
        for key, value in settings.items()
        if key != "bootstrap.servers"
        for word in ("--kafka-option", f"{key}={value}")
    ]
