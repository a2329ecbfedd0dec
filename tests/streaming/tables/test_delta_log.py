"""What both writers read of a table's log."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs import DeltaRsTable
from streaming.tables.schema import GROUPS
from streaming.tables.writer import Mark


def test_a_mark_is_read_once_for_each_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[tuple[int, str]] = []
    real = DeltaTable.transaction_version

    def counted(table: DeltaTable, app_id: str) -> int | None:
        reads.append((table.version(), app_id))
        return real(table, app_id)

    one, other = DeltaRsTable(tmp_path, GROUPS), DeltaRsTable(tmp_path, GROUPS)
    other.append(to_arrow(GROUPS, [{"cluster": "c1", "group_id": "a"}]), Mark("job", 7))
    monkeypatch.setattr(DeltaTable, "transaction_version", counted)
    assert [one.mark("job"), one.mark("job"), one.mark("nobody")] == [None] * 3
    assert one.refresh() == other.version
    assert [one.mark("job"), one.mark("job"), one.mark("nobody")] == [7, 7, None]
    assert reads == [(version, app_id) for version in (0, other.version) for app_id in ("job", "nobody")]
