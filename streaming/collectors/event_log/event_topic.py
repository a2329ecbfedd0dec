"""Shell: a log of events on a Kafka topic: one event per record, in order, through outages of the broker."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from streaming.collectors.event_log.log import EventRecord, LogLimits, Memory
from streaming.collectors.event_log.write_buffer import WriteBuffer
from streaming.machine.logs import LIBRDKAFKA, logger

# An append waits this long for the broker; the second limit applies while the broker is unavailable.
_WAIT_S = 10.0
_WAIT_AWAY_S = 0.5
_POLL_S = 0.1
_LONGEST_EVENT_BYTES = 16 * 1024 * 1024
_OURS = {
    "enable.idempotence": True,
    "linger.ms": 20,
    # A broker checks the compressed size; the client checks before compression.
    "compression.type": "lz4",
    "message.max.bytes": _LONGEST_EVENT_BYTES,
    # Producing is retried endlessly and in order, so an unavailable broker never makes an event fail.
    "message.timeout.ms": 0,
}
_log = logger("events")


class EventTopic(WriteBuffer):
    """Appends events to a Kafka topic, one per record.

    The key is the cluster, so all events of a cluster are in one partition, in the order of the appends, and a
    ``clock`` is never read before the events that precede it. One append is delivered whole before the next begins.

    Args:
        settings: Settings of a librdkafka producer, which override the defaults here.
        memory: A local file; without it everything is read again, and repeats have no effect.
        wait_s: How long one append waits for the broker, before its events wait in memory.

    Raises:
        OSError: The folder of the memory file cannot be created.
    """

    def __init__(
        self,
        topic: str,
        settings: Mapping[str, str],
        memory: Path,
        limits: LogLimits | None = None,
        *,
        wait_s: float = _WAIT_S,
    ) -> None:
        memory.parent.mkdir(parents=True, exist_ok=True)
        self._topic = topic
        self._settings = {**_OURS, **settings, "error_cb": self._on_error, "logger": LIBRDKAFKA}
        self._producer = Producer(dict(self._settings))
        self._wait_s = wait_s
        self._away = False
        self._last_error: str | None = None
        # These counts belong to the append that is being delivered, from its front.
        self._sent: list[_Delivery] = []
        limit = (limits or LogLimits()).memory_bytes
        super().__init__(self._put, Memory(memory), limit_bytes=limit, log_name=f"topic {topic}")

    def _put(self, records: list[EventRecord]) -> None:
        """Produce the remaining events, and wait; delivered ones are removed from the front."""
        deadline = time.monotonic() + (_WAIT_AWAY_S if self._away else self._wait_s)
        try:
            self._produce(records, deadline)
            while any(sent.is_open for sent in self._sent) and time.monotonic() < deadline:
                self._producer.poll(_POLL_S)
        finally:
            failure = self._take_delivered(records)
            self._away = bool(records)
        if records:
            why = failure or self._last_error or "the broker does not answer"
            raise OSError(f"topic {self._topic}: {why}")
        self._last_error = None

    def _produce(self, records: list[EventRecord], deadline: float) -> None:
        while len(self._sent) < len(records):
            record = records[len(self._sent)]
            delivery = _Delivery()
            try:
                self._producer.produce(self._topic, record.value, record.key, on_delivery=delivery.done)
            except BufferError:
                if time.monotonic() >= deadline:
                    return
                self._producer.poll(_POLL_S)
                continue
            except KafkaException as error:
                delivery.done(error.args[0], None)
            self._sent.append(delivery)

    def _take_delivered(self, records: list[EventRecord]) -> str | None:
        """Remove delivered events from the front, up to the first failed one; return why that one failed."""
        while self._sent and not self._sent[0].is_open:
            error = self._sent[0].error
            if error is not None and error.code() != KafkaError.MSG_SIZE_TOO_LARGE:
                break
            if error is not None:
                # The broker would never accept this event, and all later events would wait.
                _log.error("an event is dropped: longer than the topic allows", bytes=len(records[0].value))
            del self._sent[0], records[0]
        failed = next((sent.error for sent in self._sent if not sent.is_open and sent.error is not None), None)
        if failed is None:
            return None
        if not any(sent.is_open for sent in self._sent):
            # Events after a failed one are produced again after it: repeats have no effect, but a different order
            # would.
            self._sent.clear()
            # A refused client keeps its old login, and its cached metadata of topics for minutes.
            self._producer = Producer(dict(self._settings))
        return str(failed.str())

    def _on_error(self, error: KafkaError) -> None:
        self._last_error = error.str()


class _Delivery:
    """The outcome of one record."""

    def __init__(self) -> None:
        self.is_open = True
        self.error: KafkaError | None = None

    def done(self, error: KafkaError | None, _message: Message | None) -> None:
        self.error = error
        self.is_open = False
