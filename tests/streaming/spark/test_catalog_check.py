"""A schema of Spark's catalogue that would not keep the tables is refused by name."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from streaming.setup.errors import SetupError
from streaming.spark.catalog_check import require_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DELTA = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_HIVE = {"spark.sql.catalogImplementation": "hive", "spark.sql.warehouse.dir": "file:/lake/warehouse"}


def session(conf: dict[str, str], *schemas: str, location: str = "", error: str = "") -> Any:
    """Return what knows these settings and schemas, all at one location; reading there fails with the error."""

    def load(_path: str) -> None:
        raise PySparkException(error)

    catalogs = {"spark.sql.catalog.spark_catalog": _DELTA, "spark.sql.catalog.lake": "org.example.LakeCatalog"}
    place = SimpleNamespace(locationUri=location)
    catalog = SimpleNamespace(
        databaseExists=schemas.__contains__,
        getDatabase=lambda _name: place,
        listCatalogs=lambda: [SimpleNamespace(name=name) for name in ("spark_catalog", "of_the_platform")],
    )
    read = SimpleNamespace(format=lambda _name: SimpleNamespace(load=load))
    return SimpleNamespace(conf=catalogs | conf, catalog=catalog, read=read)


@pytest.mark.parametrize("schema", ["spark_catalog.monitor", "lake.monitor"])
def test_a_schema_that_lasts_is_accepted(schema: str) -> None:
    require_schema(session(_HIVE, schema), schema, Path("/tmp/scratch"))


@pytest.mark.parametrize("schema", ["lake.monitor", "of_the_platform.monitor"])
def test_another_catalogue_needs_no_metastore_of_sparks(schema: str) -> None:
    found = require_schema(session({}, schema, location="file:/lake/monitor.db"), schema, Path("/tmp/scratch"))
    assert found == Path("/lake/monitor.db")
    assert require_schema(session({}, schema, location="dbfs:/lake"), schema, Path("/tmp/scratch")) is None


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


@pytest.mark.parametrize(
    "error",
    [
        "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found",
        'org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme "s3"',
    ],
)
def test_a_store_of_which_spark_has_no_jars_is_refused_with_the_remedy(error: str) -> None:
    spark = session(_HIVE, "spark_catalog.far", location="s3a://lake/far", error=error)
    what = error.partition(": ")[2]
    with pytest.raises(
        SetupError, match=rf"^Spark cannot write the tables of spark_catalog.far .*: {what}\n.*warehouse"
    ):
        require_schema(spark, "spark_catalog.far", Path("/tmp/scratch"))


@pytest.mark.parametrize("error", ["[PATH_NOT_FOUND] s3a://lake/far/.none", "AccessDeniedException: far: 403"])
def test_any_answer_of_a_store_will_do(error: str) -> None:
    spark = session(_HIVE, "lake.far", location="s3a://lake/far", error=error)
    require_schema(spark, "lake.far", Path("/tmp/scratch"))


@pytest.mark.spark
def test_the_catalogue_of_a_plain_session_is_in_memory(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="spark_catalog is in memory here"):
        require_schema(spark, "spark_catalog.default", tmp_path)
    with pytest.raises(SetupError, match="Spark knows no catalogue main"):
        require_schema(spark, "main.monitor", tmp_path)
