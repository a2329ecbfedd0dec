"""The commands `show …`: what people read, and the errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.streaming.views.rebalancing_story import write_rebalancing
from tests.streaming.views.story import FIRST, SECOND, THIRD, json_of, run


def test_a_group_shows_computed_and_reported_assignments_side_by_side(tables: Path) -> None:
    (group,) = json_of(tables, "show", "group", "orders")
    (member,) = group["member_list"]
    assert [queue["queue_id"] for queue in member["computed"]] == [0, 1]
    assert [queue["queue_id"] for queue in member["reported"]] == [1]
    assert member["agrees"] is False
    assert [row["rebalance_id"] for row in group["last_rebalances"]] == [THIRD, SECOND, FIRST]
    assert [row["kind"] for row in group["open_findings"]] == ["expected_differs"]
    text = run(tables, "show", "group", "orders").stdout
    assert "orders(0,1)  orders(1)  no" in text


def test_members_have_the_column_names_of_kafkas_own_tool(tables: Path) -> None:
    header = run(tables, "show", "members", "-g", "orders").stdout.splitlines()[0]
    names = ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    assert [name for name in header.split() if name in names] == names


def test_members_of_a_group_with_epochs_show_theirs(tmp_path: Path) -> None:
    write_rebalancing(tmp_path)
    (group,) = json_of(tmp_path, "show", "group", "newer")
    assert [(row["member_id"], row["epoch"], row["target_epoch"]) for row in group["member_list"]] == [("old", 2, 3)]
    assert group["member_epochs"] == [{"member_id": "old", "epoch": 2}]
    headers = [run(tmp_path, "show", "group", name).stdout.split() for name in ("newer", "classic")]
    for name in ("CURRENT-EPOCH", "TARGET-EPOCH"):
        assert [name in header for header in headers] == [True, False]


def test_members_of_a_group_that_reconciles_are_those_of_now(tmp_path: Path) -> None:
    write_rebalancing(tmp_path)
    (group,) = json_of(tmp_path, "show", "group", "listed")
    queues = [[(row["reported"], row["target"]) for row in group["member_list"]]]
    numbers = [[[one["queue_id"] for one in held] for held in pair] for pair in queues[0]]
    assert numbers == [[[0], [0]], [[], [1]]]
    text = run(tmp_path, "show", "group", "listed").stdout
    assert "TARGET-ASSIGNMENT" in text
    assert "Members and owners are those before it" not in text
    young = next(line for line in text.splitlines() if line.startswith("young"))
    assert young.split()[-4:] == ["3", "3", "orders(1)", "-"]


@pytest.mark.parametrize(
    ("group", "state"),
    [("classic", "preparing_rebalance"), ("newer", "reconciling"), ("streams", "reconciling"), ("polled", None)],
)
def test_while_a_group_of_any_protocol_rebalances_its_lag_is_not_reliable(
    group: str, state: str | None, tmp_path: Path
) -> None:
    write_rebalancing(tmp_path)
    text = run(tmp_path, "show", "group", group).stdout
    assert (f"The group rebalances ({state}): its lag is not reliable." in text) == (state is not None)
    assert ("its lag is not reliable" in text) == (state is not None)
    assert ("Members and owners are those before it" in text) == (group == "newer")


@pytest.mark.parametrize(
    ("arguments", "exit_code", "sentence"),
    [
        (["show", "group", "nobody"], 1, "there is no group nobody"),
        (["show", "members", "-g", "nobody"], 1, "there is no group nobody"),
        (["show", "rebalances", "-g", "nobody"], 1, "there is no group nobody"),
        (["show", "assignments", "-g", "nobody"], 1, "there is no group nobody"),
        (["show", "rebalances", "--trigger", "boredom"], 2, "boredom"),
        (["show", "assignments", "--origin", "guessed"], 2, "guessed"),
        (["show", "rebalances", "--status", "odd"], 2, "odd"),
    ],
)
def test_each_mistake_has_its_sentence_and_exit_code(
    tables: Path, arguments: list[str], exit_code: int, sentence: str
) -> None:
    result = run(tables, *arguments)
    assert result.exit_code == exit_code
    assert sentence in result.stderr
    assert result.stdout == ""
