"""The checks of an executor, run here; `tests/cluster` runs them on real executors."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest

from streaming.spark import executors
from streaming.spark.executors import executor_check

VERSION = sys.version_info[:2]


def problems(version: tuple[int, int], *folders: Path) -> list[str]:
    """Return the problems that the check finds on this machine."""
    batches = executor_check(version, list(map(str, folders)))(iter([pa.record_batch({"id": [1, 2]})]))
    return [problem for batch in batches for problem in batch.column("problem").to_pylist()]


def test_nothing_is_wrong_where_the_job_runs(tmp_path: Path) -> None:
    assert problems(VERSION, tmp_path) == []


def test_another_python_and_a_folder_that_is_not_there_are_named(tmp_path: Path) -> None:
    python, folder = problems((2, 7), tmp_path / "gone")
    assert python.startswith("Python is 3.")
    assert python.endswith("that of the driver 2.7")
    assert folder.startswith(f"{tmp_path}/gone is a folder of the driver's machine")


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "NEEDED", ("msgspec", "no_such_library"))
    (problem,) = problems(VERSION)
    assert problem.startswith("no_such_library cannot be imported on ")
