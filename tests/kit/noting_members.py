"""Python consumers of several libraries that say when they got messages of which partition: `read` reports.

They speak as `tests.kit.members.Member` understands, a process of its own each, which can be killed and frozen.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from queue import Empty, SimpleQueue

from tests.kit.brokers import Broker
from tests.kit.members import Member

_POLL_S = 0.05


def start_noting_member(
    library: str, broker: Broker, group: str, topics: Sequence[str], settings: Mapping[str, str]
) -> Member:
    """Start one consumer that is subscribed to these topics.

    Args:
        library: `librdkafka` or `aiokafka`.
        settings: of that library.
    """
    options = [f"{key}={value}" for key, value in settings.items()]
    return Member([sys.executable, "-m", __name__, library, broker.bootstrap, group, ",".join(topics), *options])


def main() -> None:
    """Live as the consumer that the arguments describe, until `close` or the end of standard input."""
    library, bootstrap, group, topics, *options = sys.argv[1:]
    settings = dict(option.split("=", 1) for option in options)
    commands: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(commands,), daemon=True).start()
    if library == "librdkafka":
        _librdkafka(bootstrap, group, topics.split(","), settings, commands)
    else:
        asyncio.run(_aiokafka(bootstrap, group, topics.split(","), settings, commands))


def _librdkafka(
    bootstrap: str, group: str, topics: Sequence[str], settings: Mapping[str, str], commands: SimpleQueue[str]
) -> None:
    from confluent_kafka import Consumer

    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest", **settings}
    )
    consumer.subscribe(list(topics))
    owned: list[list[object]] = []
    while not _is_over(commands):
        messages = [message for message in consumer.consume(100, _POLL_S) if message.error() is None]
        if messages:
            _report("read", {(message.topic(), message.partition()) for message in messages}, owned)
        now = sorted([partition.topic, partition.partition] for partition in consumer.assignment())
        if now != owned:
            owned = now
            _report("assigned" if owned else "revoked", (), owned)
    consumer.close()
    _end()


async def _aiokafka(
    bootstrap: str, group: str, topics: Sequence[str], settings: Mapping[str, str], commands: SimpleQueue[str]
) -> None:
    from aiokafka import AIOKafkaConsumer

    numbers = {key: int(value) if value.isdigit() else value for key, value in settings.items()}
    consumer = AIOKafkaConsumer(
        *topics, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest", **numbers
    )
    await consumer.start()
    owned: list[list[object]] = []
    while not _is_over(commands):
        batches = await consumer.getmany(timeout_ms=int(_POLL_S * 1_000))
        if batches:
            _report(
                "read",
                {(partition.topic, partition.partition) for partition, messages in batches.items() if messages},
                owned,
            )
        now = sorted([partition.topic, partition.partition] for partition in consumer.assignment())
        if now != owned:
            owned = now
            _report("assigned" if owned else "revoked", (), owned)
    await consumer.stop()
    _end()


def _is_over(commands: SimpleQueue[str]) -> bool:
    try:
        return commands.get_nowait() == "close"
    except Empty:
        return False


def _listen(commands: SimpleQueue[str]) -> None:
    for line in sys.stdin:
        commands.put(line.strip())
    # Nobody is there any more who would end it.
    os._exit(3)


def _end() -> None:
    _report("closed", (), [])
    os._exit(0)


def _report(event: str, changed: Iterable[tuple[object, object]], owned: Sequence[object]) -> None:
    line = {"event": event, "at_ms": time.time_ns() // 1_000_000, "changed": sorted(changed), "owned": owned}
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
