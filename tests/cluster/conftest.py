"""Fixtures of the tests on a cluster: the job as users submit it, from a wheel, with tables on an object store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.job.commands import CONFIG, ManyRuns, Running, once
from tests.job.recordings import Line, cut, disordered, fleet_lines, write_files
from tests.kit.s3 import S3Server
from tests.kit.spark_cluster import SparkCluster

_FILES = 4

ON_CLUSTER = """
[spark.conf]
"spark.pyspark.python" = "{python}"
"spark.driver.host" = "127.0.0.1"
"spark.executor.memory" = "1g"
"spark.ui.enabled" = "false"
"""


@pytest.fixture(scope="session")
def lines() -> list[Line]:
    """Record a minute in the life of a small fleet."""
    return fleet_lines(seed=11, duration_ms=60_000, groups=6)


@pytest.fixture(scope="session")
def events(lines: list[Line], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as files."""
    folder = tmp_path_factory.mktemp("fleet") / "events"
    write_files(folder, cut(disordered(lines, seed=1), _FILES))
    return folder


@pytest.fixture(scope="session")
def expected(events: Path, runs: ManyRuns, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of a local run."""
    place = tmp_path_factory.mktemp("local")
    (place / "local.toml").write_text(CONFIG)
    ended = runs.run(once(events, place, place / "local.toml", ["--flush", "--max-files-per-batch", "1"]))
    assert ended.exit_code == 0, ended.stderr[-3000:]
    return place / "tables"


@pytest.fixture
def config(spark_cluster: SparkCluster, tmp_path: Path) -> Path:
    """Settings for small runs on the cluster."""
    file = tmp_path / "cluster.toml"
    master = f'[spark]\nmaster = "{spark_cluster.master}"\n'
    file.write_text(CONFIG.replace("[spark]\n", master) + ON_CLUSTER.format(python=spark_cluster.python))
    return file


@pytest.fixture
def one_executor(config: Path) -> None:
    """Let Spark start one executor: for what several would do no otherwise."""
    config.write_text(f'{config.read_text()}"spark.cores.max" = "1"\n')


@pytest.fixture
def tables(s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Hold the place of a test's tables on the store; this process can read them too."""
    for name, value in s3.options.items():
        monkeypatch.setenv(name, value)
    return f"{s3.uri}/{tmp_path.name}/tables"


@pytest.fixture
def start(installed_monitor: Path, events: Path, config: Path, tables: str, tmp_path: Path) -> Callable[..., Running]:
    """Start the job of the installed wheel on the cluster, from a folder of its own."""
    home = tmp_path / "home"
    (home / "tmp").mkdir(parents=True)

    def start(read: Path = events, **environment: str) -> Running:
        places = ["--events", read, "--tables", tables, "--checkpoint", tmp_path / "checkpoint"]
        arguments = ["run", *places, "--config", config, "--once", "--flush", "--max-files-per-batch", "1"]
        # PYTHONPATH is empty, so the driver imports the wheel.
        return Running(
            arguments,
            tmp_path / "said.txt",
            home,
            monitor=[installed_monitor],
            environment={"PYTHONPATH": ""} | environment,
        )

    return start
