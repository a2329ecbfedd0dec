"""Shell: the request to stop, by a signal or by a program."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from types import FrameType

from streaming.machine.logs import logger

_log = logger("job")


class StopRequest:
    """Requested by SIGTERM, Ctrl-C or a program; requested twice, it no longer waits for the batch.

    A handler of signals runs between any two steps of the main thread, so it must take no lock that the main thread may
    hold: neither that of a `threading.Event` nor that of a stream that is written. `SimpleQueue.put` takes none.
    """

    def __init__(self) -> None:
        self.is_requested = False
        self.urgent = False
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._unlogged: deque[int] = deque()

    def request(self) -> None:
        self.urgent = self.is_requested
        self.is_requested = True
        self._wake.put(None)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the request, at most this long; return whether it came."""
        try:
            self._wake.get(timeout=seconds)
        except Empty:
            return self.is_requested
        self._wake.put(None)  # others may wait, too
        self.log_signals()
        return True

    @contextmanager
    def by_signals(self) -> Iterator[None]:
        """Treat SIGTERM and SIGINT as requests while inside."""

        def take(number: int, _frame: FrameType | None) -> None:
            self._unlogged.append(number)
            self.request()

        before = {number: signal.signal(number, take) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            self.log_signals()

    def log_signals(self) -> None:
        """Log which signals have come since the last call."""
        for _ in range(len(self._unlogged)):  # others may come faster than they are logged
            _log.info("stop requested", signal=signal.Signals(self._unlogged.popleft()).name)
