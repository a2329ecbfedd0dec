"""The small file beside a log: replaced whole, and absent at first."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.collectors.event_log import log
from streaming.collectors.event_log.log import LogFull, Memory


def test_the_last_stored_memory_is_also_read_by_the_next_process(tmp_path: Path) -> None:
    assert Memory(tmp_path / "m").read() is None
    Memory(tmp_path / "m").keep(b"first")
    Memory(tmp_path / "m").keep(b"")
    assert Memory(tmp_path / "m").read() == b""


def test_a_failed_write_leaves_the_earlier_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory(tmp_path / "m")
    memory.keep(b"first")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(log, "write_whole", full)
    with pytest.raises(OSError, match="No space"):
        memory.keep(b"second")
    assert memory.read() == b"first"


def test_a_file_that_cannot_be_read_is_not_taken_for_an_absent_one(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    with pytest.raises(IsADirectoryError):
        Memory(tmp_path / "m").read()


def test_a_full_log_is_handled_where_a_full_disk_is() -> None:
    with pytest.raises(OSError, match="bytes of events wait"):
        raise LogFull("3 bytes of events wait")
