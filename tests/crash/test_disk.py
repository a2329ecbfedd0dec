"""The disk is full or read-only: the job reports it and stops, and continues when it can write again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.recording import write_busy_files
from tests.crash.small_disk import SmallDisk, small_disk
from tests.job.commands import CONFIG, ManyRuns, once
from tests.job.table_bags import bags_of, differences, repeated_keys

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
_FILES = 6


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of events."""
    folder = tmp_path_factory.mktemp("recording") / "events"
    write_busy_files(folder, _FILES)
    return folder


@pytest.fixture(scope="module")
def config(events: Path) -> Path:
    """Settings: tables follow at once."""
    path = events.parent / "monitor.toml"
    path.write_text(CONFIG)
    return path


@pytest.fixture(scope="module")
def whole(events: Path, config: Path, runs: ManyRuns) -> Path:
    """The tables of a run that had room."""
    place = events.parent / "whole"
    ended = runs.run(once(events, place, config, ["--flush"]))
    assert ended.exit_code == 0, ended.stderr[-3000:]
    return place / "tables"


@pytest.fixture(scope="module")
def one_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallDisk]:
    """A disk for all these tests: on each one Spark has to start."""
    folder = tmp_path_factory.mktemp("disk")
    with small_disk(folder / "small", folder / "said.txt") as disk:
        yield disk


@pytest.fixture
def disk(one_disk: SmallDisk) -> Iterator[SmallDisk]:
    """The disk while it is empty."""
    yield one_disk
    one_disk.clear()


def _arguments(events: Path, config: Path, tables: Path, checkpoint: Path) -> list[str | Path]:
    folders = ["--events", events, "--tables", tables, "--checkpoint", checkpoint, "--config", config]
    return ["run", *folders, "--once", "--flush", "--max-files-per-batch", "2"]


@pytest.mark.parametrize(
    ("full", "room"),
    [
        pytest.param("tables", 150_000, id="of the tables, soon"),
        pytest.param("tables", 400_000, id="of the tables, later"),
        pytest.param("checkpoint", 60_000, id="of the checkpoint"),
    ],
)
def test_a_full_disk_stops_the_job_with_a_clear_message_and_room_lets_it_go_on(
    full: str, room: int, events: Path, config: Path, whole: Path, disk: SmallDisk, tmp_path: Path
) -> None:
    folders = {"tables": tmp_path / "tables", "checkpoint": tmp_path / "checkpoint"}
    folders |= {full: disk.folder / tmp_path.name / full}
    arguments = _arguments(events, config, folders["tables"], folders["checkpoint"])
    disk.fill(leave_bytes=room)
    ended = disk.runs.run(arguments)
    _names_plainly(ended.stderr, ended.exit_code, "No space left on device", folders[full])
    disk.empty()
    ended = disk.runs.run(arguments)
    assert ended.exit_code == 0, ended.stderr[-3000:]
    tables = disk.copy(f"{tmp_path.name}/tables", tmp_path / "copy") if full == "tables" else folders["tables"]
    assert differences(bags_of(whole), bags_of(tables)) == []
    assert repeated_keys(tables) == []


def test_tables_that_may_not_be_written_stop_the_job_and_it_continues_when_they_may(
    events: Path, config: Path, whole: Path, tmp_path: Path
) -> None:
    # A disk and a process of its own: a file that is still open somewhere would keep it from being made read-only.
    with small_disk(tmp_path / "small", tmp_path / "said.txt") as disk:
        tables = disk.folder / "tables"
        arguments = _arguments(events, config, tables, tmp_path / "checkpoint")
        disk.allow_writing(False)
        ended = disk.runs.run(arguments)
        _names_plainly(ended.stderr, ended.exit_code, "Read-only file system", disk.folder)
        disk.allow_writing(True)
        disk.runs.start(arguments)
        first_batch = tmp_path / "checkpoint/query/commits/0"
        disk.runs.wait_until(first_batch.exists, "the first batch is done")
        disk.allow_writing(False)
        ended = disk.runs.wait()
        _names_plainly(ended.stderr, ended.exit_code, "Read-only file system", disk.folder)
        disk.allow_writing(True)
        ended = disk.runs.run(arguments)
        assert ended.exit_code == 0, ended.stderr[-3000:]
        assert differences(bags_of(whole), bags_of(disk.copy("tables", tmp_path / "copy"))) == []


def _names_plainly(stderr: str, exit_code: int, what: str, where: Path) -> None:
    """Check that the last lines name the problem, and its place."""
    assert exit_code != 0
    last = "\n".join(stderr.splitlines()[-5:])
    assert what in last, stderr[-6000:]
    assert str(where) in last, stderr[-6000:]
    assert "Traceback" not in last
    assert "Logical Plan" not in stderr
