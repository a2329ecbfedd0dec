"""Core: topics that grew, and how long Kafka clients may not know it yet. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from udfs.group.state.group import Evidence, Group, Member
from udfs.group.state.view import GroupView

# By default the metadata of clients may be this old. A generation within that age may lack new queues; a later
# generation without them leaves them out. Source: kafka-clients ``METADATA_MAX_AGE_CONFIG``, ``metadata_max_age_ms`` of
# kafka-python and aiokafka, librdkafka ``topic.metadata.refresh.interval.ms``, franz-go ``MetadataMaxAge``; sarama
# ``Metadata.RefreshFrequency``.
METADATA_MAX_AGE_MS: Final = 300_000
SARAMA_METADATA_MAX_AGE_MS: Final = 600_000
# Evidence of a growth that no generation followed within that age has this detail: the group's row already shows its
# queues.
NOT_FOLLOWED: Final = "not followed"
# Evidence of metadata that has caught up with the queues which the current generation counts: nothing grew beyond them.
COUNTED: Final = "counted"


def metadata_age_ms(members: Iterable[Member]) -> int:
    """Return how old the metadata of these members may be."""
    is_slow = any(member.client_library == "sarama" for member in members)
    return SARAMA_METADATA_MAX_AGE_MS if is_slow else METADATA_MAX_AGE_MS


def unshown_growth(group: Group, topic: str) -> list[Evidence]:
    """Return the evidence of queue changes of a topic that no generation has shown since."""
    return [
        evidence
        for evidence in group.evidence
        if evidence.kind == "queue_count_changed"
        and evidence.topic == topic
        and evidence.detail in (None, NOT_FOLLOWED, COUNTED)
    ]


def unshown_queues(view: GroupView, counts: Mapping[str, int], at: int | None = None) -> int:
    """Return the number of queues in the metadata that a generation had not learned of.

    Args:
        counts: Number of queues of each topic in the generation. at: The time to compare at; None for the time of the
            last growth.
    """
    topics = {evidence.topic for evidence in view.group.evidence if evidence.topic is not None}
    if not topics:
        return 0
    topics &= {topic for member in view.group.members.values() for topic in member.subscriptions or ()}
    total = 0
    for topic in topics:
        times = [growth.time for growth in unshown_growth(view.group, topic) if at is None or growth.time <= at]
        if times:
            queues = view.queues_at(topic, max(times) if at is None else at)
            total += max(0, len(queues or ()) - counts.get(topic, 0))
    return total


def known_queues(view: GroupView, counts: Mapping[str, int]) -> int:
    """Return the current number of queues of a generation's topics, as metadata shows them.

    Args:
        counts: Number of queues of each topic in the generation.
    """
    return sum(counts.values()) + unshown_queues(view, counts)
