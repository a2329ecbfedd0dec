"""The journal applied by executors: the tables are those of the driver."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from streaming.tables.arrow_rows import from_arrow, to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.delta_spark_table import DeltaSparkTable
from streaming.tables.engine import DeltaSparkEngine
from streaming.tables.executor_projector import apply_part
from streaming.tables.journal_entries import RowFilter
from streaming.tables.journal_piece import ENTRY_COLUMNS
from streaming.tables.materializer import Materializer
from streaming.tables.projections import PROJECTIONS, Projection
from streaming.tables.schema import CHANGES, GROUP_MINUTES, Row
from streaming.tables.writer import COMMIT_VERSION, Mark
from tests.streaming.tables.journals import T0, Journal, assigned, released, rows, stable
from tests.streaming.tables.test_materializer import (
    Crash,
    content,
    contents,
    in_batches,
    refuse_side_by_side,
    some_changes,
)
from udfs.model import journal
from udfs.model.spans import SpansWithdrawn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession


def write(spark: SparkSession, root: Path, changes: Sequence[journal.Change], batch: int) -> None:
    table = DeltaSparkTable(spark.newSession(), root, CHANGES)
    table.append(to_arrow(CHANGES, rows(changes, batch)), Mark("job", batch))


@pytest.mark.spark
def test_tables_are_those_that_the_driver_makes_wherever_a_crash_falls(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = some_changes()
    in_batches(tmp_path / "driver", changes, [])
    Materializer(tmp_path / "driver", 0).run()
    engine, root = DeltaSparkEngine(spark), tmp_path / "executors"
    write(spark, root, changes[:30], 0)
    following = Materializer(root, 0, engine=engine)
    following.run()
    write(spark, root, changes[30:], 1)
    merge, left = DeltaSparkTable.merge_frame, 2

    def crashing(table: DeltaSparkTable, *args: object) -> bool:
        nonlocal left
        left -= 1
        if left < 0:
            raise Crash
        return merge(table, *args)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(DeltaSparkTable, "merge_frame", crashing)
        with pytest.raises(Crash):
            following.run()
    again = Materializer(root, 0, engine=engine)
    assert again.reached() < again._journal.version
    # Two at a time would take each other's marks: a MERGE has its own from the session.
    refuse_side_by_side(monkeypatch, DeltaSparkTable, "merge_frame")
    again.run()
    assert contents(root) == contents(tmp_path / "driver")
    assert Materializer(root, 0, engine=engine).reached() == again._journal.version


@pytest.mark.spark
def test_spans_that_are_over_are_withdrawn_in_a_later_piece(spark: SparkSession, tmp_path: Path) -> None:
    history = Journal()
    changes = [
        history.change(at, body)
        for at, body in (
            (0, assigned(0, "a", 0)),
            (0, stable(1)),
            (5, released(0, "a", 5)),
            (5, assigned(0, "b", 5)),
            (5, SpansWithdrawn(since=T0 + 5)),
            (70_000, stable(2)),
        )
    ]
    in_batches(tmp_path / "driver", changes, [])
    Materializer(tmp_path / "driver", 0).run()
    following = Materializer(tmp_path / "executors", 0, engine=DeltaSparkEngine(spark))
    for batch, begin in enumerate((0, 4)):
        write(spark, tmp_path / "executors", changes[begin : begin + 4 - 2 * batch], batch)
        following.run()
    assert contents(tmp_path / "executors") == contents(tmp_path / "driver")


@pytest.mark.parametrize("projection", PROJECTIONS, ids=[projection.table.name for projection in PROJECTIONS])
def test_a_part_is_applied_as_the_driver_applies_it(projection: Projection, tmp_path: Path) -> None:
    changes = some_changes()
    in_batches(tmp_path, changes, [30])
    following = Materializer(tmp_path, 0)
    journal = DeltaRsTable(tmp_path, CHANGES)
    first, end = 1, journal.version
    in_batches(tmp_path / "half", changes[:30], [])
    Materializer(tmp_path / "half", 0).run()
    following.run()
    names = [*ENTRY_COLUMNS, COMMIT_VERSION]
    piece = pa.Table.from_batches([*journal.appended(first, end, ENTRY_COLUMNS)]).select(names)
    of_kinds = pc.field("kind").isin(sorted(projection.kinds))
    wanted = pc.field("group_id").is_valid() if projection.every_change else of_kinds
    piece = piece.filter(wanted)
    piece = piece.take(pa.array(range(piece.num_rows - 1, -1, -1), pa.int64()))
    half = {each.table.name: DeltaRsTable(tmp_path / "half", each.table).read(RowFilter({})) for each in PROJECTIONS}
    current = half[projection.table.name]
    if projection.table is GROUP_MINUTES:
        present = pa.table({"_present": half["groups"].to_struct_array()})
        current = pa.concat_tables([current, present], promote_options="default")
    source = apply_part(projection.table.name, piece, current)
    rows = {key_of(projection, row): row for row in from_arrow(projection.table, half[projection.table.name])}
    deleted = source["_gone"].to_pylist()
    for row, is_deleted in zip(from_arrow(projection.table, source), deleted, strict=True):
        rows.pop(key_of(projection, row), None)
        if not is_deleted:
            rows[key_of(projection, row)] = row
    expected = {key_of(projection, row): row for row in content(tmp_path, projection.table.name)}
    assert rows == expected


def key_of(projection: Projection, row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in projection.table.key)
