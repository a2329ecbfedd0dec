"""Two polls of a cluster's groups, as events."""

from __future__ import annotations

import struct
from typing import Any

import msgspec

from streaming.collectors.kafka.group_diff import GroupDiff
from streaming.collectors.kafka.group_reader import DescribedGroup, PolledGroups, PolledMember
from udfs.kafka.consumer_offsets import GroupPatterns
from udfs.model.events import AnyEvent, GroupDeleted, GroupSnapshot, QueueRef

EVERY = GroupPatterns((".*",), ("not-this",))


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def subscribed(topic: str) -> bytes:
    """ConsumerProtocolSubscription, version 0."""
    return struct.pack(">hi", 0, 1) + _text(topic) + struct.pack(">i", -1)


def holding(topic: str, *partitions: int) -> bytes:
    """ConsumerProtocolAssignment, version 0."""
    held = struct.pack(">i", len(partitions)) + b"".join(struct.pack(">i", partition) for partition in partitions)
    return struct.pack(">hi", 0, 1) + _text(topic) + held + struct.pack(">i", -1)


def member(name: str, *partitions: int) -> PolledMember:
    metadata, assignment = subscribed("t"), holding("t", *partitions)
    return PolledMember(member_id=name, client_id="client", host="/1.2.3.4", metadata=metadata, assignment=assignment)


def stable(*members: PolledMember, **changed: Any) -> DescribedGroup:
    group = DescribedGroup(state="Stable", protocol_type="consumer", strategy="range", members=members)
    return msgspec.structs.replace(group, **changed)


class Polls:
    """Polls in turn, ten ms after each other; every classic group that changed can be described."""

    def __init__(self) -> None:
        self.diff = GroupDiff("c", EVERY)
        self.at = 0

    def poll(
        self, described: dict[str, DescribedGroup] | None = None, *, later_ms: int = 10, **groups: DescribedGroup
    ) -> list[AnyEvent]:
        self.at += later_ms
        polled = PolledGroups(groups=groups)
        names = self.diff.to_describe(polled)
        descriptions = {name: groups[name] for name in names} if described is None else described
        return self.diff.diff(polled, descriptions, self.at)


def test_a_group_is_reported_when_it_is_first_polled_and_when_it_changed() -> None:
    polls = Polls()
    (first,) = polls.poll(g=stable(member("a", 0, 1)))
    assert isinstance(first, GroupSnapshot)
    assert (first.event_time, first.generation, first.generation_source, first.strategy) == (
        10,
        None,
        "counted",
        "range",
    )
    assert [(info.member_id, info.subscriptions, info.session_timeout_ms) for info in first.members] == [
        ("a", ("t",), None)
    ]
    assert first.assignments == {"a": (QueueRef("t", 0), QueueRef("t", 1))}
    assert polls.poll(g=stable(member("a", 0, 1))) == []
    (second,) = polls.poll(g=stable(member("a", 0), member("b", 1)))
    assert isinstance(second, GroupSnapshot)
    assert len(second.members) == 2


def test_reported_groups_are_remembered_across_a_restart() -> None:
    polls = Polls()
    polls.poll(g=stable(member("a", 0)))
    polls.diff = GroupDiff("c", EVERY, polls.diff.memory())
    assert polls.poll(g=stable(member("a", 0))) == []


def test_a_group_within_a_rebalance_is_marked_and_reported_again_after_it_whatever_it_became() -> None:
    polls = Polls()
    group, under_way = stable(member("a", 0)), stable(state="PreparingRebalance")
    reported = [polls.poll(g=shown) for shown in (group, under_way, under_way, group)]
    states = [[event.state for event in events if isinstance(event, GroupSnapshot)] for events in reported]
    assert states == [["Stable"], ["PreparingRebalance"], [], ["Stable"]]


def test_a_group_is_deleted_after_two_polls_without_it() -> None:
    polls = Polls()
    polls.poll(g=stable(member("a", 0)))
    assert polls.poll() == []
    (event,) = polls.poll()
    assert isinstance(event, GroupDeleted)
    assert polls.poll() == []


