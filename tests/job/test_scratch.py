"""What a job that was killed has left beside its tables and its checkpoint is gone after the next one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.job.commands import Running, follow, once
from tests.job.recordings import Line, cut, write_files

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def test_a_killed_job_leaves_little_and_the_next_one_removes_it(
    lines: list[Line], config: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    (home / "tmp").mkdir(parents=True)
    write_files(tmp_path / "events", cut(lines, 2))
    for kill in range(2):
        running = Running(follow(tmp_path / "events", tmp_path, config), tmp_path / "said.txt", home)
        first_batch = tmp_path / f"checkpoint/query/commits/{kill}"
        running.wait_until(first_batch.exists, "a batch is done")
        (scratch,) = (home / "tmp").glob("rebalance-monitor-*")
        running.kill()
        assert list((home / "tmp").glob("rebalance-monitor-*")) == [scratch], "of each kill one folder at most is left"
        write_files(tmp_path / "events", cut(lines, 2), first=2 + 2 * kill)
        # What a killed JVM leaves are its native libraries; no copies of jars are among them.
        assert list(scratch.rglob("*.jar")) == []

    running = Running(once(tmp_path / "events", tmp_path, config), tmp_path / "said.txt", home)
    ended = running.wait()
    assert ended.exit_code == 0, ended.stderr[-3000:]
    left = [path.relative_to(home) for path in home.rglob("*") if "hsperfdata" not in str(path)]
    assert left == [Path("tmp")]
