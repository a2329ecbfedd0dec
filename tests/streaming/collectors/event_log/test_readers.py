"""The marks by which writers and readers of a folder know of each other."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from streaming.collectors.event_log.readers import (
    DeletedMark,
    ReaderMark,
    file_of,
    number_and_writer,
    read_deleted,
    read_readers,
    write_deleted,
    write_reader,
    writers_that_deleted,
)


def test_the_name_of_a_file_is_its_number_and_its_writer(tmp_path: Path) -> None:
    for number, writer in ((0, "kafka"), (1_767_225_600_007_000_000, "kafka-c-1-topics")):
        assert number_and_writer(file_of(tmp_path, writer, number).name) == (number, writer)
    names = [file_of(tmp_path, "w", number).name for number in (9, 10, 10**18)]
    assert names == sorted(names)


@pytest.mark.parametrize(
    "name", ["mine.jsonl", "7-kafka.jsonl", "00000000000000000007.jsonl", "00000000000000000007-kafka.json", "x" * 20]
)
def test_files_of_others_have_no_number(name: str) -> None:
    assert number_and_writer(name) is None


def test_each_reader_has_its_own_mark_and_renews_it(tmp_path: Path) -> None:
    slow = ReaderMark(checkpoint="/c/slow", renewed_ms=5, read={"kafka": 7})
    write_reader(tmp_path, "a", slow)
    write_reader(tmp_path, "b", ReaderMark(checkpoint="/c/quick", renewed_ms=5, read={}))
    quick = ReaderMark(checkpoint="/c/quick", renewed_ms=9, read={"kafka": 8, "metaq": 1})
    write_reader(tmp_path, "b", quick)
    assert read_readers(tmp_path) == [slow, quick]


def test_ranges_of_deleted_files_are_kept_by_writer(tmp_path: Path) -> None:
    assert read_deleted(tmp_path, "kafka").newest == 0
    mark = DeletedMark()
    mark.add(1, 3, ["c2"])
    mark.add(4, 4, ["c1", "c2"])
    write_deleted(tmp_path, "kafka", mark)
    write_deleted(tmp_path, "a.b", DeletedMark())
    assert read_deleted(tmp_path, "kafka") == DeletedMark(clusters=["c1", "c2"], ranges=[(1, 3), (4, 4)])
    assert read_deleted(tmp_path, "kafka").newest == 4
    assert writers_that_deleted(tmp_path) == ["a.b", "kafka"]


def test_the_oldest_ranges_become_one_when_there_are_too_many() -> None:
    mark = DeletedMark()
    for number in range(1, 251):
        mark.add(10 * number, 10 * number + 1, [])
    assert (len(mark.ranges), mark.ranges[0], mark.ranges[1]) == (200, (10, 511), (520, 521))


@pytest.mark.parametrize("content", ["{", "[]", '{"checkpoint": 3}', "\xff"])
def test_a_mark_that_cannot_be_read_is_logged_and_the_others_are_read(tmp_path: Path, content: str) -> None:
    whole = ReaderMark(checkpoint="/c", renewed_ms=5, read={})
    write_reader(tmp_path, "whole", whole)
    (tmp_path / ".broken.reader").write_bytes(content.encode("latin-1"))
    with capture_logs() as logged:
        assert read_readers(tmp_path) == [whole]
    assert [line["file"] for line in logged] == [str(tmp_path / ".broken.reader")]
