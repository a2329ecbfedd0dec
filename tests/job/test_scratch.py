"""Leftovers of a killed job, beside its tables and its checkpoint, are gone after the next job."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.job.commands import Running, follow
from tests.job.recordings import Line, cut, write_files

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def test_a_killed_job_leaves_little_and_the_next_one_removes_it(
    lines: list[Line], config: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    (home / "tmp").mkdir(parents=True)
    write_files(tmp_path / "events", cut(lines, 2))
    arguments = follow(tmp_path / "events", tmp_path, config)
    killed = Running(arguments, tmp_path / "said.txt", home)
    killed.wait_until((tmp_path / "checkpoint/query/commits/0").exists, "a batch is done")
    killed.kill()
    (left_behind,) = (home / "tmp").glob("rebalance-monitor-*")
    # A killed JVM leaves its native libraries behind, but no copies of jars.
    assert list(left_behind.rglob("*.jar")) == []

    write_files(tmp_path / "events", cut(lines, 2), first=2)
    running = Running(arguments, tmp_path / "said.txt", home)
    try:
        running.wait_until((tmp_path / "checkpoint/query/commits/1").exists, "another batch is done")
        (scratch,) = (home / "tmp").glob("rebalance-monitor-*")
        assert scratch != left_behind, "of each kill one folder at most is left, until the next start"
        running.signal(signal.SIGTERM)
        ended = running.wait()
    finally:
        running.kill()
    assert ended.exit_code == 0, ended.stderr[-3000:]
    left = [path.relative_to(home) for path in home.rglob("*") if "hsperfdata" not in str(path)]
    assert left == [Path("tmp")]
