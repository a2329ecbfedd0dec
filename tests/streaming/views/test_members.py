"""Members at a time, with what they hold."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from streaming.tables.schema import Row
from streaming.views.members import departures, with_current_assignment
from streaming.views.reader import Reader
from tests.streaming.tables.journals import Journal, joined, left
from tests.streaming.views.story import json_of, rebalance, seconds, store
from udfs.model import journal

QUEUE = {"topic": "orders", "broker": None, "queue_id": 0}


def test_members_are_those_of_the_given_time(tables: Path) -> None:
    def names(at: float) -> list[object]:
        return [row["member_id"] for row in json_of(tables, "show", "members", "-g", "orders", "--at", seconds(at))]

    assert (names(9.999), names(10), names(69.999), names(70)) == (["a"], ["a", "b"], ["a", "b"], ["b"])
    assert [row["member_id"] for row in json_of(tables, "show", "members", "-g", "orders")] == ["b"]


def test_without_a_report_there_is_nothing_to_agree_with(tables: Path) -> None:
    before, after = (json_of(tables, "show", "members", "-g", "orders", "--at", seconds(at))[0] for at in (9.999, 10))
    assert [queue["queue_id"] for queue in before["computed"]] == [0, 1]
    assert (before["reported"], before["agrees"]) == (None, None)
    # From b's report on, the group reports, and a reports nothing.
    assert (after["member_id"], after["reported"], after["agrees"]) == ("a", [], False)


def test_departures_have_the_detail_of_their_cause(tmp_path: Path) -> None:
    cause = journal.Trigger(kind="session_expired", member_id="a", detail="broker log: heartbeat expiration")
    row = rebalance("r2", 9_000, "session_expired", "a") | {"triggers": [msgspec.structs.asdict(cause)]}
    history = Journal()
    bodies: list[journal.Body] = [
        *(joined(name, 0) for name in "abcdefg"),
        left("a", 0, 8_000, "expired"),
        *(left(name, 0, 1_000, "left") for name in "bcdef"),
    ]
    store(tmp_path, [row], [history.change(0, body, group="orders") for body in bodies])
    found = departures(Reader(tmp_path), "orders", "c1")
    reported = [(member["member_id"], member["left_reason"], member["detail"]) for member in found]
    assert reported == [
        ("a", "expired", "broker log: heartbeat expiration"),
        *((member_id, "left", None) for member_id in "bcde"),
    ]


@pytest.mark.parametrize(("rebalanced_at", "how"), [(9_000, "without a rebalance"), (8_000, "in a rebalance")])
def test_a_static_member_that_restarted_within_its_timeout_is_named_with_its_new_id(
    tmp_path: Path, rebalanced_at: int, how: str
) -> None:
    history = Journal()
    bodies: list[journal.Body] = [
        msgspec.structs.replace(joined("a-1", 0), instance_id="a"),
        left("a-1", 0, 8_000, "replaced"),
        msgspec.structs.replace(joined("a-2", 8_000), instance_id="a"),
    ]
    row = rebalance("r2", rebalanced_at, "member_joined", "b")
    store(tmp_path, [row], [history.change(0, body, group="orders") for body in bodies])
    (found,) = departures(Reader(tmp_path), "orders", "c1")
    assert found["detail"] == f"static member a came back as a-2, {how}"


def test_a_member_that_the_group_does_not_list_is_at_the_epoch_of_its_target() -> None:
    rows: list[Row] = [{"member_id": name} for name in ("a", "b", "c")]
    listed = [{"member_id": "b", "epoch": 3}, {"member_id": "c", "epoch": None}]
    of_group = {"state": "stable", "generation": 4, "epoch": 4, "members": 3, "assignment_epoch": 4, "waits": None}
    of_group |= {"protocol": "consumer"}
    for group, epochs in (
        ({"member_epochs": listed}, [4, 3, None]),
        ({"member_epochs": []}, [4, 4, 4]),
        ({"member_epochs": None}, [None] * 3),
        ({}, [None] * 3),  # a table of an earlier release
    ):
        assert [row["epoch"] for row in with_current_assignment(of_group | group, rows)] == epochs
    # A member that is not at the target's epoch, and all of a group that rebalances, may have another target.
    rows = [row | {"reported": [QUEUE, QUEUE | {"topic": "subtopology 0 (standby)"}]} for row in rows]
    for state, targets in (("stable", [[QUEUE], None, None]), ("reconciling", [None] * 3)):
        found = with_current_assignment(of_group | {"state": state, "member_epochs": listed}, rows)
        assert [row["target"] for row in found] == targets


def test_members_of_a_group_that_reconciles_are_as_its_row_has_them() -> None:
    rows: list[Row] = [
        {"member_id": name, "joined_at": 1, "computed": [QUEUE], "agrees": True} for name in ("a", "left")
    ]
    held = [{"topic": "orders", "queue_ids": [0]}]
    listed = [
        {"member_id": name, "instance_id": None, "client_id": name, "host": "/h", "epoch": epoch, "state": state}
        | {"assigned": assigned, "revoking": [], "target": held}
        for name, epoch, state, assigned in (("a", 3, "stable", held), ("new", None, "unreleased", []))
    ]
    group = {"cluster": "c", "group_id": "g", "protocol": "consumer", "assignment_epoch": 4, "member_epochs": []}
    names = ("member_id", "joined_at", "client_id", "epoch", "target_epoch", "computed", "reported", "target", "agrees")
    found = with_current_assignment(group | {"reconciling": listed}, rows)
    assert [tuple(row[name] for name in names) for row in found] == [
        ("a", 1, "a", 3, 4, [], [QUEUE], [QUEUE], None),
        ("new", None, "new", None, 4, [], [], [QUEUE], None),
    ]
    # Tables show the tasks of a streams group without a target.
    group = group | {"protocol": "streams", "reconciling": listed[:1]}
    (row,) = with_current_assignment(group, [rows[0] | {"reported": []}])
    assert (row["computed"], row["reported"], row["target"], row["agrees"]) == ([QUEUE], [], [QUEUE], True)
