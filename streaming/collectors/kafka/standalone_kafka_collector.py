"""Shell: a Kafka collector without a job, which also reads the group records itself."""

from __future__ import annotations

import threading

from confluent_kafka import KafkaException

from streaming.collectors.event_log import EventLog
from streaming.collectors.kafka.collector import KafkaCollector, KafkaStatus
from streaming.collectors.kafka.offsets_reader import OffsetsReader
from streaming.collectors.kafka.options import KafkaOptions
from streaming.machine.logs import logger
from streaming.machine.stop_request import StopRequest

_STOP_S = 8.0
_PAUSE_S = 1.0
_log = logger("kafka")


class StandaloneKafkaCollector:
    """Reports the same as ``KafkaCollector`` about one cluster, once it has been checked, and its group records.

    Args:
        topics, groups: Logs of the two, in one folder or topic.
        partitions: Number of partitions of ``__consumer_offsets``.
        stop: Requested by the caller; it also ends a full read.
    """

    def __init__(
        self,
        options: KafkaOptions,
        topics: EventLog,
        groups: EventLog,
        *,
        partitions: int,
        poll_interval_ms: int,
        stop: StopRequest | None = None,
    ) -> None:
        self._reader = OffsetsReader(options, groups, partitions=partitions)
        self._collector = KafkaCollector(options, topics, self._reader.offsets_read, poll_interval_ms=poll_interval_ms)
        self._stop = stop or StopRequest()
        self._thread = threading.Thread(target=self._read, name="kafka-records", daemon=True)

    def start(self) -> None:
        """Start, in its own threads."""
        self._collector.start()
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait for the end; read events are written, and the clock that they allow."""
        self._stop.request()
        if self._thread.ident is not None:
            self._thread.join(_STOP_S)
        if not self._thread.is_alive():
            self._reader.close()
        self._collector.flush_clock()
        self._collector.stop()
        if self._reader.rejected:
            _log.warning("records that could not be decoded", records=self._reader.rejected)

    def observe_once(self) -> bool:
        """Read everything once up to the current end, instead of ``start``; return whether the cluster answered."""
        if not self._collector.observe_once():
            return False
        while not self._stop.is_requested and not self._collector.flush_clock():
            self._reader.step()
        return True

    def status(self) -> KafkaStatus:
        """Return the current status."""
        return self._collector.status()

    def _read(self) -> None:
        while not self._stop.is_requested:
            try:
                self._reader.step()
            except KafkaException as error:
                _log.warning("group records cannot be read", detail=error.args[0].str())
                self._stop.wait(_PAUSE_S)
