"""The folder for a process's temporary files, and the error if there is no place for it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from streaming.setup.errors import SetupError
from streaming.spark.scratch import scratch_folder


def test_a_folder_for_temporary_files_that_cannot_be_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed = tmp_path / "gone"
    monkeypatch.setattr(tempfile, "tempdir", str(removed))
    with pytest.raises(SetupError, match=f"{removed} cannot be written: No such file") as refused:
        scratch_folder.__wrapped__()
    assert "TMPDIR" in refused.value.remedy
