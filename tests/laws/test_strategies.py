"""Laws that hold for every strategy of the registry, on random groups."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.udfs.strategies.groups import group
from udfs.strategies.problem import Assignment, Problem
from udfs.strategies.registry import names, registered

_SETTINGS = {"rooms": ["r"], "machines": ["r"], "queues": {}}
_MEMBERS = st.lists(st.integers(0, 99).map(lambda number: f"r@{number}"), min_size=1, max_size=9, unique=True)
_TOPICS = st.dictionaries(st.sampled_from(["t0", "t1", "t2", "t10"]), st.integers(0, 12), min_size=1, max_size=3)


@st.composite
def equal_groups(draw: Any) -> Problem:
    """Draw groups in which every member subscribes to all topics."""
    topics = draw(_TOPICS)
    return group({member: sorted(topics) for member in draw(_MEMBERS)}, topics, settings=_SETTINGS, broker="r@b")


@st.composite
def mixed_groups(draw: Any) -> Problem:
    """Draw groups with any subscriptions, unknown topics included."""
    topics = draw(_TOPICS)
    some = st.lists(st.sampled_from([*sorted(topics), "missing"]), unique=True)
    return group({member: draw(some) for member in draw(_MEMBERS)}, topics, settings=_SETTINGS, broker="r@b")


def answer(name: str, problem: Problem) -> Assignment:
    return registered(name, name.split(".")[0]).answer(problem)


def sizes(assignment: Assignment) -> list[int]:
    return [len(queues) for queues in assignment.values()]


@pytest.mark.parametrize("name", names())
@given(problem=mixed_groups())
@settings(max_examples=30)
def test_each_queue_is_assigned_once_and_to_a_subscriber(name: str, problem: Problem) -> None:
    held = answer(name, problem)
    assert list(held) == [member.member_id for member in problem.members]
    given_out = [queue for queues in held.values() for queue in queues]
    assert len(set(given_out)) == len(given_out)
    subscribed_none = [member for member in problem.members if not member.subscriptions]
    for member in problem.members:
        for queue in held[member.member_id]:
            assert queue.queue_id < len(problem.topics[queue.topic].queues)
            # If the real sticky assignors read members without a topic first, they treat them like any others.
            sticky = name in ("kafka.sticky", "kafka.cooperative-sticky") and subscribed_none
            assert queue.topic in member.subscriptions or sticky


@pytest.mark.parametrize("name", names())
@given(problem=equal_groups())
@settings(max_examples=30)
def test_the_declared_spread_holds_and_nothing_is_left(name: str, problem: Problem) -> None:
    promised = registered(name, name.split(".")[0])
    held = answer(name, problem)
    queues = sum(len(topic.queues) for topic in problem.topics.values())
    if promised.complete:
        assert sum(sizes(held)) == queues
    if promised.spread == "group":
        assert max(sizes(held)) - min(sizes(held)) <= 1
    if promised.spread == "topic":
        for topic in problem.topics:
            of_topic = [sum(queue.topic == topic for queue in queues) for queues in held.values()]
            assert max(of_topic) - min(of_topic) <= 1


@pytest.mark.parametrize("name", [name for name in names() if registered(name, name.split(".")[0]).any_order])
@given(problem=mixed_groups(), shuffled=st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_the_order_of_joining_does_not_matter_where_that_is_promised(
    name: str, problem: Problem, shuffled: Any
) -> None:
    members = list(problem.members)
    shuffled.shuffle(members)
    again = answer(name, msgspec.structs.replace(problem, members=tuple(members)))
    assert {member: set(queues) for member, queues in again.items()} == {
        member: set(queues) for member, queues in answer(name, problem).items()
    }


@pytest.mark.parametrize("name", [name for name in names() if registered(name, name.split(".")[0]).keeps])
@given(problem=equal_groups(), departed=st.integers(0, 8))
@settings(max_examples=30)
def test_when_one_leaves_the_others_keep_what_they_had_where_that_is_promised(
    name: str, problem: Problem, departed: int
) -> None:
    before = answer(name, problem)
    left = [member for place, member in enumerate(problem.members) if place != departed % len(problem.members)]
    members = tuple(
        msgspec.structs.replace(member, owned=tuple(before[member.member_id]), generation=1) for member in left
    )
    after = answer(name, msgspec.structs.replace(problem, members=members))
    for member in members:
        assert set(before[member.member_id]) <= set(after[member.member_id])


@pytest.mark.parametrize("name", ["kafka.sticky", "kafka.server.uniform"])
@given(problem=equal_groups(), joined=st.integers(1, 3))
@settings(max_examples=30)
def test_when_some_join_only_their_share_moves(name: str, problem: Problem, joined: int) -> None:
    before = answer(name, problem)
    topics = problem.members[0].subscriptions
    stayed = tuple(
        msgspec.structs.replace(member, owned=tuple(before[member.member_id]), generation=1)
        for member in problem.members
    )
    new = group({f"s@{number}": topics for number in range(joined)}, {}).members
    after = answer(name, msgspec.structs.replace(problem, members=(*stayed, *new)))
    moved = sum(len(set(before[member.member_id]) - set(after[member.member_id])) for member in stayed)
    assert moved == sum(len(after[member.member_id]) for member in new)


@given(problem=mixed_groups())
@settings(max_examples=50)
def test_the_sticky_paths_leave_nothing_of_subscribed_topics(problem: Problem) -> None:
    # If a case without an end is ever drawn, it becomes an example of its own.
    held = answer("kafka.sticky", problem)
    subscribed = {topic for member in problem.members for topic in member.subscriptions}
    queues = sum(len(topic.queues) for name, topic in problem.topics.items() if name in subscribed)
    assert sum(sizes(held)) == queues
