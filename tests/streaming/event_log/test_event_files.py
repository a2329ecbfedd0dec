"""The folder that a collector appends to."""

from __future__ import annotations

from pathlib import Path

import msgspec

from streaming.event_log import EventFiles
from udfs.events import AnyEvent, Clock


def clock(time_ms: int) -> Clock:
    return Clock(schema_version=1, event_time=time_ms, system="kafka", cluster="c")


def read(folder: Path) -> list[AnyEvent]:
    return [
        msgspec.json.decode(line, type=AnyEvent)
        for file in sorted(folder.glob("*.jsonl"))
        for line in file.read_bytes().splitlines()
    ]


def test_events_are_read_back_in_their_order_also_after_a_restart(tmp_path: Path) -> None:
    EventFiles(tmp_path, "kafka").append([clock(1), clock(2)])
    again = EventFiles(tmp_path, "kafka")
    again.append([clock(3)])
    again.append([])
    assert read(tmp_path) == [clock(1), clock(2), clock(3)]
    assert len(list(tmp_path.glob("*.jsonl"))) == 2


def test_two_writers_share_a_folder(tmp_path: Path) -> None:
    first, second = EventFiles(tmp_path, "kafka"), EventFiles(tmp_path, "groups")
    first.append([clock(1)])
    second.append([clock(2)])
    first.keep_memory(b"one")
    second.keep_memory(b"two")
    assert len(read(tmp_path)) == 2
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
