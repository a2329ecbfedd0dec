"""A piece of the journal: whole versions, or of a large version a share of whole groups."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from deltalake import DeltaTable

from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.journal_piece import (
    JournalPiece,
    entries_of,
    is_concerned,
    piece_of,
    rows_if_few,
    rows_of,
    shares_of,
    snapshot_of,
)
from streaming.tables.projections import MINUTE_MS
from streaming.tables.schema import CHANGES
from streaming.tables.writer import LogTruncatedError, Mark
from tests.streaming.tables.journals import T0, Journal, a_history, assigned, row, rows, stable
from tests.streaming.tables.projected_rows import BY_TABLE
from udfs.model import journal
from udfs.model.spans import SpansWithdrawn


def written(root: Path, *batches: Sequence[journal.Change]) -> DeltaRsTable:
    """Return a journal with a version for each batch, after the empty one."""
    table = DeltaRsTable(root, CHANGES)
    for batch, changes in enumerate(batches):
        table.append(to_arrow(CHANGES, rows(changes, batch)), Mark("job", batch))
    assert table.version == len(batches)
    return table


def of_groups(*groups: str | None, cluster: str = "c1") -> list[journal.Change]:
    history = Journal()
    return [history.change(at, stable(1), group=group, cluster=cluster) for at, group in enumerate(groups)]


@pytest.mark.parametrize(
    ("after", "upto", "limit", "expected"),
    [
        (0, 3, 100, JournalPiece(0, 3, 6)),
        (0, 3, 6, JournalPiece(0, 3, 6)),
        (0, 3, 5, JournalPiece(0, 2, 3)),
        (0, 3, 3, JournalPiece(0, 2, 3)),
        (0, 3, 2, JournalPiece(0, 1, 1)),
        # A piece has at least one version, however much that holds.
        (2, 3, 1, JournalPiece(2, 3, 3)),
        (0, 2, 100, JournalPiece(0, 2, 3)),
        (3, 3, 100, JournalPiece(3, 3, 0)),
    ],
)
def test_a_piece_is_as_many_versions_as_hold_so_many_changes(
    tmp_path: Path, after: int, upto: int, limit: int, expected: JournalPiece
) -> None:
    table = written(tmp_path, of_groups("a"), of_groups("a", "b"), of_groups("a", "b", "c"))
    assert piece_of(table, after, upto, limit) == expected


def test_versions_that_bring_no_changes_belong_to_the_piece_before_them(tmp_path: Path) -> None:
    table = written(tmp_path, of_groups("a"), of_groups("b"))
    table.maintain(vacuum_after_ms=86_400_000)
    assert table.version == 3
    assert piece_of(table, 0, 3, 1) == JournalPiece(0, 1, 1)
    assert piece_of(table, 1, 3, 1) == JournalPiece(1, 3, 1)


def test_all_that_is_left_is_a_piece_where_the_log_no_longer_reaches_back(tmp_path: Path) -> None:
    table = written(tmp_path, of_groups("a"), of_groups("a", "b"))
    DeltaTable(table.uri).create_checkpoint()
    for file in sorted((tmp_path / "changes/_delta_log").glob("*.json"))[:-1]:
        file.unlink()
    table = DeltaRsTable(tmp_path, CHANGES)
    with pytest.raises(LogTruncatedError):
        piece_of(table, 0, 2, 100)
    piece = snapshot_of(table, 0, 2)
    assert piece == JournalPiece(0, 2, 3, is_snapshot=True)
    assert rows_of(table, piece, None)["group_id"].to_pylist() == ["a", "a", "b"]


def test_a_piece_that_is_small_enough_is_not_cut(tmp_path: Path) -> None:
    table = written(tmp_path, of_groups("a", "b"))
    assert shares_of(table, JournalPiece(0, 1, 2), 2) == [None]
    assert shares_of(table, JournalPiece(0, 1, 2), 1) == [(("c1", "a"), ("c1", "a")), (("c1", "b"), ("c1", "b"))]


def test_shares_are_of_whole_groups_in_order_and_what_is_of_no_group_comes_first(tmp_path: Path) -> None:
    changes = [*of_groups("b", "a", "b", None, "c"), *of_groups("a", cluster="c2")]
    table = written(tmp_path, changes)
    piece = piece_of(table, 0, 1, 2)
    shares = shares_of(table, piece, 2)
    assert shares == [(("c1", ""), ("c1", "a")), (("c1", "b"), ("c1", "b")), (("c1", "c"), ("c2", "a"))]
    taken = [rows_of(table, piece, share) for share in shares]
    assert [[*zip(part["cluster"].to_pylist(), part["group_id"].to_pylist(), strict=True)] for part in taken] == [
        [("c1", "a"), ("c1", None)],
        [("c1", "b")] * 2,
        [("c1", "c"), ("c2", "a")],
    ]


@pytest.mark.parametrize("limit", [1, 7, 30, 1_000])
def test_shares_are_all_of_a_piece_once(tmp_path: Path, limit: int) -> None:
    history = Journal()
    changes = [history.change(at, stable(at), group=f"g{at * 7 % 13}", cluster=f"c{at % 3}") for at in range(50)]
    table = written(tmp_path, changes)
    piece = piece_of(table, 0, 1, limit)
    taken = [rows_of(table, piece, share) for share in shares_of(table, piece, limit)]
    found = [found_row for part in taken for found_row in part.to_pylist()]
    whole = rows_of(table, piece, None).to_pylist()
    assert sorted(map(str, found)) == sorted(map(str, whole))
    # A share without its last group is smaller than the limit.
    for part in taken:
        keys = [*zip(part["cluster"].to_pylist(), part["group_id"].to_pylist(), strict=True)]
        assert len([key for key in keys if key != max(keys)]) < limit


def test_changes_are_in_the_order_of_their_versions_and_then_of_their_numbers(tmp_path: Path) -> None:
    first, second = Journal(), Journal()  # as of two checkpoints
    older = [first.change(at, stable(1)) for at in range(3)]
    newer = [second.change(at, stable(2)) for at in (9, 10)]
    table = written(tmp_path, older[::-1], newer)
    taken = rows_of(table, JournalPiece(0, 2, 5), None)
    numbers = [*zip(taken["_commit_version"].to_pylist(), taken["number"].to_pylist(), strict=True)]
    assert numbers == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)]


def test_a_projection_gets_the_bodies_that_it_reads_and_of_other_changes_their_times(tmp_path: Path) -> None:
    history = Journal()
    opened = history.change(0, assigned(0, "a", 0))
    removed = history.change(5, journal.GroupRemoved())
    withdrawn = history.change(MINUTE_MS, SpansWithdrawn(since=T0))
    of_topic = history.change(
        9, journal.TopicChanged(topic="t", queue_count=0, queues=[], valid_from=T0), group=None, subject="t"
    )
    table = written(tmp_path, [opened, removed, withdrawn, of_topic])
    changes = rows_of(table, JournalPiece(0, 1, 4), None)

    def bodies(name: str) -> list[tuple[int, journal.Body | None]]:
        return [(entry.event_time - T0, entry.body) for entry in entries_of(changes, BY_TABLE[name])]

    assert bodies("assignments") == [(0, opened.body), (MINUTE_MS, withdrawn.body)]
    assert bodies("groups") == [(5, removed.body)]
    assert bodies("topics") == [(9, of_topic.body)]
    # Every change of a group makes its minute, whatever it is.
    assert bodies("group_minutes") == [(0, opened.body), (5, removed.body), (MINUTE_MS, None)]
    assert bodies("members") == []
    concerned = {name for name, projection in BY_TABLE.items() if is_concerned(projection, changes)}
    assert concerned == {"assignments", "groups", "topics", "group_minutes"}


def test_few_changes_are_read_at_once_and_more_are_not(tmp_path: Path) -> None:
    table = written(tmp_path, of_groups("b"), of_groups("a", "c"))
    found = rows_if_few(table, 0, 2, 3)
    assert found is not None
    assert found.equals(rows_of(table, JournalPiece(0, 2, 3), None))
    assert rows_if_few(table, 0, 2, 2) is None
    assert rows_if_few(table, 0, 0, 0) == found.slice(0, 0)


def test_a_projection_gets_the_first_unread_change_per_group_and_minute(tmp_path: Path) -> None:
    history = Journal()
    places = [("g1", 0), ("g1", 1), ("g1", MINUTE_MS - 1), ("g1", MINUTE_MS), ("g2", MINUTE_MS), ("g2", 5), ("g2", 6)]
    silent = [history.change(at, SpansWithdrawn(since=T0), group=group) for group, at in places]
    other = history.change(6, SpansWithdrawn(since=T0), group="g2", cluster="c2")
    table = written(tmp_path, [*silent, other])
    found = entries_of(rows_of(table, JournalPiece(0, 1, 8), None), BY_TABLE["group_minutes"])
    assert [(entry.cluster, entry.group_id, entry.event_time - T0) for entry in found] == [
        ("c1", "g1", 0),
        ("c1", "g1", MINUTE_MS),
        ("c1", "g2", MINUTE_MS),
        ("c1", "g2", 5),
        ("c2", "g2", 6),
    ]
    assert {entry.body for entry in found} == {None}


def test_entries_are_the_changes_that_were_written(tmp_path: Path) -> None:
    changes = [change for change in a_history(random.Random(3), 60) if change.group_id == "g1"]
    table = written(tmp_path, changes[:20], changes[20:])
    projection = BY_TABLE["assignments"]
    found = entries_of(rows_of(table, piece_of(table, 0, 2, 1_000), None), projection)
    wanted = [change for change in changes if row(change)["kind"] in projection.kinds]
    assert len(wanted) > 5
    assert [entry.body for entry in found] == [change.body for change in wanted]
    assert [entry.event_time for entry in found] == [change.event_time for change in wanted]
