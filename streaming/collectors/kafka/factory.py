"""Shell: one live Kafka cluster, for the job as a source with a collector, or for ``collect``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from streaming.collectors.collector import Collector, CollectorCluster, with_part
from streaming.collectors.event_log import EventFiles, EventLog
from streaming.collectors.kafka.admin_kafka_collector import AdminKafkaCollector
from streaming.collectors.kafka.collector import LATENESS_MS, KafkaCollector, OffsetsRead
from streaming.collectors.kafka.coordinator_log_collector import CoordinatorLogCollector, LogBehindLines, brokers_logs
from streaming.collectors.kafka.errors import connection_error
from streaming.collectors.kafka.group_source import Source, choose_source
from streaming.collectors.kafka.options import KafkaOptions
from streaming.collectors.kafka.spark_source import offsets_source
from streaming.collectors.kafka.standalone_kafka_collector import StandaloneKafkaCollector
from streaming.machine.stop_request import StopRequest
from streaming.stores.places import Place
from streaming.tables.liveness import SourceStatus

# The collector of admin calls stores its memory of groups under this name.
POLLS = "kafka-polls"
# The position in the brokers' logs is kept under this name.
LOGS = "kafka-log"

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streaming.settings.clusters import Kafka


def options_of(settings: Kafka) -> KafkaOptions:
    """Return the options of the cluster that the settings name."""
    return KafkaOptions(
        bootstrap_servers=settings.bootstrap_servers,
        cluster=settings.cluster,
        properties=settings.plain_options(),
        include_groups=settings.include_groups,
        exclude_groups=settings.exclude_groups,
        ends_interval_ms=settings.ends_interval_ms,
        unread_groups=settings.unread_groups,
    )


def _source_before(folder: Place) -> Source | None:
    """Return the source that an earlier start of the job used."""
    if EventFiles.knows(folder, POLLS):
        return "admin"
    return "records" if EventFiles.knows(folder, "kafka") else None


class _BrokersLogs:
    """The brokers' logs of a job, if the settings name any."""

    lines: CoordinatorLogCollector | None = None
    logged: EventFiles | None = None

    def __init__(self, settings: Kafka, folder: Place) -> None:
        if settings.logs:
            self.logged = EventFiles(folder, LOGS)
            self.lines = brokers_logs(settings, self.logged)

    def before(self, log: EventLog) -> EventLog:
        """Return a log of events whose clocks wait for everything that was logged before them."""
        return log if self.lines is None else LogBehindLines(log, self.lines)


class _LoggingCluster(CollectorCluster):
    """A cluster whose brokers' logs may be read as well, before each of its clocks and twice a second."""

    def __init__(self, collector: Collector, log: EventLog, logs: _BrokersLogs) -> None:
        super().__init__(collector, log)
        self._logs, self._logged = logs.lines, logs.logged

    def start(self) -> None:
        """Start the collectors in the job's process."""
        if self._logs is not None:
            self._logs.start()
        super().start()

    def stop(self) -> None:
        """Stop the collectors; observed events are written."""
        super().stop()
        if self._logs is not None and self._logged is not None:
            self._logs.stop()
            self._logged.flush()

    def poll(self) -> bool:
        """Read everything once, a pipe to its end; return whether the cluster answered."""
        are_read = True
        if self._logs is not None:
            self._logs.read_to_end(StopRequest())
            are_read = self._logs.observe_once()
        return super().poll() and are_read

    def status(self) -> str | None:
        """Return a short text of the problem, if there is one."""
        problem = super().status()
        if problem is None and self._logs is not None and (status := self._logs.status()).state == "unwritable":
            return f"{status.cluster} {status.state}"
        return problem

    def source_status(self) -> SourceStatus:
        """Return why the cluster is not known, or in which part, to which logs belong that cannot be read."""
        found = super().source_status()
        return found if self._logs is None else with_part(found, self._logs.unread())


class PolledKafkaCluster(_LoggingCluster):
    """Follows one cluster by admin calls; its collector reports everything."""

    source_kind: str | None = "kafka-admin"

    def __init__(
        self, options: KafkaOptions, folder: Place, logs: _BrokersLogs, *, poll_interval_ms: int, lateness_ms: int
    ) -> None:
        log, self._groups = EventFiles(folder, "kafka"), EventFiles(folder, POLLS)
        collector = AdminKafkaCollector(
            options, logs.before(log), self._groups, poll_interval_ms=poll_interval_ms, lateness_ms=lateness_ms
        )
        super().__init__(collector, log, logs)

    def stop(self) -> None:
        """Stop the collector; observed events are written."""
        super().stop()
        self._groups.flush()


