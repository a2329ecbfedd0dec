"""The whole job with groups that have more to do than fits into a batch."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.job.commands import CONFIG, ManyRuns, follow, once
from tests.job.recordings import ALLOWED_LATENESS_MS, Line, cut, disordered, write_files
from tests.job.told import differences, rows_of, told

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.fixture
def bounded(tmp_path: Path) -> Path:
    path = tmp_path / "bounded.toml"
    # Far less than the recording's groups have to do, and not so little that the test takes long.
    path.write_text(CONFIG + "\n[limits]\nmax_group_work = 150\n")
    return path


def test_a_run_that_drains_goes_on_until_no_group_has_more_to_do(
    whole: Path, lines: list[Line], runs: ManyRuns, bounded: Path, tmp_path: Path
) -> None:
    write_files(tmp_path / "events", cut(disordered(lines, seed=5), 1))
    runs.start(once(tmp_path / "events", tmp_path, bounded, ["--flush"]))
    ended = runs.wait()
    assert ended.exit_code == 0, ended.said[-3000:]
    batches = len(list((tmp_path / "checkpoint/query/commits").glob("[0-9]*")))
    assert batches > 3, "nothing had to wait: the test shows nothing"
    assert differences(told(whole), told(tmp_path / "tables")) == []


def test_a_job_that_runs_goes_on_though_no_further_input_comes(
    whole: Path, lines: list[Line], runs: ManyRuns, bounded: Path, tmp_path: Path
) -> None:
    write_files(tmp_path / "events", cut(disordered(lines, seed=6), 1))
    clock = max(line.event_time for line in lines) - ALLOWED_LATENESS_MS
    wanted = [time for time in _event_times(whole) if time < clock]
    job = runs.start(follow(tmp_path / "events", tmp_path, bounded))
    table = tmp_path / "tables" / "rebalances"
    job.wait_until(lambda: any(table.glob("_delta_log/*.json")), "the tables are there")
    job.wait_until(lambda: len(_event_times(table.parent)) >= len(wanted), "the backlog is done")
    job.signal(signal.SIGTERM)
    assert job.wait().exit_code == 0
    assert sorted(_event_times(table.parent)) == sorted(wanted)


def _event_times(tables: Path) -> list[int]:
    return [round(row.timestamp() * 1000) for row in rows_of(tables, "rebalances")["event_time"].to_pylist()]
