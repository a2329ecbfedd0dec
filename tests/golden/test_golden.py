"""Every strategy against the answers that its real class gave."""

import json
from pathlib import Path

import pytest

from tests.kit.differential import agrees, our_answer
from tests.kit.oracles import OracleResult
from udfs.strategies.registry import names

_FOLDER = Path(__file__).resolve().parent
_FILES = sorted(file for file in _FOLDER.glob("*.*/*.jsonl"))
# A vote is not a strategy, and no class of RocketMQ has the name PINNED.
_WITHOUT_A_REAL_CLASS = {"rocketmq.PINNED"}


def _recorded(line: dict) -> OracleResult:
    held = line["held"]
    return OracleResult(
        micros=0,
        held=None if held is None else {member: [tuple(queue) for queue in queues] for member, queues in held.items()},
        text=line["winner"],
        error=line["error"],
    )


@pytest.mark.parametrize("file", _FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_answers_are_those_of_the_real_class(file: Path) -> None:
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) >= 10
    for line in lines:
        ours = our_answer(line["case"])
        assert agrees(ours, _recorded(line)), f"{line}\nours: {ours}"


def test_every_strategy_with_a_real_class_has_golden_answers() -> None:
    recorded = {file.parent.name for file in _FILES}
    assert recorded - {"kafka.vote"} == set(names()) - _WITHOUT_A_REAL_CLASS


@pytest.mark.parametrize(
    "file", [file for file in _FILES if file.parent.name != "kafka.vote"], ids=lambda f: f"{f.parent.name}-{f.stem}"
)
def test_a_good_part_of_each_classs_golden_answers_are_assignments_with_queues(file: Path) -> None:
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert sum(any(line["held"].values()) for line in lines if line["held"]) >= len(lines) / 5
