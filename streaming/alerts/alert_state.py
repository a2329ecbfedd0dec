"""Shell: the messages that were sent, in a file replaced as a whole, so that a restarted process repeats none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from streaming.machine.atomic_file import write_atomically
from streaming.setup.errors import SetupError
from streaming.views.rebalance_costs import Cost

VERSION: Final = 1


class SentFinding(msgspec.Struct):
    """An open finding as last sent to a channel; lets it be resolved even if its row is gone.

    Attributes:
        opened_at_ms, sent_at_ms: When it opened, and when that was sent, in epoch milliseconds.
        refused_since_ms: When the channel first refused its closing; None if it has not.
        missing_since_ms: When its row was first missing from the tables; None if it exists.
    """

    cluster: str
    group_id: str
    kind: str
    severity: str
    opened_at_ms: int
    sent_at_ms: int
    cost: Cost | None = None
    refused_since_ms: int | None = None
    missing_since_ms: int | None = None


class Sent(msgspec.Struct):
    """The messages that one channel was sent.

    Attributes:
        opened: The findings that it has been sent as open, by id.
        cooling: Cluster, group and kind, as JSON -> when a finding of them was last sent.
    """

    opened: dict[str, SentFinding] = msgspec.field(default_factory=dict)
    cooling: dict[str, int] = msgspec.field(default_factory=dict)


class _File(msgspec.Struct):
    version: int
    channels: dict[str, Sent]


class AlertState:
    """What each channel was sent. Holds only open findings: closed ones are forgotten once that was sent.

    Args:
        path: The file; its folder is created if missing. None if nothing is written.

    Raises:
        SetupError: The file cannot be read, or a newer release has written it.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.channels: dict[str, Sent] = {}
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
        self.channels = read.channels

    def of(self, channel: str) -> Sent:
        """Return what a channel was sent."""
        return self.channels.setdefault(channel, Sent())

    @property
    def open_findings(self) -> set[str]:
        """Return findings that some channel was sent as open."""
        return {finding for sent in self.channels.values() for finding in sent.opened}

    def write(self, cooling_since_ms: int) -> None:
        """Write the state; cool-downs that began before a given time are over.

        Raises:
            OSError: It was not written; the file is unchanged.
        """
        for sent in self.channels.values():
            sent.cooling = {key: at for key, at in sent.cooling.items() if at > cooling_since_ms}
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path, msgspec.json.encode(_File(VERSION, self.channels)))

    def shown(self) -> Mapping[str, int]:
        """Return how many open findings each channel was sent."""
        return {name: len(sent.opened) for name, sent in self.channels.items()}
