"""The folder that a collector appends to: whatever happens, nothing acknowledged is lost."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest.mock import patch

from hypothesis import example, given, settings
from hypothesis import strategies as st

from streaming.collectors.event_log import EventFiles, LogFull, LogLimits
from streaming.machine import atomic_file
from streaming.stores.places import Place
from tests.streaming.collectors.event_log.clocks import clock, clocks, times_in

MS = 1_000_000
ONE_LINE = 90  # bytes of a clock, about


def test_events_are_read_back_in_their_order_also_after_a_restart(either_place: Place) -> None:
    EventFiles(either_place, "kafka").append([clock(1), clock(2)])
    again = EventFiles(either_place, "kafka")
    again.append([clock(3)])
    again.append([])
    assert times_in(either_place) == [1, 2, 3]
    assert len(list(either_place.glob("*.jsonl"))) == 2
    again.keep_memory(b"one")
    assert EventFiles(either_place, "kafka").read_memory() == b"one"
    assert EventFiles.knows(either_place, "kafka")
    assert not EventFiles.knows(either_place, "metaq")


def test_a_writer_that_lost_its_lease_writes_no_more_and_keeps_the_events(tmp_path: Path) -> None:
    lost: list[OSError] = []

    def guard() -> None:
        if lost:
            raise lost[0]

    log = EventFiles(tmp_path, "kafka", guard=guard)
    log.append([clock(1)])
    lost.append(OSError("the lease is lost"))
    log.append([clock(2)])
    assert times_in(tmp_path) == [1]
    assert log.trouble() == "the lease is lost"
    lost.clear()
    assert log.flush()
    assert times_in(tmp_path) == [1, 2]


def test_two_writers_share_a_folder(tmp_path: Path) -> None:
    first, second = EventFiles(tmp_path, "kafka"), EventFiles(tmp_path, "groups")
    first.append([clock(1)])
    second.append([clock(2)])
    first.keep_memory(b"one")
    second.keep_memory(b"two")
    assert sorted(times_in(tmp_path)) == [1, 2]
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
    log = EventFiles(tmp_path, "kafka", LogLimits(segment_bytes=10 * ONE_LINE))
    log.append(clocks(*range(100)))
    sizes = [file.stat().st_size for file in tmp_path.glob("*.jsonl")]
    assert len(sizes) >= 10
    assert max(sizes) <= 10 * ONE_LINE
    assert times_in(tmp_path) == list(range(100))


def test_an_event_longer_than_a_file_shall_be_is_written_alone(tmp_path: Path) -> None:
    EventFiles(tmp_path, "kafka", LogLimits(segment_bytes=1)).append(clocks(1, 2, 3))
    assert times_in(tmp_path) == [1, 2, 3]
    assert len(list(tmp_path.glob("*.jsonl"))) == 3


def test_the_age_of_files_is_their_order_to_the_millisecond(tmp_path: Path) -> None:
    log = EventFiles(tmp_path, "kafka")
    for number in range(50):
        log.append([clock(number)])
    files = sorted(tmp_path.glob("*.jsonl"))
    ages_ms = [file.stat().st_mtime_ns // MS for file in files]
    assert ages_ms == sorted(set(ages_ms))


def test_unfinished_files_of_a_killed_writer_are_cleaned_by_the_next_of_its_name(tmp_path: Path) -> None:
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


# -- killed, and on a full disk ---------------------------------------------------------------------------------------


FATES = ("written", "full", "killed within the write", "killed before the name", "killed after the name")


class Killed(BaseException):
    """No handler of errors runs when a process is killed."""


def with_fates(fates: Sequence[str]) -> Callable[..., None]:
    """Write files as ``write_atomically`` does, each of them with its own failure; later ones are written."""
    coming = list(fates)

    def write(path: Path, content: bytes, **more: int | None) -> None:
        fate = coming.pop(0) if coming else "written"
        hidden = path.with_name(f".{path.name.lstrip('.')}.tmp")
        if fate == "full":
            raise OSError(28, "No space left on device")
        if fate == "killed within the write":
            hidden.write_bytes(content[: len(content) // 2])
            raise Killed
        if fate == "killed before the name":
            hidden.write_bytes(content)
            raise Killed
        atomic_file.write_atomically(path, content, **more)
        if fate == "killed after the name":
            raise Killed

    return write


APPENDS = st.lists(st.tuples(st.integers(1, 12), st.lists(st.sampled_from(FATES), max_size=6)), max_size=12)


@settings(max_examples=150, deadline=None)
@given(APPENDS)
@example([(1, ["full"]), (2, ["full", "full"]), (1, [])])
@example([(3, ["written", "killed after the name"]), (1, [])])
@example([(12, ["written", "full"]), (1, ["killed within the write"]), (1, [])])
def test_nothing_acknowledged_is_ever_lost(appends: list[tuple[int, list[str]]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        # A writer counts, remembers how far it has counted, and goes on there when it is started again.
        limits = LogLimits(segment_bytes=5 * ONE_LINE, memory_bytes=8 * ONE_LINE)
        log = EventFiles(folder, "w", limits)
        next_number, acknowledged = 0, 0
        for count, fates in appends:
            write = with_fates(fates)
            with (
                patch("streaming.collectors.event_log.event_files.write_whole", write),
                patch("streaming.collectors.event_log.log.write_whole", write),
            ):
                try:
                    log.append(clocks(*range(next_number, next_number + count)))
                    next_number += count
                    if log.trouble() is None:
                        acknowledged = next_number
                    log.keep_memory(str(next_number).encode())
                except LogFull:
                    pass
                except Killed:
                    log = EventFiles(folder, "w", limits)
                    next_number = int(log.read_memory() or b"0")
                    assert not list(folder.glob(".*.tmp"))
            observed = times_in(folder)
            assert set(range(acknowledged)) <= set(observed)
            remembered = folder / ".w.memory"
            if remembered.exists():
                assert set(range(int(remembered.read_bytes()))) <= set(observed)
        assert log.flush()
        observed = times_in(folder)
        assert set(range(next_number)) <= set(observed)
        if not any(fate.startswith("killed") for _, fates in appends for fate in fates):
            assert observed == list(range(next_number))


def test_a_writer_that_lives_through_a_full_disk_writes_all_in_order_and_nothing_twice(tmp_path: Path) -> None:
    log = EventFiles(tmp_path, "w", LogLimits(segment_bytes=3 * ONE_LINE))
    with patch("streaming.collectors.event_log.event_files.write_whole", with_fates(["written", *["full"] * 5])):
        for number in range(0, 40, 4):
            log.append([clock(number + step) for step in range(4)])
    assert times_in(tmp_path) == list(range(40))
