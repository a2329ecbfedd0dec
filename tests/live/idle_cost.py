"""The cost of liveness for an idle job: CPU time and files, against a job that writes once a minute.

`python -m tests.live.idle_cost [MINUTES]` runs pairs of jobs over one idle broker, a pair for each place of the tables
and each writer, and prints the share of a core that each took by /proc, the difference, and what was written; it exits
with 1 where liveness costs more than 2 % of a core, or leaves more than one file.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.job.commands import Running
from tests.kit.brokers import kafka_41
from tests.kit.processes import wait_until
from tests.kit.s3 import running_s3
from tests.live.blind_scenes import commit_something

_MOST_SHARE = 0.02
_MINUTE_MS = "60000"
_SETTLE_S = 60
_INTERVAL, _WRITER = "REBALANCE_MONITOR_JOB__LIVENESS_INTERVAL_MS", "REBALANCE_MONITOR_TABLES__WRITER"


@dataclass
class _Idle:
    """One job, and its CPU time when the measurement began."""

    job: Running
    files: Callable[[], int]
    cpu_s: float = 0.0
    before: int = 0

    def begin(self) -> None:
        self.cpu_s, self.before = _cpu_s(self.job.pid), self.files()

    def share(self, span_s: float) -> float:
        """Return the share of a core since the begin."""
        return (_cpu_s(self.job.pid) - self.cpu_s) / span_s


def main(minutes: float) -> int:
    """Measure each pair, and print it."""
    is_too_dear = False
    print("| tables | writer | of a core | with a minute between | difference | files of liveness | new files |")  # noqa: T201
    print("|---|---|---|---|---|---|---|")  # noqa: T201
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        s3 = stack.enter_context(running_s3(folder))
        broker = stack.enter_context(kafka_41(folder / "broker"))
        commit_something(broker)
        for place in ("disk", "S3"):
            for writer in ("delta-rs", "delta-spark"):
                pair = folder / f"{place}-{writer}"
                with _pair(pair, broker.bootstrap, writer, s3.options if place == "S3" else {}) as jobs:
                    often, seldom = _measured(jobs, 60 * minutes)
                    lives = sum(1 for _ in _files(folder, pair, place, "often", "_liveness"))
                    new = jobs[0].files() - jobs[0].before
                is_too_dear |= often - seldom > _MOST_SHARE or lives > 1
                cells = (place, writer, f"{often:.1%}", f"{seldom:.1%}", f"{often - seldom:+.1%}", lives, new)
                print(f"| {' | '.join(map(str, cells))} |", flush=True)  # noqa: T201
    return int(is_too_dear)


@contextlib.contextmanager
def _pair(folder: Path, bootstrap: str, writer: str, options: Mapping[str, str]) -> Iterator[Sequence[_Idle]]:
    """Run the two jobs until the block is left; both have made their tables."""
    with ExitStack() as stack:
        jobs = []
        for name, more in (("often", {}), ("seldom", {_INTERVAL: _MINUTE_MS})):
            place = folder / name
            place.mkdir(parents=True)
            tables = f"s3://lake/{folder.name}/{name}" if options else str(place / "tables")
            command = ["run", "--kafka", bootstrap, "--cluster", "shop", "--tables", tables]
            command += ["--checkpoint", str(place / "checkpoint")]
            job = Running(command, place / "stderr.txt", environment={**options, **more, _WRITER: writer})
            stack.callback(job.kill)
            where = "S3" if options else "disk"
            idle = _Idle(job, lambda name=name, where=where: sum(1 for _ in _files(folder.parent, folder, where, name)))  # type: ignore[misc]
            jobs.append(idle)
        for idle in jobs:
            wait_until(lambda idle=idle: idle.files() > 20, "the job has made its tables", 600)  # type: ignore[misc]
        yield jobs


def _measured(jobs: Sequence[_Idle], span_s: float) -> Sequence[float]:
    time.sleep(_SETTLE_S)
    for idle in jobs:
        idle.begin()
    began = time.monotonic()
    time.sleep(span_s)
    measured_s = time.monotonic() - began
    return [idle.share(measured_s) for idle in jobs]


def _files(root: Path, pair: Path, place: str, name: str, below: str = "") -> Iterator[Path]:
    tables = root / "buckets/lake" / pair.name / name if place == "S3" else pair / name / "tables"
    return (file for file in (tables / below).rglob("*") if file.is_file() and file.name != ".keep")


def _cpu_s(pid: int) -> float:
    """Return the CPU time of all processes of a session, those that have ended included, as /proc has it."""
    total = 0.0
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if os.getsid(process.pid) == pid:
                times = process.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
    return total


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if sys.argv[1:] else 5))
