"""What is known of queues: kept, returned on request, dropped when too old."""

from __future__ import annotations

import numpy as np

from udfs.model.observations import UNKNOWN, undated, undated_offset
from udfs.packets.progress_columns import NO_PROGRESS, NamedGroup, PackedEnds, PackedNames, ProgressColumns
from udfs.shard.commits import Commits

Rows = list[tuple[int, int, int]]
SEVEN, EIGHT = 7 << 24, 8 << 24  # hashes in practice
NAMES = PackedNames.pack(
    {1: NamedGroup("g1", "kafka"), 2: NamedGroup("g2", "kafka")}, {SEVEN: ("t", None, 0), EIGHT: ("t", None, 1)}
)


def take(commits: Commits, rows: Rows, offsets: list[int] | None = None) -> None:
    groups, queues, times = zip(*rows, strict=True)
    columns = ProgressColumns.of_commits(
        np.asarray(groups, np.uint64),
        np.asarray(queues, np.uint64),
        np.asarray(times, np.int64),
        None if offsets is None else np.asarray(offsets, np.int64),
    )
    commits.add(columns, [NAMES])


def take_end(commits: Commits, queue: int, at: int, end: int) -> None:
    commits.add_ends(PackedEnds.pack(np.array([queue], np.uint64), np.array([at]), np.array([end])))


def after(commits: Commits, clock: int, before: int | None = None, forget: int | None = None) -> Commits:
    """Apply what is due, and open the state anew."""
    commits.apply_due(span_ms=0, before=before, clock=clock, flush=False)
    return Commits(*commits.encode(forget))


def test_a_group_gets_what_was_remembered_and_what_is_due_and_nothing_that_waits() -> None:
    commits = Commits()
    take(commits, [(1, SEVEN, 10), (1, SEVEN, 5), (1, EIGHT, 30), (2, SEVEN, 9)])
    commits.make_due(20)
    assert (commits.of(1), commits.of(2)) == ({SEVEN: [5, 10]}, {SEVEN: [9]})
    commits = after(commits, 20)
    take(commits, [(1, SEVEN, 25), (1, SEVEN, 10)])
    commits.make_due(40)
    assert commits.of(1) == {SEVEN: [10, 25], EIGHT: [30]}
    assert after(commits, 40, 20).of(1) == {SEVEN: [25], EIGHT: [30]}


def test_an_older_commit_changes_nothing() -> None:
    commits = Commits()
    take(commits, [(1, SEVEN, 10)])
    commits.make_due(20)
    commits = after(commits, 20)
    take(commits, [(1, SEVEN, 3)])
    commits.make_due(20)
    assert commits.of(1) == {SEVEN: [10]}


def test_a_group_gets_the_last_two_commits_the_last_end_and_what_is_due() -> None:
    commits = Commits()
    take(commits, [(1, SEVEN, 5), (1, SEVEN, 10), (1, SEVEN, 15)], [100, 130, 150])
    take_end(commits, SEVEN, 12, 180)
    commits.make_due(20)
    observed = [(5, 100, -1, -1), (10, 130, -1, -1), (12, -1, 180, -1), (15, 150, -1, -1)]
    assert commits.offsets_of(1) == {SEVEN: observed}
    commits = after(commits, 20)
    take(commits, [(1, SEVEN, 25)], [160])
    take_end(commits, SEVEN, 22, 190)
    commits.make_due(40)
    assert commits.offsets_of(1) == {SEVEN: [*observed[1:], (22, -1, 190, -1), (25, 160, -1, -1)]}


