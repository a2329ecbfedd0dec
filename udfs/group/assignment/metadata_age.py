"""Core: topics that grew, and the age within which clients of Kafka need not know it. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from udfs.group.state.group import Evidence, Group, Member
from udfs.group.state.view import GroupView

# How old the metadata of clients may be, by their defaults. A generation within it may lack new queues; a later one
# leaves them out. Source: kafka-clients ``METADATA_MAX_AGE_CONFIG``, ``metadata_max_age_ms`` of kafka-python and
# aiokafka, librdkafka ``topic.metadata.refresh.interval.ms``, franz-go ``MetadataMaxAge``; sarama
# ``Metadata.RefreshFrequency``.
METADATA_MAX_AGE_MS: Final = 300_000
SARAMA_METADATA_MAX_AGE_MS: Final = 600_000
# The detail of evidence of a growth that was not followed within that age: the group's row shows its queues already.
NOT_FOLLOWED: Final = "not followed"


def metadata_age_ms(members: Iterable[Member]) -> int:
    """Return how old the metadata of these members may be."""
    is_slow = any(member.client_library == "sarama" for member in members)
    return SARAMA_METADATA_MAX_AGE_MS if is_slow else METADATA_MAX_AGE_MS


def unshown_growth(group: Group, topic: str) -> list[Evidence]:
    """Return the evidence of changes of a topic's queues that no generation has shown since."""
    return [
        one
        for one in group.evidence
        if one.kind == "queue_count_changed" and one.topic == topic and one.detail in (None, NOT_FOLLOWED)
    ]


def is_shown_later(view: GroupView, topic: str, shown: int, at: int) -> bool:
    """Return whether a generation shows fewer queues of a topic than metadata, which has shown them for too short.

    Args:
        shown: How many queues the topic has in the generation. at: When that was made.
    """
    if len(view.queues_at(topic, at) or ()) <= shown:
        return False
    return any(one.time <= at for one in unshown_growth(view.group, topic))
