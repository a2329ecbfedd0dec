"""Bench: how large a machine the monitor needs: what is installed, and memory and cores of a job, idle and busy.

The job runs at the default settings and sees only a `clock` every five seconds, then the joins of 100,000 members at
once, then a heartbeat of each of them every three seconds. Memory is what all its processes have, shared pages counted
once (PSS).
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

import psutil

from bench.fleet import FleetShape, write_clock, write_heartbeats, write_seed
from bench.job_process import JobProcess, running_job
from bench.processes import computed_s, is_below, now_ms

ROOT = Path(__file__).parent.parent
SECONDS = float(os.environ.get("BENCH_FOOTPRINT_SECONDS", "60"))
_GROUPS = int(os.environ.get("BENCH_GROUPS", "10000"))
_CLOCK_EVERY_S = 5.0
_HEARTBEAT_EVERY_S = 3
_SAMPLE_EVERY_S = 2.0
_SETTINGS = '[log]\nlevel = "warning"\n'


def main() -> None:
    """Print the figures."""
    _report_installed()
    work = Path(tempfile.mkdtemp(prefix="rebalance-bench-"))
    try:
        with running_job(work / "job", work / "tables", _SETTINGS) as job:
            _measure(job)
    finally:
        shutil.rmtree(work)


def _report_installed() -> None:
    """Print the size of the packages that `make setup` installs, and of Spark's among them."""
    locked = re.findall(r"^([\w.-]+)(?:\[[\w,-]+\])?==", (ROOT / "requirements/run.lock").read_text(), re.MULTILINE)
    sizes = {name: _size_mb(name) for name in locked}
    spark = sum(sizes[name] for name in ("pyspark", "delta-spark", "py4j"))
    print(f"packages: {sum(sizes.values()):,.0f} MB, of which {spark:,.0f} MB are those of the extra [job]")


def _size_mb(package: str) -> float:
    """Return the size of a package; 0 where this platform does not need it."""
    try:
        files = metadata.distribution(package).files or []
    except metadata.PackageNotFoundError:
        return 0.0
    paths = [Path(str(file.locate())) for file in files]
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def _measure(job: JobProcess) -> None:
    shape = FleetShape(groups=_GROUPS, topics=100, start_ms=now_ms())
    write_clock(shape, job.events, shape.start_ms)
    job.batch_ms(f"clock-{shape.start_ms}.jsonl")
    with _observed("idle, a clock every 5 s"):
        _repeat(_CLOCK_EVERY_S, lambda: write_clock(shape, job.events, now_ms()))
    with _observed(f"{shape.members:,} members join at once"):
        write_seed(shape, job.events, files=4)
        write_clock(shape, job.events, now_ms())
        job.wait_for_rows({"members": shape.members}, lambda: None)
    laps = iter(range(10**6))
    share = shape.members // _HEARTBEAT_EVERY_S
    with _observed(f"{shape.members:,} members, {share:,} heartbeats a second"):
        _repeat(1.0, lambda: _write_share(shape, job.events, next(laps), share))
    print(f"load at the end: {os.getloadavg()[0]:.1f}")


def _write_share(shape: FleetShape, folder: Path, lap: int, share: int) -> None:
    write_heartbeats(shape, [folder], f"beat-{lap:06d}", range(lap * share, (lap + 1) * share), now_ms())


def _repeat(every_s: float, write: Callable[[], None]) -> None:
    """Write again and again, for the length of a phase."""
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        began = time.monotonic()
        write()
        time.sleep(max(0.0, every_s - (time.monotonic() - began)))


@contextmanager
def _observed(phase: str) -> Iterator[None]:
    """Print memory and computing of the job while the block runs."""
    ended = threading.Event()
    memory: list[float] = []

    def sample() -> None:
        while not ended.wait(_SAMPLE_EVERY_S):
            memory.append(sum(_pss_mb(each) for each in _processes()))

    sampler = threading.Thread(target=sample)
    before, began = computed_s(is_below), time.monotonic()
    sampler.start()
    try:
        yield
    finally:
        computed, took = computed_s(is_below) - before, time.monotonic() - began
        ended.set()
        sampler.join()
    if memory:
        middle = statistics.median(memory)
        print(f"{phase}: {middle:,.0f} MB, at most {max(memory):,.0f} MB; {computed / took:.2f} cores for {took:.0f} s")


def _processes() -> list[psutil.Process]:
    """Return the job's process and all that it started."""
    return psutil.Process().children(recursive=True)


def _pss_mb(process: psutil.Process) -> float:
    try:
        return float(process.memory_full_info().pss) / 1e6
    except psutil.Error:
        return 0.0
