"""Topics and groups of a test's broker, by librdkafka's admin client, which talks to Kafka 1.0 and 4.1 alike."""

import time
from collections.abc import Mapping

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
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

_TIMEOUT_S = 120
_POLL_S = 0.05


def create_topic(
    broker: Broker, topic: str, partitions: int, settings: Mapping[str, str] | None = None, *, replicas: int = 1
) -> None:
    """Create a topic and return once the broker reports all its partitions."""
    client = AdminClient(broker.client_settings())
    wanted = NewTopic(topic, num_partitions=partitions, replication_factor=replicas, config=dict(settings or {}))
    try:
        client.create_topics([wanted], operation_timeout=_TIMEOUT_S)[topic].result(_TIMEOUT_S)
    except KafkaException as error:
        # The client sends it again where a controller is slow to answer.
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
    _wait_for(client, topic, partitions)


def add_partitions(broker: Broker, topic: str, total: int) -> None:
    """Grow a topic to `total` partitions and return once the broker reports them."""
    client = AdminClient(broker.client_settings())
    client.create_partitions([NewPartitions(topic, total)], operation_timeout=_TIMEOUT_S)[topic].result(_TIMEOUT_S)
    _wait_for(client, topic, total)


def delete_topic(broker: Broker, topic: str) -> None:
    """Delete a topic and return once the broker no longer reports it."""
    client = AdminClient(broker.client_settings())
    client.delete_topics([topic], operation_timeout=_TIMEOUT_S)[topic].result(_TIMEOUT_S)
    _wait_for(client, topic, 0)


def delete_group(broker: Broker, group: str) -> None:
    """Delete a group that has no members, and return once its coordinator has."""
    client = AdminClient(broker.client_settings())
    client.delete_consumer_groups([group], request_timeout=_TIMEOUT_S)[group].result(_TIMEOUT_S)


def expire_records(broker: Broker, topic: str) -> int:
    """Let retention delete all records of partition 0, also of an internal topic; return the first offset left.

    The broker must look for what is due often: `log.retention.check.interval.ms`, `log.initial.task.delay.ms`.
    """
    client = AdminClient(broker.client_settings())
    place = TopicPartition(topic, 0)

    def bound(of: OffsetSpec) -> int:
        return int(client.list_offsets({place: of})[place].result(_TIMEOUT_S).offset)

    def keep(span_ms: int) -> None:
        _configure(client, topic, {"cleanup.policy": "delete", "retention.ms": str(span_ms)})

    end = bound(OffsetSpec.latest())
    keep(1)
    deadline = time.monotonic() + _TIMEOUT_S
    while bound(OffsetSpec.earliest()) < end:
        assert time.monotonic() < deadline, f"{topic} still has records before {end} after {_TIMEOUT_S} s"
        time.sleep(_POLL_S)
    keep(-1)
    return bound(OffsetSpec.earliest())


def compact(broker: Broker, topic: str, partition: int = 0) -> None:
    """Have a topic compacted that is being written to; return once the first record of a partition is gone.

    The broker must look for what is due often: `log.cleaner.backoff.ms`.
    """
    client = AdminClient(broker.client_settings())
    _configure(client, topic, {"segment.ms": "200", "min.cleanable.dirty.ratio": "0.001"})
    reader = Consumer({**broker.client_settings(), "group.id": "kit", "enable.auto.commit": False})
    deadline = time.monotonic() + _TIMEOUT_S
    first: int | None = 0
    while first == 0:
        assert time.monotonic() < deadline, f"{topic} has its first record after {_TIMEOUT_S} s"
        reader.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
        records = reader.consume(1, _TIMEOUT_S)
        first = records[0].offset() if records else 0
        reader.unassign()
        time.sleep(_POLL_S)
    reader.close()


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


def set_session_timeout(broker: Broker, group: str, timeout_ms: int) -> None:
    """Set after which time the coordinator gives up a member of a group of the new protocol."""
    client = AdminClient(broker.client_settings())
    _configure(client, group, {"consumer.session.timeout.ms": str(timeout_ms)}, ResourceType.GROUP)


def _configure(
    client: AdminClient, name: str, wanted: Mapping[str, str], kind: ResourceType = ResourceType.TOPIC
) -> None:
    entries = [ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in wanted.items()]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    client.incremental_alter_configs([resource])[resource].result(_TIMEOUT_S)


def _wait_for(client: AdminClient, topic: str, partitions: int) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        metadata = client.list_topics(timeout=_TIMEOUT_S).topics.get(topic)
        if (0 if metadata is None else len(metadata.partitions)) == partitions:
            return
        assert time.monotonic() < deadline, f"{topic} has not {partitions} partitions after {_TIMEOUT_S} s"
        time.sleep(_POLL_S)
