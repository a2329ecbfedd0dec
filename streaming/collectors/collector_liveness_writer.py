"""Shell: shows that a standalone collector is alive, in a small file next to its events that is replaced regularly."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Final, Literal

from streaming.machine.clock import now_ms
from streaming.machine.logs import logger
from streaming.machine.process import process_identity, since_boot_ms
from streaming.stores.failure import one_line
from streaming.stores.places import Place
from streaming.tables.liveness import LONGEST_REASON, CollectorLiveness, SourceStatus, write_collector

EVERY_MS: Final = 5_000
_log = logger("collect")


class CollectorLivenessWriter:
    """Writes the collector's knowledge of itself and its cluster, whenever ``write_if_due`` is called and it is time.

    Args:
        place: The file; None if there is no folder, because events go to a topic. status: The collector's current
            report.
    """

    def __init__(self, place: Place | None, status: Callable[[], SourceStatus]) -> None:
        self._place = place
        self._status = status
        self._next_ms = 0
        self._has_failed = False

    def write_if_due(self) -> None:
        """Write the file, if the last one is old enough."""
        if since_boot_ms() >= self._next_ms:
            self._next_ms = since_boot_ms() + EVERY_MS
            self._write("running")

    def end(self, *, is_once: bool) -> None:
        """Write that the collector has ended in order."""
        self._write("finished" if is_once else "stopped")

    def _write(self, state: Literal["running", "stopped", "finished"]) -> None:
        if self._place is None:
            return
        status, pid = self._status(), os.getpid()
        now = CollectorLiveness(
            cluster=status.cluster,
            host=socket.gethostname(),
            pid=pid,
            process=process_identity(pid),
            written_at=now_ms(),
            written_boot_ms=since_boot_ms(),
            every_ms=EVERY_MS,
            state=state,
            problem=status.problem[:LONGEST_REASON],
            partial=status.partial[:LONGEST_REASON],
        )
        try:
            write_collector(self._place, now)
        except OSError as error:
            if not self._has_failed:
                _log.warning("the liveness cannot be written", place=str(self._place), reason=one_line(error))
            self._has_failed = True
            return
        self._has_failed = False
