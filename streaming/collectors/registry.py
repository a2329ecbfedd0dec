"""Shell: the systems whose live clusters can be followed, one lazily imported entry each.

The name of a profile is also that of the section of its settings (``streaming/settings/clusters.py``), of its option,
e.g. ``--kafka``, and of its folder next to this module.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from udfs.model.systems import KAFKA, METAQ, ROCKETMQ, SystemProfile

if TYPE_CHECKING:
    from streaming.collectors.collector import AttachedCluster, Collector
    from streaming.collectors.event_log import EventLog, QuietLog
    from streaming.collectors.kafka.collector import OffsetsRead
    from streaming.machine.stop_request import StopRequest
    from streaming.settings.model import Settings
    from streaming.stores.places import Place


class CollectorLogs(Protocol):
    """Gives a collector the logs to which it appends."""

    def log(self, part: str = "") -> EventLog:
        """Return a log for the cluster, or for a part of its events, with a memory of its own."""

    def remember(self) -> bool:
        """Return whether an earlier start left a memory of the cluster."""


class FollowedSystem:
    """A system whose collector reports everything.

    The module ``factory`` in its folder has ``validated(section, was_followed=)``: it checks that a cluster can be
    reached, unless an earlier start followed it, and returns a function that creates the collector for a log.

    Args:
        metavar: The placeholder for its address on the command line.
        filters_topics: Whether its settings choose topics by patterns, too.
    """

    def __init__(self, profile: SystemProfile, metavar: str, *, filters_topics: bool = False) -> None:
        self.profile = profile
        self.metavar = metavar
        self.filters_topics = filters_topics

    def attached(
        self,
        settings: Settings,
        folder: Place,
        offsets_read: OffsetsRead,  # noqa: ARG002
        is_prompt: Callable[[], bool],
    ) -> AttachedCluster:
        """Return the attached cluster that the job follows by these settings.

        Args:
            folder: The folder for the collector, which the query must read.
            offsets_read: Returns how far the query has read Kafka's ``__consumer_offsets``.
            is_prompt: See ``QuietLog``.

        Raises:
            SetupError: The cluster cannot be reached or refuses access.
        """
        from streaming.collectors.collector import CollectorCluster
        from streaming.collectors.event_log import EventFiles

        make_collector = self._validated(settings, was_followed=EventFiles.knows(folder, self.profile.name))
        log = _quiet(settings, is_prompt)(EventFiles(folder, self.profile.name))
        return CollectorCluster(make_collector(log), log)

    def alone(self, settings: Settings, logs: CollectorLogs, stop: StopRequest) -> Collector:  # noqa: ARG002
        """Return the collector of the settings' cluster, without a job.

        Args:
            stop: Requested by the caller; it also ends a full read.

        Raises:
            SetupError: The cluster cannot be reached or refuses access.
        """
        return self._validated(settings, was_followed=logs.remember())(logs.log())

    def _validated(self, settings: Settings, *, was_followed: bool) -> Callable[[EventLog], Collector]:
        validated: Callable[..., Callable[[EventLog], Collector]] = import_module(
            f"streaming.collectors.{self.profile.name}.factory"
        ).validated
        return validated(settings.cluster(self.profile.name), was_followed=was_followed)


class _FollowedKafka(FollowedSystem):
    """Kafka, whose group records Spark itself reads in a job."""

    def attached(
        self, settings: Settings, folder: Place, offsets_read: OffsetsRead, is_prompt: Callable[[], bool]
    ) -> AttachedCluster:
        from streaming.collectors.kafka.factory import KafkaCluster

        quiet = partial(_quiet(settings, is_prompt), position=lambda: dict(offsets_read()))
        lateness_ms = settings.time.allowed_lateness_ms
        return KafkaCluster.validated(settings.kafka, folder, offsets_read, lateness_ms=lateness_ms, quiet=quiet)

    def alone(self, settings: Settings, logs: CollectorLogs, stop: StopRequest) -> Collector:
        from streaming.collectors.kafka import factory

        return factory.alone(settings.kafka, logs.log, stop)


def _quiet(settings: Settings, is_prompt: Callable[[], bool]) -> Callable[..., QuietLog]:
    """Return a function that makes a log of events leave out clocks of a quiet cluster."""
    from streaming.collectors.event_log import QuietLog

    lateness_ms, silent_after_ms = settings.time.allowed_lateness_ms, settings.time.source_silent_after_ms
    return partial(QuietLog, lateness_ms=lateness_ms, silent_after_ms=silent_after_ms, is_prompt=is_prompt)


FOLLOWED: dict[str, FollowedSystem] = {
    system.profile.name: system
    for system in (
        _FollowedKafka(KAFKA, "HOST:PORT"),
        FollowedSystem(ROCKETMQ, "NAMESRV[;NAMESRV]", filters_topics=True),
        FollowedSystem(METAQ, "ZK[/root]", filters_topics=True),
    )
}


def attached_clusters(
    settings: Settings, folder: Place, offsets_read: OffsetsRead, is_prompt: Callable[[], bool] = lambda: True
) -> list[AttachedCluster]:
    """Check that each cluster of the settings can be followed, and return it as ``attached`` does.

    Raises:
        SetupError: A cluster cannot be reached or refuses access.
    """
    return [FOLLOWED[system].attached(settings, folder, offsets_read, is_prompt) for system in settings.followed()]


def check_events_topic(settings: Settings, *, was_read: bool) -> None:
    """Check that the topic of events can be read, if there is one.

    Args:
        was_read: Whether an earlier start read it, so that its broker may be away now.

    Raises:
        SetupError: It cannot be reached, or there is no such topic.
    """
    events = settings.kafka_events
    if not events.topic or was_read:
        return
    from streaming.collectors.kafka.options import KafkaOptions
    from streaming.collectors.kafka.permissions import require_topic

    servers = events.bootstrap_servers or settings.kafka.bootstrap_servers
    require_topic(KafkaOptions(servers, events.topic, events.plain_options()), events.topic)
