"""A fleet that lives now, written as it happens."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.machine.clock import now_ms
from streaming.simulator import Fleet, LiveWriter, live_writer
from streaming.simulator.serializer import line
from streaming.simulator.truth import read_truth


def test_live_files_contain_what_reaches_readers_by_then(tmp_path: Path) -> None:
    fleet, same = Fleet(5), Fleet(5)
    writer = LiveWriter(fleet, tmp_path, None)
    for step in range(1_000, 90_001, 1_000):
        writer.write_until(fleet.start_ms + step)
    written = [text for path in sorted(tmp_path.iterdir()) for text in path.read_bytes().splitlines(keepends=True)]
    assert written == [line(delivery) for delivery in same.deliveries_until(same.start_ms + 90_000)]
    assert writer.events == len(written)


def test_no_reader_sees_half_a_file_and_stopping_writes_the_rest(tmp_path: Path) -> None:
    fleet = Fleet(5, start_ms=now_ms() - 2_000)
    with LiveWriter(fleet, tmp_path / "events", tmp_path / "truth.jsonl"):
        pass
    names = [path.name for path in (tmp_path / "events").iterdir()]
    assert [name for name in names if not name.endswith(".jsonl") or name.startswith(".")] == []
    assert len(names) == 1


def test_only_so_many_files_are_kept_and_truth_is_appended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_writer, "KEPT_FILES", 3)
    fleet, same = Fleet(5), Fleet(5)
    writer = LiveWriter(fleet, tmp_path / "events", tmp_path / "truth.jsonl")
    (tmp_path / "events").mkdir()
    for step in range(10_000, 120_001, 10_000):
        writer.write_until(fleet.start_ms + step)
    names = sorted(path.name for path in (tmp_path / "events").iterdir())
    assert names == [f"{fleet.start_ms + step:015d}.jsonl" for step in (100_000, 110_000, 120_000)]
    list(same.deliveries_until(same.start_ms + 120_000))
    assert len(read_truth((tmp_path / "truth.jsonl").read_bytes())) == len(same.truth)


def test_a_disk_that_is_full_is_a_failure_of_the_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(live_writer, "write_atomically", refuse)
    with LiveWriter(Fleet(5, start_ms=now_ms() - 2_000), tmp_path / "events") as writer:
        pass
    assert "No space left" in str(writer.failure)
