"""The page that compares the strategies shows what its commands print, and its example strategy works.

``python -m tests.docs.test_strategies_page`` renews what is printed.
"""

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streaming.allocation.cases import MAX_QUEUES_OF_CASE
from streaming.allocation.plugins import ANSWER_LIMIT_S, LOAD_LIMIT_S
from streaming.commands.app import app
from udfs.model.events import QueueInfo
from udfs.strategies.laws import guarded
from udfs.strategies.problem import Participant, Problem, Topic
from udfs.strategies.registry import names

PAGE = Path(__file__).parents[2] / "docs" / "strategies.md"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def printed(commands: list[str]) -> str:
    """Run the commands of a page, and return the block that holds them with their output."""
    text = ""
    for command in commands:
        result = CliRunner().invoke(app, shlex.split(command)[2:])
        assert result.exit_code == 0, result.output
        text += f"{command}\n{result.stdout}"
    return text


def renewed(page: str) -> str:
    """Return the page with the output of each command as it is now."""
    return _BLOCK.sub(
        lambda block: (
            "```console\n" + printed([line for line in block[1].splitlines() if line.startswith("$ ")]) + "```"
        ),
        page,
    )


def test_the_page_shows_what_its_commands_print() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert len(_BLOCK.findall(page)) >= 4
    assert renewed(page) == page


@pytest.mark.parametrize("name", names())
def test_the_page_names_every_strategy(name: str) -> None:
    assert f"| `{name}` |" in PAGE.read_text(encoding="utf-8")


def test_the_example_case_has_the_example_answer() -> None:
    case, answer = re.findall(r"^```json\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    result = CliRunner().invoke(app, ["allocate"], input=case)
    assert json.loads(result.stdout) == json.loads(answer)


@pytest.mark.parametrize("limit", [f"{MAX_QUEUES_OF_CASE:,} counted", f"{LOAD_LIMIT_S:g} s", f"{ANSWER_LIMIT_S:g} s"])
def test_the_page_names_the_limits(limit: str) -> None:
    assert limit in PAGE.read_text(encoding="utf-8")


def test_the_example_strategy_keeps_the_laws() -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    names_of_example: dict = {}
    exec(example, names_of_example)
    problem = Problem(
        group="g",
        members=tuple(Participant(member_id=name, name=name, subscriptions=("t",)) for name in "abc"),
        topics={"t": Topic(name="t", queues=tuple(QueueInfo(queue_id=number) for number in range(4)))},
    )
    owned = guarded("rocketmq.MINE", names_of_example["allocate"])(problem)
    assert [len(owned[name]) for name in "abc"] == [2, 1, 1]


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
