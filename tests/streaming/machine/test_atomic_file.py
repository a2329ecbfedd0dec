"""A file is either whole or absent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streaming.machine import atomic_file
from streaming.machine.atomic_file import write_atomically
from tests.kit.own_view import patch_in


def test_a_reader_has_the_old_content_until_the_new_one_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, replace, read = tmp_path / "mark", Path.replace, []
    write_atomically(file, b"old")

    def read_before(hidden: Path, target: Path) -> Path:
        if target == file:
            read.extend([file.read_bytes(), hidden.read_bytes()])
        return replace(hidden, target)

    monkeypatch.setattr(Path, "replace", read_before)
    write_atomically(file, b"new")
    assert (read, file.read_bytes()) == ([b"old", b"new"], b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["mark"]


def test_content_is_on_the_disk_before_it_has_its_name_and_the_name_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, fsync, replace = [], os.fsync, Path.replace

    def noted_fsync(descriptor: int) -> None:
        steps.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        fsync(descriptor)

    def noted_replace(hidden: Path, target: Path) -> Path:
        if target.parent == tmp_path:
            steps.append("renamed")
        return replace(hidden, target)

    patch_in(monkeypatch, atomic_file, "os", fsync=noted_fsync)
    monkeypatch.setattr(Path, "replace", noted_replace)
    write_atomically(tmp_path / ".mark", b"x")
    assert steps == [".mark.tmp", "renamed", tmp_path.name]


def test_a_failed_write_leaves_only_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_atomically(tmp_path / "mark", b"old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patch_in(patched, atomic_file, "os", fsync=full)
        with pytest.raises(OSError, match="No space"):
            write_atomically(tmp_path / "mark", b"new")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("mark", b"old")]


def test_a_folder_that_cannot_be_synced_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def refuse_folders(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").is_dir():
            raise OSError(22, "Invalid argument")
        fsync(descriptor)

    patch_in(monkeypatch, atomic_file, "os", fsync=refuse_folders)
    write_atomically(tmp_path / "mark", b"x")
    assert (tmp_path / "mark").read_bytes() == b"x"


def test_a_file_gets_the_time_that_readers_order_it_by(tmp_path: Path) -> None:
    write_atomically(tmp_path / "mark", b"x", modified_ns=1_767_225_600_007_000_000)
    assert (tmp_path / "mark").stat().st_mtime_ns == 1_767_225_600_007_000_000
