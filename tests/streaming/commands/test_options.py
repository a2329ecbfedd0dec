"""The options that commands share: folders, times and spans as people write them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer
from typer.testing import CliRunner

from streaming.commands.options import ConfigOption, span_ms, tables_root, time_ms

if TYPE_CHECKING:
    from tests.kit.s3 import S3Server


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


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["demo", "--folder", "s3a://lake/demo"], "s3a://lake/demo: is on a store"),
        (["demo", "--folder", "s3a:/demo"], "s3a:/demo: is no URI"),
        (["simulate", "--out", "gs://lake/fleet"], "gs://lake/fleet: is on a store"),
        (["run", "--events", "in", "--tables", "s3a:/lake"], "s3a:/lake: is no URI"),
        (["run", "--events", "in", "--checkpoint", "ftp://host/c"], "ftp://host/c: has the scheme ftp"),
        (["run", "--events", "in", "--checkpoint", "s3a:/c"], "s3a:/c: is no URI"),
        (["run", "--events", "dbfs:/in"], "dbfs:/in: has the scheme dbfs"),
        (["state", "export", "--out", "dbfs:/out"], "dbfs:/out: has the scheme dbfs"),
        (["state", "show", "--checkpoint", "s3:lake"], "s3:lake: is no URI"),
        (["collect", "--kafka", "h:1", "--cluster", "c", "--out", "s3a:/out"], "s3a:/out: is no URI"),
        (["show", "groups", "--tables", "s4://lake"], "s4://lake: has the scheme s4"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_place_is_refused_by_name_and_becomes_no_folder(
    arguments: list[str],
    problem: str,
    complaint: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert problem in " ".join(complaint(*arguments).replace("│", " ").split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.broker
def test_reading_commands_name_what_is_wrong_with_a_store(
    s3: S3Server, complaint: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = s3.folder(monkeypatch)
    assert "holds no tables of the monitor yet" in complaint("show", "groups", "--tables", folder)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    for command in (["show", "groups"], ["explain", "x"], ["who-owned", "t", "0"], ["optimize"]):
        output = complaint(*command, "--tables", folder)
        assert f"--tables {folder}: access is refused (SignatureDoesNotMatch" in output
        assert "hush" not in output
