"""Positions in Spark's checkpoint, as Spark 4.2 writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from streaming.pipeline.query_log import BatchOffsets, ListedFiles, read_committed, topic_offsets
from streaming.pipeline.sources import folder_source
from tests.streaming.pipeline.test_sources import drain, write


def entry(folder: Path, name: str, files: Iterable[tuple[str, int]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"path": f"file:///e/{file}", "timestamp": 0, "batchId": batch}) for file, batch in files]
    (folder / name).write_text("\n".join(["v1", *lines]))


def committed(*log_offsets: int | None) -> BatchOffsets:
    return BatchOffsets(0, [None if number is None else {"logOffset": number} for number in log_offsets])


def test_each_file_is_named_once_from_small_entries_and_from_joined_ones(tmp_path: Path) -> None:
    folder = tmp_path / "sources" / "1"
    for number in range(9):
        entry(folder, str(number), [(f"f{number}", number)])
    listed = ListedFiles(tmp_path, 1)
    assert list(listed.advance(committed(None, None))) == []
    assert list(listed.advance(committed(None, 1))) == ["f0", "f1"]
    entry(folder, "9.compact", [(f"f{number}", number) for number in range(10)])
    for number in range(9):
        (folder / str(number)).unlink()
    assert list(listed.advance(committed(None, 3))) == ["f2", "f3"]
    entry(folder, "10", [("f10", 10), ("g10", 10)])
    assert list(listed.advance(committed(None, 10))) == [*(f"f{number}" for number in range(4, 11)), "g10"]
    assert list(listed.advance(committed(None, 10))) == []
    assert list(ListedFiles(tmp_path, 1).advance(committed(None, 10)))[:2] == ["f0", "f1"]


def test_the_newest_finished_batch_shows_how_far_topics_were_read(tmp_path: Path) -> None:
    assert read_committed(tmp_path) is None
    for batch, offset in ((9, 5), (10, 7), (11, 9)):
        (tmp_path / "offsets").mkdir(exist_ok=True)
        text = f'v1\n{{"batchTimestampMs":1}}\n-\n{{"t":{{"0":{offset},"12":1}}}}\n{{"logOffset":3}}'
        (tmp_path / "offsets" / str(batch)).write_text(text)
    (tmp_path / "commits").mkdir()
    for name in ("9", "10", ".10.crc"):
        (tmp_path / "commits" / name).write_text("v1\n{}")
    found = read_committed(tmp_path)
    assert found is not None
    assert (found.batch, topic_offsets(found, "t"), topic_offsets(found, "other")) == (10, {0: 7, 12: 1}, {})


@pytest.mark.spark
def test_spark_s_own_log_is_read_also_once_it_is_joined(spark: object, tmp_path: Path) -> None:
    folder, checkpoint = tmp_path / "events", tmp_path / "checkpoint"
    names = [f"{number:02d}-a%20b.json" for number in range(12)]
    for name in names:
        write(folder / name, b"{}\n")
    drain(folder_source(spark, folder, max_files_per_batch=1), checkpoint)  # type: ignore[arg-type]
    found = read_committed(checkpoint)
    assert found is not None
    for source in (0, 1):
        assert (checkpoint / "sources" / str(source) / "9.compact").exists()
        assert sorted(ListedFiles(checkpoint, source).advance(found)) == names
