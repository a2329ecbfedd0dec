"""Shell: checks whether a schema of Spark's catalog exists, and keeps its tables when the job ends."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from streaming.setup.errors import SetupError
from streaming.spark.root_cause import reason
from streaming.stores.places import place_named

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SESSION = "spark_catalog"
_OF_CATALOG = "spark.sql.catalog."
# This class passes tables on to Spark's own catalog; any other class keeps them itself.
_DELTA = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_LASTING = (
    'set "spark.sql.catalogImplementation" = "hive" and "spark.sql.warehouse.dir" under [spark.conf], name a schema of'
    " another catalogue, or a folder or URI with --tables"
)
# Hadoop reports with these that it cannot read a store at all.
_NO_FILE_SYSTEM = re.compile(r'Class \S+ not found|No FileSystem for scheme "\w+"')
_JARS = (
    'the jars of s3a:// are fetched where [spark.conf] names a place there, e.g. "spark.sql.warehouse.dir" ='
    ' "s3a://BUCKET/PATH".\nThose of other stores you name yourself ("spark.jars.packages"), and all of them below'
    " spark-submit (--jars; `pack --store s3`): docs/stores.md"
)
_NOWHERE = ".none"


def require_schema(spark: SparkSession, schema: str, scratch: Path) -> Path | None:
    """Check the schema that is to hold the tables, and return its folder; None if that is not on this machine.

    Args:
        scratch: Folder of files that end with the process.

    Raises:
        SetupError: It does not exist, tables in it would be lost, or Spark has no jars for its store.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    catalog = schema.partition(".")[0]
    # A platform may have catalogs that no setting names.
    if not spark.conf.get(f"{_OF_CATALOG}{catalog}", None) and catalog not in _listed(spark):
        raise SetupError(
            f"Spark knows no catalogue {catalog}",
            f'define it under [spark.conf] ("{_OF_CATALOG}{catalog}" = …); for a folder of this name write ./{schema}',
        )
    if catalog == _SESSION and spark.conf.get(f"{_OF_CATALOG}{_SESSION}", None) == _DELTA:
        if spark.conf.get("spark.sql.catalogImplementation", "in-memory") == "in-memory":
            raise SetupError(f"{_SESSION} is in memory here: it forgets its tables when the job ends", _LASTING)
        warehouse = spark.conf.get("spark.sql.warehouse.dir", None) or ""
        if Path(warehouse.removeprefix("file:")).is_relative_to(scratch):
            raise SetupError(f"the tables of {_SESSION} would be among temporary files", _LASTING)
    try:
        is_there = spark.catalog.databaseExists(schema)
    except (PySparkException, Py4JError) as error:
        remedy = _JARS if _NO_FILE_SYSTEM.search(str(error)) else _LASTING
        raise SetupError(f"the catalogue {catalog} cannot be used: {reason(error)}", remedy) from error
    if not is_there:
        raise SetupError(f"there is no schema {schema}", f"make it in Spark: CREATE SCHEMA {schema}")
    location = spark.catalog.getDatabase(schema).locationUri or ""
    place = place_named(location) if location.startswith(("file:", "/")) else None
    if place is None and "://" in location:
        _require_file_system(spark, schema, location)
    return place if isinstance(place, Path) else None


def _listed(spark: SparkSession) -> set[str]:
    return {catalog.name for catalog in spark.catalog.listCatalogs()}


def _require_file_system(spark: SparkSession, schema: str, location: str) -> None:
    """Try to read a file that does not exist; any answer will do, because a catalog may have permissions of its own."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        spark.read.format("binaryFile").load(f"{location}/{_NOWHERE}")
    except (PySparkException, Py4JError) as error:
        if found := _NO_FILE_SYSTEM.search(str(error)):
            raise SetupError(f"Spark cannot write the tables of {schema} to {location}: {found[0]}", _JARS) from error
