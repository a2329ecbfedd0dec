"""Behaviour of delta-spark beyond the contract of writers: catalogues, properties, rows written by executors."""

from __future__ import annotations

import uuid
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from streaming.tables import delta_spark_table
from streaming.tables.arrow_rows import from_arrow, to_arrow
from streaming.tables.delta_spark_table import DeltaSparkTable
from streaming.tables.edits import source_of
from streaming.tables.errors import NoTablesError
from streaming.tables.journal_entries import RowFilter
from streaming.tables.location import WRITER_PROPERTY
from streaming.tables.schema import GROUPS
from streaming.tables.writer import Edit, Mark
from streaming.views.reader import Reader
from tests.streaming.tables import test_writer as contract

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from tests.kit.s3 import S3Server

pytestmark = pytest.mark.spark


def groups(*names: str, members: int = 1) -> pa.Table:
    return to_arrow(GROUPS, [{"cluster": "c1", "group_id": name, "members": members} for name in names])


@pytest.fixture
def schema(spark: SparkSession) -> Iterator[str]:
    """A schema of Spark's catalogue."""
    name = f"spark_catalog.monitor_{uuid.uuid4().hex}"
    spark.sql(f"CREATE SCHEMA {name}")
    yield name
    spark.sql(f"DROP SCHEMA {name} CASCADE")


def test_tables_in_a_catalogue_are_appended_to_merged_and_kept_up(spark: SparkSession, schema: str) -> None:
    table = DeltaSparkTable(spark.newSession(), f"catalog:{schema}", GROUPS)
    assert table.append(groups("a", "b"), Mark("job", 0))
    assert not table.append(groups("c"), Mark("job", 0))
    wanted = RowFilter({"group_id": ["b"]})
    assert table.merge(lambda: Edit(table.read(wanted), groups("b", members=3)), Mark("present", 0))
    found = {row["group_id"]: row["members"] for row in from_arrow(GROUPS, table.read(RowFilter({})))}
    assert found == {"a": 1, "b": 3}
    assert spark.sql(f"SELECT count(*) FROM {schema}.groups").collect()[0][0] == 2
    table.maintain(vacuum_after_ms=86_400_000)
    again = DeltaSparkTable(spark.newSession(), f"catalog:{schema}", GROUPS)
    assert (again.identity, again.mark("job"), again.mark("present")) == (table.identity, 0, 0)


def test_readers_without_spark_find_the_tables_in_the_catalogs_folder(spark: SparkSession, schema: str) -> None:
    table = DeltaSparkTable(spark.newSession(), f"catalog:{schema}", GROUPS)
    table.append(groups("a"), Mark("job", 0))
    assert Reader(table.root).read("groups")["group_id"].to_pylist() == ["a"]
    with pytest.raises(NoTablesError, match=r"schema of Spark's catalogue.*reads without Spark.*--tables"):
        Reader(f"catalog:{schema}")


def test_a_new_table_stores_its_writer(spark: SparkSession, tmp_path: Path) -> None:
    table = DeltaSparkTable(spark.newSession(), tmp_path, GROUPS)
    stored = DeltaTable(tmp_path / "groups").metadata()
    assert stored.configuration[WRITER_PROPERTY] == delta_spark_table.NAME
    assert (stored.description, table.root) == (GROUPS.comment, tmp_path)


def test_rows_of_executors_are_one_commit_under_one_mark(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    table = DeltaSparkTable(session, tmp_path, GROUPS)
    frame = session.createDataFrame(groups(*(f"g{number}" for number in range(100)))).repartition(4)
    before = table.version
    assert table.append_frame(frame, 100, Mark("job", 0))
    assert not table.append_frame(frame, 100, Mark("job", 0))
    edit = Edit(groups("g1", "g2"), groups("g1", "new", members=5))
    source = session.createDataFrame(source_of(edit, GROUPS.key))
    for _ in range(2):
        table.merge_frame(lambda: (source, ["target.`cluster` = 'c1'"], None), Mark("present", 0))
    found = {row["group_id"]: row["members"] for row in from_arrow(GROUPS, table.read(RowFilter({})))}
    assert (len(found), found["g1"], found["new"], "g2" in found) == (100, 5, 5, False)
    assert table.version == before + 2
    assert not table.merge_frame(lambda: (source.limit(0), [], 0), Mark("present", 1))


@pytest.mark.broker
@pytest.mark.parametrize(
    "promise",
    [
        contract.test_rows_under_one_mark_are_written_once,
        contract.test_the_loser_of_a_race_starts_over_and_nothing_is_lost,
        # Two writers that both commit; the test of 200 commits is among the slow ones of the contract.
        pytest.param(partial(contract.test_two_writers_on_one_table_lose_nothing, commits=2), id="two-writers"),
    ],
)
def test_on_s3_it_keeps_the_contract_of_writers(
    promise: Callable[[contract.Open, str], None], spark: SparkSession, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3.connect(spark)
    promise(lambda root, table: DeltaSparkTable(spark.newSession(), root, table), s3.folder(monkeypatch))
