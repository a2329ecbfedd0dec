"""The options that commands share: folders, times and spans as people write them."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from streaming.commands.options import ConfigOption, span_ms, tables_root, time_ms


def test_the_tables_are_those_of_the_option_else_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REBALANCE_MONITOR_JOB__TABLES", "/of/settings")
    assert tables_root(Path("given")) == Path("given")
    assert tables_root(None) == Path("/of/settings")


def test_times_and_spans_are_read_where_they_were_given() -> None:
    assert (time_ms("--at", None), span_ms(None, "--for")) == (None, None)
    assert time_ms("--at", "2026-01-01T00:00:00.007Z") == 1_767_225_600_007
    assert span_ms("1.5s", "--for") == 1_500


def test_a_mistake_names_its_option() -> None:
    with pytest.raises(typer.BadParameter, match="--until: 'noon' is not a time"):
        time_ms("--until", "noon")
    with pytest.raises(typer.BadParameter) as caught:
        span_ms("soon", "--for")
    assert caught.value.param_hint == "--for"


@pytest.mark.parametrize("path", ["", " "])
def test_an_empty_path_is_refused_and_not_the_folder_in_which_the_command_runs(path: str) -> None:
    app = typer.Typer()

    @app.command()
    def show(config: ConfigOption = None) -> None:
        typer.echo(config)

    refused = CliRunner().invoke(app, ["--config", path])
    assert (refused.exit_code, "is empty" in refused.output) == (2, True)
    assert CliRunner().invoke(app, ["--config", "."]).stdout == ".\n"
