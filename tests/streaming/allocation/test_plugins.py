"""Users' own strategies: let in when they keep the laws, left out with a sentence when they do not."""

import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from streaming.allocation import plugins
from streaming.allocation.plugins import GROUP, load_user_strategies
from tests.udfs.strategies.groups import as_text, group
from udfs.model.errors import StrategyError
from udfs.model.events import QueueRef
from udfs.strategies import registry as strategy_registry
from udfs.strategies.problem import Assignment, Problem
from udfs.strategies.registry import Registered, registered, strategy


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
    monkeypatch.setattr(strategy_registry, "_STRATEGIES", dict(strategy_registry._STRATEGIES))
    monkeypatch.setattr(plugins, "_loaded", set())


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name=name, value=f"{__name__}:{value}", group=GROUP)


def test_a_strategy_that_keeps_the_laws_is_registered_under_its_name(registry: None) -> None:
    assert load_user_strategies([point("rocketmq.LAST", "last_takes_all")]) == []
    problem = group({"a": ["t"], "b": ["t"]}, {"t": 2})
    assert as_text(strategy("LAST", "rocketmq")(problem)) == {"a": "", "b": "t-0 t-1"}
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
def test_a_strategy_that_fails_later_fails_the_rebalance_and_not_the_job(
    registry: None, members: int, code: str
) -> None:
    assert load_user_strategies([point("rocketmq.LATER", "fails_for_five")]) == []
    with pytest.raises(StrategyError) as failed:
        strategy("LATER", "rocketmq")(group({f"m{number}": ["t"] for number in range(members)}, {"t": 2}))
    assert failed.value.code == code
    assert "rocketmq.LATER" in failed.value.message


def exits(problem: Problem) -> Assignment:
    sys.exit(3)


def never_comes_back(problem: Problem) -> Assignment:
    # The thread is abandoned; if it computed instead of waiting, it would slow the tests after this one.
    threading.Event().wait()
    return {}


def names_queues_for_ever(problem: Problem) -> Any:
    return {member.member_id: itertools.repeat(QueueRef(topic="t0", queue_id=0)) for member in problem.members}


def answers_nothing(problem: Problem) -> Any:
    return None


def answers_no_queues(problem: Problem) -> Any:
    return {member.member_id: ["t0-0"] for member in problem.members}


def answers_half_a_queue(problem: Problem) -> Any:
    held: Any = {member.member_id: [] for member in problem.members}
    held[problem.members[0].member_id] = [QueueRef(topic="t0", queue_id=0.0)] if problem.topics["t0"].queues else []  # type: ignore[arg-type]
    return held


no_function = 3


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("exits", "SystemExit"),
        ("never_comes_back", "did not return within 0.5 s"),
        ("names_queues_for_ever", "breaks|assigns"),
        ("answers_nothing", "AttributeError"),
        ("answers_no_queues", "a value that is not a queue"),
        ("answers_half_a_queue", "a value that is not a queue"),
        ("no_function", "not callable"),
    ],
)
def test_one_that_ends_the_process_or_never_comes_back_or_answers_rubbish_is_left_out(
    registry: None, monkeypatch: pytest.MonkeyPatch, value: str, reason: str
) -> None:
    def points() -> Iterator[EntryPoint]:
        with monkeypatch.context() as patch:
            if value == "never_comes_back":
                patch.setattr(plugins, "LOAD_LIMIT_S", 0.5)
            yield point("rocketmq.BAD", value)
        yield point("rocketmq.LAST", "last_takes_all")  # it gets all the time that it may need

    (refused,) = load_user_strategies(points())
    assert any(part in refused for part in reason.split("|"))
    assert registered("LAST", "rocketmq").spread == "none"


def late_for_five(problem: Problem) -> Assignment:
    if len(problem.members) == 5:
        never_comes_back(problem)
    if len(problem.members) == 6:
        sys.exit(0)
    return last_takes_all(problem)


def test_one_that_is_late_fails_the_rebalance_and_is_called_no_more_after_some_times(
    registry: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load_user_strategies([point("rocketmq.LATE", "late_for_five")]) == []
    late = strategy("LATE", "rocketmq")
    five, six, two = (group({f"m{number}": ["t"] for number in range(count)}, {"t": 2}) for count in (5, 6, 2))
    outputs = []
    for case in (six, five, five, five):
        if case is five:
            monkeypatch.setattr(plugins, "ANSWER_LIMIT_S", 0.2)
        with pytest.raises(StrategyError) as failed:
            late(case)
        assert failed.value.code == "strategy_failed"
        outputs.append(failed.value.message)
    assert outputs == ["rocketmq.LATE: SystemExit: 0", *["rocketmq.LATE: it did not return within 0.2 s"] * 3]
    with pytest.raises(StrategyError, match="no longer calls it"):
        late(two)


def spoils_its_problem(problem: Problem) -> Assignment:
    held = last_takes_all(problem)
    problem.topics.clear()  # type: ignore[attr-defined]
    for value in problem.settings.values():
        value.clear()  # type: ignore[attr-defined]
    problem.settings.clear()  # type: ignore[attr-defined]
    return held


def test_one_that_spoils_its_arguments_spoils_its_own_alone(registry: None) -> None:
    assert load_user_strategies([point("rocketmq.SPOILS", "spoils_its_problem")]) == []
    problem = group({"a": ["t"]}, {"t": 2}, settings={"machines": ["a"]})
    assert as_text(strategy("SPOILS", "rocketmq")(problem)) == {"a": "t-0 t-1"}
    assert (list(problem.topics), problem.settings) == (["t"], {"machines": ["a"]})


def wants_a_setting(problem: Problem) -> Assignment:
    if "weights" not in problem.settings:
        raise StrategyError("illegal_setting", "weights are missing")
    return last_takes_all(problem)


def test_one_that_names_the_setting_it_lacks_is_let_in(registry: None) -> None:
    assert load_user_strategies([point("rocketmq.WEIGHED", "wants_a_setting")]) == []
    with pytest.raises(StrategyError, match="weights are missing"):
        strategy("WEIGHED", "rocketmq")(group({"a": ["t"]}, {"t": 1}))
    problem = group({"a": ["t"]}, {"t": 1}, settings={"weights": {}})
    assert as_text(strategy("WEIGHED", "rocketmq")(problem)) == {"a": "t-0"}


def test_the_second_of_two_packages_that_take_one_name_is_left_out_with_a_sentence(registry: None) -> None:
    (refused,) = load_user_strategies([point("kafka.MINE", "last_takes_all"), point("kafka.MINE", "wants_a_setting")])
    assert "there is already a strategy kafka.MINE" in refused


def test_output_of_installed_strategies_does_not_mix_with_the_answers(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(
        "print('imported')\n"
        "def deal(problem):\n"
        "    print('asked')\n"
        "    return {member.member_id: [] for member in problem.members}\n"
    )
    package = tmp_path / "loud-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: loud\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(f"[{GROUP}]\nrocketmq.LOUD = loud:deal\nrocketmq.GONE = nowhere:deal\n")
    case = {"strategy": "rocketmq.LOUD", "members": [{"member_id": "a", "subscriptions": ["t"]}]}
    run = subprocess.run(
        [Path(sys.executable).with_name("rebalance-monitor"), "allocate"],
        input=json.dumps(case).encode(),
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        check=True,
    )
    (answer,) = map(json.loads, run.stdout.splitlines())
    assert (answer["assignments"], answer["error"]) == ({"a": []}, None)
    assert b"asked" in run.stderr
    assert b"rocketmq.GONE (nowhere:deal) is not loaded" in run.stderr