def test_a_group_that_one_poll_missed_or_could_not_read_is_not_deleted() -> None:
    polls = Polls()
    group = stable(member("a", 0))
    assert [len(polls.poll(**shown)) for shown in ({"g": group}, {}, {"g": group}, {}, {"g": group})] == [1, 0, 0, 0, 0]
    for missing in (
        PolledGroups(groups={}, is_whole=False),
        PolledGroups(groups={}, unreadable=frozenset({"g"})),
    ):
        assert [polls.diff.diff(missing, {}, 99) for _ in range(3)] == [[], [], []]


def test_a_static_member_has_the_instance_id_that_its_description_has() -> None:
    polls = Polls()
    group = stable(member("a", 0))
    described = stable(msgspec.structs.replace(member("a", 0), instance_id="i"))
    (event,) = polls.poll({"g": described}, g=group)
    assert isinstance(event, GroupSnapshot)
    assert event.members[0].instance_id == "i"


def test_a_group_that_changes_during_a_poll_waits_for_the_next_one_but_not_for_ever() -> None:
    polls = Polls()
    group, described = stable(member("a", 0)), stable(member("b", 0))
    assert [len(polls.poll({"g": described}, g=group)) for _ in range(4)] == [0, 0, 1, 0]


def test_other_kinds_and_what_cannot_be_decoded_are_listed_and_not_followed() -> None:
    polls = Polls()
    broken = stable(msgspec.structs.replace(member("a"), metadata=b"\x00\x01"))
    workers = stable(member("w"), member("v"), protocol_type="connect")
    reported = polls.poll(workers=workers, broken=broken)
    listed = [(event.group, event.state, event.protocol) for event in reported if isinstance(event, GroupSnapshot)]
    assert listed == [("broken", "not_followed", None), ("workers", "not_followed", "connect")]
    members = [[info.member_id for info in event.members] for event in reported if isinstance(event, GroupSnapshot)]
    assert members == [[info.member_id for info in group.members] for group in (broken, workers)]
    assert not [event for event in reported if isinstance(event, GroupSnapshot) and event.generation_source]


def test_a_group_that_is_dead_twice_is_of_a_kind_that_is_not_described() -> None:
    polls = Polls()
    dead = DescribedGroup(state="Dead")
    assert [len(polls.poll(share=dead)) for _ in range(4)] == [0, 1, 0, 0]


def test_a_dead_group_is_deleted_before_one_of_another_kind_takes_its_name() -> None:
    polls = Polls()
    polls.poll(g=stable(member("a")))
    dead = DescribedGroup(state="Dead")
    found = [polls.poll(g=dead) for _ in range(5)]
    assert [[type(event) for event in events] for events in found] == [[], [GroupDeleted], [], [GroupSnapshot], []]
    (listed,) = found[3]
    assert isinstance(listed, GroupSnapshot)
    assert (listed.state, listed.members) == ("not_followed", ())


def test_a_group_that_is_dead_for_one_poll_and_lives_again_is_not_deleted() -> None:
    polls = Polls()
    polls.poll(g=stable(member("a")))
    dead = DescribedGroup(state="Dead")
    found = [polls.poll(g=group) for group in (dead, stable(member("a")), dead, stable(member("a")))]
    assert found == [[], [], [], []]


def test_a_group_of_the_new_protocol_is_reported_once_it_has_converged_or_takes_long() -> None:
    polls = Polls()
    holder = PolledMember(member_id="a", client_id="", host="", queues=(QueueRef("t", 0),))
    new = DescribedGroup(
        state="Stable", protocol="consumer", protocol_type="consumer", strategy="uniform", members=(holder,)
    )
    converging = msgspec.structs.replace(new, state="Reconciling")
    assert polls.poll(g=converging) == []
    (event,) = polls.poll(g=new)
    assert isinstance(event, GroupSnapshot)
    assert (event.members[0].subscriptions, event.assignments) == (None, {"a": (QueueRef("t", 0),)})
    assert event.strategy == "server.uniform"
    reported = [len(polls.poll(later_ms=20_000, g=converging)) for _ in range(3)]
    assert reported == [0, 0, 1]


def test_excluded_groups_are_left_out() -> None:
    assert Polls().poll(**{"not-this": stable(member("a", 0)), "": stable()}) == []
