"""The tables as a command reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.reading.listing_query import piece
from dashboard.reading.listings import LISTINGS
from dashboard.reading.opened_tables import OpenedTables
from dashboard.reading.questions import Reading
from streaming.stores.failure import StoreAwayError
from streaming.tables import location
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.errors import NoTablesError
from streaming.tables.replay_tables import EVERY_TABLE
from streaming.tables.schema import GROUPS
from streaming.tables.writer import Mark
from streaming.views import reader
from tests.streaming.tables.signs import leave_recording_sign


def test_each_table_is_opened_once_and_only_what_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = DeltaRsTable(tmp_path, GROUPS)
    table.append(to_arrow(GROUPS, [{"cluster": "c", "group_id": "g"}]), Mark("job", 0))
    opened: list[str] = []

    def open_table(root: Path, name: str) -> object:
        opened.append(name)
        return location.table_to_read(root, name)

    monkeypatch.setattr(reader, "table_to_read", open_table)
    tables = OpenedTables(tmp_path)
    assert len(tables.rows("groups")) == 1
    table.append(to_arrow(GROUPS, [{"cluster": "c", "group_id": "h"}]), Mark("job", 1))
    # A command sees one version, whatever it reads next.
    assert (len(tables.rows("groups")), tables.row_count("groups")) == (1, 1)
    assert (tables.row_count("topics"), tables.size("topics")["version"]) == (0, None)
    assert opened == ["groups", "topics"]
    assert set(tables.versions) == set(EVERY_TABLE)


def test_liveness_is_read_once(tmp_path: Path) -> None:
    DeltaRsTable(tmp_path, GROUPS)
    tables = OpenedTables(tmp_path)
    assert tables.freshness.of("c").state == "unknown"
    leave_recording_sign(tmp_path, {"c"})
    assert tables.freshness.of("c").state == "unknown"
    assert OpenedTables(tmp_path).freshness.of("c").state == "recording"
    assert (tables.has_tables, list(tables.unreadable)) == (True, [])


def test_without_tables_there_is_nothing_to_open(tmp_path: Path) -> None:
    with pytest.raises(NoTablesError):
        OpenedTables(tmp_path)


def test_a_store_that_hangs_is_waited_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    DeltaRsTable(tmp_path, GROUPS)
    waited: list[str] = []

    def hang(_: Path, name: str) -> object:
        waited.append(name)
        raise StoreAwayError(5, "it does not answer", "s3://lake")

    monkeypatch.setattr(reader, "table_to_read", hang)
    for name in LISTINGS:
        waited.clear()
        with pytest.raises(StoreAwayError):
            piece(Reading.once(tmp_path), LISTINGS[name], {}, limit=1, is_whole=True)
        assert len(waited) == 1, name
