"""Commits per queue: kept, returned on request, dropped when too old."""

from __future__ import annotations

import numpy as np

from udfs.shard.commits import Commits

Rows = list[tuple[int, int, int]]
SEVEN, EIGHT = 7 << 24, 8 << 24  # hashes in practice: two differ in the upper 40 bits


def take(commits: Commits, rows: Rows) -> None:
    groups, queues, times = zip(*rows, strict=True)
    commits.take(
        np.asarray(groups, dtype=np.uint64), np.asarray(queues, dtype=np.uint64), np.asarray(times, dtype=np.int64)
    )


def test_a_group_gets_what_was_remembered_and_what_is_due_and_nothing_that_waits() -> None:
    commits = Commits()
    take(commits, [(1, SEVEN, 10), (1, SEVEN, 5), (1, EIGHT, 30), (2, SEVEN, 9)])
    commits.settle(20)
    assert (commits.of(1), commits.of(2)) == ({SEVEN: [5, 10]}, {SEVEN: [9]})
    commits = Commits(*commits.encode(None))
    take(commits, [(1, SEVEN, 25), (1, SEVEN, 10)])
    commits.settle(40)
    assert commits.of(1) == {SEVEN: [10, 25], EIGHT: [30]}
    assert Commits(*commits.encode(None)).of(1) == {SEVEN: [25], EIGHT: [30]}


def test_an_older_commit_changes_nothing() -> None:
    commits = Commits()
    take(commits, [(1, SEVEN, 10)])
    commits.settle(20)
    commits = Commits(*commits.encode(None))
    take(commits, [(1, SEVEN, 3)])
    commits.settle(20)
    assert commits.of(1) == {SEVEN: [10]}


def test_commits_that_are_too_old_are_dropped_with_the_next_that_are_applied() -> None:
    commits = Commits()
    take(commits, [(1, SEVEN, 10), (2, SEVEN, 100)])
    commits.settle(200)
    commits = Commits(*commits.encode(50))
    assert (commits.of(1), commits.of(2)) == ({}, {SEVEN: [100]})


def test_what_nothing_changed_is_copied() -> None:
    commits = Commits()
    take(commits, [(1, SEVEN, 10), (1, SEVEN, 300)])
    commits.settle(200)
    applied, waiting = commits.encode(None)
    assert Commits(applied, waiting).encode(None) == (applied, waiting)
    assert Commits(applied, waiting).waiting_of(1) == [(SEVEN, 300)]


def test_commits_of_unknown_groups_are_found() -> None:
    commits = Commits()
    take(commits, [(1, SEVEN, 10), (2, SEVEN, 11), (3, SEVEN, 300)])
    commits.settle(200)
    commits = Commits(*commits.encode(None))
    assert commits.of_others(np.asarray([1], dtype=np.uint64)) == [(2, SEVEN, 11), (3, SEVEN, 300)]
