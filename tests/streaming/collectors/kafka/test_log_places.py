"""How far files were read, and where they are by now."""

from __future__ import annotations

import gzip
from pathlib import Path

from streaming.collectors.kafka.log_places import LogReading, Place, digest, is_after, is_unchanged
from streaming.collectors.kafka.log_rotation import LogFile, log_file


def file(path: Path, content: bytes) -> LogFile:
    path.write_bytes(content)
    found = log_file(str(path))
    assert found is not None
    return found


def place(of: LogFile, read: bytes, current: str | None = None) -> Place:
    head = read[:1024]
    return Place(
        of.path,
        *of.id,
        offset=len(read),
        head=digest(head),
        head_bytes=len(head),
        current=current or of.path,
        modified_ns=of.modified_ns,
        read_size=of.size,
        read_modified_ns=of.modified_ns,
    )


def test_a_place_is_where_its_file_is_or_else_where_its_content_is(tmp_path: Path) -> None:
    current = str(tmp_path / "server.log")
    moved = file(tmp_path / "server.log.2", b"a\nb\n")
    packed = file(tmp_path / "server.log.3.gz", gzip.compress(b"c\nd\n"))
    other = file(tmp_path / "server.log.1", b"c")  # shorter than what was read
    by_id, by_content = place(moved, b"a\n", current), place(packed, b"c\n", current)
    by_content.device += 1
    reading = LogReading([by_content, by_id], [packed, moved, other])
    assert reading.located == {moved.id: by_id, packed.id: by_content}
    assert reading.not_located() == []


def test_another_file_with_the_same_inode_is_another_file(tmp_path: Path) -> None:
    now = file(tmp_path / "server.log", b"a\nb\n")
    before = place(now, b"x\n")
    before.read_size = 2
    reading = LogReading([before], [now])
    assert reading.located == {}
    assert reading.not_located() == [before]


def test_only_the_newest_missing_position_of_a_log_is_remembered(tmp_path: Path) -> None:
    now = file(tmp_path / "server.log", b"a\n")
    places = [Place(f"l.{at}", 0, 0, current="l", modified_ns=at, is_missing=True) for at in (3, 1, 2)]
    read = place(now, b"a\n")
    reading = LogReading([*places, read], [now])
    assert reading.remembered() == [places[0], read]
    assert reading.newest_read() == {"l": (3, False, ()), now.path: (now.modified_ns, True, ())}


def test_a_file_is_after_what_was_read_by_its_time_and_then_by_its_name() -> None:
    later, same = (LogFile("server.log.2", (1, 1), 1, at) for at in (6, 5))
    assert not is_after(later, None)
    assert is_after(later, (5, True, ()))
    assert not is_after(same, (5, True, ()))
    assert is_after(same, (5, False, (-3,)))
    assert not is_after(same, (5, False, (-1,)))


def test_a_file_written_since_counts_as_changed(tmp_path: Path) -> None:
    now = file(tmp_path / "server.log", b"a\n")
    read = place(now, b"a\n")
    assert is_unchanged(read, now)
    assert not is_unchanged(read, now._replace(size=3))
    assert not is_unchanged(read, now._replace(modified_ns=1))
    assert not is_unchanged(read, now._replace(id=(0, 0)))
