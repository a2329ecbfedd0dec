"""The groups of now, and one of them with all that belongs to it."""

from __future__ import annotations

from pathlib import Path

from tests.streaming.views.story import json_of, run


def test_groups_are_listed_by_cluster_and_name(tables: Path) -> None:
    listed = [(row["cluster"], row["group_id"], row["members"]) for row in json_of(tables, "show", "groups")]
    assert listed == [("c1", "orders", 1), ("c1", "twin", 3), ("c2", "popping", 1), ("c2", "twin", 3)]
    assert len(json_of(tables, "show", "groups", "--cluster", "c2")) == 2


def test_a_group_in_two_clusters_needs_the_name_of_one(tables: Path) -> None:
    result = run(tables, "show", "group", "twin")
    assert (result.exit_code, "c1, c2" in result.stderr) == (2, True)
    assert json_of(tables, "show", "group", "twin", "--cluster", "c2")[0]["cluster"] == "c2"
