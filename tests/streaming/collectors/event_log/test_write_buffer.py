"""While a log cannot be written, records wait in order, up to a limit."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from streaming.collectors.event_log.log import EventRecord, LogFull, Memory
from streaming.collectors.event_log.write_buffer import WriteBuffer
from tests.streaming.collectors.event_log.clocks import clock, clocks
from udfs.model.events import AnyEvent

ONE = len(msgspec.json.encode(clock(1))) + 1


class Disk:
    """Takes this many records before it is full."""

    def __init__(self) -> None:
        self.room = 1_000
        self.holds: list[int] = []

    def write(self, records: list[EventRecord]) -> None:
        while records:
            if not self.room:
                raise OSError(28, "No space left on device")
            self.room -= 1
            self.holds.append(msgspec.json.decode(records.pop(0).value, type=AnyEvent).event_time)


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def backlog(disk: Disk, tmp_path: Path) -> WriteBuffer:
    return WriteBuffer(disk.write, Memory(tmp_path / "memory"), limit_bytes=4 * ONE, log_name="test")


def test_append_writes_what_it_can_before_it_returns(backlog: WriteBuffer, disk: Disk) -> None:
    backlog.append(clocks(1, 2))
    assert disk.holds == [1, 2]
    assert backlog.trouble() is None


def test_half_an_append_that_was_written_is_not_written_again(backlog: WriteBuffer, disk: Disk) -> None:
    disk.room = 1
    backlog.append(clocks(1, 2, 3))
    assert backlog.trouble() == "[Errno 28] No space left on device"
    disk.room = 100
    backlog.append(clocks(4))
    assert disk.holds == [1, 2, 3, 4]
    assert backlog.trouble() is None


def test_beyond_the_bound_nothing_is_taken_and_nothing_that_was_taken_is_lost(backlog: WriteBuffer, disk: Disk) -> None:
    disk.room = 0
    backlog.append(clocks(1, 2))
    backlog.append(clocks(3, 4))
    for _ in range(3):
        with pytest.raises(LogFull, match="No space left"):
            backlog.append(clocks(5))
    disk.room = 1  # not enough for all, but it makes room for one
    backlog.append(clocks(6))
    disk.room = 100
    assert backlog.flush()
    assert disk.holds == [1, 2, 3, 4, 6]


def test_an_append_longer_than_the_bound_may_wait_alone(backlog: WriteBuffer, disk: Disk) -> None:
    disk.room = 0
    backlog.append(clocks(*range(10)))
    with pytest.raises(LogFull):
        backlog.append(clocks(11))
    disk.room = 100
    backlog.append(clocks(12))
    assert disk.holds == [*range(10), 12]


def test_the_memory_waits_behind_the_events_before_it(backlog: WriteBuffer, disk: Disk, tmp_path: Path) -> None:
    backlog.append(clocks(1))
    backlog.keep_memory(b"one")
    disk.room = 0
    backlog.append(clocks(2))
    backlog.keep_memory(b"two")
    backlog.keep_memory(b"two, and more")
    assert (tmp_path / "memory").read_bytes() == b"one"  # the state that a restart would read
    assert backlog.read_memory() == b"two, and more"
    disk.room = 1
    assert backlog.flush()
    assert (tmp_path / "memory").read_bytes() == b"two, and more"
    assert backlog.read_memory() == b"two, and more"


def test_trouble_is_logged_once_and_its_end_too(backlog: WriteBuffer, disk: Disk) -> None:
    disk.room = 0
    with capture_logs() as logged:
        for number in range(6):
            with suppress(LogFull):
                backlog.append(clocks(number))
        disk.room = 100
        assert backlog.flush()
        assert backlog.flush()
    parts = ("cannot be written", "the memory for waiting events is full", "writable again")
    assert [next(part for part in parts if part in line["event"]) for line in logged] == list(parts)
