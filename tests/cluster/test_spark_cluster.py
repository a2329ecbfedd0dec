"""The job on a cluster whose workers have nothing of the checkout: its tables are those of a local run, row for row."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from streaming.stores.store_path import StorePath
from tests.job.commands import CONFIG, ManyRuns, Running, once
from tests.job.recordings import Line, cut, disordered, write_files
from tests.job.table_bags import bags_of, differences, rows_of
from tests.kit.processes import QUICK_START, free_port
from tests.kit.spark_cluster import SPARK_HOME, SparkCluster

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.timeout(900)]
# CLUSTER_SEED=7 makes other choices.
_LAST_ONE = """
from udfs.model.events import QueueRef


def allocate(problem):
    last = max(problem.members, key=lambda member: member.member_id)
    topics = [(name, topic) for name, topic in problem.topics.items() if name in last.subscriptions]
    found = [(name, queue) for name, topic in topics for queue in topic.queues]
    queues = [QueueRef(topic=name, queue_id=queue.queue_id, broker=queue.broker) for name, queue in found]
    return {member.member_id: queues if member is last else [] for member in problem.members}
"""
OPERATING = Path(__file__).parents[2] / "docs/operating.md"
SEED = int(os.environ.get("CLUSTER_SEED", "1"))


def is_in_batch(checkpoint: Path, number: int) -> bool:
    """Return whether a batch has begun and not ended."""
    query = checkpoint / "query"
    return (query / f"offsets/{number}").exists() and not (query / f"commits/{number}").exists()


def assert_same_rows(expected: Path, tables: str) -> None:
    """Compare all rows of all tables."""
    wanted = bags_of(expected)
    assert all(wanted[name] for name in ("rebalances", "assignments", "members", "groups", "changes"))
    assert differences(wanted, bags_of(tables)) == []


def test_a_worker_has_the_dependencies_and_not_the_project(spark_cluster: SparkCluster, tmp_path: Path) -> None:
    command = [spark_cluster.python, "-c", "import pyarrow, msgspec, deltalake; import streaming"]
    done = subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True, check=False)
    assert done.stderr.strip().endswith("No module named 'streaming'")


# The tests below compare the same of runs in which something happens: a worker dies, a store has all files.
@pytest.mark.slow
def test_on_a_cluster_the_tables_are_those_of_a_local_run(
    expected: Path, start: Callable[[], Running], tables: str
) -> None:
    ended = start().wait()
    assert ended.exit_code == 0, ended.stderr[-3000:]
    assert_same_rows(expected, tables)


@pytest.mark.slow
def test_a_worker_that_is_killed_within_a_batch_changes_nothing(
    spark_cluster: SparkCluster, expected: Path, start: Callable[[], Running], tables: str, tmp_path: Path
) -> None:
    running = start()
    try:
        running.wait_until(lambda: is_in_batch(tmp_path / "checkpoint", 1), "the second batch")
        busy = next(worker for worker in spark_cluster.workers if worker.is_running and spark_cluster.executors(worker))
        spark_cluster.kill_worker(busy)
        assert is_in_batch(tmp_path / "checkpoint", 1)
        spark_cluster.add_worker()
        ended = running.wait()
    finally:
        running.kill()
    assert ended.exit_code == 0, ended.stderr[-3000:]
    assert_same_rows(expected, tables)


# Killed drivers without a cluster are in every run of the tests: tests/crash/test_crash.py.
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("one_executor")
@pytest.mark.parametrize("kills", [1, 10])
def test_a_driver_killed_at_random_times_changes_nothing(
    kills: int, expected: Path, lines: list[Line], start: Callable[[Path], Running], tables: str, tmp_path: Path
) -> None:
    chance = random.Random(SEED)
    files, checkpoint = 2 * kills + 2, tmp_path / "checkpoint"
    write_files(tmp_path / "events", cut(disordered(lines, seed=1), files))
    within_batches = 0
    for kill in range(kills):
        # Each life must get this far before it is killed, so that every one of them makes progress.
        begun = kill + chance.randrange(2)
        running = start(tmp_path / "events")
        try:
            offsets = checkpoint / f"query/offsets/{begun - 1}"
            running.wait_until(lambda begun=begun, offsets=offsets: not begun or offsets.exists(), "a batch")
            time.sleep(chance.uniform(0, 1.5))
        finally:
            running.kill()
        within_batches += any(is_in_batch(checkpoint, number) for number in range(files + 1))
    ended = start(tmp_path / "events").wait()
    assert ended.exit_code == 0, ended.stderr[-3000:]
    assert_same_rows(expected, tables)
    assert within_batches or kills == 1


def test_spark_submit_runs_the_packed_files_with_all_of_its_files_on_a_store(
    installed_monitor: Path, spark_cluster: SparkCluster, expected: Path, events: Path, tables: str, tmp_path: Path
) -> None:
    # The store's keys are in the settings file alone: Spark's JVM has begun when it is read.
    of_store = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", *of_store}}
    environment["JDK_JAVA_OPTIONS"] = " ".join(QUICK_START)
    packed = tmp_path / "packed"
    subprocess.run(
        [installed_monitor, "pack", "--out", packed, "--store", "s3"], cwd=tmp_path, env=environment, check=True
    )
    lake = StorePath(tables).parent
    for file in events.iterdir():
        (lake / "events" / file.name).write_bytes(file.read_bytes())
    settings = tmp_path / "submitted.toml"
    options = "".join(f'{name.lower()} = "{value}"\n' for name, value in of_store.items())
    settings.write_text(f"[job]\nmaterialize_interval_ms = 0\n\n[state]\nshards = 4\n\n[storage.options]\n{options}")
    submit = [
        SPARK_HOME / "bin/spark-submit",
        *("--master", spark_cluster.master),
        *("--conf", f"spark.pyspark.python={spark_cluster.python}", "--conf", "spark.driver.host=127.0.0.1"),
        *("--conf", "spark.executor.memory=1g", "--conf", "spark.ui.enabled=false", "--driver-memory", "1g"),
        *("--conf", "spark.cores.max=1", "--conf", "spark.log.level=WARN"),
        *("--jars", ",".join(map(str, sorted((packed / "jars").glob("*.jar"))))),
        *("--py-files", packed / "rebalance-monitor.zip", packed / "rebalance_monitor.py"),
        *("run", "--events", f"{lake}/events", "--once", "--flush", "--max-files-per-batch", "1"),
        *("--tables", tables, "--checkpoint", f"{lake}/checkpoint", "--config", settings),
    ]
    output = (tmp_path / "printed.txt").open("w+")
    with output:
        done = subprocess.run(
            submit,
            cwd=tmp_path,
            env=environment | {"SPARK_HOME": str(SPARK_HOME), "PYSPARK_DRIVER_PYTHON": str(spark_cluster.python)},
            stdout=output,
            stderr=output,
            timeout=600,
            check=False,
        )
        output.seek(0)
        printed = output.read()
    assert done.returncode == 0, printed[-3000:]
    # Without the log level Spark prints hundreds of lines. The remaining ones come from its start.
    assert printed.count(" INFO ") < 30
    assert of_store["AWS_SECRET_ACCESS_KEY"] not in printed
    assert_same_rows(expected, tables)


@pytest.mark.slow
def test_the_lines_of_the_page_run_as_they_are_written(runs: ManyRuns, tmp_path: Path) -> None:
    section = OPERATING.read_text().partition("\n## On a Spark cluster\n")[2].partition("\n## ")[0]
    # Only the port is replaced, because another cluster may have it.
    lines = section.partition("```sh\n")[2].partition("```")[0].replace("7077", str(free_port()))
    (tmp_path / ".venv").symlink_to(sys.prefix)
    printed = tmp_path / "printed.txt"
    with printed.open("w") as output:
        shell = subprocess.Popen(
            ["bash", "-e", "-c", lines],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(OPERATING.parents[1])},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            assert shell.wait(600) == 0, printed.read_text()[-3000:]
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
    place = tmp_path / "local"
    config = tmp_path / "local.toml"
    config.write_text(CONFIG)
    ended = runs.run(once(tmp_path / "packed/fleet/events", place, config, ["--flush"]))
    assert ended.exit_code == 0, ended.stderr[-3000:]
    assert_same_rows(place / "tables", str(tmp_path / "packed/fleet/tables"))


@pytest.mark.usefixtures("one_executor")
def test_a_custom_strategy_of_the_driver_decides_on_executors(
    start: Callable[..., Running], tables: str, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    (site / "last_one-1.0.dist-info").mkdir(parents=True)
    (site / "last_one.py").write_text(_LAST_ONE)
    (site / "last_one-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: last-one\nVersion: 1.0\n")
    points = "[rebalance_monitor.strategies]\nrocketmq.LAST_ONE = last_one:allocate\n"
    (site / "last_one-1.0.dist-info/entry_points.txt").write_text(points)
    common = {"schema_version": 1, "event_time": 1_780_000_000_000, "system": "rocketmq", "cluster": "c"}
    group = common | {"group": "g"}
    happened = [
        common | {"type": "topic_queues", "topic": "t", "queue_count": 4},
        group | {"type": "group_settings", "strategy": "rocketmq.LAST_ONE"},
        *(group | {"type": "member_joined", "member_id": name, "subscriptions": ["t"]} for name in ("a", "b")),
    ]
    (tmp_path / "few").mkdir()
    (tmp_path / "few/0.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in happened))
    ended = start(tmp_path / "few", PYTHONPATH=str(site)).wait()
    assert ended.exit_code == 0, ended.stderr[-3000:]
    owners = {(row["queue_id"], row["member_id"]) for row in rows_of(tables, "assignments").to_pylist()}
    assert owners == {(queue, "b") for queue in range(4)}


@pytest.mark.usefixtures("one_executor")
def test_packages_missing_on_executors_are_named_before_the_query_starts(
    start: Callable[[], Running], config: Path, spark_cluster: SparkCluster, tmp_path: Path
) -> None:
    config.write_text(config.read_text().replace(str(spark_cluster.python), os.path.realpath(sys.executable)))
    ended = start().wait()
    assert ended.exit_code == 2, ended.stderr[-3000:]
    assert "Executors cannot run the job: " in ended.stderr
    assert "No module named" in ended.stderr
    assert not (tmp_path / "checkpoint/query/offsets").exists()
