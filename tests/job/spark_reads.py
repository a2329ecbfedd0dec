"""What Spark reads of tables, for `ManyRuns.call`: in the process whose commands have started it."""

from __future__ import annotations

import json

from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession

from tests.job.table_bags import OF_THE_CUT


def assert_counts(tables: str, counts: str) -> None:
    """Compare how many rows each table has: by name, as JSON."""
    assert {name: _read(tables, name).count() for name in json.loads(counts)} == json.loads(counts)


def assert_same_rows(ours: str, theirs: str, name: str) -> None:
    """Compare a table of two folders, with its nested columns."""
    frames = (_read(tables, name).drop(*OF_THE_CUT) for tables in (ours, theirs))
    assert_df_equality(*frames, ignore_row_order=True)


def _read(tables: str, name: str) -> DataFrame:
    return SparkSession.builder.getOrCreate().read.format("delta").load(f"{tables}/{name}")
