"""Shell: the records of a cluster's ``__consumer_offsets`` as a source of the query."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from streaming.collectors.kafka.options import KafkaOptions
from streaming.pipeline.sources import offsets_rows
from udfs.kafka.consumer_offsets import OFFSETS_TOPIC

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Spark's reader by the admin client silently skips internal topics; the one by a consumer reads them.
_READ_INTERNAL_TOPICS = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
# Spark's reader waits for an unavailable broker uninterruptibly, so a stop of the query waits no longer than this.
_STOP_TIMEOUT, _STOP_TIMEOUT_MS = "spark.sql.streaming.stopTimeout", "10000"


def offsets_source(
    spark: SparkSession,
    options: KafkaOptions,
    *,
    partitions: int,
    max_offsets_per_batch: int,
    is_tolerant: bool = False,
) -> DataFrame:
    """Read all records of ``__consumer_offsets``, from the earliest existing one.

    The partitions are assigned, not subscribed to, so that Spark joins no group, and has none in the topic.

    Args:
        partitions: The topic's number of partitions, which never changes while the cluster lives.
        is_tolerant: Records that were deleted before they were read are skipped; otherwise the query fails.
    """
    spark.conf.set(_READ_INTERNAL_TOPICS, "true")
    spark.conf.set(_STOP_TIMEOUT, _STOP_TIMEOUT_MS)
    reader = (
        spark.readStream.format("kafka")
        .options(**options.spark())
        .option("assign", json.dumps({OFFSETS_TOPIC: list(range(partitions))}))
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", not is_tolerant)
        .option("maxOffsetsPerTrigger", max_offsets_per_batch)
        # An offset that was committed within a transaction counts once the transaction is committed.
        .option("kafka.isolation.level", "read_committed")
    )
    return offsets_rows(reader.load())
