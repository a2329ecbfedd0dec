"""Topics of a test's broker, by librdkafka's admin client, which talks to Kafka 1.0 and 4.1 alike."""

import time
from collections.abc import Mapping

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.kit.brokers import Broker

_TIMEOUT_S = 30
_POLL_S = 0.05


def create_topic(broker: Broker, topic: str, partitions: int, settings: Mapping[str, str] | None = None) -> None:
    """Create a topic and return once the broker tells of all its partitions."""
    client = AdminClient(broker.client_settings())
    wanted = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=dict(settings or {}))
    client.create_topics([wanted], operation_timeout=_TIMEOUT_S)[topic].result(_TIMEOUT_S)
    _wait_for(client, topic, partitions)


def add_partitions(broker: Broker, topic: str, total: int) -> None:
    """Grow a topic to `total` partitions and return once the broker tells of them."""
    client = AdminClient(broker.client_settings())
    client.create_partitions([NewPartitions(topic, total)], operation_timeout=_TIMEOUT_S)[topic].result(_TIMEOUT_S)
    _wait_for(client, topic, total)


def delete_topic(broker: Broker, topic: str) -> None:
    """Delete a topic and return once the broker no longer tells of it."""
    client = AdminClient(broker.client_settings())
    client.delete_topics([topic], operation_timeout=_TIMEOUT_S)[topic].result(_TIMEOUT_S)
    _wait_for(client, topic, 0)


def expire_records(broker: Broker, topic: str) -> int:
    """Let retention delete all records of partition 0, also of an internal topic; return the first offset left.

    The broker must look for what is due often: `log.retention.check.interval.ms`, `log.initial.task.delay.ms`.
    """
    client = AdminClient(broker.client_settings())
    place = TopicPartition(topic, 0)

    def bound(of: OffsetSpec) -> int:
        return int(client.list_offsets({place: of})[place].result(_TIMEOUT_S).offset)

    def keep(span_ms: int) -> None:
        wanted = {"cleanup.policy": "delete", "retention.ms": str(span_ms)}
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in wanted.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        client.incremental_alter_configs([resource])[resource].result(_TIMEOUT_S)

    end = bound(OffsetSpec.latest())
    keep(1)
    deadline = time.monotonic() + _TIMEOUT_S
    while bound(OffsetSpec.earliest()) < end:
        assert time.monotonic() < deadline, f"{topic} still has records before {end} after {_TIMEOUT_S} s"
        time.sleep(_POLL_S)
    keep(-1)
    return bound(OffsetSpec.earliest())


def delete_records(broker: Broker, topic: str, before: int, partition: int = 0) -> None:
    """Delete the records before an offset, as retention does."""
    client = AdminClient(broker.client_settings())
    (done,) = client.delete_records([TopicPartition(topic, partition, before)]).values()
    assert done.result(_TIMEOUT_S).low_watermark == before


def send(broker: Broker, topic: str, values: list[bytes], partition: int | None = None) -> None:
    """Append these records and return once the broker has them all."""
    producer = Producer(broker.client_settings())
    for value in values:
        if partition is None:
            producer.produce(topic, value)
        else:
            producer.produce(topic, value, partition=partition)
    left = producer.flush(_TIMEOUT_S)
    assert left == 0, f"{left} of {len(values)} records were not taken"


def _wait_for(client: AdminClient, topic: str, partitions: int) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        known = client.list_topics(timeout=_TIMEOUT_S).topics.get(topic)
        if (0 if known is None else len(known.partitions)) == partitions:
            return
        assert time.monotonic() < deadline, f"{topic} has not {partitions} partitions after {_TIMEOUT_S} s"
        time.sleep(_POLL_S)
