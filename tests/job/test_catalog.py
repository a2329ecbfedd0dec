"""Tables in a schema of Spark's catalogue: the same rows as in a folder, and a start that continues."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from streaming.stores.store_path import StorePath
from streaming.tables.schema import TABLES
from tests.job.commands import CONFIG, Ended, ManyRuns, Running, once
from tests.job.recordings import cut, disordered, fleet_lines, write_files
from tests.job.table_bags import bags_of, differences, repeated_keys

if TYPE_CHECKING:
    from tests.kit.s3 import S3Server

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
# Hive's metastore inside the process. Its address stands twice: Spark reads the second where its context runs already.
_HIVE = """
[spark.conf]
"spark.sql.catalogImplementation" = "hive"
"spark.sql.warehouse.dir" = "{place}/warehouse"
"spark.hadoop.javax.jdo.option.ConnectionURL" = "jdbc:derby:;databaseName={place}/metastore;create=true"
"javax.jdo.option.ConnectionURL" = "jdbc:derby:;databaseName={place}/metastore;create=true"
"""
_SCHEMA = "spark_catalog.default"


@pytest.fixture
def run(runs: ManyRuns, tmp_path: Path) -> Callable[..., Ended]:
    """Run a command with settings that are the base, and these."""

    def run(more: str, *arguments: str | Path) -> Ended:
        config = tmp_path / "monitor.toml"
        config.write_text(CONFIG + more)
        return runs.run([*arguments, "--config", config])

    return run


@pytest.mark.slow
def test_a_job_into_a_catalogue_that_is_started_again_writes_the_rows_of_one_into_a_folder(
    run_once: Callable[..., Ended], run: Callable[..., Ended], runs: ManyRuns, tmp_path: Path
) -> None:
    lines = fleet_lines(seed=11, duration_ms=30_000, groups=6)
    write_files(tmp_path / "whole/events", cut(lines, 1))
    assert run_once(tmp_path / "whole/events", tmp_path / "whole", "--flush").exit_code == 0
    whole = tmp_path / "whole/tables"
    hive = _HIVE.format(place=tmp_path)
    events = tmp_path / "events"
    arguments = ["run", "--events", events, "--tables", _SCHEMA, "--checkpoint", tmp_path / "checkpoint", "--once"]
    parts = cut(disordered(lines, seed=7), 2)
    for number, more in ((1, []), (2, ["--flush"])):
        write_files(events, parts[:number])
        ended = run(hive, *arguments, *more)
        assert ended.exit_code == 0, ended.stderr[-3000:]
        assert f'"tables_at": "{tmp_path}/warehouse"' in ended.stderr
    tables = tmp_path / "warehouse"
    assert differences(bags_of(whole), bags_of(tables)) == []
    assert repeated_keys(tables) == []
    refused = runs.run(["show", "groups", "--tables", _SCHEMA])
    assert refused.exit_code == 2
    assert f"{_SCHEMA} is a schema of Spark's catalogue, and this command reads without Spark" in refused.stderr
    assert "the job logs it as tables_at" in refused.stderr
    assert runs.run(["show", "groups", "--tables", tables]).exit_code == 0


@pytest.mark.parametrize(
    ("tables", "problem", "remedy"),
    [
        (_SCHEMA, "spark_catalog is in memory here: it forgets its tables", 'set "spark.sql.catalogImplementation"'),
        ("main.monitor", "Spark knows no catalogue main", "for a folder of this name write ./main.monitor"),
    ],
)
@pytest.mark.parametrize("command", ["run", "optimize"])
def test_a_catalogue_that_would_not_keep_the_tables_is_refused(
    command: str, tables: str, problem: str, remedy: str, run: Callable[..., Ended], tmp_path: Path
) -> None:
    (tmp_path / "events").mkdir()
    folders = ["--events", tmp_path / "events", "--checkpoint", tmp_path / "checkpoint", "--once"]
    ended = run("", command, "--tables", tables, *(folders if command == "run" else []))
    assert ended.exit_code == 2, ended.stderr[-3000:]
    assert problem in ended.stderr
    assert remedy in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.slow
@pytest.mark.broker
@pytest.mark.timeout(1800)
def test_a_warehouse_on_a_store_has_its_jars_though_nothing_else_is_there(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = s3.folder(monkeypatch)
    (tmp_path / "events").mkdir()
    hive = _HIVE.format(place=tmp_path).replace(f"{tmp_path}/warehouse", warehouse)
    (tmp_path / "monitor.toml").write_text(CONFIG + hive)
    arguments = once(tmp_path / "events", tmp_path, tmp_path / "monitor.toml")
    # In a process of its own: that of the other tests has no jars of stores.
    ended = Running([*arguments, "--tables", _SCHEMA], tmp_path / "said.txt").wait()
    assert ended.exit_code == 0, ended.stderr[-3000:]
    assert f'"tables_at": "{warehouse}"' in ended.stderr
    assert set(TABLES) <= {folder.name for folder in StorePath(warehouse).iterdir()}
