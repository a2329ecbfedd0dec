"""The whole job with groups that have more to do than fits into a batch."""

from __future__ import annotations

import signal
import urllib.request
from pathlib import Path

import pytest
from deltalake import DeltaTable

from streaming.pipeline.job_metrics import PREFIX
from streaming.tables.commit_notes import USER_METADATA, batch_times_of
from tests.job.commands import CONFIG, ManyRuns, follow, once
from tests.job.recordings import ALLOWED_LATENESS_MS, Line, cut, disordered, write_files
from tests.job.table_bags import bags_of, differences, rows_of
from tests.kit.processes import free_port

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.fixture
def bounded(tmp_path: Path) -> Path:
    path = tmp_path / "bounded.toml"
    # Far less than the recording's groups have to do, and not so little that the test takes long.
    path.write_text(CONFIG + "\n[limits]\nmax_group_work = 150\n")
    return path


def test_a_run_that_drains_continues_until_no_group_has_more_to_do(
    whole: Path, lines: list[Line], runs: ManyRuns, bounded: Path, tmp_path: Path
) -> None:
    write_files(tmp_path / "events", cut(disordered(lines, seed=5), 1))
    runs.start(once(tmp_path / "events", tmp_path, bounded, ["--flush"]))
    ended = runs.wait()
    assert ended.exit_code == 0, ended.stderr[-3000:]
    batches = len(list((tmp_path / "checkpoint/query/commits").glob("[0-9]*")))
    assert batches > 3, "nothing had to wait: the test shows nothing"
    assert differences(bags_of(whole), bags_of(tmp_path / "tables")) == []


def test_a_running_job_continues_without_further_input(
    whole: Path, lines: list[Line], runs: ManyRuns, bounded: Path, tmp_path: Path
) -> None:
    write_files(tmp_path / "events", cut(disordered(lines, seed=6), 1))
    clock = max(line.event_time for line in lines) - ALLOWED_LATENESS_MS
    wanted = [time for time in _event_times(whole) if time < clock]
    port = free_port()
    job = runs.start([*follow(tmp_path / "events", tmp_path, bounded), "--metrics-port", str(port)])
    table = tmp_path / "tables" / "rebalances"
    job.wait_until(lambda: any(table.glob("_delta_log/*.json")), "the tables are there")
    job.wait_until(lambda: len(_event_times(table.parent)) >= len(wanted), "the backlog is done")
    assert _fetched(port, "readyz") == "200 OK\n"
    # The last batch is counted when it is over.
    job.wait_until(lambda: _metric(port, "batches_total") > 3, "the batches are counted")
    whole_s, writing_s = _metric(port, "batch_seconds_total"), _metric(port, 'batch_part_seconds_total{part="writing"}')
    assert whole_s > _metric(port, 'batch_part_seconds_total{part="addBatch"}') > writing_s > 0
    job.signal(signal.SIGTERM)
    assert job.wait().exit_code == 0
    noted = [batch_times_of(commit.get(USER_METADATA)) for commit in DeltaTable(table.parent / "changes").history()]
    assert sum(times.batches for times in noted if times) > 2
    assert sorted(_event_times(table.parent)) == sorted(wanted)


def _fetched(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=30) as answer:
        text: str = answer.read().decode()
        return text


def _metric(port: int, name: str) -> float:
    found = [line for line in _fetched(port, "metrics").splitlines() if line.startswith(f"{PREFIX}{name} ")]
    return float(found[0].split()[-1]) if found else 0.0


def _event_times(tables: Path) -> list[int]:
    return [round(row.timestamp() * 1000) for row in rows_of(tables, "rebalances")["event_time"].to_pylist()]
