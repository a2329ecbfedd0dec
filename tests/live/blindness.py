"""What the monitor says while it sees nothing: of one cluster, one way in which knowledge ends, at several moments.

`python -m tests.live.blindness` plays each way against a real broker and job with the settings of users, and prints the
table of `docs/operating.md`. The tests play the same with a shorter `time.source_silent_after_ms`.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from typer.testing import CliRunner

from streaming.alerts.findings_reader import FindingsReader
from streaming.commands.app import app
from streaming.machine.clock import now_ms
from streaming.settings.model import load
from streaming.views.freshness import Freshness, read_freshness
from tests.job.commands import Running
from tests.kit.brokers import Broker, kafka_41

CLUSTER = "shop"
# By default a batch begins more often, and each takes computing from everything else.
A_BATCH_A_SECOND = {"REBALANCE_MONITOR_JOB__TRIGGER_INTERVAL_MS": "1000"}
MOMENTS_S = (10, 30, 60)


@dataclass
class Said:
    """What is said at one moment.

    Attributes:
        exit_code, line: Of `check`.
        state: Of the cluster, as pages, API and metrics have it. alerts: The kinds that alerts have open.
    """

    exit_code: int
    line: str
    state: str
    alerts: list[str]


@dataclass
class Watched:
    """A job on its own, and what is said over its tables."""

    job: Running
    tables: Path
    severe: Sequence[str] = field(default=("source_silent", "job_silent", "job_stopped"))

    def freshness(self) -> Freshness:
        return read_freshness(self.tables)

    def said(self) -> Said:
        """Return what is said now."""
        result = CliRunner().invoke(app, ["check", "--tables", str(self.tables), "--ignore", "idle_members"])
        found = FindingsReader(self.tables, load().widespread, now_ms).read(set())
        kinds = sorted({row["kind"] for row in found.current.values()} & set(self.severe))
        state = self.freshness().of(CLUSTER).state
        return Said(result.exit_code, result.stdout.split(" | ")[0].strip(), state, kinds)

    def wait_for(self, holds: Callable[[], bool], what: str, timeout_s: float = 300) -> None:
        """Return as soon as something holds, whether the job runs or not."""
        ends = time.monotonic() + timeout_s
        while not holds():
            assert time.monotonic() < ends, f"{what}: {self.said()}\n{self.job.stderr()[-2000:]}"
            time.sleep(0.5)

    def wait_until_known(self) -> None:
        self.wait_for(lambda: self.said().exit_code == 0, "the cluster is known")

    def wait_until_blind(self) -> Said:
        self.wait_for(lambda: self.said().exit_code != 0, "it no longer says OK")
        return self.said()


@contextlib.contextmanager
def watched(folder: Path, source: Sequence[str], settings: Mapping[str, str] | None = None) -> Iterator[Watched]:
    """Follow a cluster by a job of its own until the block is left; it is known when it begins."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["run", *source, "--cluster", CLUSTER]
    command += ["--tables", str(folder / "tables"), "--checkpoint", str(folder / "checkpoint")]
    job = Running(command, folder / "stderr", environment={**A_BATCH_A_SECOND, **(settings or {})})
    one = Watched(job, folder / "tables")
    try:
        one.wait_until_known()
        yield one
    finally:
        job.signal(signal.SIGCONT)
        job.kill()


@dataclass(frozen=True)
class Way:
    """One way in which knowledge ends."""

    name: str
    end: Callable[[Watched, Broker], None]
    recover: Callable[[Watched, Broker], None] | None = None


def _stopped(one: Watched, _: Broker) -> None:
    one.job.signal(signal.SIGINT)


WAYS = (
    Way("broker killed", lambda _, broker: broker.kill(), lambda _, broker: broker.start()),
    Way("broker stopped", lambda _, broker: broker.stop(), lambda _, broker: broker.start()),
    Way("broker hangs (SIGSTOP)", lambda _, broker: broker.server.freeze(), lambda _, broker: broker.server.thaw()),
    Way(
        "job hangs (SIGSTOP)",
        lambda one, _: one.job.signal(signal.SIGSTOP),
        lambda one, _: one.job.signal(signal.SIGCONT),
    ),
    Way("job killed (SIGKILL)", lambda one, _: one.job.kill()),
    Way("job stopped (Ctrl-C)", _stopped),
)


def main() -> int:
    """Play every way, and print what is said as a table."""
    print("| what happens | after | check | says | alerts |\n|---|---|---|---|---|")  # noqa: T201
    for way in WAYS:
        with tempfile.TemporaryDirectory() as name:
            _play(way, Path(name))
    return 0


def _play(way: Way, folder: Path) -> None:
    (folder / "broker").mkdir()
    with kafka_41(folder / "broker") as broker, watched(folder / "job", ["--kafka", broker.bootstrap]) as one:
        began = time.monotonic()
        way.end(one, broker)
        for moment_s in MOMENTS_S:
            time.sleep(max(0.0, began + moment_s - time.monotonic()))
            _print(way.name, f"{time.monotonic() - began:.0f} s", one.said())
        if way.recover is not None:
            way.recover(one, broker)
            one.wait_until_known()
            _print(way.name, "recovery", one.said())


def _print(name: str, after: str, said: Said) -> None:
    line = said.line.replace("|", "¦")
    print(f"| {name} | {after} | {said.exit_code} | {line} | {', '.join(said.alerts)} |", flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
