"""Shell: the files of one writer in a folder: their names, and how long they are kept."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from streaming.collectors.event_log.log import LogLimits
from streaming.collectors.event_log.readers import file_of, number_and_writer, read_deleted, read_readers, write_deleted
from streaming.machine.logs import logger
from streaming.stores.places import Place

_NS_PER_MS = 1_000_000
_RETAIN_EVERY_NS = 10 * 1_000_000_000
_log = logger("events")


class _Segment(NamedTuple):
    number: int
    size: int


class Segments:
    """Names files ``<nanoseconds>-<writer>.jsonl``, so that their order is the order in which they were written.

    No name is used twice, although readers may delete files, and each name has its own millisecond, from which readers
    get the order.

    Args:
        name: The writer's name. Files of other writers in the folder are not touched.
    """

    def __init__(self, folder: Place, name: str, limits: LogLimits) -> None:
        self._folder = folder
        self._name = name
        self._limits = limits
        self._kept = deque(self._found())
        self._bytes = sum(segment.size for segment in self._kept)
        self._deleted = read_deleted(folder, name)
        self._last = max(self._kept[-1].number if self._kept else 0, self._deleted.newest)
        self._retained_ns = 0

    def next(self, now_ns: int) -> tuple[int, Place]:
        """Return the number and the path of the next file."""
        number = max(self._last + _NS_PER_MS, now_ns)
        return number, file_of(self._folder, self._name, number)

    def add(self, number: int, size: int) -> None:
        """Record a file that was written."""
        self._last = number
        self._kept.append(_Segment(number, size))
        self._bytes += size

    def drop_unfinished(self) -> None:
        """Delete unfinished files of a killed writer of this name: they were never acknowledged."""
        for file in self._folder.glob(".*.jsonl.tmp"):
            if self._number_of(file.name[1:].removesuffix(".tmp")) is not None:
                file.unlink(missing_ok=True)
        for mark in ("memory", "deleted"):
            (self._folder / f".{self._name}.{mark}.tmp").unlink(missing_ok=True)

    def retain(self, now_ns: int, clusters: Iterable[str] = ()) -> None:
        """Delete files beyond their retention, oldest first; calling it every few seconds is often enough.

        The deletions are recorded first: a job that has not read the files reports the loss.
        """
        if abs(now_ns - self._retained_ns) < _RETAIN_EVERY_NS:
            return
        self._retained_ns = now_ns
        read_up_to = self._read_up_to(now_ns)
        due: list[_Segment] = []
        while self._kept and self._is_due(now_ns, self._kept[0], is_read=self._kept[0].number <= read_up_to):
            due.append(self._kept.popleft())
            self._bytes -= due[-1].size
        if not due:
            return
        unread = [segment for segment in due if segment.number > read_up_to]
        if unread:
            _log.warning("files were deleted before a job had read them", writer=self._name, files=len(unread))
        self._deleted.add(due[0].number, due[-1].number, clusters)
        try:
            write_deleted(self._folder, self._name, self._deleted)
            is_marked = True
        except OSError:
            is_marked = False  # on a full disk there is no space for the mark until a file is deleted
        for segment in due:
            # A reader may have been faster; a file that cannot be deleted is found again at the next start.
            with contextlib.suppress(OSError):
                file_of(self._folder, self._name, segment.number).unlink()
        if not is_marked:
            write_deleted(self._folder, self._name, self._deleted)

    def _read_up_to(self, now_ns: int) -> int:
        """Return the number of the newest file that all readers have read; without readers none counts as read."""
        limit_ms = self._limits.unread_retention_ms
        return min(
            (
                reader.read.get(self._name, 0)
                for reader in read_readers(self._folder)
                if limit_ms is None or now_ns // _NS_PER_MS - reader.renewed_ms <= limit_ms
            ),
            default=0,
        )

    def _is_due(self, now_ns: int, segment: _Segment, *, is_read: bool) -> bool:
        limits = self._limits
        age_ms = (now_ns - segment.number) // _NS_PER_MS
        if age_ms < limits.retention_at_least_ms:
            return False
        if limits.retention_bytes is not None and self._bytes > limits.retention_bytes:
            return True
        is_old = limits.retention_ms is not None and age_ms > limits.retention_ms
        return is_old and (is_read or (limits.unread_retention_ms is not None and age_ms > limits.unread_retention_ms))

    def _number_of(self, file_name: str) -> int | None:
        found = number_and_writer(file_name)
        return found[0] if found is not None and found[1] == self._name else None

    def _found(self) -> list[_Segment]:
        """Return the existing files, oldest first."""
        found = []
        for file in self._folder.glob(f"*-{self._name}.jsonl"):
            number = self._number_of(file.name)
            if number is not None:
                with contextlib.suppress(FileNotFoundError):
                    found.append(_Segment(number, file.stat().st_size))
        return sorted(found)
