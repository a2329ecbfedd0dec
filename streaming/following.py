"""Shell: the live clusters that a job follows: what each is to the job, and which there are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from streaming.collecting import Collector, CollectorStatus, seen_with_log
from streaming.event_log import EventFiles, EventLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streaming.kafka.collector import OffsetsRead
    from streaming.settings import Settings


class Follower(Protocol):
    """One live cluster beside the job, made before Spark starts, once it is known that it can be followed.

    Its collector appends to the checkpoint's folder of collected events, which the query reads.
    """

    def source(self, spark: SparkSession, *, max_offsets_per_batch: int) -> DataFrame | None:
        """Answer the raw rows that Spark reads itself; None where the collector tells everything."""

    def start(self) -> None:
        """Let the collector run beside the job."""

    def stop(self) -> None:
        """Stop the collector; what it saw is written."""

    def poll(self) -> bool:
        """Look at everything once, for a job that reads once; answer whether the cluster answered."""

    def tell_clock(self) -> bool:
        """Write the clock of that look if it was owed until the query had read; answer whether one was written."""

    def status(self) -> str | None:
        """Answer a few words when something is wrong with the cluster; None when nothing is."""

    def connection_error(self, error: BaseException) -> str | None:
        """Answer how the cluster's being away or refusing ended the query, which may then be started again.

        None: it was something else.
        """


class CollectorFollower:
    """Follows a cluster of which a collector tells everything.

    Args:
        log: What the collector appends to.
    """

    def __init__(self, collector: Collector, log: EventLog) -> None:
        self._collector = collector
        self._log = log

    def source(self, spark: SparkSession, *, max_offsets_per_batch: int) -> DataFrame | None:  # noqa: ARG002
        """Answer nothing: all is in the folder of collected events."""
        return None

    def start(self) -> None:
        """Let the collector run beside the job."""
        self._collector.start()

    def stop(self) -> None:
        """Stop the collector; what it saw is written."""
        self._collector.stop()
        self._log.flush()

    def poll(self) -> bool:
        """Look at everything once; answer whether the cluster answered."""
        return self._collector.observe_once()

    def tell_clock(self) -> bool:
        """Answer that no clock is owed: it stands behind what it covers."""
        return False

    def collector_status(self) -> CollectorStatus:
        """Answer how the collector fares."""
        return seen_with_log(self._collector.status(), self._log)

    def status(self) -> str | None:
        """Answer a few words when something is wrong."""
        status = self.collector_status()
        if status.state in ("away", "refused", "unwritable"):
            return f"{status.cluster} {status.state}"
        if status.unpolled:
            return f"{status.cluster}: {status.unpolled} not seen in time"
        return None

    def connection_error(self, error: BaseException) -> str | None:  # noqa: ARG002
        """Answer that it was something else: the query reads a folder."""
        return None


def cluster_sources(settings: Settings) -> list[str]:
    """Answer the names under which a checkpoint remembers the clusters that are followed, in a fixed order."""
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
    from streaming.kafka.options import KafkaOptions
    from streaming.kafka.rights import require_topic

    servers = events.bootstrap_servers or settings.kafka.bootstrap_servers
    require_topic(KafkaOptions(servers, events.topic, events.plain_options()), events.topic)


def checked_followers(settings: Settings, folder: Path, offsets_read: OffsetsRead) -> list[Follower]:
    """Check that each cluster of the settings can be followed, and answer what follows it.

    Args:
        folder: Where collectors write; the query must read it.
        offsets_read: Answers up to where the query has read Kafka's ``__consumer_offsets``.

    Raises:
        SetupError: One cannot be reached or does not let us in.
    """
    found: list[Follower] = []
    for system in settings.followed():
        if system == "kafka":
            from streaming.kafka.follower import KafkaFollower

            found.append(KafkaFollower.checked(settings.kafka, folder, offsets_read))
        else:
            make_collector = checked_collector(system, settings, was_seen=EventFiles.knows(folder, system))
            log = EventFiles(folder, system)
            found.append(CollectorFollower(make_collector(log), log))
    return found


def checked_collector(system: str, settings: Settings, *, was_seen: bool) -> Callable[[EventLog], Collector]:
    """Check that a cluster can be reached, and answer what makes its collector.

    Args:
        system: One that a collector tells everything of: ``rocketmq`` or ``metaq``.
        was_seen: An earlier start saw it: now it may be away.

    Raises:
        SetupError: It cannot be reached.
    """
    if system == "rocketmq":
        from streaming.rocketmq.follower import checked as checked_rocketmq

        return checked_rocketmq(settings.rocketmq, was_seen=was_seen)
    from streaming.metaq.follower import checked as checked_metaq

    return checked_metaq(settings.metaq, was_seen=was_seen)
