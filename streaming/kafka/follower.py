"""Shell: one live Kafka cluster, as the job sees it: a source, and a collector beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from streaming.event_log import EventFiles
from streaming.kafka.collector import CollectorStatus, KafkaCollector, OffsetsRead
from streaming.kafka.errors import is_connection_error
from streaming.kafka.options import KafkaOptions
from streaming.kafka.rights import offsets_partitions, require_rights
from streaming.kafka.source import offsets_source
from streaming.logs import logger

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streaming.settings import Kafka

_log = logger("kafka")


def options_of(settings: Kafka) -> KafkaOptions:
    """Answer the options of the cluster that the settings name."""
    return KafkaOptions(
        bootstrap_servers=settings.bootstrap_servers,
        cluster=settings.cluster,
        properties=settings.plain_options(),
        include_groups=settings.include_groups,
        exclude_groups=settings.exclude_groups,
    )


class KafkaFollower:
    """Follows one cluster: ``checked`` makes it, before Spark starts."""

    def __init__(
        self, options: KafkaOptions, folder: Path, offsets_read: OffsetsRead, *, partitions: int, poll_interval_ms: int
    ) -> None:
        self._options = options
        self._partitions = partitions
        self._collector = KafkaCollector(
            options, EventFiles(folder, "kafka"), offsets_read, poll_interval_ms=poll_interval_ms
        )
        self._started = False

    @classmethod
    def checked(cls, settings: Kafka, folder: Path, offsets_read: OffsetsRead) -> KafkaFollower:
        """Check that the cluster can be followed.

        Args:
            folder: Where the collector writes; the query must read it. offsets_read: As ``KafkaCollector`` takes it.
        Raises:
            SetupError: It cannot be reached or does not let us in, or a right is missing.
        """
        options = options_of(settings)
        for missing in require_rights(options):
            _log.warning("a right is missing", right=str(missing), give_it_with=missing.command(options))
        partitions = offsets_partitions(options)
        return cls(options, folder, offsets_read, partitions=partitions, poll_interval_ms=settings.poll_interval_ms)

    def source(self, spark: SparkSession, *, max_offsets_per_batch: int) -> DataFrame:
        """Answer the group records, as raw rows."""
        return offsets_source(
            spark, self._options, partitions=self._partitions, max_offsets_per_batch=max_offsets_per_batch
        )

    def start(self) -> None:
        """Let the collector run beside the job."""
        self._started = True
        self._collector.start()

    def stop(self) -> None:
        """Stop the collector."""
        self._collector.stop()

    def poll(self) -> bool:
        """Take one round now, for a job that reads once; answer whether the cluster answered."""
        return self._collector.observe_once()

    def tell_clock(self) -> bool:
        """Write the clock of that round, once the query has read all of it; answer whether it has."""
        return self._collector.settle()

    def collector_status(self) -> CollectorStatus:
        """Answer how the collector fares."""
        return self._collector.status()

    def status(self) -> str | None:
        """Answer a few words when something is wrong with the cluster; None when nothing is."""
        status = self._collector.status()
        if status.state in ("away", "refused", "unwritable"):
            return f"{self._options.cluster} {status.state}"
        return None

    @staticmethod
    def is_connection_error(error: BaseException) -> bool:
        """Say whether the query died of the cluster's being away or refusing: it may be started again."""
        return is_connection_error(error)
