"""The coordinator's assignors where the target before is not as one would write it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.udfs.strategies.groups import as_text, group
from udfs.model.errors import StrategyError
from udfs.model.events import QueueRef
from udfs.strategies.problem import Assignment, Problem
from udfs.strategies.registry import strategy

uniform = strategy("server.uniform", "kafka")


def outcome(problem: Problem) -> Assignment | str:
    """Return the assignment, or the error's code."""
    try:
        return uniform(problem)
    except StrategyError as error:
        return error.code


@st.composite
def groups_with_targets(draw: Any) -> Problem:
    """Groups of equal subscriptions whose members were to hold what they like, also the same partition."""
    # Sets of numbers below 16 iterate in ascending order, whatever the order in which they were filled.
    topics = draw(st.dictionaries(st.sampled_from(["t0", "t1", "t2"]), st.integers(1, 12), min_size=1))
    members = draw(st.lists(st.integers(0, 99).map(str), min_size=1, max_size=9, unique=True))
    queues = [f"{topic}-{number}" for topic, count in topics.items() for number in range(count)]
    if draw(st.integers(0, 9)):
        # Each partition with one owner or none; else claimed twice as a rule, which is an error.
        owners = draw(st.lists(st.sampled_from([*members, None]), min_size=len(queues), max_size=len(queues)))
        owned = {
            member: [queue for queue, owner in zip(queues, owners, strict=True) if owner == member]
            for member in members
        }
    else:
        owned = {member: draw(st.lists(st.sampled_from(queues), unique=True, max_size=9)) for member in members}
    return group({member: sorted(topics) for member in members}, topics, owned=owned)


@given(problem=groups_with_targets(), any_order=st.randoms(use_true_random=False))
@settings(max_examples=100)
def test_a_target_written_in_another_way_is_the_same_target(problem: Problem, any_order: Any) -> None:
    again = []
    for member in problem.members:
        queues = list(member.owned or ())
        queues += [any_order.choice(queues) for _ in range(any_order.randrange(3)) if queues]
        queues += [QueueRef(topic="unknown", queue_id=number) for number in range(any_order.randrange(2))]
        any_order.shuffle(queues)
        named = tuple(msgspec.structs.replace(queue, broker=any_order.choice((None, "b"))) for queue in queues)
        again.append(msgspec.structs.replace(member, owned=named))
    assert outcome(msgspec.structs.replace(problem, members=tuple(again))) == outcome(problem)


@given(problem=groups_with_targets())
@settings(max_examples=100)
def test_the_target_before_overrides_what_members_report_as_owned(problem: Problem) -> None:
    previous = {member.member_id: member.owned or () for member in problem.members}
    silent = tuple(msgspec.structs.replace(member, owned=None) for member in problem.members)
    assert outcome(msgspec.structs.replace(problem, members=silent, previous=previous)) == outcome(problem)


def test_queues_are_answered_as_the_topic_names_them_not_as_the_target_before_does() -> None:
    problem = group({"a": ["t"]}, {"t": 2}, owned={"a": ["t-1", "t-0"]}, broker="here")
    elsewhere = tuple(QueueRef(topic="t", queue_id=number, broker="elsewhere") for number in (1, 0))
    held = uniform(msgspec.structs.replace(problem, previous={"a": elsewhere}))
    assert held == {"a": [QueueRef(topic="t", queue_id=number, broker="here") for number in (0, 1)]}


@pytest.mark.parametrize(
    "owned",
    [
        {"a": ["t-0", "t-9"], "b": ["u-0"]},
        {"a": ["t-0", "t-1", "t-9"], "b": ["u-0"]},
        {"a": ["t-0", "u-0"], "b": ["u-0"]},
    ],
)
def test_a_target_of_partitions_that_are_no_more_or_held_twice_is_an_error_as_in_the_real_class(
    owned: dict[str, list[str]],
) -> None:
    assert outcome(group({"a": ["t", "u"], "b": ["t", "u"]}, {"t": 2, "u": 1}, owned=owned)) == "partition_assignor"


def test_new_members_are_filled_one_after_another() -> None:
    # Seen on a live coordinator: 5 and 3 partitions, three new members.
    topics = {"t1": 5, "t2": 3}
    answer = strategy("server.uniform", "kafka")(group({member: list(topics) for member in "abc"}, topics))
    assert sorted(as_text(answer).values()) == sorted(["t1-0 t1-1", "t1-2 t1-3 t1-4", "t2-0 t2-1 t2-2"])
