"""Shell: the records of a cluster's ``__consumer_offsets`` as a source of the query."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from streaming.combine import OFFSETS
from streaming.kafka.cluster_view import OFFSETS_TOPIC
from streaming.kafka.options import KafkaOptions
from streaming.sources import kafka_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Spark's reader by the admin client leaves internal topics out, without a word; the one by a consumer reads them.
_READ_INTERNAL_TOPICS = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
# That reader waits for a broker that is away and cannot be interrupted: whoever stops the query waits no longer.
_STOP_TIMEOUT, _STOP_TIMEOUT_MS = "spark.sql.streaming.stopTimeout", "10000"


def offsets_source(
    spark: SparkSession, options: KafkaOptions, *, partitions: int, max_offsets_per_batch: int
) -> DataFrame:
    """Read all records of ``__consumer_offsets``, from the earliest that is left.

    The partitions are assigned, not subscribed to: so Spark joins no group, and none of its own shows up in the topic.
    Records that the cluster deleted before they were read are passed over; the collector tells of them.

    Args:
        partitions: How many the topic has; it never changes while the cluster lives.
    """
    spark.conf.set(_READ_INTERNAL_TOPICS, "true")
    spark.conf.set(_STOP_TIMEOUT, _STOP_TIMEOUT_MS)
    reader = (
        spark.readStream.format("kafka")
        .options(**options.spark())
        .option("assign", json.dumps({OFFSETS_TOPIC: list(range(partitions))}))
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", False)
        .option("maxOffsetsPerTrigger", max_offsets_per_batch)
        # An offset that was committed within a transaction counts once the transaction does.
        .option("kafka.isolation.level", "read_committed")
    )
    return kafka_rows(reader.load(), OFFSETS)
