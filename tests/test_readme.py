"""The README, and the pages that go on from it: what they name is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streaming.commands.app import app
from streaming.tables.schema import TABLES

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = ("README.md", "CONTRIBUTING.md", "docs/operating.md", "docs/queries.md")
TEXTS = "".join((ROOT / name).read_text(encoding="utf-8") for name in PAGES)
# A command line, with the lines that a backslash continues.
_COMMAND = re.compile(r"(?:^|\.venv/bin/|`)rebalance-monitor ((?:\\\n|[^`\n])*)", re.MULTILINE)


def commands() -> list[str]:
    """Return each command line that the pages show, without comments."""
    lines = [" ".join(line.replace("\\\n", " ").split("#")[0].split()) for line in _COMMAND.findall(TEXTS)]
    return sorted({line for line in lines if line})


def test_the_readme_is_short() -> None:
    assert len(README.split()) <= 1_000


def test_the_readme_fits_a_terminal() -> None:
    assert [line for line in README.splitlines() if len(line) > 80 and not line.startswith("![")] == []


def test_the_readme_names_every_table() -> None:
    assert [name for name in TABLES if f"| `{name}` |" not in README] == []


@pytest.mark.parametrize("file", sorted(set(re.findall(r"`((?:docs|conf)/[\w./-]+)`", TEXTS))))
def test_every_file_that_is_named_is_there(file: str) -> None:
    assert (ROOT / file).exists()


def test_there_are_commands_to_try() -> None:
    assert len(commands()) > 30


@pytest.mark.parametrize("line", commands())
def test_every_command_that_is_named_is_there(line: str) -> None:
    parts = line.split()
    command = [] if parts[0].startswith("-") else parts[: 2 if parts[0] in ("show", "state") else 1]
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert [option for option in re.findall(r"--[\w-]+", line) if option not in result.output] == []


@pytest.mark.parametrize("target", sorted(set(re.findall(r"`?make ([\w-]+)", TEXTS))))
def test_every_target_that_is_named_is_there(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
