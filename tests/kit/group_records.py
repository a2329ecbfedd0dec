"""Records the group records of a real Kafka 4.1 broker: of new-protocol groups, and of one that goes there and back.

python -m tests.kit.group_records > tests/udfs/kafka/consumer_offsets_golden/broker.jsonl
python -m tests.kit.group_records 3.9.1 4.4.0 > tests/udfs/kafka/consumer_offsets_golden/groups_of_versions.jsonl

A line is one record, in the order of the log: its time, key and value in hex (null: a tombstone), and what Kafka's own
converters to JSON make of it. Of brokers of other versions, whose groups live through less, it has the version, and the
newest converters are taken.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from streaming.setup.java import find_java
from tests.kit.brokers import NEWEST, Broker, kafka_41
from tests.kit.jars import kit_jars
from tests.kit.java_members import wait_until
from tests.kit.members import Member, start_member
from tests.kit.other_groups import EVERY_KIND, FEATURES, join_share_group, join_streams_group
from tests.kit.topics import add_partitions, create_topic

FORMATTER = Path(__file__).parents[1] / "udfs" / "kafka" / "consumer_offsets_golden" / "Format.java"
_MIGRATING = {"group.consumer.migration.policy": "bidirectional"}
CONSUMER_PROTOCOL = {"group.protocol": "consumer"}
_OFFSET_COMMITS = (0, 1)
_WAIT_S = 30.0
# It has no share and streams groups.
_WITHOUT_OTHERS = "3.9.1"
# Of a member of a share or streams group: the first ones give it nothing yet.
_HEARTBEATS = 10
_TIMEOUT_S = 60


class Record(NamedTuple):
    """One record of ``__consumer_offsets``, in epoch ms."""

    at: int
    key: bytes
    value: bytes | None


def records_of(broker: Broker, *, with_commits: bool = False) -> Iterator[Record]:
    """Yield all records of groups that a broker with one partition of them has."""
    settings = {"group.id": "recorder", "enable.partition.eof": True, "auto.offset.reset": "earliest"}
    reader = Consumer(broker.client_settings() | settings)
    reader.assign([TopicPartition("__consumer_offsets", 0, 0)])
    while (message := reader.poll(_WAIT_S)) is not None:
        error, key = message.error(), message.key()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            break
        assert key is not None
        if with_commits or int.from_bytes(key[:2], "big") not in _OFFSET_COMMITS:
            yield Record(message.timestamp()[1], key, message.value())
    reader.close()


def as_kafka_shows(records: list[Record], version: str = "4.1.1") -> list[object]:
    """Return what Kafka's own converters make of records."""
    jars = kit_jars(f"kafka-{version}")[0].parent
    lines = "".join(f"{record.key.hex()}\t{(record.value or b'').hex()}\n" for record in records)
    shown = subprocess.run(
        [find_java().java, "-cp", f"{jars}/*", str(FORMATTER)],
        input=lines,
        capture_output=True,
        text=True,
        check=True,
        timeout=_TIMEOUT_S,
    )
    return [json.loads(line) for line in shown.stdout.splitlines()]


def topic_ids(broker: Broker, topics: list[str]) -> dict[str, str]:
    """Return the ids of topics, as Kafka writes them."""
    client = AdminClient({**broker.client_settings()})
    found = client.describe_topics(TopicCollection(topics))
    return {topic: str(future.result(_TIMEOUT_S).topic_id) for topic, future in found.items()}


def play(broker: Broker) -> None:
    """Let groups live through what their records are about."""
    create_topic(broker, "orders", 4)
    create_topic(broker, "bills", 2)
    with ExitStack() as members:

        def start(group: str, client_id: str, **more: object) -> Member:
            more.setdefault("settings", CONSUMER_PROTOCOL)
            member = start_member(broker, group, ["orders"], client_id=client_id, **more)  # type: ignore[arg-type]
            return members.enter_context(member)

        def hold(partitions: int, *some: Member) -> None:
            wait_until(some, lambda: sum(len(member.owned) for member in some) == partitions)

        a = start("shop", "a")
        hold(4, a)
        b = start("shop", "b", rack="rack-b")
        wait_until([a, b], lambda: len(b.owned) == 2 and len(a.owned) == 2)
        s = start("shop", "s", instance_id="static")
        wait_until([a, b, s], lambda: min(len(member.owned) for member in (a, b, s)) >= 1)
        s.stop()
        s = start("shop", "s", instance_id="static")
        wait_until([s], lambda: len(s.owned) >= 1)
        b.kill()
        hold(4, a, s)
        a.subscribe(["orders", "bills"])
        hold(6, a, s)
        add_partitions(broker, "orders", 6)
        hold(8, a, s)
        a.stop()

        pattern = {"group.id": "pattern", **CONSUMER_PROTOCOL, "group.remote.assignor": "range"}
        reader = Consumer(broker.client_settings() | pattern)
        reader.subscribe(["^ord.*"])
        while len(reader.assignment()) < 6:
            reader.poll(0.1)
        reader.close()

        old = start("moving", "old", settings={})
        hold(6, old)
        new = start("moving", "new")
        wait_until([old, new], lambda: len(old.owned) == 3 and len(new.owned) == 3)
        new.stop()
        hold(6, old)
        join_share_group(broker, "sharing", "orders")
        join_streams_group(broker, "streaming", "orders")


def play_short(broker: Broker) -> None:
    """Let a group of each kind that the broker has live: two members, of which one gives up some of its partitions."""
    create_topic(broker, "orders", 2)
    with ExitStack() as members:

        def start(client_id: str, **more: Any) -> Member:
            member = start_member(broker, "shop", ["orders"], client_id=client_id, **more)
            return members.enter_context(member)

        first = start("a", settings=CONSUMER_PROTOCOL)
        wait_until([first], lambda: len(first.owned) == 2)
        both = [first, start("b")]
        wait_until(both, lambda: [len(member.owned) for member in both] == [1, 1])
        for closing in both:
            closing.stop()
    if broker.version != _WITHOUT_OTHERS:
        join_share_group(broker, "sharing", "orders", _HEARTBEATS)
        join_streams_group(broker, "streaming", "orders", _HEARTBEATS)


def main(versions: Sequence[str]) -> int:
    """Play, and print the records; of 4.1.1 alone first the ids of their topics."""
    for version in versions or ["4.1.1"]:
        with tempfile.TemporaryDirectory() as folder:
            others = {} if version == _WITHOUT_OTHERS else EVERY_KIND
            features = () if version == _WITHOUT_OTHERS else FEATURES
            with kafka_41(Path(folder) / "broker", others | _MIGRATING, features=features, version=version) as broker:
                (play_short if versions else play)(broker)
                found = list(records_of(broker))
                if not versions:
                    sys.stdout.write(json.dumps({"topics": topic_ids(broker, ["orders", "bills"])}) + "\n")
        for record, shown in zip(found, as_kafka_shows(found, NEWEST if versions else "4.1.1"), strict=True):
            value = None if record.value is None else record.value.hex()
            line = {"at": record.at, "key": record.key.hex(), "value": value, "kafka": shown}
            sys.stdout.write(json.dumps(({"broker": version} if versions else {}) | line) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
