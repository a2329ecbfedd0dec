"""The fold of a coordinator's records: the newest time of each thing wins, whatever the order of reading."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

from tests.udfs.group.record_script import T_ID, partitions
from udfs.group.state.recorded_group import RecordedGroup, fold, merged, new_epochs
from udfs.model.events import GroupRecord, MemberInfo, TopicPartitions


def record(at: int, kind: str, **fields: Any) -> GroupRecord:
    told = {"schema_version": 1, "system": "kafka", "cluster": "c", "group": "g", "protocol": "consumer", **fields}
    return GroupRecord(event_time=at, record=kind, **told)


def current(at: int, epoch: int, state: str, owned: str = "", revoking: str = "") -> GroupRecord:
    fields = {"epoch": epoch, "state": state, "partitions": partitions(owned), "revoking": partitions(revoking)}
    return record(at, "member_current", member_id="a", **fields)


def member(at: int, name: str = "a", **fields: Any) -> GroupRecord:
    return record(at, "member", member_id=name, member=MemberInfo(member_id=name, **fields))


def folded(*records: GroupRecord) -> RecordedGroup:
    """Fold records one time after the other."""
    group = RecordedGroup("consumer")
    for _, same in itertools.groupby(sorted(records, key=lambda one: one.event_time), lambda one: one.event_time):
        fold(group, [(one, f"e{place}") for place, one in enumerate(same)])
    return group


@pytest.mark.parametrize(
    "last",
    [
        (current(5, 1, "stable", "0 1"), current(5, 1, "unrevoked", "0", "1")),
        (current(5, 1, "unrevoked", "0", "1"), current(5, 2, "unreleased", "0")),
        (current(5, 2, "unreleased", "0"), current(5, 2, "stable", "0 2")),
        (current(5, 2, "stable", "0"), current(5, -2, "stable", "0")),
        (current(5, 2, "stable", "0"), record(5, "member_current", member_id="a", deleted=True)),
    ],
)
def test_of_two_records_of_one_millisecond_the_later_step_of_a_member_counts(last: tuple[GroupRecord, ...]) -> None:
    described = member(1)
    assert folded(described, *last) == folded(described, *reversed(last))
    after = folded(described, *last).members["a"]
    assert (after.epoch, after.state) == (last[1].epoch, last[1].state or "stable")


def test_an_older_record_changes_nothing() -> None:
    group = folded(member(10, client_id="new"), current(10, 3, "stable", "0"), record(10, "group", epoch=3))
    former = msgspec.json.encode(group)
    late = [member(5, client_id="old"), current(5, 2, "stable", "1"), record(5, "group", epoch=2)]
    fold(group, [(one, "late") for one in late])
    assert msgspec.json.encode(group) == former


def test_of_two_targets_of_one_millisecond_the_one_that_the_member_has_already_is_the_former() -> None:
    first = record(5, "member_target", member_id="a", partitions=partitions("0 1"))
    second = record(5, "member_target", member_id="a", partitions=partitions("0"))
    for pair in ((first, second), (second, first)):
        group = folded(member(5), current(5, 1, "stable", "0 1"), *pair, record(5, "target", epoch=2))
        assert group.targets() == {"a": partitions("0")}
        assert group.previous == {"a": partitions("0 1")}


def test_of_two_targets_of_a_static_member_that_comes_back_the_one_of_its_former_id_is_the_former() -> None:
    there = [member(5, instance_id="i"), record(5, "member_target", member_id="a", partitions=partitions("0 1"))]
    gone = [record(9, kind, member_id="a", deleted=True) for kind in ("member", "member_current", "member_target")]
    taken = record(9, "member_target", member_id="b", partitions=partitions("0 1"))
    wanted = record(9, "member_target", member_id="b", partitions=partitions("0 1 2 3"))
    # It may have all of its queues at that time already.
    has = record(9, "member_current", member_id="b", epoch=2, state="stable", partitions=partitions("0 1 2 3"))
    for pair in ((taken, wanted), (wanted, taken)):
        group = folded(*there, *gone, member(9, "b", instance_id="i"), *pair, has, record(9, "target", epoch=2))
        assert group.targets() == {"b": partitions("0 1 2 3")}
        assert group.previous == {"b": partitions("0 1")}


def test_a_member_is_there_until_its_last_record_is_deleted() -> None:
    gone = [record(9, kind, member_id="a", deleted=True) for kind in ("member", "member_current", "member_target")]
    assert list(folded(member(1), current(2, 1, "stable")).present) == ["a"]
    assert folded(member(1), current(2, 1, "stable"), *gone).members == {}


def test_a_static_member_that_is_away_keeps_what_it_has_and_gives_up_what_it_was_revoking() -> None:
    group = folded(member(1, instance_id="i"), current(2, 1, "unrevoked", "0", "3"), current(5, -2, "unrevoked", "0"))
    assert group.owned() == {"a": partitions("0")}


def test_what_is_being_revoked_is_still_owned() -> None:
    assert folded(member(1), current(2, 1, "unrevoked", "0", "3")).owned() == {"a": partitions("0 3")}
    assert merged(partitions("0"), (TopicPartitions("u", (1,)),)) == (
        TopicPartitions(T_ID, (0,)),
        TopicPartitions("u", (1,)),
    )


def test_only_epochs_above_all_former_ones_are_new() -> None:
    group = folded(record(1, "group", epoch=4))
    told = [record(2, "group", epoch=epoch) for epoch in (6, 3, 5, 4)]
    assert new_epochs(group, told) == [5, 6]


@pytest.mark.parametrize(
    ("asked", "chosen"),
    [
        ((), "server.uniform"),
        (("server.range",), "server.range"),
        (("server.range", "server.uniform", "server.range"), "server.range"),
    ],
)
def test_the_assignor_is_the_one_of_most_members_else_the_default(asked: tuple[str, ...], chosen: str) -> None:
    members = [member(1, f"m{place}", strategies=(name,)) for place, name in enumerate(asked)]
    assert folded(member(1, "x", strategies=()), *members).strategy() == chosen
    assert folded().strategy() is None


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
