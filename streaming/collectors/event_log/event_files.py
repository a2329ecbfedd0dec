"""Shell: a log of events in a folder of JSON lines files, each of which appears whole or not at all."""

from __future__ import annotations

import time
from collections.abc import Sequence

from streaming.collectors.event_log.log import EventRecord, LogLimits, Memory
from streaming.collectors.event_log.segments import Segments
from streaming.collectors.event_log.write_buffer import WriteBuffer
from streaming.stores.locks import Guard
from streaming.stores.places import Place, write_whole
from udfs.model.annotations import NO_CLUSTER


class EventFiles(WriteBuffer):
    """Appends events to a folder; each name has only one writer.

    One append is a file of its own, or several if it is long. A file is closed by a rename before ``append`` returns,
    and never changed again. So readers see each poll of a collector completely.

    Args:
        name: The writer's name; part of the names of the files.
        guard: Called before events are written; raises ``OSError`` if another process may write under this name.

    Raises:
        OSError: The folder cannot be created or read.
    """

    def __init__(
        self, folder: Place, name: str, limits: LogLimits | None = None, *, guard: Guard = lambda: None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._guard = guard
        self._limits = limits or LogLimits()
        self._segments = Segments(folder, name, self._limits)
        self._segments.drop_unfinished()
        memory = Memory(_memory_file(folder, name))
        limit = self._limits.memory_bytes
        super().__init__(self._put, memory, limit_bytes=limit, log_name=f"{folder} ({name})")

    @staticmethod
    def knows(folder: Place, name: str) -> bool:
        """Return whether a writer of this name has left a memory file in the folder."""
        return _memory_file(folder, name).exists()

    @property
    def folder(self) -> Place:
        """Return the folder of the files."""
        return self._folder

    def _put(self, records: list[EventRecord]) -> None:
        """Write segment after segment; written events are removed from the front."""
        self._guard()
        # What is deleted unread is reported as lost, by cluster.
        self._segments.retain(time.time_ns(), {record.key.decode() for record in records} - {NO_CLUSTER})
        while records:
            count = _as_many_as_fit(records, self._limits.segment_bytes)
            content = b"".join(record.value + b"\n" for record in records[:count])
            number, path = self._segments.next(time.time_ns())
            # Spark reads files in the order of their age in milliseconds, which is the order of their names.
            write_whole(path, content, modified_ns=number)
            self._segments.add(number, len(content))
            del records[:count]


def _as_many_as_fit(records: Sequence[EventRecord], segment_bytes: int) -> int:
    """Return how many records from the front fit into a segment; at least one."""
    size = 0
    for count, record in enumerate(records):
        size += len(record.value) + 1
        if count and size > segment_bytes:
            return count
    return len(records)


def _memory_file(folder: Place, name: str) -> Place:
    return folder / f".{name}.memory"  # hidden from readers of the folder
