"""Snapshots follow the tables when they are refreshed, and at no other time."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from dashboard.reading.snapshots import LIVENESS, MISSING, REOPENED_AFTER_POLLS, TableSnapshots
from streaming.stores.failure import StoreAwayError
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.errors import NoTablesError
from streaming.tables.replay_tables import EVERY_TABLE
from streaming.tables.schema import CHANGES, FINDINGS, GROUPS, MEMBERS
from streaming.tables.writer import Mark
from streaming.views.reader import Reader


def append(root: Path, group: str, number: int) -> None:
    rows = to_arrow(GROUPS, [{"cluster": "c", "group_id": group}])
    DeltaRsTable(root, GROUPS).append(rows, Mark("job", number))


def names(snapshots: TableSnapshots) -> list[str]:
    return sorted(row["group_id"] for row in snapshots.rows("groups"))


def test_a_row_is_there_after_the_refresh_and_not_before(tmp_path: Path) -> None:
    append(tmp_path, "a", 1)
    snapshots = TableSnapshots(tmp_path)
    append(tmp_path, "b", 2)
    assert names(snapshots) == ["a"]
    assert snapshots.refresh() == {"groups"}
    assert names(snapshots) == ["a", "b"]
    assert snapshots.refresh() == frozenset()


def test_a_table_that_comes_later_is_found(tmp_path: Path) -> None:
    append(tmp_path, "a", 1)
    snapshots = TableSnapshots(tmp_path)
    assert snapshots.versions["members"] == MISSING
    assert snapshots.rows("members") == []
    DeltaRsTable(tmp_path, MEMBERS).append(to_arrow(MEMBERS, [{"cluster": "c"}]), Mark("job", 1))
    assert snapshots.refresh() == {"members"}
    assert len(snapshots.rows("members")) == 1


def test_a_table_that_was_replaced_by_another_is_found_within_some_polls(tmp_path: Path) -> None:
    append(tmp_path, "a", 1)
    append(tmp_path, "b", 2)
    snapshots = TableSnapshots(tmp_path)
    shutil.rmtree(tmp_path / "groups")
    append(tmp_path, "new", 1)
    for _ in range(REOPENED_AFTER_POLLS):
        snapshots.refresh()
    assert names(snapshots) == ["new"]


def test_a_store_that_is_away_leaves_the_last_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append(tmp_path, "a", 1)
    snapshots = TableSnapshots(tmp_path)

    def away(*_: object) -> bool:
        raise OSError("the store is away")

    with monkeypatch.context() as patch:
        patch.setattr("dashboard.reading.snapshots.table_to_read", away)
        patch.setattr("dashboard.reading.snapshots.REOPENED_AFTER_POLLS", 1)
        # Pages show that a table cannot be read, so they are made anew.
        assert snapshots.refresh() == {LIVENESS}
        assert "groups" in snapshots.unreadable
    assert names(snapshots) == ["a"]
    assert snapshots.refresh() == {LIVENESS}
    assert snapshots.unreadable == []


def test_a_store_that_hangs_is_waited_for_once_in_a_poll_and_by_no_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(tmp_path, "a", 1)
    snapshots = TableSnapshots(tmp_path)
    asked = []

    def hang(*arguments: object) -> bool:
        asked.append(arguments)
        raise OSError("error sending request: operation timed out")

    with monkeypatch.context() as patch:
        patch.setattr("dashboard.reading.snapshots.table_to_read", hang)
        patch.setattr("dashboard.reading.snapshots.REOPENED_AFTER_POLLS", 1)
        patch.setattr("dashboard.reading.snapshots.FAILS_AFTER_S", 3_600)  # the moment, however busy the cores are
        snapshots.refresh()
        assert len(asked) == 1
        patch.setattr("streaming.views.liveness_reader.read_liveness", hang)
        snapshots.refresh()
        assert len(asked) == 2
        assert list(snapshots.unreadable) == sorted(EVERY_TABLE)
        # The copy on this machine is still shown for a moment.
        assert names(snapshots) == ["a"]
        patch.setattr("dashboard.reading.snapshots.FAILS_AFTER_S", 0)
        with pytest.raises(StoreAwayError, match="timed out"):
            names(snapshots)
    snapshots.refresh()
    assert names(snapshots) == ["a"]


def test_no_tables_are_an_error_unless_the_job_may_start_later(tmp_path: Path) -> None:
    with pytest.raises(NoTablesError):
        TableSnapshots(tmp_path)
    waiting = TableSnapshots(tmp_path, must_exist=False)
    append(tmp_path, "a", 1)
    assert waiting.refresh() == {"groups"}


def test_a_table_that_is_damaged_or_vanishes_is_logged_once_and_once_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(tmp_path, "a", 1)
    snapshots = TableSnapshots(tmp_path)
    log = tmp_path / "groups/_delta_log"
    newest = log / f"{len(list(log.glob('*.json'))):020d}.json"

    def lines(polls: int) -> list[tuple[str, str]]:
        with capture_logs() as logged:
            for _ in range(polls):
                snapshots.refresh()
        assert all("\n" not in line.get("reason", "") for line in logged)
        return [(line["log_level"], line["event"]) for line in logged if line["log_level"] != "debug"]

    newest.write_text("not json")
    assert lines(3) == [("warning", "a table cannot be read; its last snapshot stays")]
    assert names(snapshots) == ["a"]
    newest.unlink()
    assert lines(3) == [("info", "a table can be read again")]
    monkeypatch.setattr("dashboard.reading.snapshots.REOPENED_AFTER_POLLS", 1)
    (tmp_path / "groups").rename(tmp_path / "aside")
    assert lines(3) == [("warning", "a table is no longer there")]
    (tmp_path / "aside").rename(tmp_path / "groups")
    assert lines(3) == [("info", "a table can be read again")]
    assert names(snapshots) == ["a"]


def test_a_table_that_is_missing_beside_its_journal_is_unknown_and_not_empty(tmp_path: Path) -> None:
    append(tmp_path, "a", 1)
    assert TableSnapshots(tmp_path).rows("findings") == []
    DeltaRsTable(tmp_path, CHANGES)
    assert TableSnapshots(tmp_path).rows("findings") == []
    DeltaRsTable(tmp_path, CHANGES).append(to_arrow(CHANGES, [{"cluster": "c"}]), Mark("job", 1))
    snapshots = TableSnapshots(tmp_path)
    assert names(snapshots) == ["a"]
    with pytest.raises(FileNotFoundError, match="the table findings cannot be read"):
        snapshots.rows("findings")
    with pytest.raises(FileNotFoundError, match="findings is missing, though its journal, changes, is there"):
        Reader(tmp_path).rows("findings")
    DeltaRsTable(tmp_path, FINDINGS)
    snapshots.refresh()
    assert snapshots.rows("findings") == Reader(tmp_path).rows("findings") == []


def test_a_table_that_vanishes_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append(tmp_path, "a", 1)
    DeltaRsTable(tmp_path, MEMBERS)
    snapshots = TableSnapshots(tmp_path)
    monkeypatch.setattr("dashboard.reading.snapshots.REOPENED_AFTER_POLLS", 1)
    shutil.rmtree(tmp_path / "members")
    snapshots.refresh()
    with pytest.raises(FileNotFoundError, match="the table members is no longer there"):
        snapshots.rows("members")


def test_the_stack_of_a_damaged_table_is_logged_at_debug(tmp_path: Path) -> None:
    append(tmp_path, "a", 1)
    snapshots = TableSnapshots(tmp_path)
    shutil.rmtree(tmp_path / "groups/_delta_log")
    (tmp_path / "groups/_delta_log").write_text("no folder")
    with capture_logs() as logged:
        snapshots.refresh()
    assert "debug" in {line["log_level"] for line in logged if line.get("exc_info")}
