"""Shell: what was sent, in a file that is replaced as a whole: a process that starts again sends nothing twice."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from streaming.machine.atomic_file import write_atomically
from streaming.setup.errors import SetupError

VERSION: Final = 1


class Sent(msgspec.Struct):
    """What one channel was sent.

    Attributes:
        opened: Open findings that were sent, with the time of sending, in epoch milliseconds.
        cooling: Cluster, group and kind, as JSON -> when a finding of them was last sent.
    """

    opened: dict[str, int] = msgspec.field(default_factory=dict)
    cooling: dict[str, int] = msgspec.field(default_factory=dict)


class _File(msgspec.Struct):
    version: int
    channels: dict[str, Sent]


class Ledger:
    """What each channel was sent. Holds open findings only: those that closed are forgotten once that was sent.

    Args:
        path: The file; its folder is made when it is missing. None = nothing is written.

    Raises:
        SetupError: It cannot be read, or a newer release has written it.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._channels: dict[str, Sent] = {}
        if path is None or not path.exists():
            return
        try:
            read = msgspec.json.decode(path.read_bytes(), type=_File)
        except (OSError, msgspec.MsgspecError) as error:
            raise SetupError(
                f"{path} cannot be read: {error}", "restore it; without it, alerts that are open are sent once more"
            ) from error
        if read.version > VERSION:
            raise SetupError(f"{path} was written by a newer release", "run that release")
        self._channels = read.channels

    def of(self, channel: str) -> Sent:
        """Return what a channel was sent."""
        return self._channels.setdefault(channel, Sent())

    @property
    def open_findings(self) -> set[str]:
        """Return findings that some channel takes for open."""
        return {finding for sent in self._channels.values() for finding in sent.opened}

    def write(self, cooling_since_ms: int) -> None:
        """Write it; cool-downs that began before a time are over.

        Raises:
            OSError: It was not written; the file is as it was.
        """
        for sent in self._channels.values():
            sent.cooling = {key: at for key, at in sent.cooling.items() if at > cooling_since_ms}
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path, msgspec.json.encode(_File(VERSION, self._channels)))

    def shown(self) -> Mapping[str, int]:
        """Return how many open findings each channel was sent."""
        return {name: len(sent.opened) for name, sent in self._channels.items()}
