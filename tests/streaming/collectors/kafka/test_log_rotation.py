"""Files of rotated logs: their names, their order, and what they hold."""

from __future__ import annotations

import gzip
import os
import random
from pathlib import Path

import pytest

from streaming.collectors.kafka.log_rotation import (
    RotatedError,
    contents,
    current_path,
    head,
    list_logs,
    log_file,
    rotation,
)
from streaming.pipeline.codecs import BROKEN


@pytest.mark.parametrize(
    ("name", "current"),
    [
        ("server.log", "server.log"),
        ("server.log.1", "server.log"),
        ("server.log.12.gz", "server.log"),
        ("server.log.2026-11-24-13", "server.log"),  # log4j's DailyRollingFileAppender, log4j2 as Kafka 4 has it
        ("server.log.2026-11-24-13-2.zst", "server.log"),
        ("server.log-20261124.xz", "server.log"),  # logrotate with dateext
        ("server.log-20261124-1732406400", "server.log"),
        ("server-2026-11-24.log", "server.log"),
        ("server-11-24-2026-1.log.gz", "server.log"),  # as log4j2's manual has it
        ("server_20261124.log", "server.log"),
        ("kafka-1.log", "kafka-1.log"),  # of the broker 1
        ("kafka-10.0.0.1.log", "kafka-10.0.0.1.log"),
        ("kafka-1.log.2026-11-24-13", "kafka-1.log"),
        ("server.log.old", "server.log.old"),
        ("2026-11-24.log", "2026-11-24.log"),
        ("kafka.1", "kafka.1"),
    ],
)
def test_a_rotated_file_has_the_name_of_its_log(name: str, current: str) -> None:
    assert current_path(f"/var/log/kafka/{name}") == f"/var/log/kafka/{current}"


@pytest.mark.parametrize(
    "names",
    [
        ["server.log.10.gz", "server.log.2.gz", "server.log.1", "server.log"],
        ["server.log.2026-11-23-22", "server.log.2026-11-23-23.gz", "server.log.2026-11-24-01", "server.log"],
        ["server.log-20261123", "server.log-20261124", "server.log"],
        ["server-2026-11-23-9.log", "server-2026-11-23-10.log", "server-2026-11-24-1.log", "server.log"],
    ],
)
def test_files_of_one_time_are_ordered_by_name_and_others_by_time(tmp_path: Path, names: list[str]) -> None:
    shuffled = random.Random(1).sample(names, len(names))
    for name in shuffled:
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (5, 5))

    def listed() -> list[str]:
        files = list_logs(str(tmp_path), {str(tmp_path / "server.log")}, ())
        return [Path(file.path).name for file in sorted(files, key=lambda file: file.order)]

    assert listed() == names
    for at, name in enumerate(reversed(names[:-1])):
        os.utime(tmp_path / name, (at, at))
    assert listed() == [*reversed(names[:-1]), names[-1]]  # the current one is the last


def test_a_listing_has_each_file_of_a_log_once_and_remembered_files_by_any_name(tmp_path: Path) -> None:
    for name in ("server.log", "server.log.1", "server.log.1.gz", "controller.log", "renamed"):
        (tmp_path / name).touch()
    (tmp_path / "server.log.2").mkdir()
    os.link(tmp_path / "server.log", tmp_path / "server.log.3")
    os.symlink(tmp_path / "nothing", tmp_path / "server.log.4")
    status = os.stat(tmp_path / "renamed")
    files = list_logs(str(tmp_path), {str(tmp_path / "server.log")}, {(status.st_dev, status.st_ino)})
    assert sorted(Path(file.path).name for file in files) == ["renamed", "server.log", "server.log.1"]


def test_contents_begin_at_an_offset_of_what_was_compressed(tmp_path: Path) -> None:
    content = random.Random(1).randbytes(200_000)
    (tmp_path / "a.log").write_bytes(content)
    (tmp_path / "a.log.1.gz").write_bytes(gzip.compress(content))
    for name in ("a.log", "a.log.1.gz"):
        file = log_file(str(tmp_path / name))
        assert file is not None
        assert head(file) == content[:1024]
        for offset in (0, 1, 65_536, 150_000, 200_000):
            assert b"".join(contents(file, offset, 1_000)) == content[offset:]


@pytest.mark.parametrize("name", ["a.log", "a.log.1.gz"])
def test_a_file_that_has_another_name_by_now_is_not_taken_for_its_successor(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"1"))
    file = log_file(str(path))
    assert file is not None
    path.rename(tmp_path / "moved")
    with pytest.raises(RotatedError):
        list(contents(file, 0))
    path.write_bytes(gzip.compress(b"2"))
    with pytest.raises(RotatedError):
        list(contents(file, 0))


def test_damage_is_an_error_after_what_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.log.1.gz"
    path.write_bytes(gzip.compress(b"1\n2\n")[:-8])
    file = log_file(str(path))
    assert file is not None
    pieces = contents(file, 0)
    assert next(pieces) == b"1\n2\n"
    with pytest.raises(BROKEN):
        next(pieces)


def test_only_files_are_logs(tmp_path: Path) -> None:
    assert log_file(str(tmp_path)) is None
    assert log_file(str(tmp_path / "nothing")) is None
    assert rotation(str(tmp_path / "server.log")) == ()
