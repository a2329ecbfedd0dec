"""The laws of an assignment, and the guard around custom strategies."""

from collections.abc import Callable
from itertools import repeat
from typing import Any

import msgspec
import pytest

from tests.udfs.strategies.groups import as_text, group, queue
from udfs.model.errors import StrategyError
from udfs.model.events import QueueRef
from udfs.strategies.laws import broken_law, guarded
from udfs.strategies.problem import Assignment, Problem

PROBLEM = group({"a": ["t"], "b": ["t", "u"]}, {"t": 2, "u": 1})


def held(**members: str) -> Assignment:
    return {member: [queue(text) for text in texts.split()] for member, texts in members.items()}


@pytest.mark.parametrize(
    ("answer", "broken"),
    [
        (held(a="t-0", b="t-1 u-0"), None),
        (held(a="", b=""), None),
        (held(a="t-0"), "members of its result are not those"),
        (held(a="t-0", b="", c=""), "members of its result are not those"),
        ({"a": ["t-0"], "b": []}, "assigns a a value that is not a queue: 't-0'"),
        ({"a": [QueueRef(topic="t", queue_id=True)], "b": []}, "assigns a a value that is not a queue"),
        (held(a="", b="t-2"), "assigns b a queue that does not exist"),
        (held(a="", b="v-0"), "assigns b a queue that does not exist"),
        ({"a": [QueueRef(topic="t", queue_id=0, broker="x")], "b": []}, "assigns a a queue that does not exist"),
        (held(a="u-0", b=""), "assigns a a queue of u, to which it does not subscribe"),
        (held(a="t-0", b="t-0"), "assigns one queue to a and to b"),
        (held(a="t-0 t-0", b=""), "assigns one queue to a and to a"),
    ],
)
def test_the_law_that_an_assignment_breaks_is_named(answer: Any, broken: str | None) -> None:
    sentence = broken_law(PROBLEM, answer)
    assert sentence is None if broken is None else broken in (sentence or "")


def failing(error: Exception) -> Callable[[Problem], Assignment]:
    def answer(problem: Problem) -> Assignment:
        raise error

    return answer


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        (failing(StrategyError("no_room", "none")), "no_room", "none"),
        (failing(ValueError("bad")), "strategy_failed", "x: ValueError: bad"),
        (lambda _: None, "strategy_failed", "x: AttributeError: .*"),
        (lambda _: held(a="t-0", b="t-0"), "breaks_law", "x: it assigns one queue to a and to b"),
        # Without end: three queues there are, the fourth breaks a law.
        (lambda _: {"a": repeat(queue("t-0")), "b": []}, "breaks_law", "x: it assigns one queue to a and to a"),
    ],
)
def test_a_custom_strategy_raises_errors_of_strategies_alone(answer: Any, code: str, message: str) -> None:
    with pytest.raises(StrategyError, match=message) as failed:
        guarded("x", answer)(PROBLEM)
    assert failed.value.code == code


def test_a_custom_strategy_that_keeps_the_laws_returns_lists() -> None:
    answer: Any = lambda _: {"a": iter([queue("t-1")]), "b": (queue("u-0"),)}  # noqa: E731
    assert as_text(guarded("x", answer)(PROBLEM)) == {"a": "t-1", "b": "u-0"}


def test_a_custom_strategy_gets_maps_of_its_own() -> None:
    def spoil(problem: Any) -> Assignment:
        problem.topics.clear()
        problem.settings["deep"].append(2)
        problem.previous.clear()
        return held(a="", b="")

    problem = msgspec.structs.replace(PROBLEM, settings={"deep": [1]}, previous={"a": ()})
    guarded("x", spoil)(problem)
    assert (len(problem.topics), problem.settings, problem.previous) == (2, {"deep": [1]}, {"a": ()})
