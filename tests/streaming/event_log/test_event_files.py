"""The folder that a collector appends to."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from streaming.event_log import EventFiles, Limits
from streaming.event_log.segments import Segments
from tests.streaming.event_log.clocks import clock, clocks, told

MS = 1_000_000
ONE_LINE = 90  # bytes of a clock, about


def test_events_are_read_back_in_their_order_also_after_a_restart(tmp_path: Path) -> None:
    EventFiles(tmp_path, "kafka").append([clock(1), clock(2)])
    again = EventFiles(tmp_path, "kafka")
    again.append([clock(3)])
    again.append([])
    assert told(tmp_path) == [1, 2, 3]
    assert len(list(tmp_path.glob("*.jsonl"))) == 2


def test_two_writers_share_a_folder(tmp_path: Path) -> None:
    first, second = EventFiles(tmp_path, "kafka"), EventFiles(tmp_path, "groups")
    first.append([clock(1)])
    second.append([clock(2)])
    first.keep_memory(b"one")
    second.keep_memory(b"two")
    assert sorted(told(tmp_path)) == [1, 2]
    assert EventFiles(tmp_path, "kafka").read_memory() == b"one"
    assert EventFiles(tmp_path, "groups").read_memory() == b"two"


def test_nothing_but_whole_files_shows(tmp_path: Path) -> None:
    log = EventFiles(tmp_path, "kafka")
    assert log.read_memory() is None
    log.append([clock(1)])
    log.keep_memory(b"x")
    (name,) = (file.name for file in tmp_path.iterdir() if not file.name.startswith("."))
    assert name.endswith("-kafka.jsonl")
    assert not list(tmp_path.glob(".*.tmp"))


def test_no_file_takes_a_name_that_was_there_before(tmp_path: Path) -> None:
    names = set()
    for _ in range(5):
        EventFiles(tmp_path, "kafka").append([clock(1)])
        (file,) = tmp_path.glob("*.jsonl")
        names.add(file.name)
        file.unlink()
    assert len(names) == 5


def test_a_long_append_is_several_files_of_bounded_length_in_order(tmp_path: Path) -> None:
    log = EventFiles(tmp_path, "kafka", Limits(segment_bytes=10 * ONE_LINE))
    log.append(clocks(*range(100)))
    sizes = [file.stat().st_size for file in tmp_path.glob("*.jsonl")]
    assert len(sizes) >= 10
    assert max(sizes) <= 10 * ONE_LINE
    assert told(tmp_path) == list(range(100))


def test_an_event_longer_than_a_file_shall_be_is_written_alone(tmp_path: Path) -> None:
    EventFiles(tmp_path, "kafka", Limits(segment_bytes=1)).append(clocks(1, 2, 3))
    assert told(tmp_path) == [1, 2, 3]
    assert len(list(tmp_path.glob("*.jsonl"))) == 3


def test_the_age_of_files_is_their_order_to_the_millisecond(tmp_path: Path) -> None:
    log = EventFiles(tmp_path, "kafka")
    for number in range(50):
        log.append([clock(number)])
    files = sorted(tmp_path.glob("*.jsonl"))
    ages_ms = [file.stat().st_mtime_ns // MS for file in files]
    assert ages_ms == sorted(set(ages_ms))


def test_a_clock_of_the_machine_that_goes_back_keeps_the_order(tmp_path: Path) -> None:
    segments = Segments(tmp_path, "kafka", Limits())
    number, path = segments.next(2_000 * MS)
    segments.add(number, 1)
    later, after = segments.next(1_000 * MS)
    assert later // MS == number // MS + 1
    assert after.name > path.name


def test_what_a_killed_writer_left_unfinished_is_cleaned_by_the_next_of_its_name(tmp_path: Path) -> None:
    mine = [tmp_path / ".00000000000000000007-kafka.jsonl.tmp", tmp_path / ".kafka.memory.tmp"]
    others = [
        tmp_path / ".00000000000000000007-groups.jsonl.tmp",
        tmp_path / ".00000000000000000007-other-kafka.jsonl.tmp",
        tmp_path / ".kafka.memory",
        tmp_path / "00000000000000000006-kafka.jsonl",
        tmp_path / "notes.tmp",
    ]
    for file in (*mine, *others):
        file.write_text('{"half')
    EventFiles(tmp_path, "kafka")
    assert not any(file.exists() for file in mine)
    assert all(file.exists() for file in others)


# -- how long files are kept ------------------------------------------------------------------------------------------

_NOW = 1_000_000 * MS
_AGES_MS = (500, 400, 300, 200, 100, 0)


def kept(folder: Path, limits: Limits) -> list[int]:
    """Let files of six ages and 10 bytes each be retained; answer the ages of those that stay."""
    for age in _AGES_MS:
        (folder / f"{_NOW - age * MS:020d}-kafka.jsonl").write_bytes(b"0123456789")
    (folder / f"{1:020d}-groups.jsonl").write_bytes(b"x" * 1_000)  # another writer's
    (folder / "mine.jsonl").write_bytes(b"x" * 1_000)
    Segments(folder, "kafka", limits).retain(_NOW)
    assert (folder / f"{1:020d}-groups.jsonl").exists()
    assert (folder / "mine.jsonl").exists()
    names = (file.name.removesuffix("-kafka.jsonl") for file in folder.glob("*-kafka.jsonl"))
    return sorted(((_NOW - int(name)) // MS for name in names), reverse=True)


@pytest.mark.parametrize(
    ("limits", "stay"),
    [
        (Limits(), _AGES_MS),
        (Limits(retention_ms=300), (300, 200, 100, 0)),
        (Limits(retention_ms=299), (200, 100, 0)),
        (Limits(retention_ms=0), (0,)),
        (Limits(retention_bytes=60), _AGES_MS),
        (Limits(retention_bytes=59), (400, 300, 200, 100, 0)),
        (Limits(retention_bytes=0), ()),
        (Limits(retention_bytes=0, retention_at_least_ms=200), (100, 0)),
        (Limits(retention_ms=100, retention_at_least_ms=301), (300, 200, 100, 0)),
        (Limits(retention_ms=400, retention_bytes=20), (100, 0)),
    ],
)
def test_files_are_deleted_for_their_age_and_the_room_they_take_but_never_young_ones(
    tmp_path: Path, limits: Limits, stay: tuple[int, ...]
) -> None:
    assert kept(tmp_path, limits) == list(stay)


def test_a_file_that_its_reader_deleted_first_is_passed_over(tmp_path: Path) -> None:
    log = EventFiles(tmp_path, "kafka", Limits(retention_bytes=0))
    log.append([clock(1)])
    for file in tmp_path.glob("*.jsonl"):
        file.unlink()
    segments = Segments(tmp_path, "kafka", Limits(retention_bytes=0))
    segments.add(5, 10)
    segments.retain(time.time_ns())
    log.append([clock(2)])
    assert told(tmp_path) == [2]
