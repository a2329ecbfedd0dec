"""A group as a restored snapshot, for people and for other versions to read."""

from __future__ import annotations

import pytest

from udfs.group.format.snapshot import snapshot_of
from udfs.group.state.group import Group, Member, Owners
from udfs.model.events import MemberFields, QueueRef, RevokedQueue

COMPUTED: Owners = {("t", None, 0): ("a",), ("t", None, 1): ("b",)}
REPORTED: Owners = {("t", None, 0): ("b",)}


def member(member_id: str, **fields: object) -> Member:
    return Member(member_id=member_id, name=member_id, joined_at=5, **fields)  # type: ignore[arg-type]


def group(**fields: object) -> Group:
    return Group(members={"a": member("a"), "b": member("b", by_heartbeats=False)}, **fields)  # type: ignore[arg-type]


def test_every_field_of_a_members_description_is_in_it() -> None:
    reported = {
        "client_id": "i",
        "host": "h",
        "instance_id": "s",
        "rack": "r",
        "client_library": "java-4.1",
        "client_version": "V5",
        "language": "GO",
        "protocol": "classic",
        "process_id": "p",
        "ordered": True,
        "subscriptions": ("t",),
        "strategies": ("range",),
        "strategy_settings": {"a": 1},
        "session_timeout_ms": 6,
        "rebalance_timeout_ms": 7,
        "owned": (QueueRef("t", 0),),
        "owned_generation": 3,
    }
    assert set(reported) == set(MemberFields.__struct_fields__)
    [info] = snapshot_of(Group(members={"a": member("a", **reported)}), {"a": 77}, 90).members
    assert {name: getattr(info, name) for name in reported} == reported
    assert (info.member_id, info.joined_at, info.last_heartbeat_at, info.lives_by) == ("a", 5, 77, "heartbeats")


def test_the_last_heartbeat_is_the_shards_or_what_the_group_kept_itself() -> None:
    kept = group(last_heartbeats={"a": 1, "b": 2})
    found = {info.member_id: (info.last_heartbeat_at, info.lives_by) for info in snapshot_of(kept, {"a": 9}, 9).members}
    assert found == {"a": (9, "heartbeats"), "b": (2, "snapshots")}


@pytest.mark.parametrize(
    ("has_reported", "held"),
    [(False, {"a": (QueueRef("t", 0),), "b": (QueueRef("t", 1),)}), (True, {"a": (), "b": (QueueRef("t", 0),)})],
)
def test_assignments_are_what_was_reported_where_something_was(
    has_reported: bool, held: dict[str, tuple[QueueRef, ...]]
) -> None:
    found = snapshot_of(group(computed=COMPUTED, reported=REPORTED, has_reported=has_reported), {}, 9)
    assert found.assignments == held


def test_departed_owners_and_queues_without_an_owner_are_left_out_and_the_others_sorted() -> None:
    holders: Owners = {
        ("u", "y", 0): ("a",),
        ("t", "x", 10): ("a", "gone"),
        ("t", "x", 2): ("a",),
        # Of the message mode: it has no owner.
        ("t", "x", -1): ("a",),
    }
    found = snapshot_of(group(computed=holders), {}, 9)
    assert found.assignments == {"a": (QueueRef("t", 2, "x"), QueueRef("t", 10, "x"), QueueRef("u", 0, "y")), "b": ()}


@pytest.mark.parametrize(
    ("fields", "generation", "source"),
    [({"counted": 4}, 4, "counted"), ({"counted": 4, "generation": 7}, 7, "reported")],
)
def test_the_generation_is_the_reported_one_where_there_is_one(
    fields: dict[str, int], generation: int, source: str
) -> None:
    found = snapshot_of(group(**fields), {}, 9)
    assert (found.generation, found.generation_source) == (generation, source)
    assert (found.restored, found.event_time) == (True, 9)


def test_its_state_and_strategy_are_those_of_its_last_decision() -> None:
    assert snapshot_of(Group(), {}, 9).state == "Empty"
    assert snapshot_of(group(), {}, 9).state == "Stable"
    names = {"strategy": "range", "reported_strategy": "sticky", "last_strategy": "roundrobin"}
    for name in ("last_strategy", "reported_strategy", "strategy"):
        assert snapshot_of(group(**names), {}, 9).strategy == names.pop(name)
    assert snapshot_of(group(leader="a", last_rebalance_id="r"), {}, 9).leader == "a"
    assert snapshot_of(group(last_rebalance_id="r"), {}, 9).last_rebalance_id == "r"


def test_queues_on_the_move_are_in_it_with_the_time_since_which_they_wait() -> None:
    moving = group(
        revoked_pending=[("t", None, 3), ("t", None, 1), ("t", None, 2)],
        waiting_since={("t", None, 3): 50, ("t", None, 2): None},
        last_rebalance_at=70,
        logical_id="first",
    )
    found = snapshot_of(moving, {}, 90)
    assert found.revoked == (RevokedQueue("t", 1, None, 70), RevokedQueue("t", 2), RevokedQueue("t", 3, None, 50))
    assert found.logical_id == "first"
    still = snapshot_of(group(), {}, 90)
    assert (still.revoked, still.logical_id) == (None, None)


def test_a_group_that_is_not_followed_is_marked() -> None:
    assert snapshot_of(group(followed=False), {}, 9).state == "not_followed"
