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
from typing import Any

from deltalake import DeltaTable

from tests.kit.brokers import Broker

# Generous: the machine may be busy with other things.
_WAIT_S = 300.0
_LOOK_EVERY_S = 0.5
_STOP_S = 120.0
CLUSTER = "live"
# A short-lived JVM: what the second compiler and a parallel collector would cost, it never earns back.
_QUICK_START = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
Row = dict[str, Any]


class RunningJob:
    """`rebalance-monitor run --kafka`, and its tables."""

    def __init__(self, process: subprocess.Popen[str], tables: Path, log: Path) -> None:
        self.process = process
        self.tables = tables
        self._log = log

    def said(self) -> str:
        """Answer all that it wrote to its standard error."""
        return self._log.read_text()

    def rows(self, table: str) -> list[Row]:
        """Answer a table as it is now; nothing while it is not there."""
        place = self.tables / table
        if not (place / "_delta_log").is_dir():
            return []
        return DeltaTable(str(place)).to_pyarrow_table().to_pylist()

    def generations(self, group: str) -> dict[int, Row]:
        """Answer a group's rebalances by generation; two rows for one generation are an error."""
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
        """Ask it to stop, and answer its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(_STOP_S)


@contextlib.contextmanager
def running_job(
    broker: Broker, folder: Path, *, user: str | None = None, more: Sequence[str] = ()
) -> Iterator[RunningJob]:
    """Follow a broker until the block is left; it is up when it has read the broker's topics."""
    folder.mkdir(parents=True, exist_ok=True)
    tables, log = folder / "tables", folder / "job.log"
    command = [
        str(Path(sys.executable).with_name("rebalance-monitor")),
        *("run", "--kafka", broker.bootstrap, "--cluster", CLUSTER),
        *("--tables", str(tables), "--checkpoint", str(folder / "checkpoint")),
        *_options(broker.java_settings(user)),
        *more,
    ]
    with log.open("a") as said:
        process = subprocess.Popen(command, stderr=said, text=True, cwd=folder, env=os.environ | _QUICK_START)
    job = RunningJob(process, tables, log)
    try:
        job.wait_for(lambda: '"batch"' in job.said(), "the first batch")
        yield job
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def _options(settings: Mapping[str, str]) -> list[str]:
    return [
        word
        for key, value in settings.items()
        if key != "bootstrap.servers"
        for word in ("--kafka-option", f"{key}={value}")
    ]
