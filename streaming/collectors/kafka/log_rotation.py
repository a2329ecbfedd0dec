"""Shell: the files of a rotated log: which ones belong together, and their order.

``server.log`` is the current file of ``server.log.1``, ``server.log.2026-11-24-13``, ``server.log-20261124.gz`` and
``server-2026-11-24.log``. They are ordered by modification time. If those are equal, they are ordered by the dates in
their names, and by descending numbers: ``.1`` is newer than ``.2``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO, NamedTuple, TypeAlias

from streaming.pipeline.codecs import BROKEN, DECOMPRESSED, REFUSED, decompressed

CHUNK_BYTES = 8 * 1024 * 1024
HEAD_BYTES = 1024  # log lines begin with a time, so this distinguishes two files
# The pattern matches the rotation after the name of the current file, or within it.
_BEHIND = re.compile(r"(?P<name>.+\.[A-Za-z]\w*)[.\-_](?P<rotation>\d[\d.\-_:T]*)")
_DATE = r"(?:20\d\d[-_.]?[01]\d|[0-3]?\d[-_.][0-3]?\d[-_.]20\d\d)"
_WITHIN = re.compile(rf"(?P<name>.+?)[.\-_](?P<rotation>{_DATE}[\d.\-_:T]*)(?P<extension>\.[A-Za-z]\w*)")
_NAMES = 4_096  # this many are remembered, because folders are listed twice a second
_SHORTEST_DATE = 6  # characters; a single shorter number counts rotations

FileId: TypeAlias = tuple[int, int]


class RotatedError(Exception):
    """A file has another name now."""


class _Name(NamedTuple):
    current: str
    rotation: tuple[int, ...]  # rises with time


class LogFile(NamedTuple):
    """A file as it was when its folder was listed."""

    path: str
    id: FileId
    size: int
    modified_ns: int

    @property
    def current(self) -> str:
        """Return the path of the file that this one was rotated from, or its own path if it was not."""
        return current_path(self.path)

    @property
    def compression(self) -> str:
        """Return the suffix of a compressed file; nothing for any other file."""
        return _compression(self.path)

    @property
    def is_readable(self) -> bool:
        """Return whether it is uncompressed, or compressed in a supported way."""
        return self.compression not in REFUSED

    @property
    def order(self) -> tuple[bool, int, tuple[int, ...], str]:
        """Return a key that sorts files by the time of writing: rotated ones first."""
        return self.current == self.path, self.modified_ns, rotation(self.path), self.path


@lru_cache(_NAMES)
def current_path(path: str) -> str:
    """Return the path that a file had before it was rotated.

    Example:
        >>> [current_path(path) for path in ("/a/server.log.2026-11-24-13.gz", "b-2026-11-24.log", "kafka-1.log")]
        ['/a/server.log', 'b.log', 'kafka-1.log']
    """
    folder, name = os.path.split(path)
    return os.path.join(folder, _parsed(name).current)


@lru_cache(_NAMES)
def rotation(path: str) -> tuple[int, ...]:
    """Return a key that orders the rotated files of one log by their names, newest last."""
    return _parsed(os.path.basename(path)).rotation


def _parsed(name: str) -> _Name:
    plain = name[: len(name) - len(_compression(name))]
    behind = _BEHIND.fullmatch(plain)
    within = None if behind else _WITHIN.fullmatch(plain)
    found = behind or within
    if found is None:
        return _Name(plain, ())
    numbers = tuple(int(digits) for digits in re.findall(r"\d+", found["rotation"]))
    if len(numbers) == 1 and len(found["rotation"]) < _SHORTEST_DATE:
        numbers = (-numbers[0],)
    return _Name(found["name"] + (within["extension"] if within else ""), numbers)


@lru_cache(_NAMES)
def _compression(path: str) -> str:
    suffix = os.path.splitext(path)[1].lower()
    return suffix if suffix in DECOMPRESSED or suffix in REFUSED else ""


def list_logs(folder: str, currents: Collection[str], ids: Collection[FileId]) -> list[LogFile]:
    """Return the files in a folder that belong to one of these logs, or have one of these ids, each once.

    A file that is being compressed is listed only under its own name.

    Raises:
        OSError: The folder cannot be listed.
    """
    inodes = {inode for _, inode in ids}
    with os.scandir(folder) as entries:
        paths = [
            path
            for entry in entries
            for path in [os.path.join(folder, entry.name)]
            if entry.inode() in inodes or current_path(path) in currents
        ]
    found: dict[FileId, LogFile] = {}
    for file in sorted(filter(None, map(log_file, paths)), key=lambda file: file.order, reverse=True):
        found.setdefault(file.id, file)
    plain = {file.path for file in found.values()}
    return [
        file
        for file in found.values()
        if not (file.compression and file.path[: -len(file.compression)] in plain)
        and (file.id in ids or file.current in currents)
    ]


def log_file(path: str) -> LogFile | None:
    """Return a file's current state; None if no file has this name."""
    try:
        status = os.stat(path)
    except OSError:
        return None  # it is being renamed, and is found under its other name
    if not S_ISREG(status.st_mode):
        return None
    return LogFile(path, (status.st_dev, status.st_ino), status.st_size, status.st_mtime_ns)


def head(file: LogFile) -> bytes:
    """Return the first bytes of a file's content, compressed or not.

    Raises:
        RotatedError: The file has another name now.
        BROKEN: The file cannot be read, or is damaged from the beginning.
    """
    found = b""
    try:
        for piece in contents(file, 0, HEAD_BYTES):
            found += piece
            if len(found) >= HEAD_BYTES:
                break
    except BROKEN:
        if not found:
            raise
    return found[:HEAD_BYTES]


def contents(file: LogFile, offset: int, piece_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """Return a file's content from an offset on, decompressed.

    Raises:
        RotatedError: The file has another name now.
        OSError: It cannot be read.
        BROKEN: It is compressed, and damaged from here on.
    """
    if not file.compression:
        with _opened(file) as plain:
            plain.seek(offset)
            while piece := plain.read(piece_bytes):
                yield piece
        return
    present = log_file(file.path)
    if present is None or present.id != file.id:
        raise RotatedError(file.path)
    for piece in decompressed(Path(file.path), file.compression):
        if len(piece) > offset:
            yield piece[offset:]
        offset = max(offset - len(piece), 0)


def _opened(file: LogFile) -> BinaryIO:
    try:
        opened = open(file.path, "rb")  # noqa: SIM115 - the caller closes it
    except FileNotFoundError as error:
        raise RotatedError(file.path) from error
    status = os.fstat(opened.fileno())
    if (status.st_dev, status.st_ino) != file.id:
        opened.close()
        raise RotatedError(file.path)
    return opened
