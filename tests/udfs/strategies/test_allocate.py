"""How a group's queues are assigned: strategies, votes, members with strategies of their own."""

import functools

import msgspec
import pytest

from tests.udfs.strategies.groups import as_text, group
from udfs.model.errors import StrategyError
from udfs.strategies import allocate as allocation
from udfs.strategies.problem import Problem

# Where members vote, a tie goes as in a coordinator of today, unless a test says otherwise.
allocate = functools.partial(allocation.allocate, tie_order="4.x")


def with_strategies(problem: Problem, **own: list[str]) -> Problem:
    members = tuple(
        msgspec.structs.replace(member, strategies=tuple(own.get(member.member_id, ()))) for member in problem.members
    )
    return msgspec.structs.replace(problem, members=members)


def test_a_named_strategy_is_taken_without_a_vote() -> None:
    problem = with_strategies(group({"a": ["t"], "b": ["t"]}, {"t": 4}), a=["range"], b=["range"])
    found = allocate(system="kafka", mode=None, strategy="roundrobin", problem=problem)
    assert (found.strategy, as_text(found.assignment)) == ("kafka.roundrobin", {"a": "t-0 t-2", "b": "t-1 t-3"})


def test_kafka_members_that_list_nothing_use_range() -> None:
    assert allocate(system="kafka", mode=None, strategy=None, problem=group({"a": []}, {})).strategy == "kafka.range"


def test_kafka_members_without_a_common_strategy_are_an_error_of_the_group() -> None:
    problem = with_strategies(group({"a": ["t"], "b": ["t"]}, {"t": 4}), a=["range"], b=["sticky"])
    with pytest.raises(StrategyError) as failed:
        allocate(system="kafka", mode=None, strategy=None, problem=problem)
    assert failed.value.code == "no_common_strategy"


def test_a_kafka_member_that_lists_nothing_yet_has_no_voice_among_others() -> None:
    problem = with_strategies(group({"a": ["t"], "b": []}, {"t": 4}), a=["roundrobin"])
    found = allocate(system="kafka", mode=None, strategy=None, problem=problem)
    assert (found.strategy, as_text(found.assignment)) == (
        "kafka.roundrobin",
        {"a": "t-0 t-1 t-2 t-3", "b": ""},
    )


def test_the_tie_order_decides_a_tied_vote() -> None:
    problem = with_strategies(group({"a": [], "b": []}, {}), a=["range", "sticky"], b=["sticky", "range"])
    old = allocate(system="kafka", mode=None, strategy=None, problem=problem, tie_order="1.0")
    new = allocate(system="kafka", mode=None, strategy=None, problem=problem, tie_order="4.x")
    assert (old.strategy, new.strategy) == ("kafka.range", "kafka.sticky")


def test_rocketmq_members_with_different_strategies_each_take_what_their_own_gives() -> None:
    problem = with_strategies(group({"a": ["t"], "b": ["t"]}, {"t": 4}), b=["AVG_BY_CIRCLE", "AVG"])
    found = allocate(system="rocketmq", mode="clustering", strategy=None, problem=problem)
    # Queue 1 has two owners, queue 2 none.
    assert as_text(found.assignment) == {"a": "t-0 t-1", "b": "t-1 t-3"}
    assert found.strategy == "rocketmq.AVG, rocketmq.AVG_BY_CIRCLE"


def test_the_result_of_a_custom_strategy_is_not_guessed_and_the_rest_is_assigned() -> None:
    problem = with_strategies(group({"a": ["t"], "b": ["t"]}, {"t": 4}), b=["com.example.Nearest"])
    found = allocate(system="rocketmq", mode=None, strategy=None, problem=problem)
    assert (as_text(found.assignment), found.recomputable) == ({"a": "t-0 t-1", "b": ""}, False)
    assert found.strategy == "rocketmq.AVG, rocketmq.com.example.Nearest"


@pytest.mark.parametrize("name", ["CONFIG", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY", "MACHINE_ROOM_NEARBY-com.example.X"])
def test_a_class_without_its_settings_cannot_be_computed(name: str) -> None:
    problem = with_strategies(group({"a": ["t"]}, {"t": 4}), a=[name])
    found = allocate(system="rocketmq", mode=None, strategy=None, problem=problem)
    assert (as_text(found.assignment), found.recomputable) == ({"a": ""}, False)


def test_a_class_with_its_settings_is_computed() -> None:
    problem = with_strategies(group({"a": ["t"]}, {"t": 2}, settings={"inner": "AVG"}), a=["MACHINE_ROOM_NEARBY"])
    problem = msgspec.structs.replace(problem, settings={"inner": "AVG", "broker_rooms": {"": "r"}})
    found = allocate(system="rocketmq", mode=None, strategy=None, problem=problem)
    assert (as_text(found.assignment), found.recomputable) == ({"a": "t-0 t-1"}, True)


def test_a_strategy_that_was_set_for_the_group_must_exist() -> None:
    with pytest.raises(StrategyError) as failed:
        allocate(system="rocketmq", mode=None, strategy="com.example.X", problem=group({"a": ["t"]}, {"t": 2}))
    assert failed.value.code == "unknown_strategy"


def test_a_members_own_settings_go_before_the_groups() -> None:
    problem = group({"a": ["t"], "b": ["t"]}, {"t": 2}, settings={"queues": [{"topic": "t", "queue_id": 0}]})
    first, second = problem.members
    second = msgspec.structs.replace(second, settings={"queues": [{"topic": "t", "queue_id": 1}]})
    problem = msgspec.structs.replace(problem, members=(first, second))
    found = allocate(system="rocketmq", mode=None, strategy="CONFIG", problem=problem)
    assert as_text(found.assignment) == {"a": "t-0", "b": "t-1"}


def test_a_share_number_that_is_no_number_is_an_error_of_the_group() -> None:
    problem = group({"a": ["t"]}, {"t": 2}, settings={"share_number": "2"})
    with pytest.raises(StrategyError) as failed:
        allocate(system="rocketmq", mode="message", strategy=None, problem=problem)
    assert failed.value.code == "illegal_setting"


def test_a_group_of_unknown_topics_is_assigned_nothing() -> None:
    for system, name in (("kafka", "sticky"), ("kafka", "server.uniform"), ("rocketmq", "AVG"), ("metaq", "default")):
        found = allocate(system=system, mode=None, strategy=name, problem=group({"a": ["missing"], "b": []}, {"t": 0}))
        assert found.assignment == {"a": [], "b": []}


def test_a_group_without_members_is_assigned_nothing() -> None:
    for system, name in (("kafka", "sticky"), ("kafka", "range"), ("rocketmq", "AVG"), ("metaq", "consistent-hash")):
        assert allocate(system=system, mode=None, strategy=name, problem=group({}, {"t": 2})).assignment == {}
