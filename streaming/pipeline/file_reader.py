"""Shell: files that a worker reads itself, because Spark's text reader fails on them, or silently skips them.

The lines of one file come in blocks of any file size; a line too long to be an event is measured, not stored.
"""

from __future__ import annotations

import errno
import hashlib
import re
import stat
from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from streaming.pipeline.codecs import BROKEN, DECOMPRESSED, REFUSED, decompressed
from streaming.stores.places import Place

# The JVM holds a line several times over while Spark reads it; larger files are read here.
LARGEST_FOR_SPARK_BYTES = 64 << 20
# Files with such names are read here, whatever their size, because Hadoop does not support a colon in a name.
READ_HERE = rf"(?i)(:|({'|'.join(map(re.escape, DECOMPRESSED + REFUSED))})$)"
_BLOCK_BYTES = 16 << 20
_OF_A_COLLECTOR = re.compile(r"[0-9]{20}-.+\.jsonl")  # streaming/collectors/event_log/readers.py
_NOTHING = hashlib.sha256().hexdigest()


class Lines(msgspec.Struct, frozen=True):
    """Lines of a file, without their ends."""

    lines: list[bytes]


class UnreadableInput(msgspec.Struct, frozen=True):
    """A part of a file that could not be read as lines.

    Attributes:
        reason: ``oversized_event``, ``broken_compressed_file``, ``unsupported_compression``, ``unreadable_file`` or
            ``deleted_file``.
        detail: A sentence on it.
        beginning: As much as ``rejected_events`` keeps, plus one byte if there is more.
        length: In bytes. sha256: Hash of the whole part, in hex.
        is_line: Whether it is one line and not the whole file.
    """

    reason: str
    detail: str
    beginning: bytes
    length: int
    sha256: str
    is_line: bool = False


Piece: TypeAlias = Lines | UnreadableInput


def read_whole(path: Place, *, longest_bytes: int, kept_bytes: int) -> Iterator[Piece]:
    """Return the content of a file.

    Args:
        longest_bytes: A longer line is not an event. kept_bytes: How much of a rejected line or file is kept.
    """
    problem = why_unreadable(path)
    if problem is None and path.suffix.lower() in REFUSED:
        problem = _unsupported(path, kept_bytes)
    if problem is not None:
        yield problem
        return
    cutter = _Cutter(longest_bytes, kept_bytes)
    try:
        for block in _blocks(_content(path)):
            yield from cutter.cut(block)
    except FileNotFoundError:
        pass
    except BROKEN as error:
        # Only errors of the operating system have a number.
        if isinstance(error, OSError) and error.errno is not None:
            problem = _unreadable(error)
        else:
            problem = _broken(path, error, kept_bytes)
    yield from cutter.end()
    if problem is not None:
        yield problem


def why_unreadable(path: Place) -> UnreadableInput | None:
    """Return why a file cannot be read; None if it can.

    A deleted file is skipped, as in Spark, except for a collector's file, which its retention deleted.
    """
    try:
        # Opening a pipe would block until its other end is opened.
        if not stat.S_ISREG(path.stat().st_mode):
            raise OSError(errno.EINVAL, "It is not a regular file")
        path.open("rb").close()
    except FileNotFoundError:
        if _OF_A_COLLECTOR.fullmatch(path.name) is None:
            return None
        return UnreadableInput("deleted_file", "it was deleted before or while it was read", b"", 0, _NOTHING)
    except OSError as error:
        return _unreadable(error)
    return None


def _content(path: Place) -> Iterator[bytes]:
    suffix = path.suffix.lower()
    if suffix in DECOMPRESSED:
        yield from decompressed(path, suffix)
        return
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            yield block


def _blocks(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Return the same bytes in larger blocks; bytes read before an error are returned before it is raised."""
    waiting: list[bytes] = []
    length = 0
    try:
        for piece in pieces:
            waiting.append(piece)
            length += len(piece)
            if length >= _BLOCK_BYTES:
                yield b"".join(waiting)
                waiting, length = [], 0
    except BROKEN:
        yield b"".join(waiting)
        raise
    yield b"".join(waiting)


class _Cutter:
    """Cuts blocks of a file into lines."""

    def __init__(self, longest_bytes: int, kept_bytes: int) -> None:
        self._longest_bytes = longest_bytes
        self._kept_bytes = kept_bytes
        self._rest = b""  # the start of a line whose end has not been read yet
        self._long: _LongLine | None = None

    def cut(self, block: bytes) -> Iterator[Piece]:
        if self._long is not None:
            end = block.find(b"\n")
            if end < 0:
                self._long.add(block)
                return
            self._long.add(block[:end])
            yield self._long.described(self._longest_bytes)
            self._long, block = None, block[end + 1 :]
        *lines, self._rest = (self._rest + block).split(b"\n")
        if lines:
            yield Lines(lines)
        if len(self._rest) > self._longest_bytes:
            self._long = _LongLine(self._rest, self._kept_bytes)
            self._rest = b""

    def end(self) -> Iterator[Piece]:
        if self._long is not None:
            yield self._long.described(self._longest_bytes)
        elif self._rest:
            yield Lines([self._rest])


class _LongLine:
    """A line of which only the beginning is kept."""

    def __init__(self, beginning: bytes, kept_bytes: int) -> None:
        self._beginning_bytes = kept_bytes + 1
        self._beginning = b""
        self._length = 0
        self._sha256 = hashlib.sha256()
        self.add(beginning)

    def add(self, more: bytes) -> None:
        self._beginning += more[: self._beginning_bytes - len(self._beginning)]
        self._length += len(more)
        self._sha256.update(more)

    def described(self, longest_bytes: int) -> UnreadableInput:
        detail = f"{self._length} bytes; at most {longest_bytes} are read"
        return UnreadableInput(
            "oversized_event", detail, self._beginning, self._length, self._sha256.hexdigest(), is_line=True
        )


def _broken(path: Place, error: BaseException, kept_bytes: int) -> UnreadableInput:
    reason = str(error).rstrip(".") or type(error).__name__
    return _whole(path, "broken_compressed_file", f"{reason}; the lines before it were read", kept_bytes)


def _unsupported(path: Place, kept_bytes: int) -> UnreadableInput:
    detail = f"files that end in {path.suffix} are not read; use gzip, bzip2, xz, zstd or no compression"
    return _whole(path, "unsupported_compression", detail, kept_bytes)


def _whole(path: Place, reason: str, detail: str, kept_bytes: int) -> UnreadableInput:
    with path.open("rb") as file:
        beginning = file.read(kept_bytes + 1)
        file.seek(0)
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return UnreadableInput(reason, detail, beginning, file.tell(), sha256)


def _unreadable(error: OSError) -> UnreadableInput:
    return UnreadableInput("unreadable_file", error.strerror or str(error), b"", 0, _NOTHING)
