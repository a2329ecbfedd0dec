"""The options that commands share: folders, times and spans as people write them."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest
import typer
from typer.testing import CliRunner

from streaming.commands.app import run_app
from streaming.commands.options import ConfigOption, span_ms, tables_root, time_ms
from streaming.settings.locations import without_key

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


# Every option that names a place; the place comes after it.
_READING = [
    *(
        ["show", "groups"],
        ["show", "group", "g"],
        ["who-owned", "t", "0"],
        ["explain", "x"],
        ["query", "most-rebalances"],
    ),
    *(["serve", "--port", "0"], ["alerts", "--once"], ["check"], ["optimize"]),
]
_COLLECT = ["collect", "--kafka", "127.0.0.1:1", "--cluster", "c", "--once"]
_OF_STORES = [
    *([*command, "--tables"] for command in _READING),
    *(["run", "--events", ".", option] for option in ("--tables", "--checkpoint")),
    *(["run", "--events"], ["state", "show", "--checkpoint"], ["state", "rollback", "--checkpoint"]),
    *(["state", "export", "--out", "out", "--checkpoint"], ["state", "export", "--out"], [*_COLLECT, "--out"]),
]
_LOCAL = [
    *(["simulate", "--out"], ["pack", "--out"], ["demo", "--folder"]),
    *([*_COLLECT, "--out", "kafka:127.0.0.1:1/t", "--checkpoint"], [*_COLLECT, "--out", "out", "--kafka-log"]),
]
_NO_PLACES = [
    *(
        ("s4://lake/t", "has the scheme s4"),
        ("dbfs:/t", "has the scheme dbfs"),
        ("s3a:/t", "is not a URI: write s3://"),
    ),
    *(("s3:///t", "names no bucket"), ("s3://my bucket/t", "names no bucket"), ("hdfs:///t", "names no name node")),
    *(
        ("abfss://account/t", "names no container"),
        ("gs:lake", "is not a URI: write gs://"),
        ("s3://lake//t", "not a name"),
    ),
    *(("C:\\t", "is a path of Windows"), ("~/t", "begins with ~"), ("file://host/t", "names a host")),
    *(("kafka:host:1/t", "names a Kafka topic"), ("s3://AKIA:hush@lake/t", "holds a password or key")),
]


_WITH_A_KEY = _NO_PLACES[-1]


def _commands_and_places() -> Iterator[tuple[list[str], str, str]]:
    """Yield each command with the key and with another place, and each place with a command of either kind."""
    for number, command in enumerate([*_OF_STORES, *_LOCAL]):
        yield command, *_WITH_A_KEY
        yield command, *_NO_PLACES[number % 12]
    for place in _NO_PLACES[:-1]:
        yield _OF_STORES[0], *place
        yield _LOCAL[0], *place


@pytest.mark.parametrize(("command", "place", "problem"), list(_commands_and_places()))
def test_an_invalid_place_is_refused_by_name_and_creates_no_folder(
    command: list[str], place: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = _run(command, place)
    assert problem in refused
    assert without_key(place) in refused
    assert "hush" not in refused
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", _LOCAL, ids=" ".join)
def test_local_paths_cannot_be_on_a_store(command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "s3://lake/t: is on a store; " in _run(command, "s3://lake/t")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [command for command in _OF_STORES if "--tables" not in command], ids=" ".join)
def test_a_schema_of_a_catalogue_is_no_folder(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "write ./main.monitor" in _run(command, "main.monitor")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", _OF_STORES, ids=" ".join)
def test_each_command_names_the_problem_of_a_store(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "minio:9000")
    refused = _run(command, "s3a://lake/t")
    assert f"{command[-1]} s3://lake/t: the variable AWS_ENDPOINT_URL is 'minio:9000'" in refused
    assert not list(tmp_path.glob("s3*"))


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "aws_endpoint_url"])
@pytest.mark.parametrize("command", _OF_STORES, ids=" ".join)
def test_options_of_stores_in_a_settings_file_are_read_by_each_command(
    command: list[str], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _forget_at_the_end(monkeypatch, "AWS_ENDPOINT_URL")
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(f'[storage.options]\n{name} = "minio:9000"\n')
    refused = _run([*command[:-1], "--config", "mine.toml", command[-1]], "s3a://lake/t")
    assert f"{command[-1]} s3://lake/t: the variable AWS_ENDPOINT_URL is 'minio:9000'" in refused


def _forget_at_the_end(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    """Restore a variable that a command sets, after the test."""
    monkeypatch.setenv(variable, "")
    monkeypatch.delenv(variable)


def _run(command: list[str], place: str) -> str:
    """Return the error that a command writes, as one line."""
    if command[:2] == ["state", "export"] and command[-1] == "--out":
        command = [*command[:-1], "--checkpoint", "checkpoint", "--out"]
    monitor = mock.patch.object(sys, "argv", ["rebalance-monitor", *command, place])
    out, err = io.StringIO(), io.StringIO()
    with monitor, redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as end:
        run_app()
    assert end.value.code == (3 if command[0] == "check" else 2), err.getvalue()
    return " ".join((out.getvalue() + err.getvalue()).replace("│", " ").split())


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
