"""The fold of a coordinator's records: the newest time of each thing wins, whatever the order of reading."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

from tests.udfs.group.record_script import partitions
from udfs.group.state.record_fold import by_epoch, fold, new_epochs
from udfs.group.state.recorded_group import RecordedGroup
from udfs.model.events import GroupRecord, MemberInfo


def record(at: int, kind: str, **fields: Any) -> GroupRecord:
    reported = {"schema_version": 1, "system": "kafka", "cluster": "c", "group": "g", "protocol": "consumer", **fields}
    return GroupRecord(event_time=at, record=kind, **reported)


def current(at: int, epoch: int, state: str, owned: str = "", revoking: str = "") -> GroupRecord:
    fields = {"epoch": epoch, "state": state, "partitions": partitions(owned), "revoking": partitions(revoking)}
    return record(at, "member_current", member_id="a", **fields)


def member(at: int, name: str = "a", **fields: Any) -> GroupRecord:
    return record(at, "member", member_id=name, member=MemberInfo(member_id=name, **fields))


def folded(*records: GroupRecord) -> RecordedGroup:
    """Fold records one time after the other."""
    group = RecordedGroup("consumer")
    for _, same in itertools.groupby(
        sorted(records, key=lambda group_record: group_record.event_time), lambda group_record: group_record.event_time
    ):
        fold(group, [(group_record, f"e{place}") for place, group_record in enumerate(same)])
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
def test_the_later_step_of_a_member_counts_within_one_millisecond(last: tuple[GroupRecord, ...]) -> None:
    described = member(1)
    assert folded(described, *last) == folded(described, *reversed(last))
    after = folded(described, *last).members["a"]
    assert (after.epoch, after.state) == (last[1].epoch, last[1].state or "stable")


def test_topics_of_a_pattern_count_until_its_tombstone() -> None:
    matched = record(1, "pattern", pattern="t.*", topics=("t", "t2"))
    assert folded(matched).patterns.keys() == {"t.*"}
    assert folded(matched, record(2, "pattern", pattern="t.*", deleted=True)).patterns == {}


def test_a_member_joined_where_its_first_record_is() -> None:
    found = folded(member(1, "a"), record(2, "member", member_id="b", member=MemberInfo(member_id="b"), offset=7))
    assert {
        name: (recorded_member.joined_at, recorded_member.joined_offset)
        for name, recorded_member in found.members.items()
    } == {
        "a": (1, 0),
        "b": (2, 7),
    }


def test_an_older_record_changes_nothing() -> None:
    group = folded(member(10, client_id="new"), current(10, 3, "stable", "0"), record(10, "group", epoch=3))
    former = msgspec.json.encode(group)
    late = [member(5, client_id="old"), current(5, 2, "stable", "1"), record(5, "group", epoch=2)]
    fold(group, [(group_record, "late") for group_record in late])
    assert msgspec.json.encode(group) == former


def test_the_target_a_member_already_has_comes_first_within_one_millisecond() -> None:
    first = record(5, "member_target", member_id="a", partitions=partitions("0 1"))
    second = record(5, "member_target", member_id="a", partitions=partitions("0"))
    for pair in ((first, second), (second, first)):
        group = folded(member(5), current(5, 1, "stable", "0 1"), *pair, record(5, "target", epoch=2))
        assert group.targets() == {"a": partitions("0")}
        assert group.previous == {"a": partitions("0 1")}


def test_the_target_of_the_former_id_of_a_returning_static_member_comes_first() -> None:
    there = [member(5, instance_id="i"), record(5, "member_target", member_id="a", partitions=partitions("0 1"))]
    deleted = [record(9, kind, member_id="a", deleted=True) for kind in ("member", "member_current", "member_target")]
    taken = record(9, "member_target", member_id="b", partitions=partitions("0 1"))
    wanted = record(9, "member_target", member_id="b", partitions=partitions("0 1 2 3"))
    # It may have all of its queues at that time already.
    has = record(9, "member_current", member_id="b", epoch=2, state="stable", partitions=partitions("0 1 2 3"))
    for pair in ((taken, wanted), (wanted, taken)):
        group = folded(*there, *deleted, member(9, "b", instance_id="i"), *pair, has, record(9, "target", epoch=2))
        assert group.targets() == {"b": partitions("0 1 2 3")}
        assert group.previous == {"b": partitions("0 1")}


def test_a_static_member_that_comes_back_right_behind_a_new_target_takes_the_one_before_it_with_it() -> None:
    there = [member(5, instance_id="i"), record(5, "member_target", member_id="a", partitions=partitions("0 1"))]
    there += [record(5, "target", epoch=1), current(5, 1, "stable", "0 1")]
    renewed = [record(9, "member_target", member_id="a", partitions=partitions("0")), record(9, "target", epoch=2)]
    deleted = [record(9, kind, member_id="a", deleted=True) for kind in ("member_current", "member_target", "member")]
    taken = record(9, "member_target", member_id="b", partitions=partitions("0"))
    back = [member(9, "b", instance_id="i"), taken, record(9, "member_current", member_id="b", epoch=0)]
    ordered = [*there, *renewed, *deleted, *back]
    group = folded(
        *(msgspec.structs.replace(group_record, offset=place + 1) for place, group_record in enumerate(ordered))
    )
    assert group.targets() == {"b": partitions("0")}
    assert group.previous == {"b": partitions("0 1")}


def test_a_member_is_there_until_its_last_record_is_deleted() -> None:
    deleted = [record(9, kind, member_id="a", deleted=True) for kind in ("member", "member_current", "member_target")]
    assert list(folded(member(1), current(2, 1, "stable")).present) == ["a"]
    assert folded(member(1), current(2, 1, "stable"), *deleted).members == {}


def test_a_static_member_that_is_away_keeps_what_it_has_and_gives_up_what_it_was_revoking() -> None:
    group = folded(member(1, instance_id="i"), current(2, 1, "unrevoked", "0", "3"), current(5, -2, "unrevoked", "0"))
    assert group.owned() == {"a": partitions("0")}


def test_only_epochs_above_all_former_ones_are_new() -> None:
    group = folded(record(1, "group", epoch=4))
    reported = [record(2, "group", epoch=epoch) for epoch in (6, 3, 5, 4)]
    assert new_epochs(group, reported) == [5, 6]


def test_the_description_a_member_already_has_comes_first_within_one_millisecond() -> None:
    there = member(5, instance_id="i", subscriptions=("t",))
    deleted = [record(9, kind, member_id="a", deleted=True) for kind in ("member", "member_current", "member_target")]
    taken = member(9, "b", instance_id="i", subscriptions=("t",))
    anew = member(9, "b", instance_id="i", subscriptions=("u",))
    for pair in ((taken, anew), (anew, taken)):
        group = folded(there, *deleted, *pair)
        assert group.subscriptions_of(group.present["b"]) == ("u",)
    other = member(9, subscriptions=("u",))
    for pair in ((member(9, subscriptions=("t",)), other), (other, member(9, subscriptions=("t",)))):
        group = folded(there, *pair)
        assert group.subscriptions_of(group.present["a"]) == ("u",)


def test_a_member_has_the_newer_of_two_epochs_targets_within_one_millisecond() -> None:
    there = [member(5), record(5, "member_target", member_id="a", partitions=partitions("0 1 2 3"))]
    for queues in ("0 1 2 3", "0 1 3"):  # as before, or another one
        part = record(9, "member_target", member_id="a", partitions=partitions("0 1"))
        whole = record(9, "member_target", member_id="a", partitions=partitions(queues))
        epochs = [record(9, "target", epoch=epoch) for epoch in (2, 3)]
        has = record(9, "member_current", member_id="a", epoch=3, state="stable", partitions=partitions(queues))
        for pair in ((part, whole), (whole, part)):
            group = folded(*there, record(5, "target", epoch=1), *pair, *epochs, has)
            assert group.targets() == {"a": partitions(queues)}
            assert group.follows_unrecorded
        fold(group, [(record(12, "target", epoch=4), "next")])
        assert not group.follows_unrecorded


def test_the_ids_of_a_target_are_those_that_static_members_had_when_it_was_computed() -> None:
    def returned(at: int, former: str, now: str) -> list[GroupRecord]:
        kinds = ("member", "member_current", "member_target")
        return [*(record(at, kind, member_id=former, deleted=True) for kind in kinds), member(at, now, instance_id="i")]

    there = [member(5, instance_id="i"), record(5, "target", epoch=1)]
    group = folded(*there, *returned(7, "a", "b"), *returned(9, "b", "c"))
    assert group.former == {"c": "a"}
    assert folded(*there, *returned(7, "a", "b"), record(8, "target", epoch=2)).former == {}
    # The heartbeat with which it returns may compute a target: for its new id.
    assert folded(*there, *returned(7, "a", "b"), record(7, "target", epoch=2)).former == {}


def test_records_of_one_time_are_parted_where_what_leads_to_the_next_epoch_begins() -> None:
    written = [
        member(5, "a", subscriptions=("t",)),
        record(5, "group", epoch=1),
        record(5, "member_target", member_id="a", partitions=partitions("0 1")),
        record(5, "target", epoch=1),
        current(5, 1, "stable", "0 1"),
        member(5, "b", subscriptions=("t",)),
        record(5, "group", epoch=2),
        record(5, "member", member_id="a", deleted=True),
        record(5, "group", epoch=3),
        current(5, 3, "stable"),
    ]
    placed = [
        (msgspec.structs.replace(group_record, offset=offset), f"e{offset}")
        for offset, group_record in enumerate(written)
    ]
    parts = by_epoch([*placed[::2], *placed[1::2]])
    assert [[group_record.offset for group_record, _ in part] for part in parts] == [[0, 1, 2, 3, 4], [5, 6], [7, 8, 9]]
    without = [(group_record, "e") for group_record in written]
    assert by_epoch(without) == [without]


def test_the_last_written_of_two_targets_with_the_same_timestamp_counts() -> None:
    targets = [record(5, "member_target", member_id="a", partitions=partitions(text)) for text in ("0 1", "2", "0")]
    for order in itertools.permutations(range(3)):
        group = folded(member(1), current(1, 1, "stable"))
        fold(group, [(msgspec.structs.replace(targets[place], offset=rank), "e") for rank, place in enumerate(order)])
        assert group.members["a"].target == targets[order[-1]].partitions
