"""A group as the sticky assignors see it: numbered partitions, claims, racks."""

import msgspec

from tests.udfs.strategies.groups import as_text, claiming, group
from udfs.model.events import QueueInfo
from udfs.strategies.kafka.sticky_group import StickyGroup
from udfs.strategies.problem import Topic
from udfs.strategies.registry import strategy


def owned(sticky: StickyGroup) -> dict[str, list[int]]:
    """Return the claims that count, by member id."""
    return {member.member_id: numbers for member, numbers in zip(sticky.members, sticky.owned, strict=True)}


def test_partitions_are_numbered_by_topic_and_number_and_topics_without_any_are_left_out() -> None:
    sticky = StickyGroup(group({"a": ["v", "t", "none", "missing"]}, {"t": 2, "v": 1, "none": 0, "unsubscribed": 3}))
    assert sticky.topics == ["t", "v"]
    assert [(queue.topic, queue.queue_id) for queue in sticky.queues] == [("t", 0), ("t", 1), ("v", 0)]
    assert (sticky.first, sticky.counts, sticky.topic_of, sticky.total) == ([0, 2], [2, 1], [0, 0, 1], 3)


def test_partitions_with_gaps_between_their_numbers_are_found_by_their_own() -> None:
    problem = group({"a": ["t"]}, {"t": 0}, owned={"a": ["t-7", "t-1"]})
    gapped = Topic(name="t", queues=(QueueInfo(queue_id=3), QueueInfo(queue_id=7)))
    sticky = StickyGroup(msgspec.structs.replace(problem, topics={"t": gapped}))
    # 7 is the second of two; 1 does not exist and is numbered behind them.
    assert owned(sticky) == {"a": [1, 2]}
    assert [sticky.partition(number) for number in range(3)] == [3, 7, 1]


def test_claims_of_partitions_that_do_not_exist_count_where_their_topic_does() -> None:
    sticky = StickyGroup(claiming({"a": ("t", 1, "t-0 t-9 u-0"), "b": ("t", 2, "t-9 t-8")}, {"t": 2}))
    assert sticky.total == 2
    assert owned(sticky) == {"a": [0], "b": [2, 3]}
    assert [sticky.partition(number) for number in (2, 3)] in ([9, 8], [8, 9])


def test_the_later_generation_of_two_claims_wins_and_within_one_none_does() -> None:
    later = StickyGroup(claiming({"a": ("t", 1, "t-0 t-1"), "b": ("t", 2, "t-1")}, {"t": 2}))
    assert (owned(later), later.contested) == ({"a": [0], "b": [1]}, set())
    same = StickyGroup(claiming({"a": ("t", 2, "t-0 t-1"), "b": ("t", 2, "t-1")}, {"t": 2}))
    assert (owned(same), same.contested) == ({"a": [0], "b": []}, {1})


def test_a_generation_below_zero_is_none_and_older_than_the_first() -> None:
    sticky = StickyGroup(claiming({"a": ("t", -5, "t-0"), "b": ("t", 0, "t-0")}, {"t": 1}))
    assert owned(sticky) == {"a": [], "b": [0]}


def test_subscriptions_are_equal_whatever_their_order_and_members_without_any_do_not_count_if_read_first() -> None:
    assert StickyGroup(group({"a": ["t", "u"], "b": ["u", "t"]}, {"t": 1, "u": 1})).equal
    assert not StickyGroup(group({"a": ["t", "u"], "b": ["t"]}, {"t": 1, "u": 1})).equal
    assert StickyGroup(group({"a": [], "b": ["t"]}, {"t": 1})).equal
    assert not StickyGroup(group({"a": ["t"], "b": []}, {"t": 1})).equal
    assert StickyGroup(group({"a": [], "b": []}, {"t": 1})).equal


def with_racks(member_racks: dict[str, str | None], partition_racks: list[str]) -> StickyGroup:
    problem = group({member: ["t"] for member in member_racks}, {"t": 1})
    members = tuple(msgspec.structs.replace(member, rack=member_racks[member.member_id]) for member in problem.members)
    queues = tuple(QueueInfo(queue_id=number, racks=tuple(racks)) for number, racks in enumerate(partition_racks))
    return StickyGroup(msgspec.structs.replace(problem, members=members, topics={"t": Topic(name="t", queues=queues)}))


def test_racks_count_only_if_a_member_is_in_one_of_them_and_not_every_partition_is_everywhere() -> None:
    sticky = with_racks({"a": "x", "b": None}, ["x", "y"])
    # A member without a rack is near to everything.
    a, b = ([member.member_id for member in sticky.members].index(member) for member in "ab")
    assert [sticky.mismatch(a, 0), sticky.mismatch(a, 1), sticky.mismatch(b, 0), sticky.mismatch(b, 1)] == [
        *(False, True),
        *(False, False),
    ]
    assert sticky.rack_consumers == [1, 0]
    assert with_racks({"a": "z"}, ["x", "y"]).partition_racks == []
    assert with_racks({"a": "x"}, ["xy", "xy"]).partition_racks == []
    nowhere = with_racks({"a": None}, ["x", "y"])
    assert (nowhere.partition_racks, nowhere.rack_consumers) == ([], None)


def test_behind_a_partition_that_does_not_exist_the_real_class_finds_none() -> None:
    sticky = StickyGroup(claiming({"a": ("t", 1, "t-4")}, {"t": 3}))
    assert sticky.rest_after([0, 2], range(3)) == [1]
    assert sticky.rest_after([0, 3, 2], range(3)) == [1, 2]
    assert sticky.rest_after([0, 0, 2], range(3)) == [1, 2]


def test_partitions_behind_a_deleted_one_are_assigned_twice_and_a_member_of_all_of_its_topics_takes_no_more() -> None:
    problem = claiming(
        {"a": ("t", 2, "t-2"), "b": ("", 1, "t-1"), "c": ("v t", 1, "t-0 v-4 u-4")}, {"t": 2, "u": 1, "v": 3}
    )
    assert as_text(strategy("sticky", "kafka")(problem)) == {
        "a": "t-0 t-1 t-2",
        "b": "",
        "c": "t-0 v-0 v-1 v-2 v-4",
    }
