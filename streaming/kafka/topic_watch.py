"""Shell: what changed in a cluster's topics between two looks at its metadata, as events."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from udfs.events import SCHEMA_VERSION, QueueInfo, TopicQueues

# Kafka's own (kafka-clients ``Topic``); their names are fixed.
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"})


class SeenTopic(msgspec.Struct, frozen=True):
    """A topic as metadata tells it.

    Attributes:
        racks: Of each partition, in order: the racks of its replicas, sorted and distinct; empty where no broker
            names its rack.
        topic_id: Its UUID, where the broker has such.
    """

    partitions: int
    racks: tuple[tuple[str, ...], ...] = ()
    topic_id: str | None = None


class TopicWatch:
    """Remembers what was told of the topics, and tells what is new.

    A topic that has gone, or has fewer partitions than before, is told only when two looks in turn agree: a broker
    that has just started may not know everything yet.
    """

    def __init__(self, cluster: str, memory: bytes | None = None) -> None:
        self._cluster = cluster
        self._told: dict[str, SeenTopic] = {}
        self._doubted: dict[str, SeenTopic | None] = {}
        if memory is not None:
            self._told = msgspec.json.decode(memory, type=dict[str, SeenTopic])

    def memory(self) -> bytes:
        """Answer what a new watch must be given to go on from here."""
        return msgspec.json.encode(self._told, order="sorted")

    @property
    def told(self) -> Mapping[str, SeenTopic]:
        """The topics as they were told last."""
        return self._told

    def look(self, seen: Mapping[str, SeenTopic | None], time_ms: int) -> list[TopicQueues]:
        """Compare a look with what was told.

        Args:
            seen: Every topic that the cluster showed; None where it could not describe one just then.
            time_ms: The event time of what is new.
        """
        events = []
        doubted: dict[str, SeenTopic | None] = {}
        for topic in sorted(seen.keys() | self._told.keys()):
            if topic in INTERNAL_TOPICS or (topic in seen and seen[topic] is None):
                continue
            now, before = seen.get(topic), self._told.get(topic)
            if now == before:
                continue
            shrunk = before is not None and (now is None or now.partitions < before.partitions)
            replaced = now is not None and before is not None and now.topic_id != before.topic_id
            if shrunk and not replaced and not (topic in self._doubted and self._doubted[topic] == now):
                doubted[topic] = now
                continue
            events.append(self._event(topic, now, time_ms))
            if now is None:
                del self._told[topic]
            else:
                self._told[topic] = now
        self._doubted = doubted
        return events

    def _event(self, topic: str, now: SeenTopic | None, time_ms: int) -> TopicQueues:
        event = TopicQueues(
            schema_version=SCHEMA_VERSION,
            event_time=time_ms,
            system="kafka",
            cluster=self._cluster,
            topic=topic,
            topic_id=now.topic_id if now is not None else None,
        )
        if now is None or not any(now.racks):
            event.queue_count = now.partitions if now is not None else 0
        else:
            event.queues = tuple(QueueInfo(queue_id=number, racks=racks) for number, racks in enumerate(now.racks))
        return event
