"""The check whether a folder can be written creates nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streaming.machine.folder_check import write_error


def test_existing_folders_and_those_that_can_be_created_are_writable(tmp_path: Path) -> None:
    assert write_error(tmp_path) is None
    assert write_error(tmp_path / "a" / "b") is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["file", "file/below", "dangling", "dangling/below"])
def test_a_file_in_the_way_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    assert f"{tmp_path / name.split('/')[0]} is not a folder" in str(write_error(tmp_path / name))


def test_a_folder_without_the_right_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Root may write everywhere, so the test supplies the system's answer.
    monkeypatch.setattr(os, "access", lambda place, mode: not (place == tmp_path and mode & os.W_OK))
    assert write_error(tmp_path / "a") == f"{tmp_path} is not writable for this user"
