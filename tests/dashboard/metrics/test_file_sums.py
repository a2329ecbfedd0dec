"""Metrics that only add new files equal those of the whole tables, whatever changed the tables."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pa_fs
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.fs import DeltaStorageHandler

from dashboard.metrics import file_sums
from dashboard.metrics.file_sums import FileSums
from dashboard.reading.snapshots import TableSnapshots
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.schema import AUDITS, REBALANCES, REJECTED_EVENTS, Row, Table
from tests.dashboard.metrics.test_families import samples
from tests.dashboard.metrics.test_group_labels import metrics

SUMMED = (REBALANCES, REJECTED_EVENTS, AUDITS)


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect the files that are read."""
    found: list[str] = []
    rows_of = file_sums._rows_of

    def counted(files: pa_fs.FileSystem, name: str, path: str, columns: Any) -> pa.Table:
        found.append(path)
        return rows_of(files, name, path, columns)

    monkeypatch.setattr(file_sums, "_rows_of", counted)
    return found


def some_rows(table: Table, chosen: random.Random, number: int) -> list[Row]:
    """Return rows with many nulls and few names."""
    names: dict[str, Any] = {"cluster": ["a", "b"], "group_id": ["g", "h", "it's"], "reason": ["late", "not_json"]}
    names |= {"trigger": ["member_left", "member_joined"], "status": ["completed", "failed"], "verdict": ["agrees"]}
    names |= {"queues_moved": [None, 1, 5], "outage_min_ms": [None, 7], "outage_max_ms": [None, 11]}
    names |= {"outage_unknown_queues": [None, 2], "waiting_estimated_messages": [None, 8]}
    names |= {"repeated_messages": [None, 3], "repeated_estimated_messages": [None, 4], "waiting_messages": [None, 90]}
    names |= {"event_time": range(1_000, 1_050), "queues_differing": [None, 2]}
    names |= {"detected_at": range(2_000, 2_010), "rebalance_id": [f"{number}"], "position": [f"{number}"]}
    given = {name: values for name, values in names.items() if name in table.names}
    return [{name: chosen.choice(values) for name, values in given.items()} for _ in range(chosen.randrange(1, 40))]


def change(root: Path, chosen: random.Random, number: int) -> None:
    """Change one of the tables as the job, its upkeep or its retention does."""
    table = chosen.choice(SUMMED)
    place = str(root / table.name)
    if DeltaTable.is_deltatable(place):
        delta, what = DeltaTable(place), chosen.randrange(6)
        if what == 0:
            delta.optimize.compact()
            return
        if what == 1:
            delta.optimize.compact()
            delta.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
            return
        if what == 2:
            delta.delete(f"cluster = '{chosen.choice('ab')}'" if table is not REJECTED_EVENTS else "reason = 'late'")
            return
        if what == 3 and table is not REJECTED_EVENTS:
            new = to_arrow(table, some_rows(table, chosen, number)[:1])
            merged = delta.merge(new, "old.group_id = new.group_id", source_alias="new", target_alias="old")
            merged.when_matched_update({"event_time": "new.event_time"}).when_not_matched_insert_all().execute()
            return
    rows = to_arrow(table, some_rows(table, chosen, number))
    # A file of an older release lacks columns of today.
    if table is REBALANCES and chosen.random() < 0.2:
        rows = rows.drop_columns(["outage_max_ms", "waiting_messages"])
    write_deltalake(place, rows, mode="append", schema_mode="merge")


@pytest.mark.parametrize("seed", range(4))
def test_sums_equal_the_total_after_any_changes(tmp_path: Path, seed: int) -> None:
    chosen, sums = random.Random(seed), FileSums()
    settings = metrics(max_groups=4)
    tables = TableSnapshots(tmp_path, must_exist=False)
    for number in range(25):
        change(tmp_path, chosen, number)
        if chosen.random() < 0.7:
            tables.refresh()
            assert samples(tables, settings, sums) == samples(tables, settings)
    tables.refresh()
    assert samples(tables, settings, sums) == samples(TableSnapshots(tmp_path), settings)


def test_a_new_version_costs_its_new_files(tmp_path: Path, files: list[str]) -> None:
    chosen, sums, settings = random.Random(1), FileSums(), metrics()
    place = str(tmp_path / REBALANCES.name)
    for number in range(5):
        write_deltalake(place, to_arrow(REBALANCES, some_rows(REBALANCES, chosen, number)), mode="append")
    tables = TableSnapshots(tmp_path)
    samples(tables, settings, sums)
    assert len(files) == 5
    write_deltalake(place, to_arrow(REBALANCES, some_rows(REBALANCES, chosen, 5)), mode="append")
    tables.refresh()
    samples(tables, settings, sums)
    samples(tables, settings, sums)
    assert len(files) == len(set(files)) == 6


def test_a_version_with_many_new_files_opens_the_store_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    class CountedHandler(DeltaStorageHandler):
        def __init__(self, uri: str) -> None:
            super().__init__(uri)
            opened.append(uri)

    monkeypatch.setattr(file_sums, "DeltaStorageHandler", CountedHandler)
    chosen, place = random.Random(3), str(tmp_path / REBALANCES.name)
    for number in range(3):
        write_deltalake(place, to_arrow(REBALANCES, some_rows(REBALANCES, chosen, number)), mode="append")
    samples(TableSnapshots(tmp_path), metrics(), FileSums())
    assert len(opened) == 1


def test_beyond_the_limit_sums_are_made_anew_and_are_right(
    tmp_path: Path, files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen, sums, settings = random.Random(2), FileSums(), metrics()
    monkeypatch.setattr(file_sums, "MOST_ROWS", 1)
    for number in range(3):
        write_deltalake(
            str(tmp_path / REBALANCES.name), to_arrow(REBALANCES, some_rows(REBALANCES, chosen, number)), mode="append"
        )
    tables = TableSnapshots(tmp_path)
    for _ in range(2):
        assert samples(tables, settings, sums) == samples(tables, settings)
    assert len(files) == 6
