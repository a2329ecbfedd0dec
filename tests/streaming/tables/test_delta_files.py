"""A Delta table written without Spark: exactly once, against races, readable by others."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from streaming.tables import delta_files
from streaming.tables.arrow_rows import from_arrow, to_arrow
from streaming.tables.delta_actions import Mark
from streaming.tables.delta_files import CurrentRows, DeltaFiles, Replacement
from streaming.tables.errors import TableError
from streaming.tables.schema import ASSIGNMENTS, CHECKPOINT_INTERVAL, GROUPS, TABLES
from streaming.views.reader import Reader


def groups(*names: str, members: int = 1) -> pa.Table:
    return to_arrow(GROUPS, [{"cluster": "c1", "group_id": name, "members": members} for name in names])


def names(root: Path) -> list[str]:
    table = DeltaTable(str(root / "groups")).to_pyarrow_table()
    return sorted(table["group_id"].to_pylist())


def test_rows_under_one_mark_are_written_once(tmp_path: Path) -> None:
    table = DeltaFiles(tmp_path, GROUPS)
    assert table.append(groups("a"), Mark("job", 0))
    assert not table.append(groups("b"), Mark("job", 0))
    assert not DeltaFiles(tmp_path, GROUPS).append(groups("c"), Mark("job", 0))
    assert table.append(groups("d"), Mark("other job", 0))
    assert names(tmp_path) == ["a", "d"]


def test_the_loser_of_a_race_starts_over_and_nothing_is_lost(tmp_path: Path) -> None:
    first, second = DeltaFiles(tmp_path, GROUPS), DeltaFiles(tmp_path, GROUPS)
    assert first._commit("WRITE", first._write(groups("a")), blind=True)
    # `second` has not seen that yet: its first attempt takes a version that is gone.
    assert not second._commit("WRITE", second._write(groups("lost")), blind=True)
    assert second.append(groups("b"), Mark("second", 0))
    assert names(tmp_path) == ["a", "b"]


def test_a_crash_before_the_commit_leaves_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = DeltaFiles(tmp_path, GROUPS)

    def crash(*_: object) -> None:
        raise OSError("no more power")

    with monkeypatch.context() as patch:
        patch.setattr("os.link", crash)
        with pytest.raises(OSError, match="no more power"):
            table.append(groups("a"), Mark("job", 0))
    assert names(tmp_path) == []
    assert not list((tmp_path / "groups" / "_delta_log").glob(".*"))
    assert table.append(groups("a"), Mark("job", 0))
    assert names(tmp_path) == ["a"]


def test_without_hard_links_a_name_is_still_taken_only_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    first, second = DeltaFiles(tmp_path, GROUPS), DeltaFiles(tmp_path, GROUPS)
    assert first.append(groups("a"), Mark("first", 0))
    assert not second._commit("WRITE", second._write(groups("lost")), blind=True)
    assert second.append(groups("b"), Mark("second", 0))
    assert names(tmp_path) == ["a", "b"]


def test_spans_that_are_over_lie_apart_from_open_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta_files, "SMALL_FILE_ROWS", 2)
    table = DeltaFiles(tmp_path, ASSIGNMENTS)
    spans = [{"cluster": "c1", "group_id": "g", "valid_from": 1, "valid_to": end} for end in (None, 5, None, 6)]
    table.append(to_arrow(ASSIGNMENTS, spans), Mark("job", 0))
    assert len(table.files().pruned({})) == 2
    assert len(table.files().pruned({}, some_null="valid_to")) == 1
    assert table.current_rows({}, pc.field("valid_to").is_null(), some_null="valid_to").rows.num_rows == 2


def replace(table: DeltaFiles, name: str, coming: pa.Table, mark: Mark) -> bool:
    def compute() -> Replacement:
        standing = table.current_rows({"group_id": (name, name)}, pc.field("group_id") == name)
        return Replacement(standing, coming)

    return table.replace(compute, mark)


def test_replacing_a_row_leaves_the_others_of_its_file(tmp_path: Path) -> None:
    table = DeltaFiles(tmp_path, GROUPS)
    table.append(groups("a", "b", "c"), Mark("job", 0))
    assert replace(table, "b", groups("b", members=7), Mark("present", 1))
    assert not replace(table, "b", groups("b", members=9), Mark("present", 1))
    rows = from_arrow(GROUPS, DeltaTable(str(tmp_path / "groups")).to_pyarrow_table())
    assert sorted((row["group_id"], row["members"]) for row in rows) == [("a", 1), ("b", 7), ("c", 1)]


def test_the_change_feed_tells_the_changed_rows_and_no_others(tmp_path: Path) -> None:
    table = DeltaFiles(tmp_path, GROUPS)
    table.append(groups("a", "b", "c"), Mark("job", 0))
    replace(table, "b", groups("b", members=7), Mark("present", 1))
    replace(table, "c", groups("d"), Mark("present", 2))
    feed = pa.table(DeltaTable(str(tmp_path / "groups")).load_cdf(starting_version=1).read_all()).to_pylist()
    told = sorted((row["_commit_version"], row["_change_type"], row["group_id"], row["members"]) for row in feed)
    assert told == [
        (1, "insert", "a", 1),
        (1, "insert", "b", 1),
        (1, "insert", "c", 1),
        (2, "update_postimage", "b", 7),
        (2, "update_preimage", "b", 1),
        (3, "delete", "c", 1),
        (3, "insert", "d", 1),
    ]


def test_a_question_reads_only_files_that_may_answer(tmp_path: Path) -> None:
    table = DeltaFiles(tmp_path, GROUPS)
    table.append(groups("a", "b"), Mark("job", 0))
    table.append(groups("x", "y"), Mark("job", 1))
    assert len(table.files().pruned({"group_id": ("b", "c")})) == 1
    assert len(table.files().pruned({"group_id": ("c", "d")})) == 0
    assert len(table.files().pruned({})) == 2


def test_a_question_finds_texts_longer_than_statistics_hold(tmp_path: Path) -> None:
    table = DeltaFiles(tmp_path, GROUPS)
    long = "g" * 100
    table.append(groups(long), Mark("job", 0))
    assert table.current_rows({"group_id": (long, long)}, pc.field("group_id") == long).rows.num_rows == 1


def test_many_small_files_become_one_and_the_log_gets_checkpoints(tmp_path: Path) -> None:
    table = DeltaFiles(tmp_path, GROUPS)
    for number in range(CHECKPOINT_INTERVAL + 5):
        assert table.append(groups(f"g{number:03d}"), Mark("job", number))
    assert names(tmp_path) == [f"g{number:03d}" for number in range(CHECKPOINT_INTERVAL + 5)]
    assert len(DeltaTable(str(tmp_path / "groups")).file_uris()) < delta_files.SMALL_FILES
    log = tmp_path / "groups" / "_delta_log"
    assert list(log.glob("*.checkpoint.parquet"))
    # Whoever opens the table from the checkpoint alone still knows what was written.
    for old in sorted(log.glob("*.json"))[: CHECKPOINT_INTERVAL - 1]:
        old.unlink()
    assert not DeltaFiles(tmp_path, GROUPS).append(groups("again"), Mark("job", CHECKPOINT_INTERVAL + 4))


def test_laying_files_together_is_no_new_row_for_who_follows_the_table(tmp_path: Path) -> None:
    table = DeltaFiles(tmp_path, GROUPS)
    for number in range(delta_files.SMALL_FILES):
        table.append(groups(f"g{number:03d}"), Mark("job", number))
    before = table.version
    assert table.compact() == delta_files.SMALL_FILES
    assert table.added_after(before) == []
    assert len(table.added_after(0)) == delta_files.SMALL_FILES


@pytest.mark.parametrize("name", sorted(TABLES))
def test_delta_rs_and_duckdb_read_every_table_even_empty(tmp_path: Path, name: str) -> None:
    table = DeltaFiles(tmp_path, TABLES[name])
    opened = DeltaTable(str(table.folder))
    assert opened.to_pyarrow_table().num_rows == 0
    assert opened.protocol().min_reader_version == 1
    with duckdb.connect() as connection:
        connection.register("rows", pa.table(opened.scan()))
        assert connection.execute("select count(*) from rows").fetchall() == [(0,)]
    table.append(to_arrow(table.table, [{"cluster": "c1"}]), Mark("job", 0))
    assert DeltaTable(str(table.folder)).to_pyarrow_table()["cluster"].to_pylist() == ["c1"]


def test_a_table_of_an_older_release_gets_the_columns_that_it_lacks(tmp_path: Path) -> None:
    older = GROUPS._replace(columns=tuple(one for one in GROUPS.columns if one.name not in ("mode", "members")))
    before = DeltaFiles(tmp_path, older)
    before.append(to_arrow(older, [{"cluster": "c1", "group_id": "old"}]), Mark("job", 0))
    assert Reader(tmp_path).read("groups")["members"].to_pylist() == [None]
    table = DeltaFiles(tmp_path, GROUPS)
    assert (table.identity, table.mark("job")) == (before.identity, 0)
    table.append(groups("new", members=3), Mark("job", 1))
    rows = DeltaTable(str(table.folder)).to_pyarrow_table()
    assert dict(zip(rows["group_id"].to_pylist(), rows["members"].to_pylist(), strict=True)) == {"old": None, "new": 3}
    assert table.current_rows({}, pc.field("members").is_null()).rows["group_id"].to_pylist() == ["old"]
    version = table.version
    assert DeltaFiles(tmp_path, GROUPS).version == version
    commit = (table.folder / "_delta_log" / f"{version - 1:020d}.json").read_text()
    assert "delta.enableChangeDataFeed" in commit
    assert Reader(tmp_path).read("groups", columns=["members", "group_id"]).num_rows == 2


def test_columns_that_somebody_added_stay(tmp_path: Path) -> None:
    wider = GROUPS._replace(columns=(*GROUPS.columns, GROUPS.columns[0]._replace(name="team")))
    DeltaFiles(tmp_path, wider).append(to_arrow(wider, [{"group_id": "a", "team": "t"}]), Mark("job", 0))
    table = DeltaFiles(tmp_path, GROUPS)
    table.append(groups("b"), Mark("job", 1))
    rows = DeltaTable(str(table.folder)).to_pyarrow_table().sort_by("group_id")
    assert rows["team"].to_pylist() == ["t", None]


def test_a_folder_with_another_table_is_refused(tmp_path: Path) -> None:
    other = GROUPS._replace(columns=(GROUPS.columns[0]._replace(type=pa.int64()), *GROUPS.columns[1:]))
    DeltaFiles(tmp_path, other)
    with pytest.raises(TableError, match=r"column cluster is long, not string.*--tables"):
        DeltaFiles(tmp_path, GROUPS)


def test_statistics_are_exact_or_left_out(tmp_path: Path) -> None:
    table = DeltaFiles(tmp_path, GROUPS)
    late = {"cluster": "c1", "group_id": "g", "last_rebalance_at": 1_767_225_600_007}
    table.append(to_arrow(GROUPS, [late, {"cluster": "c" * 40}]), Mark("job", 0))
    actions = [json.loads(line) for line in (table.folder / "_delta_log" / f"{1:020d}.json").read_text().splitlines()]
    stats = json.loads(next(action["add"]["stats"] for action in actions if "add" in action))
    assert stats["numRecords"] == 2
    assert "cluster" not in stats["maxValues"]
    assert stats["minValues"]["last_rebalance_at"] == "2026-01-01T00:00:00.007Z"
    assert stats["nullCount"]["group_id"] == 1


def test_nothing_stands_where_no_row_matches(tmp_path: Path) -> None:
    table = DeltaFiles(tmp_path, GROUPS)
    empty = table.current_rows({}, pc.field("group_id") == "nobody")
    assert empty == CurrentRows(GROUPS.schema.empty_table(), [])
