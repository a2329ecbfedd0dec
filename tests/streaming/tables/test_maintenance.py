"""Upkeep: fewer files, the same rows; nothing goes that anybody needs."""

from __future__ import annotations

import functools
import os
import time
from pathlib import Path

from deltalake import DeltaTable

from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs import DeltaRsTable
from streaming.tables.journal_entries import RowFilter
from streaming.tables.maintenance import optimize
from streaming.tables.materializer import Materializer
from streaming.tables.schema import CHANGES, GROUPS, TABLES
from streaming.tables.writer import Edit, Mark
from tests.streaming.tables.journals import T0
from tests.streaming.tables.test_materializer import content, contents, some_changes, write

HOUR = 3_600_000
YEARS = 100 * 365 * 24 * HOUR


kept_up = functools.partial(optimize, progress_retention_ms=YEARS)


def filled(root: Path, follow: bool = True) -> None:
    following = Materializer(root, 0)
    for batch, change in enumerate(some_changes()[:20]):
        write(root, [change], batch)
        if follow:
            following.run()


def test_files_become_few_and_rows_stay(tmp_path: Path) -> None:
    filled(tmp_path)
    before = contents(tmp_path)
    done = {each.table: each for each in kept_up(tmp_path, journal_retention_ms=YEARS, vacuum_after_ms=YEARS)}
    assert done["changes"].files_before == 20
    assert done["changes"].files_after == 1
    assert contents(tmp_path) == before
    assert len(content(tmp_path, "changes")) == 20
    # A reader that follows goes on as if nothing had been.
    write(tmp_path, some_changes()[20:], 20)
    Materializer(tmp_path, 0).run()
    write(tmp_path / "whole", some_changes(), 0)
    Materializer(tmp_path / "whole", 0).run()
    assert contents(tmp_path) == contents(tmp_path / "whole")


def test_old_changes_go_once_every_table_has_passed_them(tmp_path: Path) -> None:
    filled(tmp_path)
    # A last change that touches every table but topics and findings, which ride along.
    write(tmp_path, some_changes()[20:], 20)
    Materializer(tmp_path, 0).run()
    (journal,) = [
        each
        for each in optimize(
            tmp_path,
            journal_retention_ms=HOUR,
            progress_retention_ms=YEARS,
            vacuum_after_ms=YEARS,
            now_ms=T0 + 100 * HOUR,
        )
        if each.table == "changes"
    ]
    assert journal.journal_rows_dropped == len(some_changes())
    assert content(tmp_path, "changes") == []
    before = contents(tmp_path)
    assert any(before.values())
    Materializer(tmp_path, 0).run()
    assert contents(tmp_path) == before


def test_changes_that_a_table_has_not_passed_stay_however_old(tmp_path: Path) -> None:
    filled(tmp_path, follow=False)
    Materializer(tmp_path, 0)
    kept_up(tmp_path, journal_retention_ms=HOUR, vacuum_after_ms=YEARS, now_ms=T0 + 100 * HOUR)
    assert len(content(tmp_path, "changes")) == 20


def test_young_changes_stay(tmp_path: Path) -> None:
    filled(tmp_path)
    optimize(
        tmp_path,
        journal_retention_ms=1_000 * HOUR,
        progress_retention_ms=YEARS,
        vacuum_after_ms=YEARS,
        now_ms=T0 + 100 * HOUR,
    )
    assert len(content(tmp_path, "changes")) == 20


def test_files_go_once_no_version_needs_them(tmp_path: Path) -> None:
    table = DeltaRsTable(tmp_path, GROUPS)
    one = to_arrow(GROUPS, [{"cluster": "c", "group_id": "g", "members": 1}])
    table.append(one, Mark("job", 0))
    table.merge(lambda: Edit(table.read(RowFilter({"group_id": ["g"]})), one), Mark("present", 1))
    folder = tmp_path / "groups"
    orphan = folder / "part-left-behind-by-a-crash.parquet"
    orphan.write_bytes(b"")
    two_days_ago = time.time() - 48 * 3_600
    os.utime(orphan, (two_days_ago, two_days_ago))
    (done,) = kept_up(tmp_path, journal_retention_ms=YEARS, vacuum_after_ms=24 * HOUR)
    assert done.files_deleted == 1
    assert not orphan.exists()
    # Removed just now: who reads the version before may need it.
    assert len(list(folder.glob("*.parquet"))) == 2
    assert DeltaTable(str(folder)).to_pyarrow_table().num_rows == 1


def test_a_file_that_is_being_written_is_never_deleted(tmp_path: Path) -> None:
    DeltaRsTable(tmp_path, GROUPS)
    new = tmp_path / "groups" / "part-not-committed-yet.parquet"
    new.write_bytes(b"")
    kept_up(tmp_path, journal_retention_ms=0, vacuum_after_ms=0)
    assert new.exists()


def test_tables_that_are_not_there_are_left_alone(tmp_path: Path) -> None:
    DeltaRsTable(tmp_path, CHANGES)
    assert [each.table for each in kept_up(tmp_path, journal_retention_ms=0, vacuum_after_ms=0)] == ["changes"]
    assert not [name for name in TABLES if name != "changes" and (tmp_path / name).exists()]
