"""Where the files of `conf/` are."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from streaming.settings import conf_files
from streaming.settings.conf_files import conf_file, conf_folder, conf_path

ROOT = Path(__file__).parents[3]


def test_the_package_own_copy_precedes_a_folder_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel, beside = tmp_path / "wheel", tmp_path / "beside"
    for folder, names in ((wheel, ["a"]), (beside, ["a", "b"])):
        folder.mkdir()
        for name in names:
            (folder / name).touch()
    monkeypatch.setattr(conf_files, "_PLACES", (wheel, beside))
    assert (conf_file("a"), conf_file("b"), conf_folder()) == (wheel / "a", beside / "b", wheel)
    with pytest.raises(FileNotFoundError, match=r"conf/c is in none of .*wheel, .*beside"):
        conf_file("c")


def test_in_a_checkout_the_files_are_those_of_its_folder() -> None:
    assert conf_file("default.toml") == ROOT / "conf/default.toml"
    with conf_path("ivy.xml") as path:
        assert path == ROOT / "conf/ivy.xml"


def test_inside_a_zip_the_files_are_read_and_get_a_path_under_their_name(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "code.zip", "w") as archive:
        for name in ("__init__.py", "settings/__init__.py", "settings/conf_files.py"):
            archive.write(ROOT / "streaming" / name, f"streaming/{name}")
        archive.writestr("streaming/conf/default.toml", "[job]\n")
    program = (
        "from streaming.settings.conf_files import conf_file, conf_path\n"
        "text = conf_file('default.toml').read_text()\n"
        "with conf_path('default.toml') as path: print(path.name, path.read_text() == text)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "code.zip")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["default.toml", "True"]
