"""Consumers of librdkafka, each a process of its own that can be killed: they cost a tenth of a JVM.

They speak as `tests.kit.members.Member` understands; of a generation they know nothing. What they own is said when it
has changed.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from queue import Empty, SimpleQueue

from confluent_kafka import Consumer, KafkaException

from tests.kit.brokers import Broker
from tests.kit.members import Member

_POLL_S = 0.1
_COMMIT_MS = 500


def start_light_member(broker: Broker, group: str, topics: Sequence[str], settings: Mapping[str, str]) -> Member:
    """Start one consumer that is subscribed to these topics.

    Args:
        settings: of librdkafka, over those of the kit.
    """
    named = {
        **broker.client_settings(),
        "group.id": group,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": str(_COMMIT_MS),
        # New partitions are seen soon; the default is five minutes.
        "topic.metadata.refresh.interval.ms": "1000",
        "reconnect.backoff.max.ms": "1000",
        **settings,
    }
    options = [f"{key}={value}" for key, value in named.items()]
    return Member([sys.executable, "-m", __name__, ",".join(topics), *options])


def main() -> None:
    """Live as the consumer that the arguments describe, until `close` or the end of standard input."""
    topics, *options = sys.argv[1:]
    commands: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_read, args=(commands,), daemon=True).start()
    consumer = Consumer(dict(option.split("=", 1) for option in options))
    consumer.subscribe(topics.split(","))
    owned: list[list[object]] = []
    is_polling = True
    while True:
        try:
            command = commands.get_nowait()
        except Empty:
            command = ""
        if command == "close":
            consumer.close()
            _report("closed", [], None)
            os._exit(0)
        if command in ("pause", "resume"):
            is_polling = command == "resume"
        if not is_polling:
            time.sleep(_POLL_S)
            continue
        message = consumer.poll(_POLL_S)
        error = None if message is None else message.error()
        if error is not None:
            sys.stderr.write(f"{error}\n")
            if error.fatal():
                raise KafkaException(error)
        now = sorted([partition.topic, partition.partition] for partition in consumer.assignment())
        if now != owned:
            owned = now
            _report("assigned" if owned else "revoked", owned, consumer.memberid())


def _read(commands: SimpleQueue[str]) -> None:
    for line in sys.stdin:
        commands.put(line.strip())
    # Nobody is there any more who would end it.
    os._exit(3)


def _report(event: str, owned: Sequence[object], member_id: str | None) -> None:
    line = {"event": event, "at_ms": time.time_ns() // 1_000_000, "owned": owned, "member_id": member_id}
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
