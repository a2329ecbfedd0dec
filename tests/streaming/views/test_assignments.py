"""Owners of queues, now or at a time, as `who-owned` and `show assignments` have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.streaming.views.story import json_of, seconds


@pytest.mark.parametrize(
    ("at", "owner"),
    [
        ("0", "a"),
        ("9.999", "a"),
        ("10", "b"),
        ("10.001", "b"),
    ],
)
def test_a_queue_belongs_to_its_owner_of_that_time(tables: Path, at: str, owner: str) -> None:
    (row,) = [
        row
        for row in json_of(tables, "who-owned", "orders", "1", "-g", "orders", "--at", seconds(float(at)))
        if row["origin"] == "computed"
    ]
    assert row["member_id"] == owner


def test_the_owner_of_a_queue_is_shown_with_its_client(tables: Path) -> None:
    (row,) = json_of(tables, "who-owned", "orders", "0", "--at", "2026-01-01T00:00:05Z")
    assert (row["member_id"], row["client_id"], row["host"], row["instance_id"]) == ("a", "app-a", "h1", "static-a")
    assert (row["valid_from"], row["valid_to"]) == ("2026-01-01T00:00:00.000Z", "2026-01-01T00:01:10.000Z")


@pytest.mark.parametrize(("at", "owner"), [("19.999", "old"), ("20", "new")])
def test_a_static_member_is_named_by_the_id_that_it_had_then(static_tables: Path, at: str, owner: str) -> None:
    (row,) = json_of(static_tables, "who-owned", "orders", "0", "--at", seconds(float(at)))
    assert (row["member_id"], row["instance_id"], row["rebalance_id"]) == (owner, "static", "r1")


def test_a_topic_shared_by_message_names_all_members_that_share_it(tables: Path) -> None:
    (row,) = json_of(tables, "who-owned", "events", "5")
    assert (row["member_id"], row["queue_id"]) == ("pop", -1)


def test_assignments_are_now_or_then(tables: Path) -> None:
    def owners(*options: str) -> list[tuple[object, ...]]:
        found = json_of(tables, "show", "assignments", "-g", "orders", "--origin", "computed", *options)
        return [(row["queue_id"], row["member_id"]) for row in found]

    assert owners() == [(0, "b"), (1, "b")]
    assert owners("--at", seconds(69.999)) == [(0, "a"), (1, "b")]
    assert owners("--member", "a") == []
