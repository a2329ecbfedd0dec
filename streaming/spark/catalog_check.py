"""Shell: whether a schema of Spark's catalogue is there, and remembers its tables when the job ends."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from streaming.setup.errors import SetupError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SESSION = "spark_catalog"
_OF_CATALOG = "spark.sql.catalog."
# Hands tables on to Spark's own catalogue; anything else in its place has a memory of its own.
_DELTA = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_LASTING = (
    'set "spark.sql.catalogImplementation" = "hive" and "spark.sql.warehouse.dir" under [spark.conf], name a schema of'
    " another catalogue, or a folder or URI with --tables"
)


def require_schema(spark: SparkSession, schema: str, scratch: Path) -> None:
    """Check the schema that is to hold the tables.

    Args:
        scratch: Folder of files that end with the process.

    Raises:
        SetupError: It is not there, or what is written to it would be lost.
    """
    from pyspark.errors import PySparkException

    catalog = schema.partition(".")[0]
    if not spark.conf.get(f"{_OF_CATALOG}{catalog}", None):
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
    except PySparkException as error:
        first_line = str(error).partition("\n")[0]
        raise SetupError(f"the catalogue {catalog} cannot be used: {first_line}", _LASTING) from error
    if not is_there:
        raise SetupError(f"there is no schema {schema}", f"make it in Spark: CREATE SCHEMA {schema}")
