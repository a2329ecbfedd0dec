"""Shell: where a collector appends its events: a folder of files of JSON lines, or a Kafka topic."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec
from confluent_kafka import KafkaException, Producer

from streaming.atomic_file import write_atomically
from streaming.kafka.cluster_view import CLIENT_LOG
from udfs.events import AnyEvent

_ROOM_S = 1.0  # how long to wait for room in the producer's queue, again and again


class EventLog(Protocol):
    """A durable log of events, and a small memory beside it for its writer."""

    def append(self, events: Sequence[AnyEvent]) -> None:
        """Append events in this order; when it returns they are there for good."""

    def read_memory(self) -> bytes | None:
        """Answer what ``keep_memory`` kept last."""

    def keep_memory(self, content: bytes) -> None:
        """Keep what the writer must know after a restart. A writer keeps it after the events that led to it."""


class Memory:
    """A small file that is replaced whole."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read_memory(self) -> bytes | None:
        """Answer what was kept last."""
        try:
            return self._path.read_bytes()
        except FileNotFoundError:
            return None

    def keep_memory(self, content: bytes) -> None:
        """Keep this instead."""
        write_atomically(self._path, content)


class EventFiles(Memory):
    """Appends events to a folder. One writer for each name.

    Each file is closed by a rename and never changed again: it shows itself whole or not at all. Names count
    nanoseconds, so that their order is the order in which files were written, and none comes twice, though readers may
    delete what they have read.

    Args:
        folder: Made when missing.
        name: Of the writer; it goes into the names of the files.
    """

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(folder / f".{name}.memory")  # hidden from readers of the folder
        self._folder = folder
        self._name = name
        written = (file.name.removesuffix(f"-{name}.jsonl") for file in folder.glob(f"*-{name}.jsonl"))
        self._last = max((int(number) for number in written if number.isdigit()), default=0)

    @property
    def folder(self) -> Path:
        """Where the files lie."""
        return self._folder

    def append(self, events: Sequence[AnyEvent]) -> None:
        """Write events into one new file; none write none."""
        if not events:
            return
        number = max(self._last + 1, time.time_ns())
        path = self._folder / f"{number:020d}-{self._name}.jsonl"
        write_atomically(path, b"".join(msgspec.json.encode(event) + b"\n" for event in events))
        self._last = number


class EventTopic(Memory):
    """Appends events to a Kafka topic, one a record.

    The key is the cluster: so all of a cluster lies in one partition, in the order in which it was appended, and a
    ``clock`` is never read before what it stands behind.

    Args:
        settings: Of a librdkafka producer.
        memory: A local file; who loses it reads all again, and repeats have no effect.
    """

    def __init__(self, topic: str, settings: Mapping[str, str], memory: Path) -> None:
        memory.parent.mkdir(parents=True, exist_ok=True)
        super().__init__(memory)
        self._topic = topic
        self._producer = Producer({**settings, "enable.idempotence": True, "linger.ms": 20, "logger": CLIENT_LOG})

    def append(self, events: Sequence[AnyEvent]) -> None:
        """Produce events, and wait until the broker has all of them, however long it is away.

        Raises:
            confluent_kafka.KafkaException: It refuses one.
        """
        failures: list[KafkaException] = []

        def done(error: object, _message: object) -> None:
            if error is not None:
                failures.append(KafkaException(error))

        for event in events:
            value, key = msgspec.json.encode(event), event.cluster.encode()
            while True:
                try:
                    self._producer.produce(self._topic, value, key, on_delivery=done)
                    break
                except BufferError:
                    self._producer.poll(_ROOM_S)
        self._producer.flush()
        if failures:
            raise failures[0]
