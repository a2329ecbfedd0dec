"""Records the offset commits and the classic group of real Kafka brokers from 1.0 to the newest.

python -m tests.kit.commit_records > tests/udfs/kafka/consumer_offsets_golden/commits.jsonl

A line is one record, in the order of its broker's log: the broker's version, the record's time, key and value in hex
(null: a tombstone), and what the newest of Kafka's own converters to JSON make of it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, TopicPartition

from tests.kit.brokers import NEWEST, Broker, kafka_10, kafka_41
from tests.kit.group_records import as_kafka_shows, records_of
from tests.kit.topics import create_topic, delete_group

if TYPE_CHECKING:
    from collections.abc import Iterator

_GROUP, _TOPIC = "billing", "orders"
_POLL_S = 0.1


@contextmanager
def _broker(version: str, folder: Path) -> Iterator[Broker]:
    start = kafka_10 if version == "1.0.2" else partial(kafka_41, version=version)
    with start(folder) as broker:
        yield broker


def play(broker: Broker) -> None:
    """Let a member commit, with words of its own and without, and let the group be deleted where brokers can."""
    create_topic(broker, _TOPIC, 2)
    settings = {"group.id": _GROUP, "client.id": "a", "enable.auto.commit": False, "session.timeout.ms": 6_000}
    consumer = Consumer({**broker.client_settings(), **settings})
    consumer.subscribe([_TOPIC])
    while len(consumer.assignment()) < 2:
        consumer.poll(_POLL_S)
    first = [TopicPartition(_TOPIC, 0, 42, "who: \u00e9"), TopicPartition(_TOPIC, 1, 0)]
    consumer.commit(offsets=first, asynchronous=False)
    consumer.commit(offsets=[TopicPartition(_TOPIC, 0, 1 << 40)], asynchronous=False)
    consumer.close()
    if broker.version != "1.0.2":
        delete_group(broker, _GROUP)


def main() -> int:
    """Play on each broker, and print its records."""
    for version in ("1.0.2", "3.9.1", "4.1.1", NEWEST):
        with tempfile.TemporaryDirectory() as folder:
            with _broker(version, Path(folder) / "broker") as broker:
                play(broker)
                found = list(records_of(broker, with_commits=True))
            for record, shown in zip(found, as_kafka_shows(found, NEWEST), strict=True):
                value = None if record.value is None else record.value.hex()
                line = {"broker": version, "at": record.at, "key": record.key.hex(), "value": value, "kafka": shown}
                sys.stdout.write(json.dumps(line) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
