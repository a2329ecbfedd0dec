"""The message that commands write when no group is listed."""

from __future__ import annotations

from pathlib import Path

from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.schema import GROUPS, TOPICS
from streaming.tables.writer import Mark
from streaming.views.group_lists import connected_clusters, nothing_to_list
from streaming.views.reader import Reader
from tests.streaming.views.story import rebalance, store


def test_an_empty_installation_names_the_followed_cluster_and_what_to_do(tmp_path: Path) -> None:
    topic = {"cluster": "shop", "topic": "t", "queue_count": 1, "valid_from": 0, "valid_to": None}
    DeltaRsTable(tmp_path, TOPICS).append(to_arrow(TOPICS, [topic]), Mark("t", 0))
    text = nothing_to_list(Reader(tmp_path))
    assert text.startswith("no group yet: shop is followed, and no group was observed there")
    assert "--include-group" in text
    assert connected_clusters(Reader(tmp_path)) == ["shop"]


def test_without_any_source_it_names_how_to_start_and_with_groups_that_none_fits(tmp_path: Path) -> None:
    store(tmp_path, [rebalance("aa11", 0, "group_created", None)])
    assert "no cluster has been read; start `run` with --kafka" in nothing_to_list(Reader(tmp_path))
    groups = [{"cluster": cluster, "group_id": name} for cluster, name in (("shop", "a"), ("shop", "b"), ("web", "c"))]
    DeltaRsTable(tmp_path, GROUPS).append(to_arrow(GROUPS, groups), Mark("t", 0))
    assert nothing_to_list(Reader(tmp_path)) == "none of 3 groups fits these filters"
    assert nothing_to_list(Reader(tmp_path), "web") == "none of 1 group fits these filters"
