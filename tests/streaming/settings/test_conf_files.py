"""Where the files of `conf/` are."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.settings import conf_files
from streaming.settings.conf_files import conf_file


def test_a_checkouts_own_folder_precedes_that_of_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout, wheel = tmp_path / "checkout", tmp_path / "wheel"
    for folder, names in ((checkout, ["a"]), (wheel, ["a", "b"])):
        folder.mkdir()
        for name in names:
            (folder / name).touch()
    monkeypatch.setattr(conf_files, "_PLACES", (checkout, wheel))
    assert (conf_file("a"), conf_file("b")) == (checkout / "a", wheel / "b")
    with pytest.raises(FileNotFoundError, match=r"conf/c is in none of .*checkout, .*wheel"):
        conf_file("c")


def test_the_files_of_the_project_are_found() -> None:
    assert {conf_file(name).parent.name for name in ("default.toml", "ivy.xml", "jars.sha256")} == {"conf"}
