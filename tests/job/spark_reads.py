"""What Spark reads of tables, for `ManyRuns.call`: in the process whose commands have started it."""

from __future__ import annotations

import json

from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession

from tests.job.table_bags import OF_THE_CUT


def assert_counts(tables: str, counts: str) -> None:
    """Compare how many rows each table has: by name, as JSON."""
    wanted = json.loads(counts)
    # Each call ends its session, as a command does, so that the next one has its own settings.
    with SparkSession.builder.getOrCreate() as spark:
        assert {name: _read(spark, tables, name).count() for name in wanted} == wanted


def assert_same_rows(ours: str, theirs: str, name: str) -> None:
    """Compare a table of two folders, with its nested columns."""
    with SparkSession.builder.getOrCreate() as spark:
        frames = (_read(spark, tables, name).drop(*OF_THE_CUT) for tables in (ours, theirs))
        assert_df_equality(*frames, ignore_row_order=True)


def _read(spark: SparkSession, tables: str, name: str) -> DataFrame:
    return spark.read.format("delta").load(f"{tables}/{name}")
