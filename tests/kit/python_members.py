"""Members of other client libraries than Java's, each in a thread of its own: librdkafka, kafka-python, aiokafka."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any, Self

from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AioRange
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as AioRoundRobin
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as AioSticky
from confluent_kafka import Consumer
from kafka import KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from tests.kit.brokers import Broker

_AIOKAFKA = {"range": AioRange, "roundrobin": AioRoundRobin, "sticky": AioSticky}
_KAFKA_PYTHON = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
STRATEGIES = {
    "librdkafka": ("range", "roundrobin", "cooperative-sticky"),
    "kafka-python": tuple(_KAFKA_PYTHON),
    "aiokafka": tuple(_AIOKAFKA),
}
_POLL_S = 0.1
_END_S = 30.0


class PythonMember(threading.Thread):
    """One running consumer; it leaves its group when the block ends or ``stop`` is called.

    Args:
        library: ``librdkafka``, ``kafka-python`` or ``aiokafka``.
        client_id: None: the library's own. instance_id: Makes it a static member.
    """

    def __init__(
        self,
        library: str,
        broker: Broker,
        group: str,
        topics: Sequence[str],
        strategy: str,
        *,
        client_id: str | None = None,
        instance_id: str | None = None,
    ) -> None:
        super().__init__(daemon=True)
        self._is_over = threading.Event()
        self._broker, self._group, self._topics, self._strategy = broker, group, list(topics), strategy
        self._named = {"client_id": client_id, "group_instance_id": instance_id}
        self._consume = {
            "librdkafka": self._librdkafka,
            "kafka-python": self._kafka_python,
            "aiokafka": lambda: asyncio.run(self._aiokafka()),
        }[library]
        self.start()

    def run(self) -> None:
        self._consume()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Close the consumer; a dynamic member leaves its group."""
        self._is_over.set()
        self.join(_END_S)

    def _librdkafka(self) -> None:
        named = {name.replace("_", "."): value for name, value in self._named.items() if value is not None}
        settings: dict[str, Any] = {
            **self._broker.client_settings(),
            "group.id": self._group,
            "partition.assignment.strategy": self._strategy,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 300,
            **named,
        }
        consumer = Consumer(settings)
        consumer.subscribe(self._topics)
        while not self._is_over.is_set():
            consumer.poll(_POLL_S)
        consumer.close()

    def _settings(self) -> dict[str, Any]:
        return {
            "bootstrap_servers": self._broker.bootstrap,
            "group_id": self._group,
            "session_timeout_ms": 6000,
            "heartbeat_interval_ms": 300,
            # A leader that assigned before it had a topic's metadata has nothing to give until it asks again; the
            # default is five minutes.
            "metadata_max_age_ms": 1000,
            **{name: value for name, value in self._named.items() if value is not None},
        }

    def _kafka_python(self) -> None:
        strategies = [_KAFKA_PYTHON[self._strategy]]
        consumer = KafkaConsumer(*self._topics, partition_assignment_strategy=strategies, **self._settings())
        while not self._is_over.is_set():
            consumer.poll(int(_POLL_S * 1000))
        consumer.close()

    async def _aiokafka(self) -> None:
        strategies = [_AIOKAFKA[self._strategy]]
        consumer = AIOKafkaConsumer(*self._topics, partition_assignment_strategy=strategies, **self._settings())
        await consumer.start()
        while not self._is_over.is_set():
            await consumer.getmany(timeout_ms=int(_POLL_S * 1000))
        await consumer.stop()
