"""The examples in the help of commands: every command has some, and each can be typed as it is."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from streaming.commands.app import app
from streaming.commands.examples import EXAMPLES

ROOT: Any = typer.main.get_command(app)
LINES = [(name, line) for name, lines in EXAMPLES.items() for line in lines]


def test_every_command_has_examples() -> None:
    names = set()
    for name, command in ROOT.commands.items():
        names |= {f"{name} {below}" for below in command.commands} if hasattr(command, "commands") else {name}
    assert set(EXAMPLES) == names


@pytest.mark.parametrize(("name", "line"), LINES, ids=[line for _, line in LINES])
def test_an_example_is_one_of_its_command_and_is_understood(name: str, line: str) -> None:
    assert f"{line} ".startswith(f"{name} ")
    command, arguments = ROOT, shlex.split(line)
    for part in name.split():
        command = command.commands[part]
    command.make_context(name, arguments[len(name.split()) :])


@pytest.mark.parametrize("name", EXAMPLES)
def test_help_names_values_and_not_types(name: str) -> None:
    shown = CliRunner().invoke(app, [*name.split(), "--help"]).output
    assert [line for line in shown.splitlines() if re.match(r"\s+-.*<\w+( range)?>", line)] == []


def test_help_ends_with_examples_each_on_its_line() -> None:
    shown = CliRunner().invoke(app, ["show", "rebalances", "--help"]).output
    assert shown.rstrip().splitlines()[-3:] == [
        "  Examples:",
        *(f"    rebalance-monitor {line}" for line in EXAMPLES["show rebalances"]),
    ]


@pytest.mark.parametrize(
    ("shell", "typed"), [("bash", "rebalance-monitor show ep"), ("zsh", "rebalance-monitor show ep")]
)
def test_a_shell_completes_commands(shell: str, typed: str) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": "2", "_TYPER_COMPLETE_ARGS": typed}
    script = "from streaming.commands.app import app; app(prog_name='rebalance-monitor')"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"_REBALANCE_MONITOR_COMPLETE": f"complete_{shell}", **words},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "episodes" in done.stdout, done.stderr
    assert "groups" not in done.stdout
