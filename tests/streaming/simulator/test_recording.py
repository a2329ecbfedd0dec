"""A finished recording: the seed decides its bytes, and two recordings never mix."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from streaming.simulator import Fleet, record
from streaming.simulator.recording import FILE_SPAN_MS
from streaming.simulator.serializer import line
from tests.streaming.simulator.lives import files_of


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        record(Fleet(11), tmp_path / name, 120_000)
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")
    assert "truth.jsonl" in files_of(tmp_path / "one")


def test_a_recording_is_not_mixed_with_another(tmp_path: Path) -> None:
    record(Fleet(1), tmp_path, 5_000)
    with pytest.raises(FileExistsError):
        record(Fleet(2), tmp_path, 5_000)


def test_files_are_as_old_as_their_order_and_hold_every_event(tmp_path: Path) -> None:
    fleet, same = Fleet(11), Fleet(11)
    made = record(fleet, tmp_path, 3 * FILE_SPAN_MS)
    files = sorted((tmp_path / "events").iterdir(), key=lambda file: file.stat().st_mtime_ns)
    assert [file.name for file in files] == sorted(file.name for file in files)
    assert files[-1].stat().st_mtime_ns <= time.time_ns()
    expected = [
        line(delivery) for delivery in (*same.deliveries_until(same.start_ms + 3 * FILE_SPAN_MS), *same.finish())
    ]
    written = [text for file in files for text in file.read_bytes().splitlines(keepends=True)]
    assert sorted(written) == sorted(expected)
    assert (made.files, made.events) == (len(files), len(expected))
    assert made.rebalances == sum(rebalance.required for rebalance in fleet.truth)
    assert (made.from_time, made.to_time) == ("2026-01-01T00:00:00.000Z", "2026-01-01T00:01:30.000Z")
