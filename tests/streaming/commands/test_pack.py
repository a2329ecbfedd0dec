"""The files for spark-submit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from streaming.commands import pack
from streaming.setup import jars


def test_the_entry_file_runs_the_commands_from_the_zip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = tmp_path / "one.jar"
    jar.write_bytes(b"jar")
    monkeypatch.setattr(jars, "spark_jars", lambda: [jar])
    of_store = tmp_path / "store.jar"
    of_store.write_bytes(b"jar")
    monkeypatch.setattr(jars, "store_jars", lambda schemes: [of_store] if "s3" in schemes else [])
    out = tmp_path / "out"
    for _ in range(2):
        pack.pack(out=out)
    assert sorted(file.name for file in out.rglob("*")) == ["jars", "one.jar", pack.ARCHIVE, pack.ENTRY]
    pack.pack(out=tmp_path / "with-store", store=pack.Store.S3)
    assert {file.name for file in (tmp_path / "with-store/jars").iterdir()} == {"one.jar", "store.jar"}
    done = subprocess.run(
        [
            sys.executable,
            "-P",
            out / pack.ENTRY,
            "allocate",
            "--strategy",
            "rocketmq.AVG",
            "--queues",
            "8",
            "--members",
            "2",
        ],
        cwd=tmp_path,
        env={"PYTHONPATH": str(out / pack.ARCHIVE)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "rocketmq.AVG: spread 0" in done.stdout
