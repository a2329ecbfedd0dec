"""Events that differ by their time, and the events that a reader of a folder sees."""

from __future__ import annotations

from pathlib import Path

import msgspec

from streaming.stores.places import Place
from udfs.model.events import AnyEvent, Clock


def clock(time_ms: int) -> Clock:
    """Make an event of this time."""
    return Clock(schema_version=1, event_time=time_ms, system="kafka", cluster="c")


def clocks(*times_ms: int) -> list[Clock]:
    """Make events of these times."""
    return [clock(time_ms) for time_ms in times_ms]


def times_in(folder: Place) -> list[int]:
    """Return the times of all events that readers of a folder see, in the order of the files' age.

    Every line must be whole: half a line is no event, and fails.
    """
    files: list[Place] = sorted(folder.glob("[!.]*"), key=_order)
    contents = [file.read_bytes() for file in files]
    assert all(content.endswith(b"\n") for content in contents)
    return [msgspec.json.decode(line, type=AnyEvent).event_time for each in contents for line in each.splitlines()]


def _order(file: Place) -> tuple[int, str]:
    # A store dates files to the second: within a second their names give the order.
    return (file.stat().st_mtime_ns // 1_000_000 if isinstance(file, Path) else 0, file.name)
