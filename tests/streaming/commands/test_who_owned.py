"""The command `who-owned`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.streaming.views.story import json_of, run


def test_a_queue_without_an_owner_is_not_found(tables: Path) -> None:
    result = run(tables, "who-owned", "orders", "0", "--at", "2025-12-31T23:59:59.999Z")
    assert result.exit_code == 1
    assert "no group owned orders-0 at 2025-12-31T23:59:59.999Z" in result.stderr


def test_a_topic_that_no_table_has_is_named(tables: Path) -> None:
    result = run(tables, "who-owned", "nonsense", "0")
    assert (result.exit_code, "there is no topic nonsense" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "exit_code", "sentence"),
    [
        (["who-owned", "orders", "0", "--at", "noon"], 2, "'noon' is not a time"),
        (["who-owned", "orders", "first"], 2, "valid integer"),
        (["who-owned", "orders", "7"], 2, "topic orders has no queue 7; its queues are 0 to 1"),
        (["who-owned", "oders", "0"], 2, "there is no topic oders; did you mean orders?"),
        (["who-owned", "orders", "0", "--cluster", "c9"], 2, "there is no cluster c9"),
        (["who-owned", "orders", "0", "-g", "absent"], 2, "there is no group absent"),
        (["who-owned", "orders", "0", "-g", "popping"], 1, "no member of group popping owns orders-0 now"),
    ],
)
def test_each_mistake_has_its_sentence_and_exit_code(
    tables: Path, arguments: list[str], exit_code: int, sentence: str
) -> None:
    result = run(tables, *arguments)
    assert result.exit_code == exit_code
    assert sentence in result.stderr
    assert result.stdout == ""


def test_computed_and_reported_owners_are_shown_for_each_group_and_one_broker_can_be_chosen(tables: Path) -> None:
    assert [(row["member_id"], row["origin"]) for row in json_of(tables, "who-owned", "orders", "1")] == [
        ("b", "computed"),
        ("b", "reported"),
    ]
    lines = run(tables, "who-owned", "events", "5", "--broker", "broker-a").stdout.splitlines()
    assert "events@broker-a (shared by message)" in lines[1]
    other = run(tables, "who-owned", "events", "5", "--broker", "broker-b")
    assert (other.exit_code, "did you mean broker-a?" in other.stderr) == (2, True)
