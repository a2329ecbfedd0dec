"""Checkpoint, tables and events on a store: a job that is killed there writes the same as one on a disk."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from streaming.stores.store_path import StorePath
from tests.cluster.systemd_units import service_of
from tests.job.commands import CONFIG, Running, follow, once
from tests.job.recordings import Line, cut, disordered
from tests.job.table_bags import bags_of, differences, repeated_keys
from tests.kit.processes import free_port

if TYPE_CHECKING:
    from tests.kit.hdfs import HdfsServer
    from tests.kit.s3 import S3Server

pytestmark = [pytest.mark.spark, pytest.mark.broker]
ROOT = Path(__file__).parents[2]
OPERATING, UNIT = ROOT / "docs/operating.md", ROOT / "conf/systemd/rebalance-monitor.service"
_ONE_FILE_A_BATCH = ("--max-files-per-batch", "1")
# Spark's own choice where nothing is set, as below spark-submit: files of the checkpoint are renamed.
_RENAMING = """
[spark.conf]
"spark.sql.streaming.checkpointFileManagerClass" = \
  "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
"""


@pytest.fixture
def lake(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> StorePath:
    """Return a folder of a store that no other test uses."""
    server: S3Server | HdfsServer = request.getfixturevalue(getattr(request, "param", "s3"))
    return StorePath(server.folder(monkeypatch))


@pytest.mark.parametrize(
    ("lake", "kills", "more"),
    [
        pytest.param("s3", 1, "", marks=pytest.mark.timeout(900), id="s3-1"),
        pytest.param("s3", 10, "", marks=[pytest.mark.slow, pytest.mark.timeout(3600)], id="s3-10"),
        pytest.param("s3", 3, _RENAMING, marks=[pytest.mark.slow, pytest.mark.timeout(1800)], id="s3-renaming-3"),
        pytest.param("hdfs", 2, "", marks=[pytest.mark.slow, pytest.mark.timeout(1800)], id="hdfs-2"),
    ],
    indirect=["lake"],
)
def test_a_job_that_is_killed_on_a_store_writes_what_an_undisturbed_one_writes_on_a_disk(
    kills: int, more: str, whole: Path, lines: list[Line], lake: StorePath, tmp_path: Path
) -> None:
    chance = random.Random(kills)
    texts = cut(disordered(lines, seed=4), 2 * kills + 2)
    (lake / "events").mkdir()
    for number, text in enumerate(texts):
        (lake / "events" / f"{number:04d}.jsonl").write_bytes(text)
    (tmp_path / "monitor.toml").write_text(CONFIG + more)
    arguments = follow(lake / "events", lake, tmp_path / "monitor.toml")
    commits = lake / "checkpoint" / "query" / "commits"
    for kill in range(kills):
        running = Running([*arguments, *_ONE_FILE_A_BATCH], tmp_path / "said.txt")
        try:
            if kill == 0:  # while Spark starts
                log = lake / "checkpoint" / "lock" / "_delta_log"  # its making, then who holds it
                running.wait_until(lambda log=log: len(list(log.glob("*.json"))) > 1, "a lease")
                second = Running([*arguments, "--once"], tmp_path / "second.txt").wait()
                assert second.exit_code == 2
                assert f"another job runs on {lake}/checkpoint: process {running.pid} on" in second.stderr
            batch = kill + 1  # so far it must come, so that each life brings the whole forward
            running.wait_until(lambda batch=batch: len(list(commits.glob("[0-9]*"))) >= batch, f"batch {batch}")
            time.sleep(chance.uniform(0.0, 1.5))
        finally:
            running.kill()
        assert repeated_keys(str(lake / "tables")) == []
    last = Running([*once(lake / "events", lake, tmp_path / "monitor.toml"), "--flush"], tmp_path / "said.txt").wait()
    assert last.exit_code == 0, last.stderr[-3000:]
    assert differences(bags_of(whole), bags_of(str(lake / "tables"))) == []
    assert repeated_keys(str(lake / "tables")) == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_spark_writes_tables_on_a_store_and_keeps_them_up(
    whole: Path, lines: list[Line], lake: StorePath, tmp_path: Path
) -> None:
    for number, text in enumerate(cut(disordered(lines, seed=6), 2)):
        (lake / "events" / f"{number:04d}.jsonl").write_bytes(text)
    (tmp_path / "spark.toml").write_text(f'{CONFIG}\n[tables]\nwriter = "delta-spark"\nspark_interval_ms = 0\n')
    arguments = [*once(lake / "events", lake, tmp_path / "spark.toml"), "--flush", *_ONE_FILE_A_BATCH]
    ended = Running(arguments, tmp_path / "said.txt").wait()
    assert ended.exit_code == 0, ended.stderr[-3000:]
    expected = bags_of(whole)
    assert differences(expected, bags_of(str(lake / "tables"))) == []
    # The writer is the one that the tables have; all rows are kept.
    (tmp_path / "upkeep.toml").write_text("[retention]\nchanges_hours = 0\nqueue_progress_hours = 0\n")
    upkeep = ["optimize", "--tables", lake / "tables", "--config", tmp_path / "upkeep.toml"]
    before = DeltaTable(f"{lake}/tables/changes").file_uris()
    ended = Running(upkeep, tmp_path / "said.txt").wait()
    assert ended.exit_code == 0, ended.stderr[-3000:]
    assert len(DeltaTable(f"{lake}/tables/changes").file_uris()) < len(before)
    assert differences(expected, bags_of(str(lake / "tables"))) == []


@pytest.mark.timeout(300)
def test_the_problem_of_a_store_is_named_before_spark_starts(
    s3: S3Server, lake: StorePath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    arguments = ["run", "--events", f"{lake}/in", "--tables", f"{lake}/t", "--checkpoint", "s3://no-such-lake/c"]
    ended = Running(arguments, tmp_path / "said.txt").wait()
    assert ended.exit_code == 2
    for option in ("--events", "--tables", "--checkpoint"):
        [line] = [line for line in ended.stderr.splitlines() if line.startswith(f"error: {option}")]
        assert "access is refused (SignatureDoesNotMatch" in line
        assert "set AWS_ACCESS_KEY_ID" in line
    assert "hush" not in ended.stderr
    assert not list(tmp_path.glob("s3*"))


@pytest.mark.timeout(300)
def test_a_store_that_is_away_is_tried_again_by_the_unit_and_a_mistake_is_not(
    lake: StorePath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    never_again = {int(code) for code in service_of(UNIT)["RestartPreventExitStatus"].split()}
    places = ["--events", f"{lake}/in", "--tables", f"{lake}/t", "--checkpoint", f"{lake}/c"]
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    assert Running(["run", *places], tmp_path / "said.txt").wait().exit_code in never_again
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    ended = Running(["run", *places], tmp_path / "said.txt").wait()
    assert ended.exit_code not in {0, *never_again}
    [line] = ended.stderr.splitlines()
    assert line.startswith(f"error: {lake.root} (of --tables, --checkpoint, --events) is unavailable (")
    assert line.endswith("check the network and AWS_ENDPOINT_URL; the same command works once it is back")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_lines_of_the_page_run_as_they_are_written(
    whole: Path, lines: list[Line], s3: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    s3.folder(monkeypatch)
    lake = StorePath(s3.uri)
    for number, text in enumerate(cut(disordered(lines, seed=5), 2)):
        (lake / "events" / f"{number:04d}.jsonl").write_bytes(text)
    section = OPERATING.read_text().partition("\n## Object stores\n")[2].partition("\n## ")[0]
    block = section.rpartition("```sh\n")[2].partition("```")[0].replace("\\\n", " ")
    for line in block.splitlines():
        program, *arguments = line.split()
        assert program == ".venv/bin/rebalance-monitor"
        ended = Running(arguments, tmp_path / "said.txt").wait()
        assert ended.exit_code == 0, f"{line}\n{ended.stderr[-3000:]}"
        if "--events" in arguments:  # before optimize deletes what is old of the journal
            assert differences(bags_of(whole), bags_of(str(lake / "tables"))) == []
    exported = [line for file in (lake / "state").glob("*.jsonl") for line in file.read_bytes().splitlines()]
    assert any(b"group_snapshot" in line for line in exported)
