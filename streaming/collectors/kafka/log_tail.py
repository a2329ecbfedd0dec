"""Shell: log files that are written and rotated meanwhile, line by line; each line once, also after a restart.

A file is known by its inode and its first bytes, not by its name: a rotated one is read to its end under its new name,
in the same folder, before the one that took its place. A file that is shorter than what was read of it begins anew
(`copytruncate`); what was not read before it was cut is lost. Compressed files are not read.
"""

from __future__ import annotations

import hashlib
import os
import queue
import sys
import threading
from collections.abc import Iterator, Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import BinaryIO, Protocol

import msgspec

from streaming.machine.logs import logger

STDIN = "-"
_CHUNK_BYTES = 8 * 1024 * 1024
_HEAD_BYTES = 256  # log lines begin with a time: enough to distinguish two files
_MAX_FILES = 1_000
_MAX_WAITING_LINES = 100_000
_COMPRESSED = (".gz", ".zip", ".bz2", ".xz", ".zst")
_log = logger("kafka")


class Lines(Protocol):
    """Where lines come from."""

    def read(self) -> Iterator[list[str]]:
        """Return the lines that are new, in batches, up to the present end."""

    def memory(self) -> bytes | None:
        """Return what was read so far, for a later start; None: it cannot be read again."""

    @property
    def ends(self) -> bool:
        """Whether there is an end at all: of a pipe, not of a log."""

    @property
    def is_over(self) -> bool:
        """Whether nothing will come any more."""


class _Place(msgspec.Struct):
    """How far one file was read.

    Attributes:
        head: Digest of its first ``head_bytes`` bytes.
    """

    path: str
    device: int
    inode: int
    offset: int = 0
    head: str = ""
    head_bytes: int = 0


class LogFiles:
    """Follows files.

    Args:
        patterns: Paths, or patterns as a shell has them.
        memory: What ``memory`` returned at an earlier start.
    """

    ends = is_over = False

    def __init__(self, patterns: Sequence[str], memory: bytes | None = None) -> None:
        self._patterns = patterns
        self._places: dict[tuple[int, int], _Place] = {}
        try:
            for place in msgspec.json.decode(memory, type=list[_Place]) if memory else ():
                self._places[place.device, place.inode] = place
        except msgspec.DecodeError:
            _log.warning("the places in the brokers' logs are unreadable; all is read again")

    def memory(self) -> bytes:
        """Return the places."""
        return msgspec.json.encode(list(self._places.values()))

    def read(self) -> Iterator[list[str]]:
        """Return new lines: rotated files first, then the others by name."""
        present = self._present()
        rotated = [place for key, place in self._places.items() if key not in present]
        for place in rotated:
            path = _moved_to(place)
            grew = False
            if path is not None:
                for lines in self._read(place, path):
                    grew = True
                    yield lines
            if not grew:
                del self._places[place.device, place.inode]
        for (device, inode), path in present.items():
            place = self._places.setdefault((device, inode), _Place(path, device, inode))
            yield from self._read(place, path)

    def _present(self) -> dict[tuple[int, int], str]:
        found: dict[tuple[int, int], str] = {}
        paths = [path for one in self._patterns for path in (sorted(glob(one)) if has_magic(one) else [one])]
        for path in paths[:_MAX_FILES]:
            try:
                status = os.stat(path)
            except OSError:
                continue  # between two names: the next read finds it
            if not path.endswith(_COMPRESSED) and Path(path).is_file():
                found.setdefault((status.st_dev, status.st_ino), path)
        return found

    def _read(self, place: _Place, path: str) -> Iterator[list[str]]:
        place.path = path
        try:
            file = open(path, "rb")  # noqa: SIM115 - closed below
        except OSError as error:
            _log.warning("a broker's log cannot be read", path=path, detail=error.strerror)
            return
        with file:
            size = os.fstat(file.fileno()).st_size
            if size < place.offset or _digest(file, place.head_bytes) != place.head:
                if place.offset:
                    _log.warning("a broker's log was cut or replaced; it is read from its beginning", path=path)
                place.offset = 0
            _remember_head(place, file, size)
            while True:
                file.seek(place.offset)
                chunk = file.read(_CHUNK_BYTES)
                end = chunk.rfind(b"\n") + 1
                if not end and len(chunk) < _CHUNK_BYTES:
                    return  # a line that is not yet whole
                place.offset += end or len(chunk)
                yield chunk[:end].decode("utf-8", errors="replace").splitlines()


def _moved_to(place: _Place) -> str | None:
    """Return the present path of a file whose name another one has, if it is in the same folder."""
    try:
        with os.scandir(Path(place.path).parent) as entries:
            paths = [one.path for one in entries if one.inode() == place.inode and not one.path.endswith(_COMPRESSED)]
        for path in paths:
            with open(path, "rb") as file:
                if _digest(file, place.head_bytes) == place.head:
                    return path
    except OSError:
        pass
    return None


def _digest(file: BinaryIO, length: int) -> str:
    file.seek(0)
    return hashlib.sha256(file.read(length)).hexdigest() if length else ""


def _remember_head(place: _Place, file: BinaryIO, size: int) -> None:
    place.head_bytes = min(size, _HEAD_BYTES)
    place.head = _digest(file, place.head_bytes)


class StandardInput:
    """Reads lines from a pipe, as they come.

    Args:
        stream: What to read.
    """

    ends = True

    def __init__(self, stream: BinaryIO | None = None) -> None:
        self._stream = stream or sys.stdin.buffer
        self._waiting: queue.Queue[str] = queue.Queue(_MAX_WAITING_LINES)
        self._thread = threading.Thread(target=self._run, name="kafka-log-stdin", daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether the pipe was closed and all of it was read."""
        return not self._thread.is_alive() and self._waiting.empty()

    def memory(self) -> None:
        """Return nothing: a pipe cannot be read again."""
        return

    def read(self) -> Iterator[list[str]]:
        """Return the lines that came since."""
        lines: list[str] = []
        while not self._waiting.empty():
            lines.append(self._waiting.get_nowait())
        if lines:
            yield lines

    def _run(self) -> None:
        for line in self._stream:
            self._waiting.put(line.decode("utf-8", errors="replace"))
