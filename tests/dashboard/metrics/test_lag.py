"""The lag of a group is the sum of what its queues had last."""

from __future__ import annotations

import random
from pathlib import Path

from dashboard.metrics.group_labels import GroupLabels
from dashboard.metrics.lag import lag_by_group
from streaming.settings.model import load
from streaming.tables.schema import GROUPS, MEMBERS, QUEUE_PROGRESS
from streaming.views.progress import progress
from streaming.views.reader import Reader
from tests.streaming.views.test_progress import GROUP, T0, moved, write


def labels() -> GroupLabels:
    return GroupLabels([("c", "g"), ("c", "h")], ["c"], load().metrics)


def test_lag_is_the_sum_of_the_newest_of_each_queue(tmp_path: Path) -> None:
    rows = [moved(0, 0, 1, 100), moved(0, 60_000, 90, 100), moved(1, 0, 5, 7), moved(2, 0, 5, None)]
    write(tmp_path, QUEUE_PROGRESS, [*rows, moved(0, 60_000, 0, 4, group_id="h")])
    assert lag_by_group(Reader(tmp_path), labels())[:2] == (
        {("c", "g"): 12, ("c", "h"): 4},
        {("c", "g"): 1, ("c", "h"): 0},
    )


def test_queues_that_have_not_moved_for_an_hour_do_not_count(tmp_path: Path) -> None:
    write(tmp_path, QUEUE_PROGRESS, [moved(1, 0, 5, 7), moved(0, 3_600_001, 90, 100)])
    assert lag_by_group(Reader(tmp_path), labels())[:2] == ({("c", "g"): 10}, {("c", "g"): 0})


def test_a_last_row_without_offsets_ends_the_lag(tmp_path: Path) -> None:
    rows = [moved(0, 0, 1, 100), moved(0, 60_000, None, None), moved(1, 0, 5, 7)]
    write(
        tmp_path, QUEUE_PROGRESS, [*rows, moved(0, 0, 0, 4, group_id="h"), moved(0, 60_000, None, None, group_id="h")]
    )
    assert lag_by_group(Reader(tmp_path), labels())[:2] == ({("c", "g"): 2}, {("c", "g"): 1, ("c", "h"): 1})


def test_commits_of_topics_to_which_nobody_subscribes_do_not_count(tmp_path: Path) -> None:
    rows = [moved(0, 0, 1, 100), moved(1, 0, 5, 7), moved(1, 0, 5, 9) | {"topic": "former"}]
    write(tmp_path, QUEUE_PROGRESS, rows + [row | {"group_id": "h"} for row in rows])
    write(tmp_path, MEMBERS, [{"member_id": "a", "subscriptions": ["t"]}, {"member_id": "b", "group_id": "h"}])
    assert lag_by_group(Reader(tmp_path), labels())[0] == {("c", "g"): 101, ("c", "h"): 105}
    write(tmp_path, GROUPS, [{"protocol": "streams"}])
    assert lag_by_group(Reader(tmp_path), labels())[0] == {("c", "g"): 105, ("c", "h"): 105}


def test_tables_without_progress_have_no_lag(tmp_path: Path) -> None:
    write(tmp_path, QUEUE_PROGRESS, [moved(0, 0, 1, None)])
    assert lag_by_group(Reader(tmp_path), labels()) == ({}, {("c", "g"): 1}, {}, {}, {})


def test_the_oldest_unread_message_of_a_group_is_as_old_as_its_progress_shows(tmp_path: Path) -> None:
    """Random histories: some queues read to their ends, some only bounded, some unknown, some of a topic made again."""
    rng, rows = random.Random(7), []
    for group in range(12):
        for queue in range(rng.randrange(1, 4)):
            end = committed = rng.choice([0, 500])
            start = rng.choice([0, None])
            for minute in range(rng.randrange(1, 9)):
                end = rng.randrange(90) if rng.random() < 0.05 else end + rng.choice([0, 7, 400])
                committed = rng.choice([committed, end, end + 5, min(end, committed + 60)])
                known_end = None if rng.random() < 0.1 else end
                at_ms, message = T0 + 60_000 * minute - rng.randrange(90_000), committed - rng.choice([0, 0, 1, 30, -4])
                written = {"written_offset": message, "written_at": at_ms} if rng.random() < 0.4 else {}
                start = None if start is None else start + rng.choice([0, 9])
                of_log = written | {"start_offset": start}
                rows.append(moved(queue, minute * 60_000, committed, known_end, group_id=f"g{group}", **of_log))
    rng.shuffle(rows)
    write(tmp_path, QUEUE_PROGRESS, rows)
    names = [f"g{group}" for group in range(12)]
    reader = Reader(tmp_path)
    lags = lag_by_group(reader, GroupLabels([("c", name) for name in names], ["c"], load().metrics))
    kinds: set[object] = set()
    for name in names:
        queues = progress(reader, GROUP | {"group_id": name}, [])
        ages = [queue["lag_ms"] for queue in queues if queue["lag"] is not None]
        least = [queue["lag_min_ms"] for queue in queues if queue["lag_min_ms"] is not None]
        is_known = bool(ages) and None not in ages
        kinds.add((is_known, bool(least), max(least, default=0) > 0))
        assert lags.seconds.get(("c", name)) == (max(ages) / 1_000 if is_known else None), name
        deleted_in = [queue["deleted_in_ms"] for queue in queues if queue["deleted_in_ms"] is not None]
        kinds.add(bool(deleted_in))
        assert lags.deleted_in_seconds.get(("c", name)) == (min(deleted_in) / 1_000 if deleted_in else None), name
        assert lags.least_seconds.get(("c", name)) == (max(least) / 1_000 if least else None), name
    assert {(True, True, True), (False, True, True), True, False} <= kinds


def test_of_a_queue_with_only_a_lower_bound_only_that_is_reported(tmp_path: Path) -> None:
    # The first group has seen when the end passed its commit, the second has not.
    seen = [moved(0, 0, 90, 90), moved(0, 60_000, 90, 100), moved(0, 120_000, 90, 110)]
    unseen = [moved(0, at, 10, 60 + at // 60_000, group_id="h") for at in (0, 60_000, 120_000)]
    write(tmp_path, QUEUE_PROGRESS, [*seen, *unseen])
    lags = lag_by_group(Reader(tmp_path), labels())
    assert lags.seconds == {("c", "g"): 120.0}
    assert lags.least_seconds == {("c", "g"): 60.0, ("c", "h"): 120.0}
