"""Shell: one live Kafka cluster, as the job sees it: a source, and a collector beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from streaming.collectors.collector import CollectorCluster
from streaming.collectors.event_log import EventFiles
from streaming.collectors.kafka.client_options import KafkaOptions
from streaming.collectors.kafka.collector import KafkaCollector, OffsetsRead
from streaming.collectors.kafka.errors import connection_error
from streaming.collectors.kafka.permissions import offsets_partitions, require_rights
from streaming.collectors.kafka.spark_source import offsets_source
from streaming.machine.logs import logger

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streaming.settings.clusters import Kafka

_log = logger("kafka")


def options_of(settings: Kafka) -> KafkaOptions:
    """Return the options of the cluster that the settings name."""
    return KafkaOptions(
        bootstrap_servers=settings.bootstrap_servers,
        cluster=settings.cluster,
        properties=settings.plain_options(),
        include_groups=settings.include_groups,
        exclude_groups=settings.exclude_groups,
    )


class KafkaCluster(CollectorCluster):
    """Follows one cluster: ``checked`` makes it, before Spark starts. Spark reads the group records itself."""

    def __init__(
        self, options: KafkaOptions, folder: Path, offsets_read: OffsetsRead, *, partitions: int, poll_interval_ms: int
    ) -> None:
        log = EventFiles(folder, "kafka")
        self._kafka = KafkaCollector(options, log, offsets_read, poll_interval_ms=poll_interval_ms)
        super().__init__(self._kafka, log)
        self._options = options
        self._partitions = partitions

    @classmethod
    def checked(cls, settings: Kafka, folder: Path, offsets_read: OffsetsRead) -> KafkaCluster:
        """Check that the cluster can be followed.

        Args:
            folder: Where the collector writes; the query must read it. offsets_read: As ``KafkaCollector`` takes it.
        Raises:
            SetupError: It cannot be reached or refuses access, or a right is missing.
        """
        options = options_of(settings)
        for missing in require_rights(options):
            _log.warning("a permission is missing", right=str(missing), give_it_with=missing.command(options))
        partitions = offsets_partitions(options)
        return cls(options, folder, offsets_read, partitions=partitions, poll_interval_ms=settings.poll_interval_ms)

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
        return self._kafka.settle()

    def connection_error(self, error: BaseException) -> str | None:
        """Return how the cluster's being away or refusing ended the query."""
        return connection_error(error)
