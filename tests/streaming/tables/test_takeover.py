"""Tables that earlier releases wrote: nothing of them is lost, and nothing is applied twice, wherever a crash falls.

`tests/golden/tables/clustered.tar.xz` was made by the code of commit a863199: 61 changes in three batches, of which the
second was applied to two of the tables when the process was killed, and the third to none.
"""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from streaming.tables import takeover
from streaming.tables.arrow_rows import from_arrow, to_arrow
from streaming.tables.delta_rs import DeltaRsTable
from streaming.tables.engine import DELTA_SPARK, DeltaSparkEngine
from streaming.tables.errors import TableError
from streaming.tables.materializer import Materializer
from streaming.tables.schema import CHANGES, GROUPS, REBALANCES, REJECTED_EVENTS, TABLES, Row
from streaming.tables.takeover import KEPT, take_over
from streaming.tables.writer import Mark
from streaming.views.reader import Reader
from tests.streaming.tables.journals import rows
from tests.streaming.tables.test_materializer import FOLLOWING, Crash, some_changes, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_GOLDEN = Path(__file__).parents[2] / "golden/tables/clustered.tar.xz"


def content(root: Path, name: str) -> list[Row]:
    """Return the rows, without what that code did not know of the spans that it wrote."""
    found = [{**row, "instance_id": None} for row in Reader(root).rows(name)]
    return sorted(found, key=lambda row: [str(row[column]) for column in TABLES[name].names if column in row])


def contents(root: Path) -> dict[str, list[Row]]:
    return {name: content(root, name) for name in FOLLOWING}


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """The tables as that code left them."""
    with tarfile.open(_GOLDEN) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "tables"


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Row]]:
    """What must come of the journal."""
    root = tmp_path_factory.mktemp("expected")
    with tarfile.open(_GOLDEN) as archive:
        archive.extractall(root, filter="data")
    changes = from_arrow(CHANGES, DeltaTable(str(root / "tables/changes")).to_pyarrow_table())
    DeltaRsTable(root / "anew", CHANGES).append(to_arrow(CHANGES, changes), Mark("job", 0))
    Materializer(root / "anew", 0).run()
    return contents(root / "anew")


def test_no_row_is_lost_and_the_journal_is_followed_from_where_each_table_was(
    release: Path, expected: dict[str, list[Row]]
) -> None:
    before = {name: content(release, name) for name in TABLES}
    take_over(release)
    assert {name: content(release, name) for name in TABLES} == before
    Materializer(release, 0).run()
    assert contents(release) == expected


@pytest.mark.spark
def test_spark_writes_them_from_then_on_where_it_is_chosen(
    release: Path, expected: dict[str, list[Row]], spark: SparkSession
) -> None:
    take_over(release, DELTA_SPARK)
    with pytest.raises(TableError, match="is written by delta-spark"):
        DeltaRsTable(release, GROUPS)
    Materializer(release, 0, engine=DeltaSparkEngine(spark)).run()
    assert contents(release) == expected


def test_marks_of_batches_hold(release: Path) -> None:
    take_over(release)
    for table in (REBALANCES, REJECTED_EVENTS):
        assert not DeltaRsTable(release, table).append(to_arrow(table, [{"cluster": "again"}]), Mark("job", 0))
    journal = DeltaRsTable(release, CHANGES)
    assert not journal.append(to_arrow(CHANGES, rows(some_changes()[:1], 2)), Mark("job", 2))
    assert journal.append(to_arrow(CHANGES, rows(some_changes()[:1], 3)), Mark("job", 3))


def test_the_old_tables_are_kept_and_the_new_ones_left_alone(release: Path) -> None:
    before = {name: content(release, name) for name in TABLES}
    take_over(release)
    assert {name: content(release / KEPT, name) for name in TABLES} == before
    later = ("queue_progress", "audits")  # which that release did not have
    former = [name for name in TABLES if name not in later]
    versions = {name: DeltaTable(str(release / name)).version() for name in former}
    take_over(release)
    assert {name: DeltaTable(str(release / name)).version() for name in former} == versions


def test_nothing_else_writes_a_table_before_it_is_taken_over(release: Path) -> None:
    with pytest.raises(TableError, match=r"by an earlier release\. `rebalance-monitor run` takes it over"):
        DeltaRsTable(release, GROUPS)


def test_columns_that_somebody_added_are_taken_along(release: Path) -> None:
    wider = GROUPS._replace(columns=(*GROUPS.columns, GROUPS.columns[0]._replace(name="team")))
    other = DeltaRsTable(release.parent / "wider", wider)
    other.append(to_arrow(wider, [{"cluster": "c1", "group_id": "a", "team": "t"}]), Mark("job", 0))
    copy = DeltaRsTable(release.parent / "copy", GROUPS)
    copy.add_columns_of(DeltaTable(other.uri))
    copy.fill(lambda: pa.RecordBatchReader.from_stream(DeltaTable(other.uri).scan()), [])
    assert DeltaTable(copy.uri).to_pyarrow_table()["team"].to_pylist() == ["t"]


def test_a_crash_anywhere_loses_nothing(
    release: Path, expected: dict[str, list[Row]], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill, rename = DeltaRsTable.fill, Path.rename
    left = 0

    def step() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Crash

    def filling(table: DeltaRsTable, *args: object) -> None:
        step()
        fill(table, *args)  # type: ignore[arg-type]

    def renaming(path: Path, target: Path) -> Path:
        step()
        return rename(path, target)

    crashes = 0
    with monkeypatch.context() as patch:
        patch.setattr(DeltaRsTable, "fill", filling)
        patch.setattr(Path, "rename", renaming)
        for survived in (0, 5, 12, 1, 6, 3):
            left = survived
            try:
                take_over(release)
            except Crash:
                crashes += 1
    take_over(release)
    Materializer(release, 0).run()
    assert crashes >= 5
    assert contents(release) == expected
    assert not (release / takeover._COPIES).exists()


def test_tables_that_are_not_there_are_no_reason_to_do_anything(tmp_path: Path) -> None:
    take_over(tmp_path)
    assert list(tmp_path.iterdir()) == []
    write(tmp_path, some_changes()[:1], 0)
    take_over(tmp_path)
    assert not (tmp_path / KEPT).exists()
