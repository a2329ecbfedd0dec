"""Shell: the sources of the query, each brought to the same columns: a folder, a Kafka topic, the control folder.

A row is one line or one record. Nothing is parsed here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from streaming.combine import CONTROL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# source: its name. place, number: where in it, as a file's name and null, or a partition and an offset.
# key, timestamp_ms: of a Kafka record, else null. value: the bytes as they came.
RAW_COLUMNS = {
    "source": "string",
    "place": "string",
    "number": "bigint",
    "key": "binary",
    "value": "binary",
    "timestamp_ms": "bigint",
}
# Names under which files are known to be written before they are renamed.
_UNFINISHED = r"(\.tmp|\.part|\.partial|\.crdownload|\.swp|~|\._COPYING_)$"
# What a path would mean to Spark beside itself.
_GLOB_CHARACTER = re.compile(r"[\[\]{}*?\\]")
# Longer than any recording is old. Spark's default ignores files a week older than the newest one seen.
_ANY_AGE = "36500d"


# How long a disposable file that is still there is known to have been read.
_DISPOSABLE_AGE = "1d"


def folder_source(
    spark: SparkSession,
    folder: str | Path,
    *,
    max_files_per_batch: int,
    source: str = "events",
    disposable: bool = False,
) -> DataFrame:
    """Read the lines of the files in a folder, each file once.

    Files come in by rename and never change. Hidden files and unfinished ones are not read; what is compressed
    (``.gz``, ``.bz2``, ``.zst``) is read as its name says. A file that is gone again is passed over.

    Args:
        disposable: The files are the job's own: each is deleted once the batch that read it is committed.
    """
    from pyspark.sql import functions

    lines = (
        spark.readStream.format("text")
        .schema("value string")
        # Only a line feed ends a line: a lone carriage return is white space in JSON.
        .option("lineSep", "\n")
        .option("maxFilesPerTrigger", max_files_per_batch)
        .option("maxFileAge", _DISPOSABLE_AGE if disposable else _ANY_AGE)
        .option("cleanSource", "delete" if disposable else "off")
        .option("ignoreMissingFiles", True)
        .option("recursiveFileLookup", True)
        .load(_GLOB_CHARACTER.sub(r"\\\g<0>", str(folder)))
    )
    file_name = functions.col("_metadata.file_name")
    return lines.where(~file_name.rlike(_UNFINISHED)).select(
        functions.lit(source).alias("source"),
        file_name.alias("place"),
        functions.lit(None).cast("bigint").alias("number"),
        functions.lit(None).cast("binary").alias("key"),
        # The bytes as they are: the text source does not decode them.
        functions.col("value").cast("binary").alias("value"),
        functions.lit(None).cast("bigint").alias("timestamp_ms"),
    )


def control_source(spark: SparkSession, folder: str | Path) -> DataFrame:
    """Read the driver's own marks."""
    return folder_source(spark, folder, max_files_per_batch=1000, source=CONTROL, disposable=True)


def collected_source(spark: SparkSession, folder: str | Path) -> DataFrame:
    """Read the events of collectors that run beside the job."""
    return folder_source(spark, folder, max_files_per_batch=1000, source="collected", disposable=True)


def topic_source(
    spark: SparkSession,
    topic: str,
    *,
    bootstrap_servers: str,
    options: Mapping[str, str],
    max_offsets_per_batch: int,
    source: str = "topic",
) -> DataFrame:
    """Read the records of a Kafka topic, from the earliest that is left.

    Args:
        options: For Spark's Kafka source; those of the client begin with ``kafka.``. They go before our own.
    """
    reader = (
        spark.readStream.format("kafka")
        .option("subscribe", topic)
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("startingOffsets", "earliest")
        # Records that retention took before they were read must not stop the job.
        .option("failOnDataLoss", False)
        .option("maxOffsetsPerTrigger", max_offsets_per_batch)
    )
    return kafka_rows(reader.options(**options).load(), source)


def kafka_rows(records: DataFrame, source: str) -> DataFrame:
    """Bring what Spark's Kafka source answers to the raw columns."""
    from pyspark.sql import functions

    return records.select(
        functions.lit(source).alias("source"),
        functions.concat_ws("-", functions.col("topic"), functions.col("partition")).alias("place"),
        functions.col("offset").alias("number"),
        functions.col("key"),
        functions.col("value"),
        functions.unix_millis(functions.col("timestamp")).alias("timestamp_ms"),
    )
