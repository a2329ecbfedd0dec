"""Shell: reads log files that are being written and rotated line by line, each line once, even after a restart.

A file is identified by its inode and its first bytes, not by its name. A rotated file is read to its end under its new
name, in the same folder, even if compressed; then come every file that was rotated after it, and the current one. A
file that is shorter than what was read of it has been cut (`copytruncate`): its rest is read from the copy, if there is
one.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Generator, Iterator, Sequence
from datetime import UTC, datetime
from glob import glob, has_magic
from pathlib import PurePath
from typing import BinaryIO, Protocol

import msgspec

from streaming.collectors.kafka.log_places import LogReading, Place, digest, is_after, is_unchanged
from streaming.collectors.kafka.log_rotation import (
    CHUNK_BYTES,
    FileId,
    LogFile,
    RotatedError,
    contents,
    current_path,
    list_logs,
    log_file,
)
from streaming.machine.logs import logger
from streaming.pipeline.codecs import BROKEN
from udfs.model.first_few import first_few

STDIN = "-"
_ATTEMPTS = 3  # if files are rotated while they are read; the next read does the rest
_MAX_FILES = 1_000
_MAX_WAITING_LINES = 100_000
_NAMED = 3
_INFERRED = "causes of departures are inferred"
_log = logger("kafka")


class LineSource(Protocol):
    """A source of lines."""

    def read(self) -> Iterator[list[str]]:
        """Return new lines, in batches, up to the current end."""

    def memory(self) -> bytes | None:
        """Return the position for a later start; None if the lines cannot be read again."""

    def trouble(self) -> str | None:
        """Return what the last read could not read, and why; None if it read everything."""

    @property
    def ends(self) -> bool:
        """Return whether there is an end at all, as in a pipe, but not in a log."""

    @property
    def is_over(self) -> bool:
        """Return whether no more lines will come."""


class LogFiles:
    """Follows files.

    Args:
        patterns: Paths, or shell patterns.
    """

    ends = is_over = False

    def __init__(self, patterns: Sequence[str], memory: bytes | None = None) -> None:
        self._patterns = [os.path.abspath(pattern) for pattern in patterns]
        self._places: list[Place] = []
        self._warned: set[str] = set()
        self._unread: dict[str, str] = {}  # what is wrong with a path or pattern, as of the current read
        self._trouble: dict[str, str] = {}
        try:
            self._places = msgspec.json.decode(memory, type=list[Place]) if memory else []
        except msgspec.DecodeError:
            _log.warning("the places in the brokers' logs are unreadable; all is read again")
        for place in self._places:
            place.path = os.path.abspath(place.path)
            place.current = place.current or current_path(place.path)

    def memory(self) -> bytes:
        """Return the positions."""
        return msgspec.json.encode(self._places)

    def trouble(self) -> str | None:
        """Return which files the last read did not find or could not read; None if it read them all."""
        found = list(self._trouble.values())
        return f"{first_few(found, _NAMED)}: {_INFERRED}" if found else None

    def read(self) -> Iterator[list[str]]:
        """Return new lines in the order of time, first from rotated files, then from current ones."""
        path = ""
        for _ in range(_ATTEMPTS):
            try:
                yield from self._read_all()
            except RotatedError as error:
                path = str(error)  # the files that were not read yet have other names now
                continue
            return
        self._warn_once("a broker's log gets other names faster than it is read", path)

    def _read_all(self) -> Iterator[list[str]]:
        self._unread = {}
        wanted = self._wanted()
        reading = LogReading(self._places, self._list(wanted))
        if any(not (place.is_finished or place.is_missing) for place in reading.not_located()):
            # a listing may miss a file that is being renamed
            reading = LogReading(self._places, self._list(wanted))
        self._let_go(reading)
        self._places = reading.remembered()
        newest = {file.current: file for file in reading.files if file.is_readable}
        for file in self._to_read(reading, wanted):
            place = reading.located.get(file.id)
            if place is None:
                place = Place(file.path, *file.id, current=file.current, modified_ns=file.modified_ns)
            if place.is_finished and file.compression:
                place.move(file)
                place.complete(file)
            elif not is_unchanged(place, file):
                place.is_finished = False
                if not (yield from self._read(place, file, reading)):
                    continue
            place.is_finished |= newest.get(place.current, file) is not file
        self._note_missing({path for file in reading.files for path in (file.path, file.current)})
        self._warned -= self._trouble.keys() - self._unread.keys()
        self._trouble = self._unread

    def _note_missing(self, present: set[str]) -> None:
        """Note patterns without any file; a log that was just rotated counts as a file."""
        for pattern in self._patterns:
            if not any(path == pattern or PurePath(path).match(pattern) for path in present):
                self._unread[pattern] = f"no file matches {pattern}{_why_missing(pattern)}"
                self._warn_once("no file of brokers' logs is there", pattern, _INFERRED)

    def _wanted(self) -> set[str]:
        return {path for pattern in self._patterns for path in (glob(pattern) if has_magic(pattern) else [pattern])}

    def _is_followed(self, current: str) -> bool:
        """Return whether a path is followed, even while it does not exist, between the rotation and the next line."""
        return any(current == pattern or PurePath(current).match(pattern) for pattern in self._patterns)

    def _list(self, wanted: set[str]) -> list[LogFile]:
        """Return the files of the given logs, in the order of time."""
        currents = {current_path(path) for path in wanted} | {place.current for place in self._places}
        ids = {place.id for place in self._places}
        found: dict[FileId, LogFile] = {}
        for folder in sorted({os.path.dirname(path) for path in currents}):
            try:
                files = list_logs(folder, currents, ids)
            except OSError as error:
                if any(os.path.dirname(path) == folder for path in wanted):
                    self._warn_once("a folder of brokers' logs cannot be listed", folder, error.strerror)
                files = [file for path in sorted(wanted) if os.path.dirname(path) == folder if (file := log_file(path))]
            for file in files:
                found.setdefault(file.id, file)
        return sorted(found.values(), key=lambda file: file.order)

    def _let_go(self, reading: LogReading) -> None:
        """Report content that disappeared before it was read to its end."""
        present = {file.path for file in reading.files}
        logs = {file.current for file in reading.files}
        for place in reading.not_located():
            if place.current not in logs:
                continue  # nothing exists there; the disk may be mounted later
            if place.offset and not (place.is_finished or place.is_missing):
                _log.warning(
                    "a broker's log was cut or replaced; it is read from its beginning, and what it had more is lost"
                    if place.path in present
                    else "a broker's log is nowhere any more; what was logged to it and not read before is lost",
                    path=place.path,
                    logged_after=datetime.fromtimestamp(place.modified_ns / 1e9, UTC).isoformat(timespec="seconds"),
                )
            place.is_missing = True

    def _to_read(self, reading: LogReading, wanted: set[str]) -> list[LogFile]:
        """Return the files with new content, in the order of time; no more new files than are followed."""
        located, new, refused = [], [], []
        newest = reading.newest_read()
        for file in reading.files:
            if file.id in reading.located:
                located.append(file)
            elif file.path in wanted or (is_after(file, newest.get(file.current)) and self._is_followed(file.current)):
                if not file.is_readable:
                    refused.append(file.path)
                elif not self._is_copy(file, reading):
                    new.append(file)
        for path in refused[-1:]:
            self._warn_once(
                "a broker's log is compressed in a way that is not read", path, f"{len(refused)} such files"
            )
        room = max(_MAX_FILES - len(located), 0)
        if len(new) > room:
            self._warn_once("more brokers' logs than are followed: the oldest are not read", new[0].path)
        return sorted(located + new[len(new) - room :], key=reading.order)

    def _is_copy(self, file: LogFile, reading: LogReading) -> bool:
        """Return whether a new file has the content of another one, and is a copy of it until that one is cut."""
        try:
            return any(reading.holds(file, place) for place in self._places if place.current == file.current)
        except BROKEN:
            return False

    def _read(self, place: Place, file: LogFile, reading: LogReading) -> Generator[list[str], None, bool]:
        """Return the lines of one file, and whether all were read."""
        try:
            head = reading.head(file)
            place.move(file)
            place.head_bytes, place.head = len(head), digest(head)
            if file.id not in reading.located:
                self._places.append(place)
                reading.located[file.id] = place
            yield from _lines(place, contents(file, place.offset), is_whole=bool(file.compression))
        except BROKEN as error:
            self._warn_once("a broker's log cannot be read, or not to its end", file.path, str(error))
            if file.compression:
                place.complete(file)  # it is read again when it changes
            else:
                reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
                self._unread[file.path] = f"{file.path} cannot be read ({reason})"
            return False
        place.complete(file)
        if not file.compression:
            place.modified_ns = file.modified_ns
        return True

    def _warn_once(self, event: str, path: str, detail: str | None = None) -> None:
        if len(self._warned) >= _MAX_FILES:
            self._warned.clear()
        if path not in self._warned:
            self._warned.add(path)
            _log.warning(event, path=path, detail=detail)


def _why_missing(pattern: str) -> str:
    """Return why the folder of a pattern cannot be listed, in parentheses; empty if it can, or is itself a pattern."""
    folder = os.path.dirname(pattern)
    try:
        if not has_magic(folder):
            os.scandir(folder).close()
    except OSError as error:
        return f" ({folder}: {error.strerror})"
    return ""


def _lines(place: Place, pieces: Iterator[bytes], *, is_whole: bool) -> Iterator[list[str]]:
    """Return complete lines, and an unterminated last line if nothing can follow; too long lines are lost."""
    rest = b""
    for piece in pieces:
        rest += piece
        end = rest.rfind(b"\n") + 1
        if end:
            place.offset += end
            yield rest[: end - 1].decode("utf-8", errors="replace").split("\n")
            rest = rest[end:]
        if len(rest) >= CHUNK_BYTES:
            place.offset += len(rest)
            rest = b""
    if is_whole and rest:
        place.offset += len(rest)
        yield [rest.decode("utf-8", errors="replace")]


class StandardInput:
    """Reads lines from a pipe, as they come."""

    ends = True

    def __init__(self, stream: BinaryIO | None = None) -> None:
        self._stream = stream or sys.stdin.buffer
        self._waiting: queue.Queue[str] = queue.Queue(_MAX_WAITING_LINES)
        self._thread = threading.Thread(target=self._run, name="kafka-log-stdin", daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Return whether the pipe was closed and read to its end."""
        return not self._thread.is_alive() and self._waiting.empty()

    def memory(self) -> None:
        """Return nothing, because a pipe cannot be read again."""
        return

    def trouble(self) -> None:
        """Return nothing, because a pipe that is open can be read."""
        return

    def read(self) -> Iterator[list[str]]:
        """Return the lines that arrived since the last call."""
        lines: list[str] = []
        while not self._waiting.empty():
            lines.append(self._waiting.get_nowait())
        if lines:
            yield lines

    def _run(self) -> None:
        for line in self._stream:
            self._waiting.put(line.decode("utf-8", errors="replace"))
