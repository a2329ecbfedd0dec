"""Writers that are processes: killed by the system, and on a disk that is really full."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.event_writer import Writer
from tests.streaming.collectors.event_log.clocks import times_in

_MOUNT = 'mount -t tmpfs -o size=4m tmpfs "$0" && exec "$@"'
_WITHIN = ("unshare", "--map-root-user", "--mount", "sh", "-c", _MOUNT)


def test_kill_9_at_any_time_loses_nothing_acknowledged(tmp_path: Path) -> None:
    chance = random.Random(7)
    acknowledged = 0
    for _ in range(12):
        writer = Writer(tmp_path)
        assert writer.counted >= acknowledged
        count = chance.randint(1, 3_000)
        for _ in range(20):
            writer.request(count)
        answered = [writer.append(count) for _ in range(chance.randint(0, 3))]
        answered += writer.kill()
        acknowledged = writer.counted + count * answered.count("")
        found = times_in(tmp_path)
        assert set(range(acknowledged)) <= set(found)
    writer = Writer(tmp_path)
    assert not list(tmp_path.glob(".*.tmp"))
    writer.kill()


@pytest.fixture
def small_disk_writer(tmp_path: Path) -> Iterator[tuple[Writer, Path]]:
    """A writer on a disk of four megabytes, and where others see that disk."""
    place = tmp_path / "small"
    place.mkdir()
    writer = Writer(place / "events", [*_WITHIN, place])
    yield writer, Path(f"/proc/{writer.pid}/root{place}")
    writer.kill()


def test_a_full_disk_loses_nothing_is_reported_and_the_order_continues_after_it(
    small_disk_writer: tuple[Writer, Path],
) -> None:
    writer, disk = small_disk_writer
    ballast = disk / "ballast"
    assert writer.append(100) == ""
    room = os.statvfs(disk)
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, room.f_bavail * room.f_frsize - 8_192)
    troubles = [writer.append(500) for _ in range(10)]
    assert all("No space left on device" in trouble for trouble in troubles)
    assert times_in(disk / "events") == list(range(100))
    assert not list((disk / "events").glob(".*.tmp"))
    ballast.unlink()
    assert writer.append(1) == ""
    assert times_in(disk / "events") == list(range(5_101))
    assert (disk / "events/.w.memory").read_bytes() == b"5101"


def test_a_writer_killed_while_its_disk_is_full_has_written_nothing_that_only_it_remembers(
    small_disk_writer: tuple[Writer, Path],
) -> None:
    writer, disk = small_disk_writer
    assert writer.append(100) == ""
    room = os.statvfs(disk)
    with (disk / "ballast").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, room.f_bavail * room.f_frsize)
    assert "No space" in writer.append(10)
    assert (disk / "events/.w.memory").read_bytes() == b"100"
    assert times_in(disk / "events") == list(range(100))
