"""Shell: the request to stop, by a signal or by a program."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from streaming.machine.logs import logger

_log = logger("job")


class StopRequest:
    """Requested by SIGTERM, Ctrl-C or a program; requested twice, it no longer waits for the batch."""

    def __init__(self) -> None:
        self._requested = threading.Event()
        self.urgent = False

    def request(self) -> None:
        self.urgent = self._requested.is_set()
        self._requested.set()

    @property
    def is_requested(self) -> bool:
        return self._requested.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait for the request, at most this long; return whether it came."""
        return self._requested.wait(seconds)

    @contextmanager
    def by_signals(self) -> Iterator[None]:
        """Treat SIGTERM and SIGINT as requests while inside."""

        def take(number: int, _frame: FrameType | None) -> None:
            _log.info("stop requested", signal=signal.Signals(number).name)
            self.request()

        before = {number: signal.signal(number, take) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