def test_polled_offsets_count_at_an_unknown_time_until_a_commit() -> None:
    commits = Commits()
    found = ProgressColumns(
        *(
            np.array([value], like.dtype)
            for value, like in zip((1, SEVEN, 5, 100, 180, -1, 0, -1, -1), NO_PROGRESS, strict=True)
        )
    )
    commits.add(found, [NAMES])
    commits.make_due(20)
    assert commits.of(1) == {}
    assert commits.offsets_of(1) == {SEVEN: [(5, undated(100), 180, UNKNOWN)]}
    commits = after(commits, 20)
    assert commits.offsets_of(1) == {SEVEN: [(0, undated(100), UNKNOWN, UNKNOWN), (5, UNKNOWN, 180, UNKNOWN)]}
    take(commits, [(1, SEVEN, 25)], [130])
    commits.make_due(40)
    commits = after(commits, 40)
    assert commits.offsets_of(1) == {SEVEN: [(5, UNKNOWN, 180, UNKNOWN), (25, 130, UNKNOWN, UNKNOWN)]}
    assert [undated_offset(undated(offset)) for offset in (0, 1, 2**62)] == [0, 1, 2**62]
    assert [undated_offset(stored) for stored in (UNKNOWN, -2, -3, 0, 7)] == [None] * 5


def test_an_end_from_before_the_first_commit_counts_in_no_way_of_cutting() -> None:
    together = Commits()
    take_end(together, SEVEN, 4, 90)
    take(together, [(1, SEVEN, 5)], [80])
    together.make_due(20)
    apart = Commits()
    take_end(apart, SEVEN, 4, 90)
    apart.make_due(5)
    apart = after(apart, 5)
    take(apart, [(1, SEVEN, 5)], [80])
    apart.make_due(20)
    assert together.offsets_of(1) == apart.offsets_of(1) == {SEVEN: [(5, 80, -1, -1)]}


def test_commits_that_are_too_old_are_dropped_with_the_next_that_are_applied() -> None:
    commits = Commits()
    take(commits, [(1, SEVEN, 10), (2, SEVEN, 100)])
    commits.make_due(200)
    commits = after(commits, 200, forget=50)
    assert (commits.of(1), commits.of(2)) == ({}, {SEVEN: [100]})


def test_unchanged_data_is_copied() -> None:
    commits = Commits()
    take(commits, [(1, SEVEN, 10), (1, SEVEN, 300)])
    take_end(commits, SEVEN, 300, 5)
    commits.make_due(200)
    commits.apply_due(span_ms=0, before=None, clock=200, flush=False)
    state = commits.encode(None)
    assert Commits(*state).encode(None) == state
    assert Commits(*state).waiting_of(1) == [(SEVEN, 300, *[UNKNOWN] * 3, True, *[UNKNOWN] * 2)]
    assert Commits(*state).waiting_ends() == [(SEVEN, 300, 5, UNKNOWN)]


def test_beyond_the_limit_further_queues_are_ignored() -> None:
    commits = Commits(most=2)
    take(commits, [(1, SEVEN, 10), (1, EIGHT, 11)])
    take(commits, [(2, SEVEN, 12), (1, SEVEN, 13)])
    commits.make_due(20)
    assert (commits.of(1), commits.of(2)) == ({SEVEN: [10, 13], EIGHT: [11]}, {})


def test_the_knowledge_of_another_state_is_restored() -> None:
    commits = Commits()
    take(commits, [(1, SEVEN, 5), (1, SEVEN, 10), (1, EIGHT, 300)], [100, 130, 7])
    commits.make_due(20)
    commits = after(commits, 20)
    name, rows = commits.rows_of(1)
    other = Commits()
    other.restore(1, name, rows, commits.waiting_of(1))
    other = Commits(*other.encode(None))
    assert other.rows_of(1) == (name, rows) == (NamedGroup("g1", "kafka"), rows)
    assert other.waiting_of(1) == commits.waiting_of(1)
    assert other.offsets_of(1) == commits.offsets_of(1)


def test_groups_with_commits_alone_are_found() -> None:
    commits = Commits()
    take(commits, [(1, SEVEN, 10), (2, SEVEN, 11), (3, SEVEN, 300)])
    commits.make_due(200)
    assert after(commits, 200).others(np.asarray([1], dtype=np.uint64)) == [2, 3]
