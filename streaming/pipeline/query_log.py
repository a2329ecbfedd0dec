"""Shell: what the query has read, by Spark's checkpoint: offsets, and files by name.

```
<query>/commits/<batch>       the batch is finished
<query>/offsets/<batch>       two lines, then for each source up to where the batch reads it
<query>/sources/<n>/<entry>   the files that a source listed, a line of JSON each; <entry>.compact: and all before
```
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from streaming.stores.places import Place


class BatchOffsets(NamedTuple):
    """How far a batch reads.

    Attributes:
        offsets: Each source's offsets, as Spark writes them; None if it was not read yet.
    """

    batch: int
    offsets: list[dict[str, Any] | None]


class _Entry(msgspec.Struct):
    path: str
    batchId: int  # noqa: N815 - Spark's name


_ENTRIES = msgspec.json.Decoder(_Entry)


def read_committed(query: Place) -> BatchOffsets | None:
    """Return how far finished batches have read; None before the first has finished."""
    batch = max(_numbers(query / "commits"), default=None)
    return None if batch is None else read_planned(query, batch)


def read_planned(query: Place, batch: int) -> BatchOffsets:
    """Return how far a batch that has begun reads, or has read.

    Raises:
        OSError, ValueError: The plan cannot be read.
    """
    _version, _metadata, *offsets = (query / "offsets" / str(batch)).read_text().splitlines()
    return BatchOffsets(batch, [None if line == "-" else msgspec.json.decode(line) for line in offsets])


def topic_offsets(batch: BatchOffsets, topic: str) -> dict[int, int]:
    """Return how far a batch reads a topic: partition -> next offset; empty if it reads none of it."""
    for offset in batch.offsets:
        if offset is not None and topic in offset:
            return {int(partition): int(number) for partition, number in offset[topic].items()}
    return {}


class ListedFiles:
    """The files that one source of the query has read, each returned once."""

    def __init__(self, query: Place, source: int) -> None:
        self._folder = query / "sources" / str(source)
        self._source = source
        self._read = -1

    def advance(self, committed: BatchOffsets) -> Iterator[str]:
        """Return the names of files of batches that finished since."""
        offset = committed.offsets[self._source]
        upto = -1 if offset is None else int(offset["logOffset"])
        while self._read < upto:
            last, lines = self._next_entries()
            for line in lines:
                entry = _ENTRIES.decode(line)
                if self._read < entry.batchId <= upto:
                    yield unquote(entry.path.rpartition("/")[2])
            self._read = min(last, upto)

    def _next_entries(self) -> tuple[int, list[bytes]]:
        """Return the lines of the next entry, and the number of the last entry that they cover."""
        wanted = self._read + 1
        try:
            return wanted, _lines(self._folder / str(wanted))
        except FileNotFoundError:
            # Small entries are deleted some minutes after they were compacted into one.
            last = min(number for number in _numbers(self._folder, ".compact") if number >= wanted)
            return last, _lines(self._folder / f"{last}.compact")


def _lines(entry: Place) -> list[bytes]:
    _version, *lines = entry.read_bytes().splitlines()
    return lines


def _numbers(folder: Place, suffix: str = "") -> Iterator[int]:
    """Return the numbers of the entries of a log; names with another suffix are not entries."""
    if folder.is_dir():
        names = (file.name for file in folder.iterdir())
        yield from (
            int(name.removesuffix(suffix))
            for name in names
            if name.endswith(suffix) and name.removesuffix(suffix).isdigit()
        )
