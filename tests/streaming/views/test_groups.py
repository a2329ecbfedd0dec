"""The groups of now, and one of them with all that belongs to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.views.groups import generation_text
from tests.streaming.views.story import json_of, run


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
