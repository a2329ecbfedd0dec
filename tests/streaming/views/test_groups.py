"""The groups of now, and one of them with all that belongs to it."""

from __future__ import annotations

from pathlib import Path

from streaming.tables.schema import GROUPS, QUEUE_PROGRESS
from tests.streaming.views.story import json_of, run
from tests.streaming.views.test_progress import T0, moved, write


def test_groups_are_listed_by_cluster_and_name(tables: Path) -> None:
    listed = [(row["cluster"], row["group_id"], row["members"]) for row in json_of(tables, "show", "groups")]
    assert listed == [("c1", "orders", 1), ("c1", "twin", 3), ("c2", "popping", 1), ("c2", "twin", 3)]
    assert len(json_of(tables, "show", "groups", "--cluster", "c2")) == 2


def test_a_group_in_two_clusters_needs_the_name_of_one(tables: Path) -> None:
    result = run(tables, "show", "group", "twin")
    assert (result.exit_code, "c1, c2" in result.stderr) == (2, True)
    assert json_of(tables, "show", "group", "twin", "--cluster", "c2")[0]["cluster"] == "c2"


def test_a_group_that_only_commits_is_empty_and_has_its_offsets(tmp_path: Path) -> None:
    """Kafka's own tool lists the group as empty, offsets included."""
    counts = dict.fromkeys(("members", "queues", "idle_members", "unassigned_queues", "spread"), 0)
    write(tmp_path, GROUPS, [{"system": "kafka", "state": "empty", **counts}])
    write(tmp_path, QUEUE_PROGRESS, [moved(0, 10, 5, 9), moved(0, 70_000, 8, 20), moved(1, 70_000, 3, 3)])
    (listed,) = json_of(tmp_path, "show", "groups")
    assert [listed[name] for name in ("cluster", "group_id", "state", "members")] == ["c", "g", "empty", 0]
    (shown,) = json_of(tmp_path, "show", "group", "g")
    offsets = ("queue_id", "committed_offset", "end_offset", "lag", "lag_reliable", "member_id")
    assert [[row[name] for name in offsets] for row in shown["progress"]] == [
        [0, 8, 20, 12, True, None],
        [1, 3, 3, 0, True, None],
    ]
    assert "No member has been observed." in run(tmp_path, "show", "group", "g").stdout


def test_a_group_that_members_left_has_no_such_notice(tmp_path: Path) -> None:
    write(tmp_path, GROUPS, [{"system": "kafka", "state": "empty", "members": 0, "last_rebalance_at": T0}])
    assert "No member" not in run(tmp_path, "show", "group", "g").stdout
