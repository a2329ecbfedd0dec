"""Shell: the marks in a folder of events that show writers and readers each other's progress.

```
<folder>/.<id of a checkpoint>.reader   how far a job has read each writer's files
<folder>/.<writer>.deleted              which of its files a writer has deleted
```

A file's number is its name: the nanoseconds at which it was written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from streaming.machine.logs import logger
from streaming.stores.places import Place, write_whole

MARK_VERSION = 1
_READER = ".reader"
_DELETED = ".deleted"
# With one range for each deletion, at most every ten seconds, that makes half an hour; readers compare every few
# seconds.
_RANGES_AT_MOST = 200
_log = logger("events")
_Mark = TypeVar("_Mark", "ReaderMark", "DeletedMark")


class ReaderMark(msgspec.Struct, frozen=True, kw_only=True):
    """How far a job has read a folder.

    Attributes:
        checkpoint: The job's checkpoint, for people.
        renewed_ms: When the mark was written; a running job renews it.
        read: Writer -> number of the newest file up to which all were read, and the batches committed.
    """

    version: int = MARK_VERSION
    checkpoint: str
    renewed_ms: int
    read: dict[str, int]


class DeletedMark(msgspec.Struct, kw_only=True):
    """The files that a writer has deleted.

    Attributes:
        ranges: Numbers of the first and the last file of each deletion, in order.
    """

    version: int = MARK_VERSION
    clusters: list[str] = msgspec.field(default_factory=list)
    ranges: list[tuple[int, int]] = msgspec.field(default_factory=list)

    @property
    def newest(self) -> int:
        """Return the number of the newest file that was deleted; 0 if none was."""
        return self.ranges[-1][1] if self.ranges else 0

    def add(self, first: int, last: int, clusters: Iterable[str]) -> None:
        """Record files that are about to be deleted."""
        self.clusters = sorted({*self.clusters, *clusters})
        self.ranges.append((first, last))
        if len(self.ranges) > _RANGES_AT_MOST:
            self.ranges[:2] = [(self.ranges[0][0], self.ranges[1][1])]


def file_of(folder: Place, writer: str, number: int) -> Place:
    """Return the path of a writer's file."""
    return folder / f"{number:020d}-{writer}.jsonl"


def number_and_writer(name: str) -> tuple[int, str] | None:
    """Return the parts of a file's name; None if no writer of the monitor made it.

    Example:
        >>> number_and_writer("00000000000000000007-kafka-c1-topics.jsonl")
        (7, 'kafka-c1-topics')
    """
    number, dash, rest = name.partition("-")
    if not dash or not number.isdigit() or len(number) != 20 or not rest.endswith(".jsonl"):
        return None
    return int(number), rest.removesuffix(".jsonl")


def write_reader(folder: Place, reader: str, mark: ReaderMark) -> None:
    """Write the position of a reader.

    Raises:
        OSError: The folder cannot be written.
    """
    write_whole(folder / f".{reader}{_READER}", msgspec.json.encode(mark))


def read_readers(folder: Place) -> list[ReaderMark]:
    """Return the marks of all readers."""
    files: list[Place] = sorted(folder.glob(f".*{_READER}"), key=str)
    marks = (_read(file, ReaderMark) for file in files)
    return [mark for mark in marks if mark is not None]


def write_deleted(folder: Place, writer: str, mark: DeletedMark) -> None:
    """Write which files a writer is about to delete.

    Raises:
        OSError: The folder cannot be written.
    """
    write_whole(folder / f".{writer}{_DELETED}", msgspec.json.encode(mark))


def read_deleted(folder: Place, writer: str) -> DeletedMark:
    """Return which files a writer has deleted."""
    return _read(folder / f".{writer}{_DELETED}", DeletedMark) or DeletedMark()


def writers_that_deleted(folder: Place) -> list[str]:
    """Return the writers that have deleted files."""
    return sorted(file.name[1:].removesuffix(_DELETED) for file in folder.glob(f".*{_DELETED}"))


def _read(file: Place, kind: type[_Mark]) -> _Mark | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        _log.warning("a reader's position in the folder of events cannot be read", file=str(file), detail=str(error))
        return None
