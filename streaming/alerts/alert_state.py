"""Shell: what was sent, in a file that is replaced as a whole: a process that starts again sends nothing twice."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from streaming.machine.atomic_file import write_atomically
from streaming.setup.errors import SetupError
from streaming.views.rebalance_costs import Cost

VERSION: Final = 1


class Sent(msgspec.Struct):
    """What one channel was sent.

    Attributes:
        opened: Open findings that were sent, with the time of sending, in epoch milliseconds.
        cooling: Cluster, group and kind, as JSON -> when a finding of them was last sent.
        refused: Findings of ``opened`` whose resolution was refused -> when for the first time.
    """

    opened: dict[str, int] = msgspec.field(default_factory=dict)
    cooling: dict[str, int] = msgspec.field(default_factory=dict)
    refused: dict[str, int] = msgspec.field(default_factory=dict)


class Remembered(msgspec.Struct):
    """What was sent of an open finding, by which it is resolved also when its row was removed."""

    cluster: str
    group_id: str
    kind: str
    severity: str
    opened_at_ms: int
    cost: Cost | None = None


class _File(msgspec.Struct):
    version: int
    channels: dict[str, Sent]
    findings: dict[str, Remembered]
    missing_since: dict[str, int]


class AlertState:
    """What each channel was sent. Holds open findings only: those that closed are forgotten once that was sent.

    Args:
        path: The file; its folder is made when it is missing. None = nothing is written.

    Attributes:
        findings: What was sent of those that some channel takes for open.
        missing_since: Those of them without a row -> when that was noticed, in epoch milliseconds.

    Raises:
        SetupError: It cannot be read, or a newer release has written it.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._channels: dict[str, Sent] = {}
        self.findings: dict[str, Remembered] = {}
        self.missing_since: dict[str, int] = {}
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
        self._channels, self.findings, self.missing_since = read.channels, read.findings, read.missing_since

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
            sent.refused = {name: at for name, at in sent.refused.items() if name in sent.opened}
        current = self.open_findings
        self.findings = {name: one for name, one in self.findings.items() if name in current}
        self.missing_since = {name: at for name, at in self.missing_since.items() if name in current}
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = _File(VERSION, self._channels, self.findings, self.missing_since)
            write_atomically(self._path, msgspec.json.encode(file))

    def shown(self) -> Mapping[str, int]:
        """Return how many open findings each channel was sent."""
        return {name: len(sent.opened) for name, sent in self._channels.items()}
