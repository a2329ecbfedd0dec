"""Shell: the buffer of a log: passes records through while it can be written, and keeps them otherwise."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from streaming.collectors.event_log.log import EventRecord, LogFull, Memory
from streaming.machine.logs import logger
from udfs.model.annotations import NO_CLUSTER, ContractEvent

_log = logger("events")


@dataclass
class _Append:
    """Records of one append that are not in the log yet."""

    records: list[EventRecord]
    size: int


class WriteBuffer:
    """Records that were accepted but not yet written: appends, and the memories that follow them, in order.

    Args:
        write: Writes records, and removes stored records from the front of the list. Raises ``OSError`` if it cannot;
            the rest of the list is tried again.
        memory: Written after the records that came before it.
        limit_bytes: The total size of records that may wait. A single append that is longer may wait alone.
    """

    def __init__(
        self, write: Callable[[list[EventRecord]], None], memory: Memory, *, limit_bytes: int, log_name: str
    ) -> None:
        self._write = write
        self._memory = memory
        self._limit_bytes = limit_bytes
        self._log_name = log_name
        self._waiting: deque[_Append | bytes] = deque()
        self._waiting_bytes = 0
        self._trouble: str | None = None
        self._full_reported = False
        self._lock = threading.RLock()

    def append(self, events: Sequence[ContractEvent]) -> None:
        """Add events, and write as many as possible.

        Raises:
            LogFull: Too much is waiting already.
        """
        records = [EventRecord((event.cluster or NO_CLUSTER).encode(), msgspec.json.encode(event)) for event in events]
        if not records:
            return
        size = sum(len(record.value) + 1 for record in records)
        with self._lock:
            if self._is_too_much(size) and not self.flush() and self._is_too_much(size):
                self._refuse()
            self._waiting.append(_Append(records, size))
            self._waiting_bytes += size
            self.flush()

    def keep_memory(self, content: bytes) -> None:
        """Set the memory to store; only the newest is needed."""
        with self._lock:
            if self._waiting and isinstance(self._waiting[-1], bytes):
                self._waiting.pop()
            self._waiting.append(content)
            self.flush()

    def read_memory(self) -> bytes | None:
        """Return the newest memory, written or not."""
        with self._lock:
            waiting = (entry for entry in reversed(self._waiting) if isinstance(entry, bytes))
            newest = next(waiting, None)
            return self._memory.read() if newest is None else newest

    def trouble(self) -> str | None:
        """Return why something waits."""
        return self._trouble

    def flush(self) -> bool:
        """Write the waiting events, as far as possible; return whether none is left."""
        with self._lock:
            while self._waiting:
                try:
                    self._write_first()
                except OSError as error:
                    self._cannot(error)
                    return False
            self._can_again()
            return True

    def _is_too_much(self, more_bytes: int) -> bool:
        return self._waiting_bytes > 0 and self._waiting_bytes + more_bytes > self._limit_bytes

    def _write_first(self) -> None:
        first = self._waiting[0]
        if isinstance(first, bytes):
            self._memory.keep(first)
        else:
            try:
                self._write(first.records)
            finally:
                left = sum(len(record.value) + 1 for record in first.records)
                self._waiting_bytes -= first.size - left
                first.size = left
        self._waiting.popleft()

    def _cannot(self, error: OSError) -> None:
        if self._trouble is None:
            _log.warning(
                "the log of events cannot be written; events wait in memory",
                log=self._log_name,
                detail=str(error),
                room_bytes=self._limit_bytes,
            )
        self._trouble = str(error)

    def _can_again(self) -> None:
        if self._trouble is not None:
            _log.info("the log of events is writable again; no events wait", log=self._log_name)
        self._trouble = None
        self._full_reported = False

    def _refuse(self) -> None:
        if not self._full_reported:
            _log.warning(
                "the memory for waiting events is full; the collector polls again later",
                log=self._log_name,
                waiting_bytes=self._waiting_bytes,
            )
        self._full_reported = True
        raise LogFull(f"{self._trouble}; {self._waiting_bytes} bytes of events wait")
