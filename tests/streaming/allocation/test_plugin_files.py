"""Custom strategies as files for executors: found again, by their entry points, in an archive on Python's path."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import zipfile
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path

import pytest

from streaming.allocation.plugin_files import package_files, plugin_files
from streaming.allocation.plugins import GROUP

_FOUND = (
    f"import json; from importlib.metadata import entry_points\n"
    f"print(json.dumps({{point.name: point.load()(3) for point in entry_points(group={GROUP!r})}}))"
)


def installed(folder: Path, name: str, files: dict[str, str], points: str, *, record: bool = True) -> Distribution:
    """Write a package as pip leaves it; without a record, as an editable installation does."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{points}\n")
    if record:
        (info / "RECORD").write_text("".join(f"{path},,\n" for path in files))
    return PathDistribution(info)


def found_in(archive: Path) -> dict[str, int]:
    """Return what the strategies of an archive answer, by name, in a Python that has nothing else."""
    command = [sys.executable, "-S", "-c", _FOUND]
    done = subprocess.run(command, env={"PYTHONPATH": str(archive)}, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("record", [True, False])
def test_a_package_is_found_in_the_archive_by_its_entry_points(
    record: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "site"
    dist = installed(
        place,
        "mine",
        {
            "mine_package/__init__.py": "",
            "mine_package/inner/__init__.py": "from mine_package.inner.deep import allocate as allocate\n",
            "mine_package/inner/deep.py": "def allocate(problem): return problem + 1\n",
            "mine_package/data.txt": "kept",
        },
        "rocketmq.MINE = mine_package.inner:allocate",
        record=record,
    )
    monkeypatch.syspath_prepend(str(place))
    archive = tmp_path / "code.zip"
    with zipfile.ZipFile(archive, "w") as written:
        for name, content in plugin_files(dist.entry_points):
            written.writestr(name, content)
    assert found_in(archive) == {"rocketmq.MINE": 4}
    assert "mine_package/data.txt" in zipfile.ZipFile(archive).namelist()


def test_a_module_beside_the_one_that_is_named_is_sent_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dist = installed(
        tmp_path,
        "pair",
        {
            "pair_front.py": "from pair_back import allocate as allocate\n",
            "pair_back.py": "def allocate(n): return n\n",
        },
        "rocketmq.PAIR = pair_front:allocate",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    names = {name for name, _ in plugin_files(dist.entry_points)}
    assert names == {
        "pair_front.py",
        "pair_back.py",
        "pair-1.0.dist-info/METADATA",
        "pair-1.0.dist-info/entry_points.txt",
    }


def test_compiled_code_is_left_out_and_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    files = {"fast_one/__init__.py": "", "fast_one/inner.cpython-311.so": "ELF"}
    dist = installed(tmp_path, "fast", files, "rocketmq.FAST = fast_one:allocate")
    monkeypatch.syspath_prepend(str(tmp_path))
    with caplog.at_level(logging.WARNING):
        assert list(plugin_files(dist.entry_points)) == []
    assert "fast has compiled code" in caplog.text


def test_the_files_of_a_package_come_without_compiled_copies() -> None:
    names = [name for name, _ in package_files("udfs")]
    assert names == sorted(names, key=lambda name: name.split("/"))
    assert {"udfs/__init__.py", "udfs/shard/shard.py"} <= set(names)
    assert not any("__pycache__" in name for name in names)
