"""Shell: the sources of the query in one set of columns: a folder, a Kafka topic, the control folder.

A row is one line or one record. Nothing is parsed here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from streaming.pipeline.combine import CHECK, CONTROL, EVENTS, FILES, PARTITION_STEP, READ
from streaming.pipeline.file_reader import LARGEST_FOR_SPARK_BYTES, READ_HERE
from streaming.stores.places import Place, hadoop_uri

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamReader

# source: its name. place, number: the position in it, as a file's name and null, or a partition and an offset. key,
# timestamp_ms: of a Kafka record, else null. value: the bytes as received. ``offsets_rows`` has its own use of them.
RAW_COLUMNS = {
    "source": "string",
    "place": "string",
    "number": "bigint",
    "key": "binary",
    "value": "binary",
    "timestamp_ms": "bigint",
}
# Files that are still being written have such names until they are renamed.
_UNFINISHED = r"(\.tmp|\.part|\.partial|\.crdownload|\.swp|~|\._COPYING_)$"
# Spark would read these characters of a path as a pattern.
_GLOB_CHARACTER = re.compile(r"[\[\]{}*?\\]")
# No recording is older than this. Spark's default ignores files a week older than the newest one.
_ANY_AGE = "36500d"


# A file that was read and not yet deleted is remembered for this long.
_DISPOSABLE_AGE = "1d"


def folder_source(spark: SparkSession, folder: Place, *, max_files_per_batch: int) -> DataFrame:
    """Read the lines of the files in a folder, each file once.

    Files arrive by rename and never change. Hidden and unfinished files are not read; compressed files are recognized
    by name. A file that was deleted before it is read, or is empty, is skipped.

    It gives two sources of the query, in this order: the lines of plain files, which Spark reads, and the names of all
    files. Workers read the files that are compressed, very large or have a name that Spark's reader cannot open, and
    check whether the others can be read, because Spark silently skips files that it may not open.
    """
    from pyspark.sql import functions

    names = (
        _files(spark.readStream.format("binaryFile"), max_files_per_batch)
        # The contents are never read; existing files are only listed.
        .schema("path string, modificationTime timestamp, length bigint, content binary")
        .load(_plain(folder))
        .where(_is_finished())
        .select(
            functions.lit(FILES).alias("source"),
            functions.col("_metadata.file_path").alias("place"),
            functions.when(_is_read_whole(), READ).otherwise(CHECK).cast("bigint").alias("number"),
            functions.lit(None).cast("binary").alias("key"),
            functions.lit(None).cast("binary").alias("value"),
            functions.lit(None).cast("bigint").alias("timestamp_ms"),
        )
    )
    lines = _files(_text(spark), max_files_per_batch).load(_plain(folder))
    return _lines(lines.where(_is_finished() & ~_is_read_whole()), EVENTS).unionByName(names)


def _own_files(spark: SparkSession, folder: Place, source: str) -> DataFrame:
    """Read the lines of files that the job itself wrote; each is deleted once the batch that read it is committed."""
    reader = _files(_text(spark), max_files_per_batch=1000)
    reader = reader.option("maxFileAge", _DISPOSABLE_AGE).option("cleanSource", "delete")
    return _lines(reader.load(_plain(folder)).where(_is_finished()), source)


def _text(spark: SparkSession) -> DataStreamReader:
    # Only a line feed ends a line, because a lone carriage return is white space in JSON.
    return spark.readStream.format("text").schema("value string").option("lineSep", "\n")


def _files(reader: DataStreamReader, max_files_per_batch: int) -> DataStreamReader:
    return (
        reader.option("maxFilesPerTrigger", max_files_per_batch)
        .option("maxFileAge", _ANY_AGE)
        .option("ignoreMissingFiles", True)
        .option("recursiveFileLookup", True)
    )


def _plain(folder: Place) -> str:
    return _GLOB_CHARACTER.sub(r"\\\g<0>", hadoop_uri(folder))


def _is_finished() -> Column:
    from pyspark.sql import functions

    return ~functions.col("_metadata.file_name").rlike(_UNFINISHED)


def _is_read_whole() -> Column:
    """Return whether workers read a file by themselves; Spark then does not open it."""
    from pyspark.sql import functions

    is_too_large = functions.col("_metadata.file_size") > LARGEST_FOR_SPARK_BYTES
    return is_too_large | functions.col("_metadata.file_name").rlike(READ_HERE)


def _lines(lines: DataFrame, source: str) -> DataFrame:
    from pyspark.sql import functions

    return lines.select(
        functions.lit(source).alias("source"),
        functions.col("_metadata.file_name").alias("place"),
        functions.lit(None).cast("bigint").alias("number"),
        functions.lit(None).cast("binary").alias("key"),
        # The bytes stay unchanged, because the text source does not decode them.
        functions.col("value").cast("binary").alias("value"),
        functions.lit(None).cast("bigint").alias("timestamp_ms"),
    )


def control_source(spark: SparkSession, folder: Place) -> DataFrame:
    """Read the driver's own marks."""
    return _own_files(spark, folder, CONTROL)


def collected_source(spark: SparkSession, folder: Place) -> DataFrame:
    """Read the events of collectors in the job's process."""
    return _own_files(spark, folder, "collected")


def topic_source(
    spark: SparkSession,
    topic: str,
    *,
    bootstrap_servers: str,
    options: Mapping[str, str],
    max_offsets_per_batch: int,
    is_tolerant: bool = False,
) -> DataFrame:
    """Read the records of a Kafka topic, from the earliest that is left.

    Args:
        is_tolerant: Records that were deleted before they were read are skipped; otherwise the query fails.
        options: For Spark's Kafka source; those of the client begin with ``kafka.``. They override the defaults here.
    """
    reader = (
        spark.readStream.format("kafka")
        .option("subscribe", topic)
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", not is_tolerant)
        .option("maxOffsetsPerTrigger", max_offsets_per_batch)
    )
    records = reader.options(**options).load()
    return _kafka_rows(records, "'topic'", "concat_ws('-', topic, partition)", "offset")


def offsets_rows(records: DataFrame) -> DataFrame:
    """Convert records of ``__consumer_offsets`` from Spark's Kafka source to the raw columns, as few as possible."""
    return _kafka_rows(records, "NULL", "NULL", f"partition * {PARTITION_STEP} + offset")


def _kafka_rows(records: DataFrame, source: str, place: str, number: str) -> DataFrame:
    """Convert the columns of Spark's Kafka source to the raw columns; three of them are SQL expressions."""
    return records.selectExpr(
        f"CAST({source} AS STRING) AS source",
        f"CAST({place} AS STRING) AS place",
        f"CAST({number} AS BIGINT) AS number",
        "key",
        "value",
        "unix_millis(timestamp) AS timestamp_ms",
    )
