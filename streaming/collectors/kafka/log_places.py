"""Shell: the read positions in rotated log files, and the current locations of those files."""

from __future__ import annotations

import hashlib
from typing import TypeAlias

import msgspec

from streaming.collectors.kafka.log_rotation import FileId, LogFile, head, rotation
from streaming.pipeline.codecs import BROKEN

# Files sort by the time of writing, whether they are current, and their rotation.
Order: TypeAlias = tuple[int, bool, tuple[int, ...]]


class Place(msgspec.Struct):
    """The read position in one file.

    Attributes:
        path: Its name then. current: Its name before it was rotated.
        offset: Bytes of its decompressed content.
        head: Digest of its first ``head_bytes`` bytes.
        modified_ns: When the part that was read was last written.
        read_size, read_modified_ns: Size and time of the file on the disk when all of it was read; -1 if not yet.
        is_finished: Whether it was read to its end after a newer file had taken its place.
        is_missing: Whether no file has its content any more.
    """

    path: str
    device: int
    inode: int
    offset: int = 0
    head: str = ""
    head_bytes: int = 0
    current: str = ""
    modified_ns: int = 0
    read_size: int = -1
    read_modified_ns: int = -1
    is_finished: bool = False
    is_missing: bool = False

    @property
    def id(self) -> FileId:
        """Return the identity of the file, whatever its name."""
        return self.device, self.inode

    def move(self, file: LogFile) -> None:
        """Record that a file holds the content that was read."""
        self.path, (self.device, self.inode) = file.path, file.id

    def complete(self, file: LogFile) -> None:
        """Record that all of a file was read."""
        self.read_size, self.read_modified_ns = file.size, file.modified_ns


class LogReading:
    """The existing files at one time, and which of them hold content that was read before.

    Attributes:
        files: In the order of time.
        located: The read position of each file that has one.
    """

    def __init__(self, places: list[Place], files: list[LogFile]) -> None:
        self._places = places
        self.files = files
        self.located: dict[FileId, Place] = {}
        self._heads: dict[FileId, bytes] = {}
        self._locate_by_id()
        self._locate_by_content()

    def _locate_by_id(self) -> None:
        files = {file.id: file for file in self.files}
        for place in self._places:
            file = files.get(place.id)
            if file is not None and file.id not in self.located and self.holds(file, place):
                self.located[file.id] = place
                place.is_missing = False
                place.modified_ns = place.modified_ns or file.modified_ns

    def _locate_by_content(self) -> None:
        """Find files that were compressed, or copied before they were cut, or whose disk has another number now."""
        for place in sorted(self.not_located(), key=lambda place: place.modified_ns):
            if place.is_missing or not place.head_bytes:
                continue
            for file in self.files:
                if file.id not in self.located and file.current == place.current and self.holds(file, place):
                    self.located[file.id] = place
                    break

    def not_located(self) -> list[Place]:
        """Return the positions whose files are missing."""
        located = {id(place) for place in self.located.values()}
        return [place for place in self._places if id(place) not in located]

    def remembered(self) -> list[Place]:
        """Return the positions without those of missing files, except for the newest of each log."""
        newest = {place.current: place for place in sorted(self._places, key=lambda place: place.modified_ns)}
        return [place for place in self._places if not place.is_missing or newest[place.current] is place]

    def holds(self, file: LogFile, place: Place) -> bool:
        """Return whether a file begins with the content read at a position."""
        is_same = file.id == place.id
        if is_same and is_unchanged(place, file):
            return True
        if not file.is_readable or (not file.compression and file.size < place.offset):
            return False
        if not place.head_bytes:
            return is_same
        try:
            return digest(self.head(file)[: place.head_bytes]) == place.head
        except BROKEN:
            return is_same

    def head(self, file: LogFile) -> bytes:
        """Return the first bytes of a file, read once."""
        if file.id not in self._heads:
            self._heads[file.id] = head(file)
        return self._heads[file.id]

    def newest_read(self) -> dict[str, Order]:
        """Return for each log when the newest content that was read was written."""
        files = {id(self.located[file.id]): file for file in self.files if file.id in self.located}
        newest: dict[str, Order] = {}
        for place in self._places:
            file = files.get(id(place))
            path = place.current if file is None else file.path
            read = (place.modified_ns, file is not None and path == place.current, rotation(path))
            newest[place.current] = max(newest.get(place.current, read), read)
        return newest

    def order(self, file: LogFile) -> tuple[bool, int, tuple[int, ...], str]:
        """Return a key that sorts files by time; for a file compressed since, the time when it was written."""
        place = self.located.get(file.id)
        if place is None:
            return file.order
        written = place.modified_ns if file.compression else file.modified_ns
        return file.path == place.current, written, rotation(file.path), file.path


def is_after(file: LogFile, read: Order | None) -> bool:
    """Return whether a rotated file was written after the newest one that was read; False if none was."""
    return read is not None and (file.modified_ns, False, rotation(file.path)) > read


def is_unchanged(place: Place, file: LogFile) -> bool:
    """Return whether a file is unchanged since all of it was read."""
    return (place.id, place.read_size, place.read_modified_ns) == (file.id, file.size, file.modified_ns)


def digest(content: bytes) -> str:
    """Return the digest by which the first bytes of a file are remembered."""
    return hashlib.sha256(content).hexdigest() if content else ""
