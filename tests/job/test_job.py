"""The whole job on real Spark: what goes in, in whatever pieces, and what the tables tell in the end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession

from streaming.tables import REJECTED_EVENTS, TABLES
from tests.job.commands import Ended
from tests.job.recordings import ALLOWED_LATENESS_MS, Line, cut, disordered, write_files
from tests.job.told import OF_THE_CUT, differences, rows_of, told, told_twice

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
NOT_AN_EVENT = [b"no JSON at all\n", b'{"type": "heartbeat"}\n', b"\xff\xfe\x00\n"]


def test_a_recording_fills_every_table(whole: Path) -> None:
    # Nothing was wrong with its lines, so nothing was rejected.
    assert [name for name in TABLES if not rows_of(whole, name).num_rows] == [REJECTED_EVENTS.name]
    assert told_twice(whole) == []


def test_the_same_events_in_other_files_batches_shards_and_order_give_the_same_tables(
    whole: Path, lines: list[Line], run_once: Callable[..., Ended], spark: SparkSession, tmp_path: Path
) -> None:
    write_files(tmp_path / "events", cut(disordered(lines, seed=1), 7))
    ended = run_once(tmp_path / "events", tmp_path, "--flush", "--shards", "3", "--max-files-per-batch", "2")
    assert ended.exit_code == 0, ended.said[-3000:]
    assert len(list((tmp_path / "checkpoint/query/commits").glob("[0-9]*"))) == 5  # 7 files, and the flush
    for name in TABLES:
        assert_df_equality(
            _by_spark(spark, tmp_path / "tables", name), _by_spark(spark, whole, name), ignore_row_order=True
        )


def _by_spark(spark: SparkSession, tables: Path, name: str) -> DataFrame:
    return spark.read.format("delta").load(str(tables / name)).drop(*OF_THE_CUT)


def test_a_run_without_flush_leaves_newer_events_waiting_and_the_next_run_decides_them(
    whole: Path, lines: list[Line], run_once: Callable[..., Ended], tmp_path: Path
) -> None:
    texts = cut(disordered(lines, seed=2), 4)
    newest = max(one.event_time for one in disordered(lines, seed=2)[: len(lines) * 3 // 8])
    write_files(tmp_path / "events", texts[:2])
    assert run_once(tmp_path / "events", tmp_path).exit_code == 0
    decided = told(tmp_path / "tables")["rebalances"]
    at_first = _event_times(tmp_path / "tables")
    assert max(at_first) < newest - ALLOWED_LATENESS_MS
    later = [time for time in _event_times(whole) if time <= newest]
    assert len(later) > len(at_first), "nothing was waiting: the test shows nothing"
    write_files(tmp_path / "events", texts[2:], first=2)
    assert run_once(tmp_path / "events", tmp_path, "--flush").exit_code == 0
    assert differences(told(whole), told(tmp_path / "tables")) == []
    assert decided <= told(tmp_path / "tables")["rebalances"]


def _event_times(tables: Path) -> list[int]:
    return [round(row.timestamp() * 1000) for row in rows_of(tables, "rebalances")["event_time"].to_pylist()]
