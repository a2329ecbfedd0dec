"""Shell: the live clusters that a job follows: what each is to the job, and which there are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from streaming.collectors.collector import AttachedCluster, Collector, CollectorCluster
from streaming.collectors.event_log import EventFiles, EventLog

if TYPE_CHECKING:
    from streaming.collectors.kafka.collector import OffsetsRead
    from streaming.settings.model import Settings


def cluster_sources(settings: Settings) -> list[str]:
    """Return the names under which a checkpoint remembers the clusters that are followed, in a fixed order."""
    return [f"{system}:{cluster}" for system, cluster in settings.followed().items()]


def check_events_topic(settings: Settings, *, was_read: bool) -> None:
    """Check that the topic of events can be read, if there is one.

    Args:
        was_read: An earlier start read it: now its broker may be away.

    Raises:
        SetupError: It cannot be reached, or there is no such topic.
    """
    events = settings.kafka_events
    if not events.topic or was_read:
        return
    from streaming.collectors.kafka.client_options import KafkaOptions
    from streaming.collectors.kafka.permissions import require_topic

    servers = events.bootstrap_servers or settings.kafka.bootstrap_servers
    require_topic(KafkaOptions(servers, events.topic, events.plain_options()), events.topic)


def attached_clusters(settings: Settings, folder: Path, offsets_read: OffsetsRead) -> list[AttachedCluster]:
    """Check that each cluster of the settings can be followed, and return what follows it.

    Args:
        folder: Where collectors write; the query must read it.
        offsets_read: Answers up to where the query has read Kafka's ``__consumer_offsets``.

    Raises:
        SetupError: One cannot be reached or refuses access.
    """
    found: list[AttachedCluster] = []
    for system in settings.followed():
        if system == "kafka":
            from streaming.collectors.kafka.factory import KafkaCluster

            found.append(KafkaCluster.checked(settings.kafka, folder, offsets_read))
        else:
            make_collector = validated_collector(system, settings, was_seen=EventFiles.knows(folder, system))
            log = EventFiles(folder, system)
            found.append(CollectorCluster(make_collector(log), log))
    return found


def validated_collector(system: str, settings: Settings, *, was_seen: bool) -> Callable[[EventLog], Collector]:
    """Check that a cluster can be reached, and return what makes its collector.

    Args:
        system: One whose collector reports everything: ``rocketmq`` or ``metaq``.
        was_seen: An earlier start saw it: now it may be away.

    Raises:
        SetupError: It cannot be reached.
    """
    if system == "rocketmq":
        from streaming.collectors.rocketmq.factory import checked as validated_rocketmq

        return validated_rocketmq(settings.rocketmq, was_seen=was_seen)
    from streaming.collectors.metaq.factory import checked as validated_metaq

    return validated_metaq(settings.metaq, was_seen=was_seen)