class KafkaCluster(_LoggingCluster):
    """Follows one cluster; ``validated`` creates it before Spark starts. Spark reads the group records itself."""

    def __init__(
        self,
        options: KafkaOptions,
        folder: Place,
        offsets_read: OffsetsRead,
        logs: _BrokersLogs,
        *,
        partitions: int,
        poll_interval_ms: int,
        lateness_ms: int,
        quiet: Callable[[EventLog], EventLog],
    ) -> None:
        log = EventFiles(folder, "kafka")
        self._kafka = KafkaCollector(
            options, quiet(logs.before(log)), offsets_read, poll_interval_ms=poll_interval_ms, lateness_ms=lateness_ms
        )
        super().__init__(self._kafka, log, logs)
        self._options = options
        self._partitions = partitions

    @classmethod
    def validated(
        cls,
        settings: Kafka,
        folder: Place,
        offsets_read: OffsetsRead,
        *,
        lateness_ms: int = LATENESS_MS,
        quiet: Callable[[EventLog], EventLog] = lambda log: log,
    ) -> KafkaCluster | PolledKafkaCluster:
        """Check that the cluster can be followed.

        Args:
            folder: The folder for the collector, which the query must read.
            offsets_read, lateness_ms: See ``KafkaCollector``.
            quiet: Makes the log of events leave out clocks, where Spark reads the group records.

        Raises:
            SetupError: The cluster cannot be reached or refuses access, or a permission is missing.
        """
        options = options_of(settings)
        chosen = choose_source(options, settings.source, _source_before(folder))
        interval_ms, logs = settings.poll_interval_ms, _BrokersLogs(settings, folder)
        made: KafkaCluster | PolledKafkaCluster
        if chosen.source == "admin":
            made = PolledKafkaCluster(options, folder, logs, poll_interval_ms=interval_ms, lateness_ms=lateness_ms)
        else:
            made = cls(
                options,
                folder,
                offsets_read,
                logs,
                partitions=chosen.partitions,
                poll_interval_ms=interval_ms,
                lateness_ms=lateness_ms,
                quiet=quiet,
            )
        made.group_source = (settings.cluster, str(chosen))
        return made

    def source(self, spark: SparkSession, *, max_offsets_per_batch: int, is_tolerant: bool) -> DataFrame:
        """Return the group records, as raw rows."""
        return offsets_source(
            spark,
            self._options,
            partitions=self._partitions,
            max_offsets_per_batch=max_offsets_per_batch,
            is_tolerant=is_tolerant,
        )

    def flush_clock(self) -> bool:
        """Write the clock of the last poll if the query has read everything before it; return whether it has."""
        return self._kafka.flush_clock()

    def connection_error(self, error: BaseException) -> str | None:
        """Return the cluster's error if it ended the query."""
        return connection_error(error)


def alone(settings: Kafka, log: Callable[[str], EventLog], stop: StopRequest) -> Collector:
    """Return the collector of a cluster without a job, for the source that its settings name, once it has been checked.

    Args:
        log: Creates the log for a part of its events.
        stop: Requested by the caller; it also ends a full read.

    Raises:
        SetupError: The cluster cannot be reached or refuses access, or a permission is missing.
    """
    options, interval_ms = options_of(settings), settings.poll_interval_ms
    parts: dict[Source, str] = {"admin": "polls", "records": "groups"}
    # An earlier start used whichever of the two has a memory.
    logs = {source: log(part) for source, part in parts.items() if settings.source in (source, "auto")}
    before = next((source for source in logs if logs[source].read_memory() is not None), None)
    chosen = choose_source(options, settings.source, before)
    topics, groups = log("topics"), logs[chosen.source]
    if chosen.source == "admin":
        return AdminKafkaCollector(options, topics, groups, poll_interval_ms=interval_ms)
    return StandaloneKafkaCollector(
        options, topics, groups, partitions=chosen.partitions, poll_interval_ms=interval_ms, stop=stop
    )
