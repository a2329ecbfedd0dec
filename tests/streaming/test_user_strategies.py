"""Users' own strategies: let in when they keep the laws, left out with a sentence when they do not."""

from importlib.metadata import EntryPoint

import pytest

import udfs.strategies
from streaming import user_strategies
from streaming.user_strategies import GROUP, load_user_strategies
from tests.udfs.strategies.groups import group, told
from udfs.errors import StrategyError
from udfs.events import QueueRef
from udfs.strategies import Assignment, Problem, Registered, registered, strategy


def last_takes_all(problem: Problem) -> Assignment:
    held: Assignment = {member.member_id: [] for member in problem.members}
    for name, topic in problem.topics.items():
        takers = [member.member_id for member in problem.members if name in member.subscriptions]
        if takers:
            held[takers[-1]] += [QueueRef(topic=name, queue_id=q.queue_id, broker=q.broker) for q in topic.queues]
    return held


promises_too_much = Registered(answer=last_takes_all, spread="group")


def everybody_takes_all(problem: Problem) -> Assignment:
    return {
        member.member_id: [QueueRef(topic=name, queue_id=0) for name in member.subscriptions if name in problem.topics]
        for member in problem.members
    }


def fails(problem: Problem) -> Assignment:
    raise ZeroDivisionError("no members for " + problem.group)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the test a registry of its own."""
    monkeypatch.setattr(udfs.strategies, "_STRATEGIES", dict(udfs.strategies._STRATEGIES))
    monkeypatch.setattr(user_strategies, "_loaded", set())


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name=name, value=f"{__name__}:{value}", group=GROUP)


def test_a_strategy_that_keeps_the_laws_is_known_by_its_name(registry: None) -> None:
    assert load_user_strategies([point("rocketmq.LAST", "last_takes_all")]) == []
    problem = group({"a": ["t"], "b": ["t"]}, {"t": 2})
    assert told(strategy("LAST", "rocketmq")(problem)) == {"a": "", "b": "t-0 t-1"}
    assert load_user_strategies([point("rocketmq.LAST", "last_takes_all")]) == []


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("rocketmq.MANY", "everybody_takes_all", "a queue that does not exist"),
        ("rocketmq.EVEN", "promises_too_much", "spreads by more than"),
        ("rocketmq.FAILS", "fails", "ZeroDivisionError"),
        ("rocketmq.GONE", "nowhere", "AttributeError"),
        ("rocketmq.AVG", "last_takes_all", "already"),
        ("mine", "last_takes_all", "must start with"),
    ],
)
def test_a_broken_one_is_left_out_and_the_others_come_in(registry: None, name: str, value: str, reason: str) -> None:
    before = strategy("AVG", "rocketmq")
    (refused,) = load_user_strategies([point(name, value), point("kafka.last", "last_takes_all")])
    assert name in refused
    assert reason in refused
    assert registered("last", "kafka").spread == "none"
    assert strategy("AVG", "rocketmq") is before


def fails_for_five(problem: Problem) -> Assignment:
    if len(problem.members) == 5:
        raise ZeroDivisionError("five")
    return {} if len(problem.members) == 6 else last_takes_all(problem)


@pytest.mark.parametrize(("members", "code"), [(5, "strategy_failed"), (6, "breaks_law")])
def test_what_fails_only_later_fails_the_rebalance_and_not_the_job(registry: None, members: int, code: str) -> None:
    assert load_user_strategies([point("rocketmq.LATER", "fails_for_five")]) == []
    with pytest.raises(StrategyError) as failed:
        strategy("LATER", "rocketmq")(group({f"m{number}": ["t"] for number in range(members)}, {"t": 2}))
    assert failed.value.code == code
    assert "rocketmq.LATER" in failed.value.message
