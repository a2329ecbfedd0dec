"""The parts of a table's log that both writers read."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.schema import GROUPS
from streaming.tables.writer import Mark

A_GROUP = to_arrow(GROUPS, [{"cluster": "c1", "group_id": "a"}])


def counted_reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """Return the version and id of each read of a mark from now on."""
    reads: list[tuple[int, str]] = []
    real = DeltaTable.transaction_version

    def counted(table: DeltaTable, app_id: str) -> int | None:
        reads.append((table.version(), app_id))
        return real(table, app_id)

    monkeypatch.setattr(DeltaTable, "transaction_version", counted)
    return reads


def test_a_mark_is_read_once_for_each_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, other = DeltaRsTable(tmp_path, GROUPS), DeltaRsTable(tmp_path, GROUPS)
    other.append(A_GROUP, Mark("job", 7))
    reads = counted_reads(monkeypatch)
    assert [table.mark("job"), table.mark("job"), table.mark("nobody")] == [None] * 3
    assert table.refresh() == other.version
    assert [table.mark("job"), table.mark("job"), table.mark("nobody")] == [7, 7, None]
    assert reads == [(version, app_id) for version in (0, other.version) for app_id in ("job", "nobody")]


def test_marks_of_ones_own_commits_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = DeltaRsTable(tmp_path, GROUPS)
    reads = counted_reads(monkeypatch)
    for number in range(3):
        assert table.append(A_GROUP, Mark("job", number))
        assert not table.append(A_GROUP, Mark("job", number))
        assert table.mark("nobody") is None
    assert reads == [(0, "job"), (1, "nobody")]


def test_marks_are_read_again_if_another_process_has_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, other = DeltaRsTable(tmp_path, GROUPS), DeltaRsTable(tmp_path, GROUPS)
    assert table.mark("other") is None
    other.append(A_GROUP, Mark("other", 5))
    reads = counted_reads(monkeypatch)
    assert table.append(A_GROUP, Mark("job", 0))  # rebased: version 2 is made from version 0
    assert (table.mark("other"), table.mark("job")) == (5, 0)
    assert reads == [(0, "job"), (2, "other"), (2, "job")]
