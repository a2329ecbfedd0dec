"""Shell: the interface of a log of events for its writers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from streaming.settings.defaults import default
from streaming.stores.places import Place, write_whole
from udfs.model.annotations import ContractEvent


class LogFull(OSError):  # noqa: N818 - what it is called in a sentence
    """The log cannot be written and its memory is full; none of these events was accepted."""


class EventLog(Protocol):
    """A durable log of events, with a small memory for its writer.

    A log that cannot be written (a full disk, an unavailable broker) still accepts events, up to a bound, and writes
    them in their order as soon as it can. The writer's memory waits behind the events before it, so that after a kill
    it does not contain anything that the log lacks.
    """

    def append(self, events: Sequence[ContractEvent]) -> None:
        """Append events in this order. When it returns they are durable, unless ``trouble`` is set.

        Raises:
            LogFull: None of them was accepted; the same events, or newer ones, may be appended later.
        """

    def read_memory(self) -> bytes | None:
        """Return the memory last stored by ``keep_memory``."""

    def keep_memory(self, content: bytes) -> None:
        """Store the writer's memory for a restart. A writer stores it after the events that led to it."""

    def trouble(self) -> str | None:
        """Return why events wait in memory; None if all are in the log. Callable at any time, from any thread."""

    def flush(self) -> bool:
        """Try to write the waiting events; return whether none is waiting any more."""


class ForwardingLog:
    """A log that passes everything on to another one; subclasses choose what, and when."""

    def __init__(self, log: EventLog) -> None:
        self._log = log

    def append(self, events: Sequence[ContractEvent]) -> None:
        """Append events to the log.

        Raises:
            LogFull: See ``EventLog``.
        """
        self._log.append(events)

    def read_memory(self) -> bytes | None:
        """Return the memory of the log."""
        return self._log.read_memory()

    def keep_memory(self, content: bytes) -> None:
        """Store the memory in the log."""
        self._log.keep_memory(content)

    def trouble(self) -> str | None:
        """Return the log's problem."""
        return self._log.trouble()

    def flush(self) -> bool:
        """Write what waits in the log."""
        return self._log.flush()


@dataclass(frozen=True)
class LogLimits:
    """The limits of a log.

    Attributes:
        memory_bytes: The size of events that wait in memory while the log cannot be written.
        segment_bytes: A file of a folder is not longer, unless a single event is.
        retention_ms: Older files are deleted once all readers have read them. None keeps files of any age.
        unread_retention_ms: Older files are deleted even if a reader has not read them; a reader that was not active
            for this long is no longer waited for. With None no file is deleted unread because of its age.
        retention_bytes: While a writer's files take more, its oldest files are deleted, read or not. None for no limit.
        retention_at_least_ms: No younger file is deleted.
    """

    memory_bytes: int = default("event_log", "memory_bytes")
    segment_bytes: int = default("event_log", "segment_bytes")
    retention_ms: int | None = None
    unread_retention_ms: int | None = None
    retention_bytes: int | None = None
    retention_at_least_ms: int = 0


class EventRecord(NamedTuple):
    """One event in its written form.

    Attributes:
        key: The cluster's key; events with the same key stay in order.
        value: The event as JSON, without a line feed.
    """

    key: bytes
    value: bytes


class Memory:
    """A small file that is replaced whole."""

    def __init__(self, path: Place) -> None:
        self._path = path

    def read(self) -> bytes | None:
        """Return the last stored memory."""
        try:
            return self._path.read_bytes()
        except FileNotFoundError:
            return None

    def keep(self, content: bytes) -> None:
        """Replace it with this content."""
        write_whole(self._path, content)
