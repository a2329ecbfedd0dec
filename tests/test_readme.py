"""The README: what it names is there, and its queries run on the tables that a fleet leaves."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest
from typer.testing import CliRunner

from streaming.commands.app import app
from streaming.tables import schema
from streaming.tables.arrow_rows import to_arrow

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    """Return the code blocks of one language."""
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("query", blocks("sql"))
def test_the_queries_run(query: str) -> None:
    with duckdb.connect() as connection:
        for table in (each for each in vars(schema).values() if isinstance(each, schema.Table)):
            connection.register(table.name, table.schema.empty_table())
        assert connection.sql(query).fetchall() == []


def test_queries_name_the_broker_of_each_queue() -> None:
    """Without it queues of RocketMQ, which each broker numbers from 0, seem to have several owners."""
    of_owners = [query for query in blocks("sql") if "FROM assignments" in query]
    assert of_owners
    assert [query for query in of_owners if "broker" not in query.partition("FROM assignments")[0]] == []


def test_what_is_wrong_begins_with_the_worst() -> None:
    (query,) = [query for query in blocks("sql") if "severity" in query]
    rows = [{"severity": severity} for severity in ("info", "critical", "warning")]
    with duckdb.connect() as connection:
        connection.register("findings", to_arrow(schema.FINDINGS, rows))
        assert [row[0] for row in connection.execute(query).fetchall()] == ["critical", "warning", "info"]


def test_every_table_is_described() -> None:
    for table in (each for each in vars(schema).values() if isinstance(each, schema.Table)):
        assert f"| `{table.name}` |" in README


@pytest.mark.parametrize("file", sorted(set(re.findall(r"`((?:docs|conf)/[\w.]+)`", README))))
def test_every_file_that_is_named_is_there(file: str) -> None:
    assert (ROOT / file).is_file()


def test_every_command_that_is_named_is_there() -> None:
    for line in re.findall(r"\.venv/bin/rebalance-monitor ([^\\`\n]*)", README):
        parts = [part for part in line.split("#")[0].split() if part]
        command = parts[: 2 if parts and parts[0] in ("show", "state") else 1]
        if command == [] or command[0].startswith("-"):
            continue
        result = CliRunner().invoke(app, [*command, "--help"])
        assert result.exit_code == 0, line
        for option in re.findall(r"--[\w-]+", line.split("#")[0]):
            assert option in result.output, f"{option} of {line}"


@pytest.mark.parametrize("target", sorted(set(re.findall(r"`?make ([\w-]+)", README))))
def test_every_target_that_is_named_is_there(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
