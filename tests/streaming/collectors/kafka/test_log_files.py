"""Log files that are written, rotated, cut and read again."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from structlog.testing import capture_logs

from streaming.collectors.kafka import log_files, log_rotation
from streaming.collectors.kafka.log_files import LogFiles, StandardInput
from streaming.collectors.kafka.log_rotation import CHUNK_BYTES

COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda content: pa.compress(content, "zstd", asbytes=True),
}


def lines(tail: LogFiles | StandardInput) -> list[str]:
    return [line.rstrip() for batch in tail.read() for line in batch]


def write(path: Path, *texts: str, at: int | None = None) -> None:
    """Append lines, and date the file at a given minute."""
    with path.open("a") as file:
        file.write("".join(f"{text}\n" for text in texts))
    if at is not None:
        os.utime(path, (at * 60, at * 60))


def compress(path: Path, suffix: str = ".gz") -> Path:
    """Compress a file as gzip, bzip2, xz and zstd do: its time stays."""
    compressed = path.with_name(path.name + suffix)
    compressed.write_bytes(COMPRESSED[suffix](path.read_bytes()))
    shutil.copystat(path, compressed)
    path.unlink()
    return compressed


def warnings(tail: LogFiles) -> tuple[list[str], list[str]]:
    """Return new lines, and the warnings meanwhile."""
    with capture_logs() as logged:
        found = lines(tail)
    return found, [f"{record['event']}: {Path(record['path']).name}" for record in logged]


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


DATES = ["server.log.2026-11-24-00", "server.log.2026-11-24-01", "server.log.2026-11-24-02"]
NUMBERS = ["server.log.3", "server.log.2", "server.log.1"]


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("pattern", ["server.log", "server.log*", "*.log"])
@pytest.mark.parametrize("is_same_time", [False, True])
@pytest.mark.parametrize("names", [DATES, NUMBERS, ["server-2026-11-24.log", "server-2026-11-25.log"]])
def test_all_files_that_were_rotated_between_two_reads_are_read_in_the_order_of_time(
    tmp_path: Path, restart: bool, pattern: str, is_same_time: bool, names: list[str]
) -> None:
    path = tmp_path / "server.log"
    write(path, "first", at=10)
    tail = LogFiles([str(tmp_path / pattern)])
    assert lines(tail) == ["first"]
    expected = []
    for number, name in enumerate(names):
        write(path, f"rest {number}", f"{name} {number}", at=20 if is_same_time else 20 + number)
        expected += [f"rest {number}", f"{name} {number}"]
        path.rename(tmp_path / name)
    write(path, "last", at=40)
    if restart:
        tail = LogFiles([str(tmp_path / pattern)], tail.memory())
    assert warnings(tail) == ([*expected, "last"], [])
    assert lines(tail) == []
    assert lines(LogFiles([str(tmp_path / pattern)], tail.memory())) == []


@pytest.mark.parametrize("suffix", COMPRESSED)
@pytest.mark.parametrize("pattern", ["server.log", "server.log*"])
def test_files_compressed_before_they_were_read_are_read(tmp_path: Path, suffix: str, pattern: str) -> None:
    path = tmp_path / "server.log"
    write(path, "1", at=10)
    tail = LogFiles([str(tmp_path / pattern)])
    assert lines(tail) == ["1"]
    for number, name in enumerate(DATES):
        write(path, f"rest {number}", at=20 + number)
        path.rename(tmp_path / name)
        compress(tmp_path / name, suffix)
    write(path, "last", at=30)
    assert warnings(tail) == (["rest 0", "rest 1", "rest 2", "last"], [])
    assert lines(LogFiles([str(tmp_path / pattern)], tail.memory())) == []


@pytest.mark.parametrize("pattern", ["server.log", "server.log*"])
def test_a_file_that_was_read_before_it_was_compressed_is_not_read_again(tmp_path: Path, pattern: str) -> None:
    path = tmp_path / "server.log"
    write(path, "1", at=10)
    tail = LogFiles([str(tmp_path / pattern)])
    assert lines(tail) == ["1"]
    write(path, "2", at=20)
    path.rename(tmp_path / "server.log.1")
    write(path, "3", at=30)
    assert lines(tail) == ["2", "3"]
    (tmp_path / "server.log.1").rename(tmp_path / "server.log.2")
    compress(tmp_path / "server.log.2")
    path.rename(tmp_path / "server.log.1")
    write(path, "4", at=40)
    assert warnings(tail) == (["4"], [])
    (tmp_path / "server.log.2.gz").unlink()
    assert warnings(tail) == ([], [])


def test_while_a_file_is_being_compressed_it_is_read_itself(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    write(path, "1", at=10)
    tail = LogFiles([str(path)])
    assert lines(tail) == ["1"]
    write(path, "2", at=20)
    path.rename(tmp_path / "server.log.1")
    (tmp_path / "server.log.1.gz").write_bytes(gzip.compress(b"1\n2\n")[:-5])
    write(path, "3", at=30)
    assert warnings(tail) == (["2", "3"], [])
    compress(tmp_path / "server.log.1")
    assert warnings(tail) == ([], [])


def rotate(path: Path, hour: int, *, is_numbered: bool, is_compressed: bool) -> None:
    """Rotate as log4j or logrotate does; of numbered files five are kept."""
    rotated = path.with_name(f"{path.name}.2026-11-24-{hour}")
    if is_numbered:
        for number in range(5, 0, -1):
            for suffix in ("", ".gz"):
                before = path.with_name(f"{path.name}.{number}{suffix}")
                if before.exists():
                    before.rename(path.with_name(f"{path.name}.{number + 1}{suffix}"))
        for suffix in ("", ".gz"):
            path.with_name(f"{path.name}.6{suffix}").unlink(missing_ok=True)
        rotated = path.with_name(f"{path.name}.1")
    if path.exists():
        path.rename(rotated)
        if is_compressed:
            compress(rotated)


@pytest.mark.parametrize("pattern", ["server.log", "server.log*", "*.log"])
@pytest.mark.parametrize("is_numbered", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_each_line_is_read_once_and_in_order_however_files_are_rotated(
    tmp_path: Path, pattern: str, is_numbered: bool, seed: int
) -> None:
    chance = random.Random(seed)
    path = tmp_path / "server.log"
    tail = LogFiles([str(tmp_path / pattern)])
    found: list[str] = []
    rotated = 0  # since the last read
    write(path, "line 0", at=0)
    found += lines(tail)
    for number in range(1, 150):
        write(path, f"line {number}", at=number // 2)
        if rotated < 4 and chance.random() < 0.3:
            rotate(path, 10 + number, is_numbered=is_numbered, is_compressed=chance.random() < 0.5)
            rotated += 1
        if chance.random() < 0.3:
            new, logged = warnings(tail)
            found, rotated = found + new, 0
            assert logged == []
        if chance.random() < 0.2:
            tail = LogFiles([str(tmp_path / pattern)], tail.memory())
    assert found + lines(tail) == [f"line {number}" for number in range(150)]


def test_a_pattern_takes_all_files_the_oldest_first_and_none_twice_when_they_are_renamed(tmp_path: Path) -> None:
    for at, name in enumerate(["server.log.2", "server.log.1", "server.log"]):
        write(tmp_path / name, str(at), at=at)
    compress(tmp_path / "server.log.2")
    tail = LogFiles([str(tmp_path / "server.log*")])
    assert lines(tail) == ["0", "1", "2"]
    (tmp_path / "server.log.2.gz").rename(tmp_path / "server.log.3.gz")
    (tmp_path / "server.log.1").rename(tmp_path / "server.log.2")
    (tmp_path / "server.log").rename(tmp_path / "server.log.1")
    write(tmp_path / "server.log", "3", at=3)
    assert lines(tail) == ["3"]


def test_logs_of_several_brokers_are_read_in_the_order_of_time(tmp_path: Path) -> None:
    for at, name in enumerate(["a/server.log.2", "b/server.log.1", "a/server.log.1", "b/server.log", "a/server.log"]):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write(tmp_path / name, name, at=at)
    assert lines(LogFiles([str(tmp_path / "*" / "server.log*")])) == [
        "a/server.log.2",
        "b/server.log.1",
        "a/server.log.1",
        "b/server.log",
        "a/server.log",
    ]


def test_other_logs_and_files_rotated_before_the_first_start_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    write(tmp_path / "server.log.1", "old", at=1)
    write(path, "1", at=2)
    tail = LogFiles([str(path)])
    assert lines(tail) == ["1"]
    (tmp_path / "server.log.1").rename(tmp_path / "server.log.2")
    path.rename(tmp_path / "server.log.1")
    for name in ("server.log", "controller.log", "controller.log.1", "server-1.log", "server.logs.1"):
        write(tmp_path / name, name, at=3)
    assert lines(tail) == ["server.log"]


def test_reading_that_was_given_up_midway_continues_with_the_same_files(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    write(path, "1", at=10)
    tail = LogFiles([str(path)])
    assert lines(tail) == ["1"]
    for number, name in enumerate(DATES):
        write(path, f"rest {number}", at=20 + number)
        path.rename(tmp_path / name)
    write(path, "last", at=30)
    found = []
    for _ in range(5):
        found += next(tail.read(), [])
        tail = LogFiles([str(path)], tail.memory())
    assert found == ["rest 0", "rest 1", "rest 2", "last"]


def test_a_file_that_is_rotated_while_others_are_read_is_found_under_its_new_name(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    write(path, "1", at=10)
    tail = LogFiles([str(path)])
    assert lines(tail) == ["1"]
    write(path, "2", at=20)
    path.rename(tmp_path / DATES[0])
    write(path, "3", at=30)
    batches = tail.read()
    assert next(batches) == ["2"]
    path.rename(tmp_path / DATES[1])
    write(path, "4", at=40)
    with capture_logs() as logged:
        assert list(batches) == [["3"], ["4"]]
    assert logged == []


def test_lost_lines_are_reported_with_the_files_name_and_time(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    write(path, "1", at=10)
    tail = LogFiles([str(path)])
    assert lines(tail) == ["1"]
    path.unlink()
    write(tmp_path / "server.log.3", "older", at=9)
    write(tmp_path / "server.log.2", "2", at=20)
    write(tmp_path / "server.log.1", "3", at=30)
    tail = LogFiles([str(path)], tail.memory())
    with capture_logs() as logged:
        assert lines(tail) == ["2", "3"]
    write(path, "4", at=40)
    assert warnings(tail) == (["4"], [])
    ((event, lost, after),) = [(record["event"], record["path"], record["logged_after"]) for record in logged]
    assert "is nowhere any more" in event
    assert (lost, after) == (str(path), "1970-01-01T00:10:00+00:00")


def test_a_file_that_was_read_to_its_end_and_is_deleted_is_no_loss(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    write(path, "1", at=10)
    tail = LogFiles([str(path)])
    assert lines(tail) == ["1"]
    path.rename(tmp_path / "server.log.1")
    write(path, "2", at=20)
    assert lines(tail) == ["2"]
    (tmp_path / "server.log.1").unlink()
    assert warnings(tail) == ([], [])
    assert len(msgspec.json.decode(tail.memory())) == 1


def test_a_folder_that_is_empty_for_a_while_is_no_loss(tmp_path: Path) -> None:
    path, away = tmp_path / "logs" / "server.log", tmp_path / "away"
    path.parent.mkdir()
    write(path, "1", at=10)
    tail = LogFiles([str(path)])
    assert lines(tail) == ["1"]
    path.parent.rename(away)
    assert not [text for text in warnings(tail)[1] if "lost" in text]
    path.parent.mkdir()
    assert warnings(tail) == ([], [])
    path.parent.rmdir()
    away.rename(path.parent)
    write(path, "2")
    assert warnings(tail) == (["2"], [])


def test_other_compressions_and_damaged_files_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    write(path, "1", at=10)
    tail = LogFiles([str(path)])
    assert lines(tail) == ["1"]
    path.rename(tmp_path / "server.log.3")
    with zipfile.ZipFile(tmp_path / "server.log.2.zip", "w") as file:
        file.writestr("server.log.2", "2")
    (tmp_path / "server.log.1.gz").write_bytes(gzip.compress(b"3\n4\n")[:-6])
    write(path, "5")
    found, logged = warnings(tail)
    assert found == ["3", "4", "5"]
    assert logged == [
        "a broker's log is compressed in a way that is not read: server.log.2.zip",
        "a broker's log cannot be read, or not to its end: server.log.1.gz",
    ]
    assert warnings(tail) == ([], [])


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_lines_copied_before_truncation_are_read_from_the_copies(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "server.log"
    write(path, "1", at=10)
    tail = LogFiles([str(path)])
    assert lines(tail) == ["1"]
    for number in (2, 1):
        write(path, f"rest {number}", at=20 - number)
        copy = tmp_path / f"server.log.{number}"
        shutil.copyfile(path, copy)
        os.utime(copy, (60 * (20 - number),) * 2)
        if suffix:
            compress(copy)
        os.truncate(path, 0)
    write(path, "last", at=30)
    assert warnings(tail) == (["rest 2", "rest 1", "last"], [])
    assert warnings(tail) == ([], [])


def test_a_copy_of_what_is_read_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    write(path, "1", at=10)
    tail = LogFiles([str(tmp_path / "server.log*")])
    assert lines(tail) == ["1"]
    write(path, "2", at=20)
    shutil.copyfile(path, tmp_path / "server.log.1")
    assert lines(tail) == ["2"]
    assert lines(tail) == []
    os.truncate(path, 0)
    write(path, "3")
    assert warnings(tail) == (["3"], [])


def test_a_file_of_a_disk_that_has_another_number_by_now_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    write(path, "1", at=10)
    tail = LogFiles([str(path)])
    assert lines(tail) == ["1"]
    places = msgspec.json.decode(tail.memory())
    places[0]["device"] += 1
    write(path, "2")
    assert warnings(LogFiles([str(path)], msgspec.json.encode(places))) == (["2"], [])


def test_a_place_that_an_earlier_version_wrote_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    write(tmp_path / "server.log.1", "old", at=1)
    write(path, "1", at=2)
    tail = LogFiles([str(path)])
    assert lines(tail) == ["1"]
    (place,) = msgspec.json.decode(tail.memory())
    old = {name: place[name] for name in ("path", "device", "inode", "offset", "head", "head_bytes")}
    write(path, "2", at=3)
    assert warnings(LogFiles([str(path)], msgspec.json.encode([old]))) == (["2"], [])


def test_the_newest_of_too_many_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_files, "_MAX_FILES", 2)
    for at, name in enumerate(["server.log.2", "server.log.1", "server.log"]):
        write(tmp_path / name, str(at), at=at)
    found, logged = warnings(LogFiles([str(tmp_path / "server.log*")]))
    assert found == ["1", "2"]
    assert logged == ["more brokers' logs than are followed: the oldest are not read: server.log.2"]


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes("client reason: a\u2028b\x0bc\x85d\r\nnext\n".encode())
    assert lines(LogFiles([str(path)])) == ["client reason: a\u2028b\x0bc\x85d", "next"]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_line_longer_than_is_read_at_once_is_not_kept(tmp_path: Path, suffix: str) -> None:
    write(tmp_path / "server.log", "1", "x" * (2 * CHUNK_BYTES + 5), "2")
    if suffix:
        compress(tmp_path / "server.log")
    found = lines(LogFiles([str(tmp_path / "server.log*")]))
    assert (found[0], found[-1]) == ("1", "2")
    assert all(len(line) < CHUNK_BYTES for line in found)


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
    with path.open("r+") as file:  # some file systems use the inode again
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


@pytest.mark.parametrize("name", ["server.log", "server.log*"])
def test_a_log_that_is_missing_is_a_trouble_until_it_is_there(tmp_path: Path, name: str) -> None:
    tail = LogFiles([str(tmp_path / name)])
    assert warnings(tail) == ([], [f"no file of brokers' logs is there: {name}"])
    assert warnings(tail) == ([], [])
    assert tail.trouble() == f"no file matches {tmp_path / name}: causes of departures are inferred"
    write(tmp_path / "server.log", "1")
    assert warnings(tail) == (["1"], [])
    assert tail.trouble() is None
    (tmp_path / "server.log").rename(tmp_path / "server.log.1")
    assert warnings(tail) == ([], [])
    assert tail.trouble() is None  # the next line begins the next file
    (tmp_path / "server.log.1").unlink()
    assert f"no file of brokers' logs is there: {name}" in warnings(tail)[1]
    assert tail.trouble()


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    tail = LogFiles([str(tmp_path / "none" / "server.log*"), str(tmp_path / "*" / "server.log")])
    assert lines(tail) == []
    assert tail.trouble() == (
        f"no file matches {tmp_path}/none/server.log* ({tmp_path}/none: No such file or directory),"
        f" no file matches {tmp_path}/*/server.log: causes of departures are inferred"
    )


def test_a_log_that_cannot_be_read_is_a_trouble_until_it_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "server.log"
    write(path, "1")
    tail = LogFiles([str(tmp_path / "server.log*")])

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as closed:
        closed.setattr(log_rotation, "_opened", refused)
        assert warnings(tail) == ([], ["a broker's log cannot be read, or not to its end: server.log"])
        assert warnings(tail) == ([], [])
        reason = f"{path} cannot be read (Permission denied): causes of departures are inferred"
        assert tail.trouble() == reason
    assert warnings(tail) == (["1"], [])
    assert tail.trouble() is None
    write(path, "2")
    monkeypatch.setattr(log_rotation, "_opened", refused)
    lines(tail)
    assert tail.trouble() == reason


def test_a_pipe_is_over_when_it_is_closed_and_read() -> None:
    tail = StandardInput(io.BytesIO(b"1\n2\n"))
    tail._thread.join()
    assert not tail.is_over
    assert lines(tail) == ["1", "2"]
    assert tail.is_over
    assert tail.memory() is None
