"""The job until it is stopped: signals, the next start, and time that goes on by itself."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.materializer import Materializer
from streaming.tables.schema import CHANGES
from tests.job.commands import CONFIG, Ended, ManyRuns, Running, follow, once
from tests.job.recordings import Line, cut, disordered, write_files
from tests.job.table_bags import bags_of, differences, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
_NEVER_BY_ITSELF = CONFIG.replace("materialize_interval_ms = 0", "materialize_interval_ms = 3600000")

# One handler takes both signals: each comes once, to the process alone and to all that Spark started too.
STOPS: dict[str, Callable[[Running], None]] = {
    "SIGTERM": lambda running: running.signal(signal.SIGTERM),
    "Ctrl-C, which reaches the whole process group": lambda running: running.signal_group(signal.SIGINT),
}


def test_a_stop_finishes_the_batch_and_the_tables_and_the_next_start_continues(
    whole: Path, lines: list[Line], run_once: Callable[..., Ended], tmp_path: Path
) -> None:
    config = tmp_path / "monitor.toml"
    config.write_text(_NEVER_BY_ITSELF)
    texts = cut(disordered(lines, seed=6), len(STOPS) + 1)
    query = tmp_path / "checkpoint/query"
    home = tmp_path / "home"
    (home / "tmp").mkdir(parents=True)
    for batch, (name, stop) in enumerate(STOPS.items()):
        write_files(tmp_path / "events", texts[batch : batch + 1], first=batch)
        running = Running(follow(tmp_path / "events", tmp_path, config), tmp_path / "said.txt", home)
        try:
            running.wait_until((query / "offsets" / str(batch)).exists, "a batch began")
            assert not (query / "commits" / str(batch)).exists(), "the stop would come too late to show anything"
            stop(running)
            ended = running.wait()
        finally:
            running.kill()
        assert ended.exit_code == 0, f"{name}: {ended.stderr[-3000:]}"
        assert _numbers(query / "commits") == _numbers(query / "offsets") == list(range(batch + 1)), name
        journal = DeltaRsTable(tmp_path / "tables", CHANGES).version
        assert journal == batch + 1, f"{name}: the batch reported nothing"
        assert Materializer(tmp_path / "tables", 0).reached() == journal, name
        left = [path for path in home.rglob("*") if path.is_file() and "hsperfdata" not in str(path)]
        assert left == [], f"{name}: a stopped job leaves nothing beside its tables and its checkpoint"
    write_files(tmp_path / "events", texts[len(STOPS) :], first=len(STOPS))
    assert run_once(tmp_path / "events", tmp_path, "--flush").exit_code == 0
    assert differences(bags_of(whole), bags_of(tmp_path / "tables")) == []


def test_a_stop_that_ends_java_too_is_no_failure(lines: list[Line], tmp_path: Path) -> None:
    config = tmp_path / "monitor.toml"
    config.write_text(_NEVER_BY_ITSELF)
    write_files(tmp_path / "events", cut(lines, 1))
    running = Running(follow(tmp_path / "events", tmp_path, config), tmp_path / "said.txt")
    try:
        running.wait_until((tmp_path / "checkpoint/query/offsets/0").exists, "a batch began")
        running.signal_group(signal.SIGTERM)
        ended = running.wait()
    finally:
        running.kill()
    assert ended.exit_code == 0, ended.stderr[-3000:]
    assert "Traceback" not in ended.stderr


def _numbers(folder: Path) -> list[int]:
    return sorted(int(file.name) for file in folder.iterdir() if file.name.isdigit())


@pytest.mark.parametrize("starts_again", [False, True])
def test_a_lone_member_expires_without_further_events_if_silence_expires(
    runs: ManyRuns, tmp_path: Path, starts_again: bool
) -> None:
    config = tmp_path / "monitor.toml"
    config.write_text(f'{CONFIG}\n[time]\nsilence = "expire"\n')
    joined_at = time.time_ns() // 1_000_000
    event = {"schema_version": 1, "system": "rocketmq", "cluster": "c", "event_time": joined_at}
    described = {"group": "g", "member_id": "m", "subscriptions": ["t"], "session_timeout_ms": 5_000}
    events = [
        event | {"type": "topic_queues", "topic": "t", "queue_count": 4},
        event | {"type": "member_joined"} | described,
    ]
    # No event follows: the clock stays before the join until ticks move it.
    write_files(tmp_path / "events", ["\n".join(map(json.dumps, events)).encode()])
    if starts_again:
        assert runs.run(once(tmp_path / "events", tmp_path, config)).exit_code == 0
        assert _triggers(tmp_path / "tables") == []
    running = runs.start(follow(tmp_path / "events", tmp_path, config))
    running.wait_until(lambda: "session_expired" in _triggers(tmp_path / "tables"), "the member expired")
    running.signal(signal.SIGTERM)
    assert running.wait().exit_code == 0
    assert _triggers(tmp_path / "tables") == ["group_created", "session_expired"]
    members = rows_of(tmp_path / "tables", "members").to_pylist()
    assert [(row["left_reason"], _ms(row["left_at"]) - joined_at) for row in members] == [("expired", 5_000)]
    spans = rows_of(tmp_path / "tables", "assignments").to_pylist()
    assert [_ms(row["valid_to"]) - joined_at for row in spans] == [5_000] * 4


def _triggers(tables: Path) -> list[str]:
    if not (tables / "rebalances/_delta_log/00000000000000000000.json").exists():
        return []
    rows = rows_of(tables, "rebalances").to_pylist()
    return [row["trigger"] for row in sorted(rows, key=lambda row: row["event_time"])]


def _ms(when: object) -> int:
    return round(when.timestamp() * 1000)  # type: ignore[attr-defined]
