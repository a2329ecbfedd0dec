"""Log files that are written, rotated, cut and read again."""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path

import pytest

from streaming.collectors.kafka.log_tail import LogFiles, StandardInput


def lines(tail: LogFiles | StandardInput) -> list[str]:
    return [line.rstrip() for batch in tail.read() for line in batch]


def write(path: Path, *texts: str) -> None:
    with path.open("a") as file:
        file.write("".join(f"{text}\n" for text in texts))


def test_each_line_is_read_once_also_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    write(path, "1", "2")
    tail = LogFiles([str(path)])
    assert lines(tail) == ["1", "2"]
    assert lines(tail) == []
    write(path, "3")
    again = LogFiles([str(path)], tail.memory())
    assert lines(again) == ["3"]


def test_a_line_is_read_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text("1\nhal")
    tail = LogFiles([str(path)])
    assert lines(tail) == ["1"]
    write(path, "f")
    assert lines(tail) == ["half"]


@pytest.mark.parametrize("restart", [False, True])
def test_a_rotated_file_is_read_to_its_end_before_the_new_one(tmp_path: Path, restart: bool) -> None:
    path = tmp_path / "server.log"
    write(path, "1")
    tail = LogFiles([str(path)])
    assert lines(tail) == ["1"]
    write(path, "2")
    path.rename(tmp_path / "server.log.2026-11-22-19")
    write(path, "3")
    if restart:
        tail = LogFiles([str(path)], tail.memory())
    assert lines(tail) == ["2", "3"]
    write(path, "4")
    assert lines(tail) == ["4"]


def test_a_pattern_takes_all_files_and_none_twice_when_they_are_renamed(tmp_path: Path) -> None:
    write(tmp_path / "server.log.1", "1")
    write(tmp_path / "server.log", "2")
    with gzip.open(tmp_path / "server.log.2.gz", "wt") as file:
        file.write("old\n")
    tail = LogFiles([str(tmp_path / "server.log*")])
    assert sorted(lines(tail)) == ["1", "2"]
    (tmp_path / "server.log.1").rename(tmp_path / "server.log.2")
    (tmp_path / "server.log").rename(tmp_path / "server.log.1")
    write(tmp_path / "server.log", "3")
    assert lines(tail) == ["3"]


def test_a_file_that_was_cut_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    write(path, "1", "2", "3")
    tail = LogFiles([str(path)])
    assert lines(tail) == ["1", "2", "3"]
    os.truncate(path, 0)
    write(path, "4")
    assert lines(tail) == ["4"]


def test_another_file_with_the_same_inode_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    write(path, "1")
    tail = LogFiles([str(path)])
    assert lines(tail) == ["1"]
    with path.open("r+") as file:  # as a file system that gives the inode again
        file.write("a\nb\nc\n")
    assert lines(tail) == ["a", "b", "c"]


def test_an_unreadable_memory_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    write(path, "1")
    assert lines(LogFiles([str(path)], b"{")) == ["1"]


def test_a_file_that_is_not_there_yet_is_read_when_it_is(tmp_path: Path) -> None:
    tail = LogFiles([str(tmp_path / "server.log")])
    assert lines(tail) == []
    write(tmp_path / "server.log", "1")
    assert lines(tail) == ["1"]


def test_a_pipe_is_over_when_it_is_closed_and_read() -> None:
    tail = StandardInput(io.BytesIO(b"1\n2\n"))
    tail._thread.join()
    assert not tail.is_over
    assert lines(tail) == ["1", "2"]
    assert tail.is_over
    assert tail.memory() is None
