"""Shell: the engine that writes the tables, and where pieces of the journal are applied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from deltalake import DeltaTable

from streaming.settings.locations import Location, catalog_schema
from streaming.stores.hadoop import schemes_of
from streaming.stores.locks import Guard, exclusive_use
from streaming.stores.store_path import StorePath
from streaming.tables import delta_rs_table
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.errors import TableError
from streaming.tables.location import WRITER_PROPERTY, is_table, table_uri
from streaming.tables.projector import DriverProjector, Projector, Replaced
from streaming.tables.replay_tables import EVERY_TABLE
from streaming.tables.schema import Table
from streaming.tables.writer import TableWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streaming.tables.delta_spark_table import DeltaSparkTable

AUTO, DELTA_RS, DELTA_SPARK = "auto", delta_rs_table.NAME, "delta-spark"
WRITERS = (DELTA_RS, DELTA_SPARK)


class Engine(Protocol):
    """The writer of all tables of a job."""

    def table(self, root: Location, table: Table, *, adds_columns: bool = True) -> TableWriter:
        """Open a table; it is created if it does not exist.

        Args:
            adds_columns: Whether missing columns are added to a table of an older release.

        Raises:
            TableError: It is another table, has another writer, or cannot be opened.
        """

    def exists(self, root: Location, name: str) -> bool:
        """Return whether a table exists."""

    def projector(
        self, journal: TableWriter, tables: Mapping[str, TableWriter], listener: Replaced | None
    ) -> Projector:
        """Return a projector that applies the journal to the tables that follow it."""


class DeltaRsEngine(Engine):
    """delta-rs, in the driver."""

    def table(self, root: Location, table: Table, *, adds_columns: bool = True) -> TableWriter:
        return DeltaRsTable(root, table, adds_columns=adds_columns)

    def exists(self, root: Location, name: str) -> bool:
        return is_table(root, name)

    def projector(
        self, journal: TableWriter, tables: Mapping[str, TableWriter], listener: Replaced | None
    ) -> Projector:
        return DriverProjector(journal, tables, listener)


class DeltaSparkEngine(Engine):
    """Delta in Spark, from the executors.

    Args:
        spark: The job's session; the tables have one of their own.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark.newSession()

    def table(self, root: Location, table: Table, *, adds_columns: bool = True) -> DeltaSparkTable:
        from streaming.tables.delta_spark_table import DeltaSparkTable

        return DeltaSparkTable(self._spark, root, table, adds_columns=adds_columns)

    def exists(self, root: Location, name: str) -> bool:
        schema = catalog_schema(root)
        return self._spark.catalog.tableExists(f"{schema}.{name}") if schema else is_table(root, name)

    def projector(
        self, journal: TableWriter, tables: Mapping[str, TableWriter], listener: Replaced | None
    ) -> Projector:
        from streaming.tables.executor_projector import ExecutorProjector

        return ExecutorProjector(journal, tables, listener)  # type: ignore[arg-type]  # its own tables


def stored_writer(root: Location) -> str:
    """Return the writer that the tables remember, the first existing one's; delta-rs if there is none."""
    if catalog_schema(root):
        return DELTA_SPARK
    uris = (table_uri(root, name) for name in EVERY_TABLE if is_table(root, name))
    uri = next(uris, None)
    stored = None if uri is None else DeltaTable(uri).metadata().configuration.get(WRITER_PROPERTY)
    return stored or DELTA_RS


def change_writer(root: Location, writer: str) -> None:
    """Give all tables another writer from now on; no job may be writing them.

    Raises:
        TableError: They are in a catalog, which only Spark writes.
    """
    if writer_of(writer, root) != stored_writer(root):
        for name in EVERY_TABLE:
            if is_table(root, name):
                table = DeltaTable(table_uri(root, name))
                table.alter.set_table_properties({WRITER_PROPERTY: writer}, raise_if_not_exists=False)


def writer_of(setting: str, root: Location) -> str:
    """Return the writer that a setting means for a location.

    Raises:
        TableError: delta-rs knows no catalog.
    """
    schema = catalog_schema(root)
    if schema and setting == DELTA_RS:
        raise TableError(
            f"{schema} is a schema of Spark's catalogue, which {DELTA_RS} cannot write. Set tables.writer to auto, or"
            " name a folder or URI with --tables."
        )
    return setting if setting != AUTO else DELTA_SPARK if schema else DELTA_RS


@contextmanager
def exclusive_commits(root: Location, *writers: str | None) -> Iterator[Guard]:
    """Keep other drivers from committing while inside, if a commit could replace one of theirs.

    Spark writes commits to S3 without a condition, and Delta's own ``S3SingleDriverLogStore`` knows only the commits of
    its process. Everywhere else, and by delta-rs, the second of two commits of one version is refused.

    Raises:
        SetupError: Another driver commits to these tables.
    """
    if DELTA_SPARK not in writers or "s3" not in schemes_of([root]):
        yield lambda: None
        return
    with exclusive_use(
        StorePath(str(root)) / ".writer.lock",
        problem=f"another process writes {root} by {DELTA_SPARK}, whose commits on S3 keep no other driver's",
        remedy="stop that one first, or let delta-rs write these tables",
    ) as guard:
        yield guard
