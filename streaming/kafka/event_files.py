"""Shell: a log of events as a folder of files of JSON lines, each closed by a rename and never changed again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from udfs.events import AnyEvent


class EventFiles:
    """Appends events to a folder. One writer for each name.

    Files are numbered and named so that their order is the order in which they were written; after a restart the
    numbers go on. A file shows itself whole or not at all.

    Args:
        folder: Made when missing.
        name: Of the writer; it goes into the names of the files.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        folder.mkdir(parents=True, exist_ok=True)
        written = (file.name.removesuffix(f"-{name}.jsonl") for file in folder.glob(f"*-{name}.jsonl"))
        self._next = 1 + max((int(number) for number in written if number.isdigit()), default=0)

    @property
    def folder(self) -> Path:
        """Where the files lie."""
        return self._folder

    def append(self, events: Sequence[AnyEvent]) -> Path | None:
        """Write events into one new file; none write none."""
        if not events:
            return None
        path = self._folder / f"{self._next:012d}-{self._name}.jsonl"
        write_whole(path, b"".join(msgspec.json.encode(event) + b"\n" for event in events))
        self._next += 1
        return path

    def read_memory(self) -> bytes | None:
        """Answer what ``keep_memory`` kept last."""
        try:
            return self._memory.read_bytes()
        except FileNotFoundError:
            return None

    def keep_memory(self, content: bytes) -> None:
        """Keep what the writer must know after a restart; hidden from readers of the folder."""
        write_whole(self._memory, content)

    @property
    def _memory(self) -> Path:
        return self._folder / f".{self._name}.memory"


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that is there whole or not at all."""
    hidden = path.with_name(f".{path.name.lstrip('.')}.tmp")
    with hidden.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    hidden.replace(path)
