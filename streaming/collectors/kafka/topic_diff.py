"""Shell: the changes of a cluster's topics between two reads of its metadata, as events."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from udfs.model.events import QueueInfo, TopicQueues, event_fields

# Kafka's internal topics (kafka-clients ``Topic``) have fixed names.
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"})


class ObservedTopic(msgspec.Struct, frozen=True):
    """A topic in the metadata.

    Attributes:
        racks: For each partition, in order: the racks of its replicas, sorted and distinct; empty if no broker names
            its rack.
        topic_id: Its UUID, if the broker has topic ids.
    """

    partitions: int
    racks: tuple[tuple[str, ...], ...] = ()
    topic_id: str | None = None


class TopicDiff:
    """The reported topics, from which changes are found.

    A deleted topic, or one with fewer partitions than before, is reported only after two equal reads: a broker that has
    just started may not know everything yet.
    """

    def __init__(self, cluster: str, memory: bytes | None = None) -> None:
        self._cluster = cluster
        self._reported: dict[str, ObservedTopic] = {}
        self._doubted: dict[str, ObservedTopic | None] = {}
        if memory is not None:
            self._reported = msgspec.json.decode(memory, type=dict[str, ObservedTopic])

    def memory(self) -> bytes:
        """Return the state from which a new instance continues."""
        return msgspec.json.encode(self._reported, order="sorted")

    @property
    def reported(self) -> Mapping[str, ObservedTopic]:
        """Return the topics as last reported."""
        return self._reported

    def diff(self, observed: Mapping[str, ObservedTopic | None], time_ms: int) -> list[TopicQueues]:
        """Compare a read with the reported topics.

        Args:
            observed: Every topic that the cluster lists; None for a topic that could not be described.
        """
        events = []
        doubted: dict[str, ObservedTopic | None] = {}
        for topic in sorted(observed.keys() | self._reported.keys()):
            if topic in INTERNAL_TOPICS or (topic in observed and observed[topic] is None):
                continue
            now, before = observed.get(topic), self._reported.get(topic)
            if now == before:
                continue
            shrunk = before is not None and (now is None or now.partitions < before.partitions)
            replaced = now is not None and before is not None and now.topic_id != before.topic_id
            if shrunk and not replaced and not (topic in self._doubted and self._doubted[topic] == now):
                doubted[topic] = now
                continue
            if replaced and before is not None and before.topic_id is not None:
                # The topic was deleted and re-created between two reads, so it is another topic with new queues.
                events.append(self._event(topic, None, time_ms - 1))
            events.append(self._event(topic, now, time_ms))
            if now is None:
                del self._reported[topic]
            else:
                self._reported[topic] = now
        self._doubted = doubted
        return events

    def _event(self, topic: str, now: ObservedTopic | None, time_ms: int) -> TopicQueues:
        event = TopicQueues(
            **event_fields("kafka", self._cluster, time_ms),
            topic=topic,
            topic_id=now.topic_id if now is not None else None,
        )
        if now is None or not any(now.racks):
            event.queue_count = now.partitions if now is not None else 0
        else:
            event.queues = tuple(QueueInfo(queue_id=number, racks=racks) for number, racks in enumerate(now.racks))
        return event
