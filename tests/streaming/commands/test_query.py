"""The command `query`: the list of questions, their answers, their SQL."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from dashboard.questions.catalog import questions
from tests.streaming.views.story import FIRST, SECOND, THIRD, json_of, run


def test_alone_it_lists_every_question(tables: Path) -> None:
    result = run(tables, "query")
    assert result.exit_code == 0
    for question in questions().values():
        assert f"{question.name} " in result.stdout
        assert question.title in result.stdout
    assert {row["name"] for row in json_of(tables, "query")} == set(questions())


def test_an_answer_is_a_table_for_people_and_lines_for_programs(tables: Path) -> None:
    result = run(tables, "query", "most-rebalances")
    assert result.stdout.splitlines()[0].split() == [
        *("CLUSTER", "GROUP-ID", "REBALANCES", "FAILED", "QUEUES-MOVED", "LAST-REBALANCE-AT")
    ]
    (row,) = json_of(tables, "query", "most-rebalances")
    assert (row["group_id"], row["rebalances"], row["queues_moved"]) == ("orders", 3, 2)
    assert str(row["last_rebalance_at"]).endswith("Z")


def test_the_owner_of_a_queue_at_a_time(tables: Path) -> None:
    command = ("query", "who-owned", "--topic", "orders", "--queue", "1", "--at", "2026-01-01T00:00:05Z")
    assert [row["member_id"] for row in json_of(tables, *command)] == ["a"]


def test_causes_of_a_group_newest_first(tables: Path) -> None:
    rows = json_of(tables, "query", "causes-of-a-group", "-g", "orders")
    assert [row["rebalance_id"] for row in rows] == [THIRD, SECOND, FIRST]
    assert [
        row["rebalance_id"] for row in json_of(tables, "query", "causes-of-a-group", "-g", "orders", "-n", "1")
    ] == [THIRD]


def test_the_sql_has_its_values_and_is_not_run(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    result = run(nowhere, "query", "most-rebalances", "--sql", "duckdb", "--cluster", "it's")
    assert result.exit_code == 0
    assert "cluster = 'it''s'" in result.stdout
    assert [row[0] for row in duckdb.sql(f"SELECT json_serialize_sql($${result.stdout}$$)").fetchall()]
    assert json.loads(duckdb.sql(f"SELECT json_serialize_sql($${result.stdout}$$)").fetchall()[0][0])["error"] is False


@pytest.mark.parametrize(
    ("arguments", "exit_code", "sentence"),
    [
        (["query", "nonsense"], 2, "there is no question 'nonsense'"),
        (["query", "who-ownd"], 2, "did you mean who-owned?"),
        (["query", "most-rebalances", "--cluster", "c9"], 2, "there is no cluster c9"),
        (["query", "who-owned", "--topic", "order", "--queue", "0"], 2, "did you mean orders?"),
        (["query", "who-owned", "--topic", "orders", "--queue", "7"], 2, "its queues are 0 to"),
        (["query", "who-owned"], 2, "needs topic, queue"),
        (["query", "idle-capacity", "--topic", "t"], 2, "takes cluster, limit, not topic"),
        (["query", "most-rebalances", "--since", "soon"], 2, "'soon' is not a time"),
        (["query", "most-rebalances", "--sql", "oracle"], 2, "duckdb, spark, trino"),
    ],
)
def test_each_mistake_has_its_sentence_and_exit_code(
    tables: Path, arguments: list[str], exit_code: int, sentence: str
) -> None:
    result = run(tables, *arguments)
    assert (result.exit_code, sentence in " ".join(result.stderr.replace("│", "").split())) == (exit_code, True)
    assert result.stdout == ""


def test_without_tables_it_fails_with_a_sentence(tmp_path: Path) -> None:
    result = run(tmp_path, "query", "most-rebalances")
    assert (result.exit_code, "holds no tables" in result.stderr) == (2, True)
