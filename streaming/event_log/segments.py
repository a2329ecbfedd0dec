"""Shell: the files of one writer in a folder: their names, and how long they are kept."""

from __future__ import annotations

import contextlib
from collections import deque
from pathlib import Path
from typing import NamedTuple

from streaming.event_log.log import Limits

_NS_PER_MS = 1_000_000
_RETAIN_EVERY_NS = 10 * 1_000_000_000


class _Segment(NamedTuple):
    number: int
    size: int


class Segments:
    """Names files ``<nanoseconds>-<writer>.jsonl``: their order is that in which they were written.

    No name comes twice, though readers may delete what they have read, and each has a millisecond of its own, by which
    readers tell the order.

    Args:
        name: Of the writer. Files of others in the folder are left alone.
    """

    def __init__(self, folder: Path, name: str, limits: Limits) -> None:
        self._folder = folder
        self._suffix = f"-{name}.jsonl"
        self._memory_name = f"{name}.memory"
        self._limits = limits
        self._kept = deque(self._found())
        self._bytes = sum(segment.size for segment in self._kept)
        self._last = self._kept[-1].number if self._kept else 0
        self._retained_ns = 0

    def next(self, now_ns: int) -> tuple[int, Path]:
        """Answer the number and the path of the next file."""
        number = max(self._last + _NS_PER_MS, now_ns)
        return number, self._path(number)

    def add(self, number: int, size: int) -> None:
        """Take note of a file that was written."""
        self._last = number
        self._kept.append(_Segment(number, size))
        self._bytes += size

    def drop_unfinished(self) -> None:
        """Delete what a writer of this name that was killed left unfinished: it was never acknowledged."""
        for file in self._folder.glob(f".*{self._suffix}.tmp"):
            if file.name[1:].removesuffix(f"{self._suffix}.tmp").isdigit():
                file.unlink(missing_ok=True)
        (self._folder / f".{self._memory_name}.tmp").unlink(missing_ok=True)

    def retain(self, now_ns: int) -> None:
        """Delete what need not be kept any longer, the oldest first; every few seconds is often enough."""
        if abs(now_ns - self._retained_ns) < _RETAIN_EVERY_NS:
            return
        self._retained_ns = now_ns
        while self._kept and self._is_due(now_ns - self._kept[0].number):
            segment = self._kept.popleft()
            self._bytes -= segment.size
            # A reader may have been first; what cannot be deleted is found again at the next start.
            with contextlib.suppress(OSError):
                self._path(segment.number).unlink()

    def _is_due(self, age_ns: int) -> bool:
        limits = self._limits
        age_ms = age_ns // _NS_PER_MS
        if age_ms < limits.retention_at_least_ms:
            return False
        too_old = limits.retention_ms is not None and age_ms > limits.retention_ms
        too_many = limits.retention_bytes is not None and self._bytes > limits.retention_bytes
        return too_old or too_many

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:020d}{self._suffix}"

    def _found(self) -> list[_Segment]:
        """Answer the files that are there, the oldest first."""
        found = []
        for file in self._folder.glob(f"*{self._suffix}"):
            number = file.name.removesuffix(self._suffix)
            if number.isdigit():
                with contextlib.suppress(FileNotFoundError):
                    found.append(_Segment(int(number), file.stat().st_size))
        return sorted(found)
