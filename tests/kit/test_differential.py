"""A few fresh cases against the live jars; `make differential` asks many."""

import json

import pytest

from tests.kit.differential import agrees, compare, compare_python, our_answer
from tests.kit.golden import EDGES, FOLDER, edges, real_edges
from tests.kit.jars import LATER
from tests.kit.oracles import ORACLES, OracleResult, Running, line_of
from tests.kit.python_assignors import PYTHON_ORACLES, RunningInProcess


@pytest.fixture(autouse=True)
def _quick_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few cases never earn back what the second compiler and a parallel collector cost."""
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


_PAIRS = [
    pytest.param(oracle, strategy, marks=[pytest.mark.slow] if oracle.jars in LATER else [])
    for oracle in ORACLES
    for strategy in oracle.strategies
]


@pytest.mark.parametrize(("oracle", "strategy"), _PAIRS, ids=lambda each: each if isinstance(each, str) else each.jars)
def test_the_strategies_agree_with_the_real_classes(oracle, strategy) -> None:
    assert compare(oracle, strategy, cases=60, seed=1) == 0


@pytest.mark.parametrize("oracle", PYTHON_ORACLES, ids=lambda oracle: oracle.package)
def test_the_strategies_agree_with_python_libraries(oracle) -> None:
    assert sum(compare_python(oracle, strategy, cases=80, seed=1) for strategy in oracle.strategies) == 0


@pytest.mark.parametrize("oracle", PYTHON_ORACLES, ids=lambda oracle: oracle.package)
def test_golden_answers_are_what_the_installed_python_library_gives(oracle) -> None:
    for strategy in oracle.strategies:
        lines = map(json.loads, (FOLDER / strategy / f"{oracle.package}.jsonl").read_text().splitlines())
        for line in lines:
            with RunningInProcess(oracle) as running:
                (real,) = running.allocate([line["case"]])
            assert real.held == {member: [tuple(queue) for queue in held] for member, held in line["held"].items()}


def test_a_wrong_answer_is_a_difference() -> None:
    case = {
        "strategy": "rocketmq.AVG",
        "members": [{"member_id": "a", "subscriptions": ["t"]}],
        "topics": {"t": {"queue_count": 1}},
    }
    with Running(ORACLES[0]) as running:
        (real,) = running.allocate([case])
    assert agrees(our_answer(case), real)
    assert not agrees(our_answer(case), OracleResult(micros=0, held={"a": []}))
    assert not agrees(our_answer(case), OracleResult(micros=0, error="java.lang.NoClassDefFoundError"))
    assert not agrees(our_answer(case), OracleResult(micros=0, past=True))


def test_an_error_of_the_real_class_must_be_ours_too() -> None:
    case = {
        "strategy": "rocketmq.CONSISTENT_HASH",
        "members": [{"member_id": "a", "subscriptions": ["t"]}],
        "topics": {"t": {"queue_count": 1}},
        "settings": {"virtual_nodes": -1},
    }
    with Running(ORACLES[0]) as running:
        (real,) = running.allocate([case])
    assert real.error == "java.lang.IllegalArgumentException"
    assert agrees(our_answer(case), real)


@pytest.mark.parametrize("file", sorted(EDGES.glob("*.jsonl")), ids=lambda file: file.stem)
def test_the_edges_are_those_of_the_real_classes(file) -> None:
    assert real_edges(file.stem) == edges(file.stem)


def test_we_report_cases_in_which_the_real_sticky_assignor_does_not_end() -> None:
    case = json.loads((FOLDER / "without_end" / "kafka.sticky.json").read_text())
    ours = our_answer(case)
    assert ours.error is not None
    assert ours.error[0] == "does_not_end"
    (oracle,) = [each for each in ORACLES if each.jars == "kafka-4.1.1" and "kafka.sticky" in each.strategies]
    # Ended cases of this size take it less than a millisecond.
    with Running(oracle, limit_ms=2_000) as running:
        (real,) = running.allocate([case])
    assert real.past
    assert agrees(ours, real)


def test_a_line_of_a_case_has_no_white_space_but_its_tabs() -> None:
    case = {"strategy": "kafka.vote", "members": [{"member_id": "a b\t\n", "strategies": ["x y"]}]}
    assert " " not in line_of(case)
    assert "\n" not in line_of(case)


def test_an_oracle_refuses_an_unknown_strategy() -> None:
    case = {
        "strategy": "metaq.unknown",
        "members": [{"member_id": "a", "subscriptions": ["t"]}],
        "topics": {"t": {"queues": [{"broker": "0", "queue_id": 0}]}},
    }
    (metaq,) = (oracle for oracle in ORACLES if oracle.program == "MetaqStrategies")
    with Running(metaq) as running:
        (real,) = running.allocate([case])
    assert real.error == "java.lang.IllegalArgumentException"
