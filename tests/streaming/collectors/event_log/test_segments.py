"""The files of one writer: their names, and how long they are kept."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from streaming.collectors.event_log import EventFiles, LogLimits
from streaming.collectors.event_log.readers import ReaderMark, read_deleted, write_reader
from streaming.collectors.event_log.segments import Segments
from streaming.stores.places import Place
from tests.streaming.collectors.event_log.clocks import clock, times_in

MS = 1_000_000


def test_a_machines_clock_set_back_keeps_the_order(tmp_path: Path) -> None:
    segments = Segments(tmp_path, "kafka", LogLimits())
    number, path = segments.next(2_000 * MS)
    segments.add(number, 1)
    later, after = segments.next(1_000 * MS)
    assert later // MS == number // MS + 1
    assert after.name > path.name


_NOW = 1_000_000 * MS


_AGES_MS = (500, 400, 300, 200, 100, 0)


def kept(folder: Place, limits: LogLimits) -> list[int]:
    """Apply retention to files of six ages and 10 bytes each; return the ages of the files that are kept."""
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
        (LogLimits(), _AGES_MS),
        (LogLimits(retention_ms=300), (300, 200, 100, 0)),
        (LogLimits(retention_ms=299), (200, 100, 0)),
        (LogLimits(retention_ms=0), (0,)),
        (LogLimits(retention_bytes=60), _AGES_MS),
        (LogLimits(retention_bytes=59), (400, 300, 200, 100, 0)),
        (LogLimits(retention_bytes=0), ()),
        (LogLimits(retention_bytes=0, retention_at_least_ms=200), (100, 0)),
        (LogLimits(retention_ms=100, retention_at_least_ms=301), (300, 200, 100, 0)),
        (LogLimits(retention_ms=400, retention_bytes=20), (100, 0)),
    ],
)
def test_files_are_deleted_for_their_age_and_the_room_they_take_but_never_young_ones(
    tmp_path: Path, limits: LogLimits, stay: tuple[int, ...]
) -> None:
    reads(tmp_path, "quick", up_to_age_ms=0)
    assert kept(tmp_path, limits) == list(stay)


@pytest.mark.parametrize(
    ("limits", "stay"),
    [
        (LogLimits(retention_ms=150), _AGES_MS),
        (LogLimits(retention_ms=150, unread_retention_ms=250), (200, 100, 0)),
        (LogLimits(retention_ms=150, retention_bytes=20), (100, 0)),
    ],
)
def test_events_collected_before_a_job_started_wait_like_other_unread_events(
    tmp_path: Path, limits: LogLimits, stay: tuple[int, ...]
) -> None:
    assert kept(tmp_path, limits) == list(stay)


def test_a_file_that_its_reader_deleted_first_is_passed_over(either_place: Place) -> None:
    log = EventFiles(either_place, "kafka", LogLimits(retention_bytes=0))
    log.append([clock(1)])
    for file in either_place.glob("*.jsonl"):
        file.unlink()
    segments = Segments(either_place, "kafka", LogLimits(retention_bytes=0))
    segments.add(5, 10)
    segments.retain(time.time_ns())
    log.append([clock(2)])
    assert times_in(either_place) == [2]


def reads(folder: Place, name: str, *, up_to_age_ms: int | None, read_ms_ago: int = 0, writer: str = "kafka") -> None:
    """Leave the mark of a reader that has read all files of that age and older."""
    read = {} if up_to_age_ms is None else {writer: _NOW - up_to_age_ms * MS}
    mark = ReaderMark(checkpoint=f"/checkpoints/{name}", renewed_ms=_NOW // MS - read_ms_ago, read=read)
    write_reader(folder, name, mark)


@pytest.mark.parametrize(
    ("limits", "stay"),
    [
        (LogLimits(retention_ms=150), (300, 200, 100, 0)),
        (LogLimits(retention_ms=450), (400, 300, 200, 100, 0)),
        (LogLimits(retention_ms=150, unread_retention_ms=250), (200, 100, 0)),
        (LogLimits(retention_ms=150, unread_retention_ms=1), (100, 0)),
        (LogLimits(retention_ms=150, retention_bytes=20), (100, 0)),
        (LogLimits(retention_ms=150, retention_bytes=0, retention_at_least_ms=300), (200, 100, 0)),
        (LogLimits(retention_bytes=50), (400, 300, 200, 100, 0)),
    ],
)
def test_unread_files_stay_within_the_limits_of_unread_files(
    either_place: Place, limits: LogLimits, stay: tuple[int, ...]
) -> None:
    reads(either_place, "quick", up_to_age_ms=0)
    reads(either_place, "slow", up_to_age_ms=400)
    assert kept(either_place, limits) == list(stay)


@pytest.mark.parametrize(
    ("read_ms_ago", "stay"),
    [(0, _AGES_MS), (700, _AGES_MS), (701, (100, 0))],
    ids=["now", "at the limit", "too long ago"],
)
def test_a_reader_is_waited_for_until_its_mark_is_too_old(
    tmp_path: Path, read_ms_ago: int, stay: tuple[int, ...]
) -> None:
    reads(tmp_path, "quick", up_to_age_ms=0)
    reads(tmp_path, "slow", up_to_age_ms=None, read_ms_ago=read_ms_ago)
    assert kept(tmp_path, LogLimits(retention_ms=150, unread_retention_ms=700)) == list(stay)


def test_a_reader_of_another_writer_s_files_only_has_read_none_of_these(tmp_path: Path) -> None:
    reads(tmp_path, "slow", up_to_age_ms=0, writer="groups")
    assert kept(tmp_path, LogLimits(retention_ms=150)) == list(_AGES_MS)


def test_deletions_are_noted_with_their_clusters_for_later_readers(tmp_path: Path) -> None:
    segments = Segments(tmp_path, "kafka", LogLimits(retention_ms=150, unread_retention_ms=150))
    for age in _AGES_MS:
        segments.add(_NOW - age * MS, 10)
    segments.retain(_NOW, {"c2", "c1"})
    mark = read_deleted(tmp_path, "kafka")
    assert (mark.clusters, mark.ranges) == (["c1", "c2"], [(_NOW - 500 * MS, _NOW - 200 * MS)])
    again = Segments(tmp_path, "kafka", LogLimits(retention_ms=150, unread_retention_ms=150))
    # A deleted file's name is never used again, whatever the machine's clock says.
    assert again.next(0)[0] > mark.newest
    again.add(_NOW - 150 * MS, 10)
    again.retain(_NOW + 50 * MS, {"c3"})
    mark = read_deleted(tmp_path, "kafka")
    assert (mark.clusters, len(mark.ranges), mark.newest) == (["c1", "c2", "c3"], 2, _NOW - 150 * MS)


def test_the_note_of_what_was_deleted_is_bounded_and_keeps_first_and_last(tmp_path: Path) -> None:
    segments = Segments(tmp_path, "kafka", LogLimits(retention_ms=0, unread_retention_ms=0))
    for number in range(1, 300):
        segments.add(number * MS, 10)
        segments.retain((number + 20_000 * number) * MS)
    ranges = read_deleted(tmp_path, "kafka").ranges
    assert (len(ranges), ranges[0], ranges[-1]) == (200, (MS, 100 * MS), (299 * MS, 299 * MS))


def test_a_mark_that_cannot_be_read_deletes_nothing_more_than_age_does(tmp_path: Path) -> None:
    (tmp_path / ".broken.reader").write_text("{")
    (tmp_path / ".kafka.deleted").write_text("[]")
    assert kept(tmp_path, LogLimits(retention_ms=150, unread_retention_ms=150)) == [100, 0]
    assert read_deleted(tmp_path, "kafka").newest == _NOW - 200 * MS
