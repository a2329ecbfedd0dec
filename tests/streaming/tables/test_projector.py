"""A piece changes only the current rows that it may touch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from streaming.tables import projector
from streaming.tables.arrow_rows import from_arrow, to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.journal_entries import Entry, RowFilter
from streaming.tables.journal_piece import ENTRY_COLUMNS
from streaming.tables.materializer import Materializer
from streaming.tables.projections import GROUPS_PROJECTION
from streaming.tables.projector import edit_of, present_of
from streaming.tables.schema import CHANGES, GROUPS
from streaming.tables.writer import Mark
from tests.streaming.tables.journals import T0, Journal, rows, stable


def test_an_edit_is_the_rows_that_change_as_they_were_and_as_they_become() -> None:
    current = to_arrow(GROUPS, [{"cluster": "c1", "group_id": name, "members": 1} for name in ("a", "b")])
    edit = edit_of(GROUPS_PROJECTION, [Entry("c1", "b", T0, stable(3))], current, {})
    assert [(row["group_id"], row["members"]) for row in from_arrow(GROUPS, edit.removed)] == [("b", 1)]
    assert [(row["group_id"], row["members"]) for row in from_arrow(GROUPS, edit.added)] == [("b", 3)]


def test_groups_are_found_by_cluster_and_name() -> None:
    found = present_of(to_arrow(GROUPS, [{"cluster": "c1", "group_id": "a", "members": 7}]))
    assert {group: row["members"] for group, row in found.items()} == {("c1", "a"): 7}


def test_groups_are_read_once_for_their_minutes_and_for_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    real = DeltaRsTable.read

    def counted(table: DeltaRsTable, wanted: RowFilter) -> pa.Table:
        read.append(table.table.name)
        return real(table, wanted)

    monkeypatch.setattr(DeltaRsTable, "read", counted)
    following, history = Materializer(tmp_path, 0), Journal()
    for number, members in enumerate((3, 4)):
        changes = [history.change(T0 + number, stable(members), group="a")]
        DeltaRsTable(tmp_path, CHANGES).append(to_arrow(CHANGES, rows(changes, number)), Mark("job", number))
        following.run()
        assert read.count("groups") == 1
        assert read.count("group_minutes") == 1
        read.clear()
    (group,) = from_arrow(GROUPS, DeltaRsTable(tmp_path, GROUPS).read(RowFilter({"group_id": ["a"]})))
    assert group["members"] == 4


def test_a_small_piece_of_the_journal_is_read_once_and_a_larger_one_is_counted_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[tuple[str, ...]] = []
    real = DeltaRsTable.appended

    def counted(table: DeltaRsTable, after: int, upto: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        read.append(tuple(columns))
        return real(table, after, upto, columns)

    monkeypatch.setattr(DeltaRsTable, "appended", counted)
    following, history = Materializer(tmp_path, 0), Journal()
    for number, reads in enumerate(([ENTRY_COLUMNS], [ENTRY_COLUMNS, ("kind",), ENTRY_COLUMNS])):
        changes = [history.change(T0, stable(number), group=group) for group in ("a", "b")]
        DeltaRsTable(tmp_path, CHANGES).append(to_arrow(CHANGES, rows(changes, number)), Mark("job", number))
        following.run()
        assert read == reads
        read.clear()
        monkeypatch.setattr(projector, "_HELD_CHANGES", 1)
