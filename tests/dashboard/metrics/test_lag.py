"""The lag of a group is the sum of what its queues had last."""

from __future__ import annotations

from pathlib import Path

from dashboard.metrics.group_labels import GroupLabels
from dashboard.metrics.lag import lag_by_group
from streaming.settings.model import load
from streaming.tables.schema import GROUPS, MEMBERS, QUEUE_PROGRESS
from streaming.views.reader import Reader
from tests.streaming.views.test_progress import moved, write


def labels() -> GroupLabels:
    return GroupLabels([("c", "g"), ("c", "h")], ["c"], load().metrics)


def test_lag_is_the_sum_of_the_newest_of_each_queue(tmp_path: Path) -> None:
    rows = [moved(0, 0, 1, 100), moved(0, 60_000, 90, 100), moved(1, 0, 5, 7), moved(2, 0, 5, None)]
    write(tmp_path, QUEUE_PROGRESS, [*rows, moved(0, 60_000, 0, 4, group_id="h")])
    assert lag_by_group(Reader(tmp_path), labels()) == (
        {("c", "g"): 12, ("c", "h"): 4},
        {("c", "g"): 1, ("c", "h"): 0},
    )


def test_queues_that_have_not_moved_for_an_hour_do_not_count(tmp_path: Path) -> None:
    write(tmp_path, QUEUE_PROGRESS, [moved(1, 0, 5, 7), moved(0, 3_600_001, 90, 100)])
    assert lag_by_group(Reader(tmp_path), labels()) == ({("c", "g"): 10}, {("c", "g"): 0})


def test_a_last_row_without_offsets_ends_the_lag(tmp_path: Path) -> None:
    rows = [moved(0, 0, 1, 100), moved(0, 60_000, None, None), moved(1, 0, 5, 7)]
    write(
        tmp_path, QUEUE_PROGRESS, [*rows, moved(0, 0, 0, 4, group_id="h"), moved(0, 60_000, None, None, group_id="h")]
    )
    assert lag_by_group(Reader(tmp_path), labels()) == ({("c", "g"): 2}, {("c", "g"): 1, ("c", "h"): 1})


def test_commits_of_topics_to_which_nobody_subscribes_do_not_count(tmp_path: Path) -> None:
    rows = [moved(0, 0, 1, 100), moved(1, 0, 5, 7), moved(1, 0, 5, 9) | {"topic": "former"}]
    write(tmp_path, QUEUE_PROGRESS, rows + [row | {"group_id": "h"} for row in rows])
    write(tmp_path, MEMBERS, [{"member_id": "a", "subscriptions": ["t"]}, {"member_id": "b", "group_id": "h"}])
    assert lag_by_group(Reader(tmp_path), labels())[0] == {("c", "g"): 101, ("c", "h"): 105}
    write(tmp_path, GROUPS, [{"protocol": "streams"}])
    assert lag_by_group(Reader(tmp_path), labels())[0] == {("c", "g"): 105, ("c", "h"): 105}


def test_tables_without_progress_have_no_lag(tmp_path: Path) -> None:
    write(tmp_path, QUEUE_PROGRESS, [moved(0, 0, 1, None)])
    assert lag_by_group(Reader(tmp_path), labels()) == ({}, {("c", "g"): 1})
