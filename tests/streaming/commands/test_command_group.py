"""Wrong arguments give errors of one shape; help is not cut; there is a version."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from streaming.commands.app import app
from streaming.settings.errors import SettingsError


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["shwo"], "there is no command shwo; did you mean show?"),
        (["xyzzy"], "there is no command xyzzy"),
        (["show", "gruops"], "there is no command gruops; did you mean groups"),
        (["show", "groups", "--clutser", "x"], "there is no option --clutser; did you mean --cluster?"),
        (["show", "groups", "--xyzzy"], "there is no option --xyzzy; --help lists them"),
        (["show", "group"], "GROUP is missing; --help explains it"),
        (["simulate"], "--out is missing; --help explains it"),
        (["simulate", "--out"], "option '--out' requires an argument"),
        (["who-owned", "t", "first"], "QUEUE: it must be a valid integer"),
        (["who-owned", "t", "-1"], "there is no option -1; --help lists them"),
        (["show", "rebalances", "-n", "0"], "--limit, -n: it must be greater than or equal to 1"),
        (["show", "rebalances", "--since", "noon"], "--since: 'noon' is not a time; write 15m or -2h (before now), "),
        (["check", "--at", "noon"], "--at: 'noon' is not a time"),
    ],
)
def test_every_mistake_is_one_line_of_one_shape(arguments: list[str], sentence: str) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == (3 if arguments[0] == "check" else 2)
    first, *others = result.stderr.splitlines()
    assert first.startswith(f"error: {sentence}")
    assert all(line.startswith("error: ") for line in others)


def test_mistakes_of_settings_have_the_same_shape(
    complaint: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REBALANCE_MONITOR_JOB__TABELS", "x")
    lines = complaint("show", "groups").splitlines()
    assert lines
    assert all(line.startswith("error: ") for line in lines)
    assert SettingsError(["a", "b"]).mistakes == ["a", "b"]


def test_a_list_of_commands_without_one_is_its_help() -> None:
    result = CliRunner().invoke(app, ["show"])
    assert result.exit_code == 2
    assert result.stderr.startswith("Usage: ")


@pytest.mark.parametrize("arguments", [["--help"], ["show", "--help"], ["state", "--help"]])
def test_help_has_whole_sentences_and_fits_80_columns(arguments: list[str]) -> None:
    text = CliRunner().invoke(app, arguments).stdout
    assert "…" not in text
    assert "..." not in text.partition("Commands:")[2]
    assert max(map(len, text.splitlines())) <= 80


def test_the_version_is_that_of_the_package() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"rebalance-monitor {version('rebalance-monitor')}\n")
