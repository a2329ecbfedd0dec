"""The line of members by load, from which the general sticky path gives and moves partitions."""

import msgspec
import pytest

from tests.udfs.strategies.groups import claiming, group
from udfs.model.errors import StrategyError
from udfs.model.events import QueueInfo
from udfs.strategies.kafka.sticky_group import StickyGroup
from udfs.strategies.kafka.sticky_loads import StickyLoads
from udfs.strategies.problem import Problem, Topic


class Line:
    """Loads of a group, by the names of its members."""

    def __init__(self, problem: Problem) -> None:
        self.group = StickyGroup(problem)
        self.loads = StickyLoads(self.group)
        self.names = [member.member_id for member in self.group.members]

    def place(self, name: str) -> int:
        return self.names.index(name)

    def held(self) -> dict[str, list[int]]:
        return {name: self.loads.held[self.place(name)] for name in sorted(self.names)}


def test_a_member_gives_up_what_it_does_not_subscribe_to() -> None:
    line = Line(group({"a": ["t"], "b": ["t", "u"]}, {"t": 2, "u": 1}, owned={"a": ["t-0", "u-0"], "b": ["t-1"]}))
    assert line.loads.drop_lost()
    assert line.held() == {"a": [0], "b": [1]}
    assert not line.loads.drop_lost()


def test_a_member_gives_up_what_is_in_another_rack() -> None:
    problem = group({"a": ["t"], "b": ["t"]}, {"t": 2}, owned={"a": ["t-0", "t-1"]})
    members = [
        msgspec.structs.replace(member, rack="x" if member.member_id == "a" else None) for member in problem.members
    ]
    queues = (QueueInfo(queue_id=0, racks=("x",)), QueueInfo(queue_id=1, racks=("y",)))
    racks = msgspec.structs.replace(problem, members=tuple(members), topics={"t": Topic(name="t", queues=queues)})
    line = Line(racks)
    assert line.loads.drop_lost()
    assert line.held() == {"a": [0], "b": []}
    # The one that is not near goes to the member without a rack, though both could take it.
    line.loads.line_up()
    assert line.loads.give(1, near=True)
    assert line.held() == {"a": [0], "b": [1]}


def test_partitions_of_topics_with_few_subscribers_come_first() -> None:
    line = Line(group({"a": ["t", "u", "v"], "b": ["t", "v"], "c": ["t"]}, {"t": 1, "u": 2, "v": 1}))
    topics = [line.group.topics[line.group.topic_of[number]] for number in line.loads.all_in_order()]
    assert topics == ["u", "u", "v", "t"]


def test_free_are_the_partitions_without_an_owner_in_their_order() -> None:
    line = Line(group({"a": ["t"], "b": ["t"]}, {"t": 4}, owned={"a": ["t-2"], "b": ["t-0"]}))
    assert line.loads.free([3, 2, 1, 0]) == [3, 1]


def test_a_free_partition_is_given_to_the_subscriber_with_the_fewest_then_to_the_first_by_id() -> None:
    line = Line(group({"c": ["t"], "b": ["t"], "a": ["u"]}, {"t": 4, "u": 1}, owned={"b": ["t-0"]}))
    line.loads.line_up()
    assert [line.loads.give(number, near=False) for number in (1, 2, 3)] == [True, True, True]
    assert line.held() == {"a": [], "b": [0, 2], "c": [1, 3]}
    assert line.loads.owner[2] == line.place("b")
    assert line.loads.first_subscriber(0) == line.place("b")
    assert line.loads.least() == 0
    unanswered = Line(group({"a": ["t"], "b": []}, {"t": 1}))
    unanswered.loads.line_up()
    unanswered.loads.remove_full_members([False])
    unanswered.loads.line_up()
    assert unanswered.loads.give(0, near=False)


def test_a_move_changes_owner_loads_and_the_line() -> None:
    line = Line(group({"a": ["t"], "b": ["t"]}, {"t": 3}, owned={"a": ["t-0", "t-1", "t-2"]}))
    line.loads.line_up()
    a, b = line.place("a"), line.place("b")
    assert not line.loads.is_even()
    line.loads.move(1, a, b)
    assert line.held() == {"a": [0, 2], "b": [1]}
    assert (line.loads.owner[1], line.loads.least()) == (b, 1)
    assert line.loads.is_even()


def test_a_member_that_holds_all_of_its_topics_none_of_them_shared_leaves_the_line() -> None:
    owned = {"a": ["u-0"], "b": ["t-0", "t-1", "t-2"], "c": []}
    line = Line(group({"a": ["u"], "b": ["t"], "c": ["t"]}, {"t": 3, "u": 1}, owned=owned))
    line.loads.line_up()
    line.loads.remove_full_members([True, False])
    assert line.loads.settled == {line.place("a")}
    # b holds all, but of a topic that c subscribes to as well.
    assert not line.loads.is_even()
    assert line.loads.unevenness(line.loads.held) == 3


def test_loads_are_even_where_no_member_could_take_from_one_that_holds_two_more() -> None:
    two_more = {"a": ["t-0", "t-1"], "b": []}
    assert not lined_up(group({"a": ["t"], "b": ["t"]}, {"t": 2}, owned=two_more)).is_even()
    # b subscribes to nothing that a holds.
    assert lined_up(group({"a": ["t"], "b": ["u"]}, {"t": 2, "u": 1}, owned=two_more)).is_even()
    # b holds as many as its topics have.
    owned = {"a": ["t-0", "t-1", "t-2"], "b": ["u-0"]}
    assert lined_up(group({"a": ["t"], "b": ["u"]}, {"t": 3, "u": 1}, owned=owned)).is_even()


def lined_up(problem: Problem) -> StickyLoads:
    loads = Line(problem).loads
    loads.line_up()
    return loads


def test_a_settled_owner_is_a_null_pointer_if_partitions_were_deleted() -> None:
    line = Line(claiming({"a": ("t", 1, "t-0 t-1 t-9"), "b": ("t", 1, "")}, {"t": 2}))
    line.loads.line_up()
    assert not line.loads.is_even()
    line.loads.settled.add(line.place("a"))
    with pytest.raises(StrategyError, match="an owner takes no part") as failed:
        line.loads.is_even()
    assert failed.value.code == "null_pointer"


@pytest.mark.parametrize(
    ("sizes", "sum_of_differences"), [([], 0), ([3], 0), ([1, 4], 3), ([0, 1, 3], 6), ([2, 2, 2], 0)]
)
def test_unevenness_is_the_sum_of_all_differences(sizes: list[int], sum_of_differences: int) -> None:
    loads = Line(group({f"m{place}": ["t"] for place in range(len(sizes) or 1)}, {"t": 1})).loads
    assert loads.unevenness([[0] * size for size in sizes]) == sum_of_differences
