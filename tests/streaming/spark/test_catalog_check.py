"""A schema of Spark's catalogue that would not keep the tables is refused by name."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from streaming.setup.errors import SetupError
from streaming.spark.catalog_check import require_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DELTA = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_HIVE = {"spark.sql.catalogImplementation": "hive", "spark.sql.warehouse.dir": "file:/lake/warehouse"}


def session(conf: dict[str, str], *schemas: str) -> Any:
    """Return what knows these settings and schemas."""
    catalogs = {"spark.sql.catalog.spark_catalog": _DELTA, "spark.sql.catalog.lake": "org.example.LakeCatalog"}
    return SimpleNamespace(conf=catalogs | conf, catalog=SimpleNamespace(databaseExists=schemas.__contains__))


@pytest.mark.parametrize("schema", ["spark_catalog.monitor", "lake.monitor"])
def test_a_schema_that_lasts_is_accepted(schema: str) -> None:
    require_schema(session(_HIVE, schema), schema, Path("/tmp/scratch"))


def test_another_catalogue_needs_no_metastore_of_sparks() -> None:
    require_schema(session({}, "lake.monitor"), "lake.monitor", Path("/tmp/scratch"))


@pytest.mark.parametrize(
    ("conf", "schema", "problem"),
    [
        ({}, "main.monitor", "Spark knows no catalogue main\n.*under .spark.conf.*write ./main.monitor"),
        ({}, "spark_catalog.monitor", "is in memory here: it forgets its tables.*\n.*spark.sql.catalogImplementation"),
        (
            _HIVE | {"spark.sql.warehouse.dir": "file:/tmp/scratch/warehouse"},
            "spark_catalog.monitor",
            "would be among temporary files\n.*spark.sql.warehouse.dir",
        ),
        (_HIVE, "spark_catalog.absent", "there is no schema spark_catalog.absent\n.*CREATE SCHEMA spark_catalog."),
    ],
)
def test_one_that_does_not_is_refused_with_its_remedy(conf: dict[str, str], schema: str, problem: str) -> None:
    with pytest.raises(SetupError, match=problem):
        require_schema(session(conf, "spark_catalog.monitor"), schema, Path("/tmp/scratch"))


@pytest.mark.spark
def test_the_catalogue_of_a_plain_session_is_in_memory(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="spark_catalog is in memory here"):
        require_schema(spark, "spark_catalog.default", tmp_path)
    with pytest.raises(SetupError, match="Spark knows no catalogue main"):
        require_schema(spark, "main.monitor", tmp_path)
