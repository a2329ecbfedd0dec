"""What a coordinator's records say of a group."""

from __future__ import annotations

import msgspec
import pytest

from tests.udfs.group.record_script import T_ID, U_ID, partitions
from tests.udfs.group.state.test_record_fold import current, folded, member, record
from udfs.group.state.epoch_outcome import merged
from udfs.group.state.record_fold import fold
from udfs.group.state.recorded_group import RecordedGroup
from udfs.group.state.writing import assign
from udfs.model.events import GroupRecord, TopicPartitions
from udfs.model.journal import (
    MAX_MEMBER_EPOCHS,
    MAX_RECONCILING_MEMBERS,
    MAX_RECONCILING_QUEUES,
    AssignedQueues,
    MemberEpoch,
    ReconcilingMember,
)


def test_queues_being_revoked_are_still_owned() -> None:
    assert folded(member(1), current(2, 1, "unrevoked", "0", "3")).owned() == {"a": partitions("0 3")}
    assert merged(partitions("0"), (TopicPartitions("u", (1,)),)) == (
        TopicPartitions(T_ID, (0,)),
        TopicPartitions("u", (1,)),
    )


@pytest.mark.parametrize(
    ("assignors", "chosen"),
    [
        ((), "server.uniform"),
        (("server.range",), "server.range"),
        (("server.range", "server.uniform", "server.range"), "server.range"),
    ],
)
def test_the_assignor_is_the_one_of_most_members_else_the_default(assignors: tuple[str, ...], chosen: str) -> None:
    members = [member(1, f"m{place}", strategies=(name,)) for place, name in enumerate(assignors)]
    assert folded(member(1, "x", strategies=()), *members).strategy() == chosen
    assert folded().strategy() is None


def test_the_brokers_default_is_kafkas_until_another_one_is_noted() -> None:
    group = folded(member(1, "x", strategies=()))
    assert (group.assignors(), group.names_assignor()) == (("server.uniform", "server.range"), False)
    group.note_target(None, "server.range")
    assert group.assignors() == ("server.range", "server.uniform")


def test_any_assignor_with_the_most_votes_may_be_the_groups() -> None:
    group = folded(member(1, "a", strategies=("server.uniform",)), member(1, "b", strategies=("server.range",)))
    assert (group.assignors(), group.names_assignor()) == (("server.range", "server.uniform"), True)


@pytest.mark.parametrize(
    ("records", "state"),
    [
        ([], "empty"),
        ([member(1), record(1, "group", epoch=1)], "assigning"),
        ([member(1), record(1, "group", epoch=1), record(1, "target", epoch=1)], "reconciling"),
        (
            [member(1), record(1, "group", epoch=1), record(1, "target", epoch=1), current(1, 1, "unreleased")],
            "reconciling",
        ),
        ([member(1), record(1, "group", epoch=1), record(1, "target", epoch=1), current(1, 1, "stable")], "stable"),
    ],
)
def test_the_state_is_the_one_that_kafka_shows(records: list[GroupRecord], state: str) -> None:
    assert folded(*records).state == state


def of_members(number: int) -> RecordedGroup:
    """Return a group at epoch 2, which none of its members has a record of."""
    described = (member(1, f"m{place:03}") for place in range(number))
    return folded(*described, record(1, "group", epoch=2), record(1, "target", epoch=2))


def test_members_at_another_epoch_than_the_target_are_named() -> None:
    group = folded(
        *(member(1, name) for name in ("c", "b", "a")),
        record(1, "group", epoch=3),
        record(1, "target", epoch=2),
        current(2, 1, "stable"),
        record(2, "member_current", member_id="c", epoch=2, state="stable"),
    )
    assert group.member_epochs(("a", "c")) == [MemberEpoch("a", 1), MemberEpoch("b")]
    away = folded(member(1), record(1, "target", epoch=2), current(2, -2, "stable"))
    assert away.member_epochs(()) == [MemberEpoch("a", -2)]


def test_a_session_that_outlives_its_records_has_no_epoch() -> None:
    group = folded(member(1), record(1, "group", epoch=2), record(1, "target", epoch=2), current(2, 2, "stable"))
    assert group.member_epochs(("a",)) == []
    assert group.member_epochs(("a", "gone")) == [MemberEpoch("gone")]


@pytest.mark.parametrize("more", [0, 1])
def test_beyond_the_bound_no_member_is_named(more: int) -> None:
    found = of_members(MAX_MEMBER_EPOCHS + more).member_epochs(())
    assert (None if found is None else len(found)) == (None if more else MAX_MEMBER_EPOCHS)


@pytest.mark.parametrize("more", [0, 1])
def test_beyond_the_bounds_no_member_of_a_group_that_assigns_is_named(more: int) -> None:
    found = of_members(MAX_RECONCILING_MEMBERS + more).reconciling()
    assert (None if found is None else len(found)) == (None if more else MAX_RECONCILING_MEMBERS)
    numbers = [" ".join(map(str, range(MAX_RECONCILING_QUEUES + some))) for some in (0, more)]
    for has, shall_have in (numbers, numbers[::-1]):
        target = record(1, "member_target", member_id="a", partitions=partitions(shall_have))
        described = (member(1), record(1, "group", epoch=2), target)
        assert (folded(*described, current(1, 1, "stable", has)).reconciling() is None) == bool(more)


def test_members_of_a_group_that_reconciles_have_what_they_hold_revoke_and_shall_have() -> None:
    group = folded(
        member(1, client_id="app", host="/h", instance_id="i"),
        record(1, "group", epoch=2),
        record(1, "target", epoch=2),
        record(1, "member_target", member_id="a", partitions=partitions("2 0")),
        record(1, "topics", topic_ids={T_ID: "orders", U_ID: "orders"}),  # it was made again
        current(2, 1, "unrevoked", "0", "1"),
        record(2, "member_current", member_id="left", epoch=2, state="stable"),
        record(3, "member_current", member_id="left", deleted=True),
    )
    assign(group.members["a"], owned=(*partitions("0"), *partitions("0 3", U_ID)))
    held = [(AssignedQueues("orders", numbers),) for numbers in ((0, 3), (1,), (0, 2))]
    assert group.reconciling() == [ReconcilingMember("a", "i", "app", "/h", 1, "unrevoked", *held)]
    assign(group, incomplete=True)
    assert group.reconciling() is None


def test_only_a_group_that_assigns_or_reconciles_lists_its_members() -> None:
    described = (member(1), record(1, "group", epoch=2), current(1, 2, "stable", "0"))
    assert folded(*described).reconciling() is not None
    assert folded(*described, record(1, "target", epoch=2)).reconciling() is None
    group = RecordedGroup("share")
    fold(group, [(group_record, "e") for group_record in described])
    assert (group.state, group.reconciling()) == ("assigning", None)
    group = RecordedGroup("streams")
    fold(group, [(group_record, "e") for group_record in described])
    (found,) = group.reconciling() or ()
    assert found.assigned == (AssignedQueues(f"subtopology {T_ID}", (0,)),)


def test_a_state_of_release_0_2_0_lacks_votes_and_former_descriptions() -> None:
    group = folded(member(1, "a", strategies=("server.range",)))
    group.note_votes()
    *former, _votes, _described_as = msgspec.to_builtins(group)
    read = msgspec.convert(former, RecordedGroup)
    assert (read.votes, read.described_as) == (None, {})
    assert read.assignors() == group.assignors() == ("server.range",)
