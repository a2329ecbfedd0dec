"""The page of a planned change says what the command `what-if` says, and takes what it takes."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from dashboard.app import create_app
from streaming.commands.app import app
from streaming.settings.model import Dashboard
from streaming.terminal.format import queues_text
from tests.streaming.commands.test_advise import write_savings


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("planned")
    write_savings(found)
    return found


@pytest.fixture(scope="module")
def planned(root: Path, settings: Dashboard) -> Iterator[TestClient]:
    with TestClient(create_app(root, settings)) as test_client:
        yield test_client


def page(client: TestClient, status: int = 200, **asked: Any) -> str:
    answer = client.get(f"/what-if?{urlencode({'cluster': 'shop', 'group': 'orders'} | asked)}")
    assert answer.status_code == status, answer.text
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", answer.text)).split())


def command(root: Path, *arguments: str) -> Any:
    return CliRunner().invoke(app, ["what-if", "--tables", str(root), "-g", "orders", *arguments])


@pytest.mark.parametrize(
    ("asked", "arguments"),
    [
        ({"add": "2"}, ["--add", "2"]),
        ({"remove": "a-1"}, ["--remove", "a-1"]),
        ({"remove": "1", "strategy": "AVG_BY_CIRCLE"}, ["--remove", "1", "--strategy", "AVG_BY_CIRCLE"]),
        ({"lose_host": "10.0.0.2"}, ["--lose-host", "10.0.0.2"]),
        ({"queues": "t=70", "add": "1"}, ["--queues", "t=70", "--add", "1"]),
        ({"rolling_restart": "yes", "at_a_time": "2"}, ["--rolling-restart", "--at-a-time", "2"]),
        ({"add": "1", "like": "b-1"}, ["--add", "1", "--like", "b-1"]),
    ],
)
def test_it_says_what_the_command_says(
    root: Path, planned: TestClient, asked: Mapping[str, str], arguments: list[str]
) -> None:
    said = command(root, *arguments)
    assert said.exit_code == 0, said.stderr
    found = page(planned, **asked)
    for line in said.stdout.splitlines():
        if line.startswith(("Stands still: ", "Read twice: ", "Waiting: ", "Moves: ")):
            assert line in found
        if line.startswith("Assumed: "):
            assert line.removeprefix("Assumed: ") in found
    row = json.loads(command(root, *arguments, "--json").stdout)
    assert f"Queues moved {row['queues_moved']:,} " in found
    for member in row["members"]:
        sides = [
            "–" if queues is None else f"{len(queues)}: {queues_text(queues)}" if queues else "none"
            for queues in (member["before"], member["after"])
        ]
        assert f"{sides[0][:60]}" in found
        assert f"{sides[1][:60]}" in found


def test_all_strategies_are_compared(root: Path, planned: TestClient) -> None:
    found = page(planned, strategy="all", add="1")
    rows = [json.loads(line) for line in command(root, "--strategy", "all", "--add", "1", "--json").stdout.splitlines()]
    assert len(rows) > 2
    for row in rows:
        if row["error"] is None:
            assert f"{row['strategy']} {row['queues_switched']} {row['queues_moved']} {row['queues_stopped']}" in found


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"like": "a-1"}, "--like: only with --add"),
        ({"add": "-1"}, "add: '-1' is no number from 0 to 1,000"),
        ({"add": "1001"}, "add: '1001' is no number from 0 to 1,000"),
        ({"rolling_restart": "perhaps"}, "rolling_restart: 'perhaps' is not yes or no"),
        ({"queues": "t"}, "--queues is TOPIC=N, e.g. orders=24, not 't'"),
        ({"remove": "z"}, "group orders has no member z"),
        ({"lose_host": "10.9.9.9"}, "no member of orders is on 10.9.9.9"),
        ({"strategy": "AVERAGE"}, "RocketMQ has no strategy AVERAGE"),
        ({"add": "1", "at": "soon"}, "at: "),
        ({"remove": ",".join(f"m{number}" for number in range(101))}, "remove: at most 100 names here, not 101"),
    ],
)
def test_a_mistake_is_named_above_the_form(planned: TestClient, asked: dict[str, str], said: str) -> None:
    answer = planned.get(f"/what-if?{urlencode({'cluster': 'shop', 'group': 'orders'} | asked)}")
    (alert,) = re.findall(r'role="alert">(.*?)</p>', answer.text)
    assert said in html.unescape(re.sub(r"<[^>]+>", "", alert))
    assert '<form class="filters change"' in answer.text


def test_an_error_has_the_words_of_the_command(root: Path, planned: TestClient) -> None:
    for name, value in (("remove", "z"), ("lose_host", "10.9.9.9"), ("strategy", "AVERAGE"), ("like", "a-1")):
        said = command(root, f"--{name.replace('_', '-')}", value).stderr.strip().removeprefix("error: ")
        assert said.splitlines()[0] in page(planned, **{name: value})


def test_an_unknown_group_has_no_form(planned: TestClient) -> None:
    assert "there is no group ordres" in page(planned, 404, group="ordres", add="1")
    assert planned.get("/what-if?cluster=shop").status_code == 400
    assert "does not take 'colour'" in page(planned, 400, colour="red")


def test_the_page_of_a_group_has_the_form(planned: TestClient) -> None:
    found = planned.get("/group?cluster=shop&group=orders").text
    assert '<section id="what-if">' in found
    assert '<input type="hidden" name="group" value="orders">' in found
    assert "<option>CONSISTENT_HASH</option>" in found
    # RocketMQ has no static members.
    assert 'name="static"' not in found


def test_it_follows_no_table(planned: TestClient) -> None:
    (depends,) = re.findall(r'data-depends="([^"]*)"', planned.get("/what-if?group=orders&add=1").text)
    assert depends == "liveness"
