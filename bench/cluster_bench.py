"""Bench: batches of heartbeats on a standalone cluster: one core against two, and two workers against `local[2]`.

Three drivers, each a process with a session, a checkpoint and a fleet of its own, read the same heartbeats in turn: on
this machine with two cores, on one worker of one core, and on two of them. Figures are medians of Spark's own
`triggerExecution`; the sink writes nothing, as batches of mere heartbeats commit nothing.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from bench.fleet import SPREAD_MS, FleetShape, write_heartbeats, write_seed
from streaming.pipeline.query import decisions, packets, start_query
from streaming.pipeline.sources import folder_source
from streaming.settings.model import load
from streaming.spark.session import start_session
from tests.kit.spark_cluster import SparkCluster, running_spark_cluster

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HEARTBEATS = int(os.environ.get("BENCH_HEARTBEATS", "333000"))
GROUPS = int(os.environ.get("BENCH_GROUPS", "100000"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "12"))
WARM_UP = 4
LOCAL, ONE, TWO = "local[2]", "one worker of one core", "two workers of one core"
_STATE_PARTS = ("allUpdatesTimeMs", "commitTimeMs")


def main() -> None:
    """Print the figures."""
    shape = FleetShape(groups=GROUPS)
    with ExitStack() as running:
        work = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="rebalance-bench-")))
        cluster = running.enter_context(running_spark_cluster(work / "cluster", workers=3))
        drivers = {
            LOCAL: running.enter_context(_driver(work / "local", "local[2]", {})),
            ONE: running.enter_context(_driver(work / "one", cluster.master, _on(cluster, 1))),
            TWO: running.enter_context(_driver(work / "two", cluster.master, _on(cluster, 2))),
        }
        for number, driver in enumerate(drivers.values()):
            # Different folders: what one driver reads is in the disk's cache for all.
            _seed(shape, work, driver, first=number == 0)
        times: dict[str, list[float]] = {name: [] for name in drivers}
        now_ms = shape.start_ms + 2 * load().core_config().repeat_span_ms
        for number in range(WARM_UP + ROUNDS):
            now_ms += SPREAD_MS
            name = f"beat-{number:06d}"
            write_heartbeats(shape, [work], name, range(number * HEARTBEATS, (number + 1) * HEARTBEATS), now_ms)
            for variant, driver in drivers.items():
                times[variant].append(driver.batch(name)["triggerExecution"])
        _report(times, {name: driver.batch("")["state"] for name, driver in drivers.items()}, shape)


def _on(cluster: SparkCluster, cores: int) -> dict[str, str]:
    return {
        "spark.cores.max": str(cores),
        "spark.pyspark.python": str(cluster.python),
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "2g",
        "spark.ui.enabled": "false",
    }


class _Driver:
    """A process with the query; its folder of events is `events`."""

    def __init__(self, folder: Path, process: subprocess.Popen[str]) -> None:
        self._folder = folder
        self._process = process

    def batch(self, name: str) -> dict[str, Any]:
        """Read the files of a name as one batch; return its parts in ms and its state."""
        for file in self._folder.parent.glob(f"{name}-*") if name else ():
            (self._folder / "events" / file.name).hardlink_to(file)
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write("batch\n")
        stdin.flush()
        line = stdout.readline()
        assert line, f"the driver ended, see {self._folder}"
        return dict(json.loads(line))


@contextmanager
def _driver(folder: Path, master: str, conf: dict[str, str]) -> Iterator[_Driver]:
    (folder / "events").mkdir(parents=True)
    command = [sys.executable, "-m", "bench.cluster_bench", str(folder), master, json.dumps(conf)]
    with (folder / "stderr.txt").open("w") as stderr:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True)
    try:
        yield _Driver(folder, process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()


def _seed(shape: FleetShape, work: Path, driver: _Driver, *, first: bool) -> None:
    if first:
        write_seed(shape, work)
        settled = shape.start_ms + 2 * load().core_config().repeat_span_ms
        # Of everybody, after the ids of the joins are forgotten: what is measured is a settled fleet.
        write_heartbeats(shape, [work], "settle", range(shape.members), settled)
    driver.batch("seed")
    driver.batch("settle")


def _report(times: dict[str, list[float]], states: dict[str, dict[str, int]], shape: FleetShape) -> None:
    median = {name: statistics.median(values[WARM_UP:]) for name, values in times.items()}
    for name, value in median.items():
        print(f"median batch of {HEARTBEATS:,} heartbeats of {shape.members:,} members, {name}: {value:.0f} ms")
    print(f"one core / two cores: {median[ONE] / median[TWO]:.2f} (2 were ideal)")
    print(f"two workers of one core / local[2]: {median[TWO] / median[LOCAL]:.2f}")
    for name, state in states.items():
        print(f"state, {name}: {state}")


def _run_driver(folder: Path, master: str, conf: dict[str, str]) -> None:
    """Run the query; for each line of standard input, write one with the parts of the batch that was read then."""
    answers = _own_stdout()
    settings = load(overrides={"spark.master": master, "spark.driver_memory": "3g", "spark.conf": conf})
    spark = start_session(settings, "bench")
    spark.conf.set("spark.sql.streaming.pollingDelay", "1000")

    def take(decided: DataFrame, _batch: int) -> None:
        decided.write.format("noop").mode("append").save()

    config = settings.core_config()
    source = folder_source(spark, folder / "events", max_files_per_batch=2)
    decided = decisions(packets([source], config), config)
    query = start_query(decided, take, checkpoint=folder / "checkpoint", once=False, trigger_interval_ms=0)
    for _ in sys.stdin:
        query.processAllAvailable()
        last = [progress for progress in query.recentProgress if progress["numInputRows"] > 0][-1]
        operator = last["stateOperators"][0]
        stored = sum(file.stat().st_size for file in (folder / "checkpoint/state").rglob("*") if file.is_file())
        state = {part: operator[part] for part in _STATE_PARTS} | {"checkpoint_bytes": stored}
        answers.write(json.dumps({**last["durationMs"], "state": state}) + "\n")
        answers.flush()
    query.stop()
    spark.stop()


def _own_stdout() -> IO[str]:
    """Return what standard output was; from now on Spark's lines go to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


if __name__ == "__main__":
    _run_driver(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]))
