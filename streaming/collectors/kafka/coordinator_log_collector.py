"""Shell: follows the logs of Kafka's brokers, and appends the reports of their group coordinators.

It reads twice a second, and before a ``clock`` of the same cluster is written, so that no clock comes before a line
that was logged earlier.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from streaming.collectors.collector import CollectorStatus, CollectorThread, State, status_with_log
from streaming.collectors.event_log import EventLog, ForwardingLog, LogFull
from streaming.collectors.kafka.coordinator_log import CoordinatorLog
from streaming.collectors.kafka.log_files import STDIN, LineSource, LogFiles, StandardInput
from streaming.machine.clock import now_ms
from streaming.machine.logs import logger
from streaming.machine.process import since_boot_ms
from udfs.kafka.consumer_offsets import GroupPatterns
from udfs.model.annotations import ContractEvent
from udfs.model.events import AnyEvent, Clock

if TYPE_CHECKING:
    from streaming.machine.stop_request import StopRequest
    from streaming.settings.clusters import Kafka

_POLL_S = 0.5
_WARN_AFTER_MS = 60_000  # at most one warning a minute
_SHOWN_LINE = 300
_log = logger("kafka")


class CoordinatorLogCollector(CollectorThread):
    """Follows the logs of one cluster's brokers, from ``start`` to ``stop``.

    Args:
        parser: The parser of this cluster's lines. lines: The source of lines.
        log: The log for events; its memory is the position in the lines.
    """

    def __init__(self, cluster: str, parser: CoordinatorLog, lines: LineSource, log: EventLog) -> None:
        self._cluster = cluster
        self._parser = parser
        self._lines = lines
        self._log = log
        self._waiting: list[AnyEvent] = []  # read, and not yet accepted by the log
        self._kept: bytes | None = None
        self._warned_ms = 0
        self._warned_of = 0
        self._status = CollectorStatus(cluster=cluster, since_ms=now_ms())
        super().__init__("kafka-log")

    def stop(self) -> None:
        """Stop; lines logged until now are read first."""
        self._stopping.set()
        self._joined()
        self.observe_once()
        _log.info(
            "brokers' logs",
            cluster=self._cluster,
            understood=self._parser.understood,
            unknown=self._parser.unknown,
            unplaced=self._parser.unplaced,
        )

    def observe_once(self) -> bool:
        """Read everything that was logged until now, and append it; return whether the log of events accepted it."""
        with self._turn:
            try:
                self._read()
            except OSError as error:
                self._set("unwritable", str(error))
                return False
            self._set("connected", self._lines.trouble())
            return True

    def read_to_end(self, stop: StopRequest) -> None:
        """Read a pipe until it is closed; read nothing from a file."""
        while self._lines.ends and not self._lines.is_over and not stop.is_requested:
            self.observe_once()
            stop.wait(_POLL_S)

    @property
    def is_over(self) -> bool:
        """Return whether no more lines will come, because they come from a pipe that is closed."""
        return self._lines.is_over

    def status(self) -> CollectorStatus:
        """Return the current status."""
        return status_with_log(self._status, self._log)

    def unread(self) -> str | None:
        """Return which files are missing or cannot be read, and why; None if all are read."""
        return self._lines.trouble()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.observe_once()
            self._stopping.wait(_POLL_S)

    def _read(self) -> None:
        self._append()
        for batch in self._lines.read():
            for line in batch:
                self._take(line)
            self._append()
        memory = self._lines.memory()
        if memory is not None and memory != self._kept:
            self._log.keep_memory(memory)
            self._kept = memory

    def _take(self, line: str) -> None:
        self._waiting += self._parser.events_of(line)
        failed = self._parser.unknown + self._parser.unplaced
        if failed > self._warned_of and now_ms() >= self._warned_ms + _WARN_AFTER_MS:
            self._warned_of, self._warned_ms = failed, now_ms()
            _log.warning(
                "lines of a group coordinator that are not understood",
                cluster=self._cluster,
                lines=failed,
                example=line.strip()[:_SHOWN_LINE],
            )

    def _append(self) -> None:
        if self._waiting:
            self._log.append(self._waiting)
            self._waiting = []

    def _set(self, state: State, detail: str | None = None) -> None:
        before = self._status
        since_ms = before.since_ms if state == before.state else now_ms()
        answered_at_ms = since_boot_ms() if state == "connected" else before.answered_at_ms
        self._status = CollectorStatus(
            cluster=self._cluster, state=state, since_ms=since_ms, detail=detail, answered_at_ms=answered_at_ms
        )


def brokers_logs(settings: Kafka, log: EventLog) -> CoordinatorLogCollector:
    """Return a collector for the logs that the settings name.

    Args:
        log: The log for its own events; its memory is the position in the lines.
    """
    groups = GroupPatterns(settings.include_groups, settings.exclude_groups)
    parser = CoordinatorLog(settings.cluster, zone=ZoneInfo(settings.log_timezone), groups=groups)
    lines = StandardInput() if STDIN in settings.logs else LogFiles(settings.logs, log.read_memory())
    return CoordinatorLogCollector(settings.cluster, parser, lines, log)


class LogBehindLines(ForwardingLog):
    """A log of events whose clocks wait for everything that the brokers logged before them."""

    def __init__(self, log: EventLog, lines: CoordinatorLogCollector) -> None:
        super().__init__(log)
        self._lines = lines

    def append(self, events: Sequence[ContractEvent]) -> None:
        """Append events, clocks only after everything that was logged before.

        Raises:
            LogFull: None of them was accepted.
        """
        if any(isinstance(event, Clock) for event in events) and not self._lines.observe_once():
            raise LogFull("what the brokers logged could not be written")
        self._log.append(events)
