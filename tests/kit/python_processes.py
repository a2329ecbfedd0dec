"""Consumers of kafka-python and aiokafka, each a process of its own that can be killed and stopped.

They speak as `tests.kit.members.Member` understands; of a generation they know nothing. What they own is said when it
or their member id has changed.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import Any

from aiokafka import AIOKafkaConsumer
from kafka import KafkaConsumer

from tests.kit.brokers import Broker
from tests.kit.members import Member

_POLL_MS = 100


def start_python_member(
    library: str, broker: Broker, group: str, topics: Sequence[str], settings: Mapping[str, Any]
) -> Member:
    """Start one consumer that is subscribed to these topics.

    Args:
        library: `kafka-python` or `aiokafka`.
        settings: of the library, over those of the kit.
    """
    named = {
        "bootstrap_servers": broker.bootstrap,
        "group_id": group,
        "auto_offset_reset": "earliest",
        "metadata_max_age_ms": 1000,
        **settings,
    }
    return Member([sys.executable, "-m", __name__, library, ",".join(topics), json.dumps(named)])


class _Conversation:
    """Its commands, and its reports."""

    def __init__(self) -> None:
        self._commands: SimpleQueue[str] = SimpleQueue()
        self._reported: tuple[list[list[object]], str | None] = ([], None)
        self.is_polling = True
        self.is_over = False
        threading.Thread(target=self._read, daemon=True).start()

    def take(self) -> None:
        try:
            command = self._commands.get_nowait()
        except Empty:
            return
        if command in ("pause", "resume"):
            self.is_polling = command == "resume"
        self.is_over |= command == "close"

    def report_owned(self, consumer: Any) -> None:
        owned = sorted([partition.topic, partition.partition] for partition in consumer.assignment())
        coordinator = consumer._coordinator  # neither library shows the member id otherwise
        # aiokafka's is empty from when the coordinator has removed it until it has joined again.
        of_kafka_python = getattr(coordinator, "_generation", None)
        member_id = coordinator.member_id if of_kafka_python is None else of_kafka_python.member_id
        if (owned, member_id) != self._reported and (owned or self._reported[0]):
            self._reported = (owned, member_id)
            self.report("assigned" if owned else "revoked", owned, member_id)

    def report(self, event: str, owned: Sequence[object], member_id: str | None) -> None:
        line = {"event": event, "at_ms": time.time_ns() // 1_000_000, "owned": owned, "member_id": member_id}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()

    def _read(self) -> None:
        for line in sys.stdin:
            self._commands.put(line.strip())
        # Nobody is there any more who would end it.
        os._exit(3)


def _kafka_python(topics: Sequence[str], settings: dict[str, Any], talk: _Conversation) -> None:
    consumer = KafkaConsumer(*topics, **settings)
    while not talk.is_over:
        if talk.is_polling:
            consumer.poll(_POLL_MS)
            talk.report_owned(consumer)
        else:
            time.sleep(_POLL_MS / 1_000)
        talk.take()
    consumer.close()


async def _aiokafka(topics: Sequence[str], settings: dict[str, Any], talk: _Conversation) -> None:
    consumer = AIOKafkaConsumer(*topics, **settings)
    await consumer.start()
    while not talk.is_over:
        if talk.is_polling:
            await consumer.getmany(timeout_ms=_POLL_MS)
            talk.report_owned(consumer)
        else:
            await asyncio.sleep(_POLL_MS / 1_000)
        talk.take()
    await consumer.stop()


def main() -> None:
    """Live as the consumer that the arguments describe, until `close` or the end of standard input."""
    library, topics, settings = sys.argv[1:]
    talk, given = _Conversation(), json.loads(settings)
    if library == "aiokafka":
        asyncio.run(_aiokafka(topics.split(","), given, talk))
    else:
        _kafka_python(topics.split(","), given, talk)
    talk.report("closed", [], None)
    os._exit(0)


if __name__ == "__main__":
    main()
