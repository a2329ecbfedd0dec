"""A writer that is killed, and a disk that fills up, at any moment: nothing acknowledged is lost."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest.mock import patch

from hypothesis import example, given, settings
from hypothesis import strategies as st

from streaming.collectors.event_log import EventFiles, Limits, LogFull
from streaming.machine import atomic_file
from tests.streaming.collectors.event_log.clocks import clock, clocks, told

ONE_LINE = 90
FATES = ("written", "full", "killed within the write", "killed before the name", "killed after the name")


class Killed(BaseException):
    """No handler of errors runs when a process is killed."""


def with_fates(fates: Sequence[str]) -> Callable[..., None]:
    """Write files as ``write_atomically`` does, each to its fate; all that come after are written."""
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
def test_whatever_happens_in_between_nothing_acknowledged_is_lost(appends: list[tuple[int, list[str]]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        # A writer counts, remembers how far it has counted, and goes on there when it is started again.
        limits = Limits(segment_bytes=5 * ONE_LINE, memory_bytes=8 * ONE_LINE)
        log = EventFiles(folder, "w", limits)
        next_number, acknowledged = 0, 0
        for count, fates in appends:
            write = with_fates(fates)
            with (
                patch("streaming.collectors.event_log.file_log.write_atomically", write),
                patch("streaming.collectors.event_log.log.write_atomically", write),
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
            seen = told(folder)
            assert set(range(acknowledged)) <= set(seen)
            remembered = folder / ".w.memory"
            if remembered.exists():
                assert set(range(int(remembered.read_bytes()))) <= set(seen)
        assert log.flush()
        seen = told(folder)
        assert set(range(next_number)) <= set(seen)
        if not any(fate.startswith("killed") for _, fates in appends for fate in fates):
            assert seen == list(range(next_number))


def test_a_writer_that_lives_through_a_full_disk_tells_all_in_order_and_nothing_twice(tmp_path: Path) -> None:
    log = EventFiles(tmp_path, "w", Limits(segment_bytes=3 * ONE_LINE))
    with patch("streaming.collectors.event_log.file_log.write_atomically", with_fates(["written", *["full"] * 5])):
        for number in range(0, 40, 4):
            log.append([clock(number + step) for step in range(4)])
    assert told(tmp_path) == list(range(40))
