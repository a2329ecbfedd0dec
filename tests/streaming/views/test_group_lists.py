"""Which groups are listed, and what is written where none is."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.schema import TOPICS
from streaming.tables.writer import Mark
from streaming.views.group_lists import Filters, connected_clusters, fitting, nothing_to_list
from streaming.views.reader import Reader
from tests.streaming.views.story import rebalance, store

ROWS = [
    {
        "cluster": "shop",
        "system": "kafka",
        "group_id": name,
        "state": state,
        "health": health,
        "epoch": None,
        "strategy": "kafka.range",
        "finding_kinds": kinds,
        "generation": 1,
        "members": members,
        "protocol": None,
    }
    for name, state, health, kinds, members in (
        ("orders", "stable", "warning", "flapping idle_members", 3),
        ("payments", "empty", "ok", None, 0),
        ("shared", "not_followed", "unknown", None, 0),
    )
]


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        (Filters(), ["orders", "payments", "shared"]),
        (Filters(states=frozenset({"stable"})), ["orders"]),
        (Filters(states=frozenset({"empty"})), ["payments", "shared"]),  # as its coordinator has it
        (Filters(states=frozenset({"not_followed"})), ["shared"]),
        (Filters(healths=frozenset({"ok", "warning"})), ["orders", "payments"]),
        (Filters(system="metaq"), []),
        (Filters(finding="idle_members"), ["orders"]),
        (Filters(finding="idle"), []),
        (Filters(search="PAY"), ["payments"]),
        (Filters(search="range", healths=frozenset({"ok"})), ["payments"]),
    ],
)
def test_all_filters_must_fit(filters: Filters, names: list[str]) -> None:
    assert [row["group_id"] for row in fitting(ROWS, filters)] == names


def test_an_empty_installation_names_the_followed_cluster_and_what_to_do(tmp_path: Path) -> None:
    topic = {"cluster": "shop", "topic": "t", "queue_count": 1, "valid_from": 0, "valid_to": None}
    DeltaRsTable(tmp_path, TOPICS).append(to_arrow(TOPICS, [topic]), Mark("t", 0))
    text = nothing_to_list(Reader(tmp_path), [])
    assert text.startswith("no group yet: shop is followed, and no group was observed there")
    assert "--include-group" in text
    assert connected_clusters(Reader(tmp_path)) == ["shop"]


def test_without_any_source_it_names_how_to_start_and_with_groups_that_none_fits(tmp_path: Path) -> None:
    store(tmp_path, [rebalance("aa11", 0, "group_created", None)])
    assert "no cluster has been read; start `run` with --kafka" in nothing_to_list(Reader(tmp_path), [])
    assert nothing_to_list(Reader(tmp_path), ROWS) == "none of 3 groups fits these filters"
