"""The groups of now, and one of them with all that belongs to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.tables.errors import AmbiguousError, NotFoundError
from streaming.tables.schema import QUEUE_PROGRESS
from streaming.views.groups import generation_text, group_of_commits
from streaming.views.reader import Reader
from tests.streaming.views.story import json_of, run
from tests.streaming.views.test_progress import moved, write


def test_groups_are_listed_by_cluster_and_name(tables: Path) -> None:
    listed = [(row["cluster"], row["group_id"], row["members"]) for row in json_of(tables, "show", "groups")]
    assert listed == [("c1", "orders", 1), ("c1", "twin", 3), ("c2", "popping", 1), ("c2", "twin", 3)]
    assert len(json_of(tables, "show", "groups", "--cluster", "c2")) == 2


def test_a_group_in_two_clusters_needs_the_name_of_one(tables: Path) -> None:
    result = run(tables, "show", "group", "twin")
    assert (result.exit_code, "c1, c2" in result.stderr) == (2, True)
    assert json_of(tables, "show", "group", "twin", "--cluster", "c2")[0]["cluster"] == "c2"


@pytest.mark.parametrize(
    ("generation", "epoch", "target", "text"),
    [
        (7, 7, 7, "7"),
        (7, 8, 7, "7 (epoch 8, target 7)"),
        (None, 1, None, "- (epoch 1, target -)"),
        (7, None, None, "7"),
        (None, None, None, "-"),
    ],
)
def test_a_group_between_two_epochs_shows_both(
    generation: int | None, epoch: int | None, target: int | None, text: str
) -> None:
    assert generation_text({"generation": generation, "epoch": epoch, "assignment_epoch": target}) == text


def test_a_group_that_only_commits_is_empty_and_has_its_offsets(tmp_path: Path) -> None:
    """Kafka's own tool lists it as empty, with its offsets, too."""
    write(tmp_path, QUEUE_PROGRESS, [moved(0, 10, 5, 9), moved(0, 70_000, 8, 20), moved(1, 70_000, 3, 3)])
    (shown,) = json_of(tmp_path, "show", "group", "g")
    assert [shown[name] for name in ("cluster", "system", "state", "members", "queues")] == ["c", None, "empty", 0, 2]
    offsets = ("queue_id", "committed_offset", "end_offset", "lag", "lag_reliable", "member_id")
    assert [[row[name] for name in offsets] for row in shown["progress"]] == [
        [0, 8, 20, 12, True, None],
        [1, 3, 3, 0, True, None],
    ]
    assert "Known by its commits alone: no member has been observed." in run(tmp_path, "show", "group", "g").stdout


def test_deleted_commits_are_no_group(tmp_path: Path) -> None:
    write(tmp_path, QUEUE_PROGRESS, [moved(0, 10, 5, 9), moved(0, 70_000, None, None)])
    with pytest.raises(NotFoundError, match="there is no group g in cluster c"):
        group_of_commits(Reader(tmp_path), "g", "c")


def test_groups_that_only_commit_in_two_clusters_need_the_name_of_one(tmp_path: Path) -> None:
    write(tmp_path, QUEUE_PROGRESS, [moved(0, 10, 5, 9), {**moved(0, 20, 6, 9), "cluster": "d"}])
    with pytest.raises(AmbiguousError, match="c, d"):
        group_of_commits(Reader(tmp_path), "g")
    assert group_of_commits(Reader(tmp_path), "g", "d")["cluster"] == "d"
