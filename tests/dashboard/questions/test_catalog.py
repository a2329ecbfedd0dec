"""The ready questions: their texts in three dialects, and what may be given to them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
import sqlglot
from sqlglot import expressions

from dashboard.questions.catalog import DIALECTS, PARAMETERS, Dialect, Question, question, questions
from streaming.tables.errors import NotFoundError
from streaming.tables.schema import TABLES

HOSTILE = "it's \\' OR 1=1 -- \n:limit"


def needed(asked: Question, **more: object) -> Mapping[str, object]:
    given: dict[str, object] = {"topic": "orders", "queue": 3, **more}
    return {name: value for name, value in given.items() if name in asked.parameters}


def test_there_are_questions_each_with_title_explanation_and_parameters() -> None:
    assert len(questions()) == 25
    for asked in questions().values():
        assert asked.title.endswith("?")
        assert len(asked.explanation) > 60
        assert set(asked.parameters) <= set(PARAMETERS)
        assert "limit" in asked.parameters
        assert list(asked.values(needed(asked))) == list(asked.parameters)
    assert len({asked.title for asked in questions().values()}) == 25


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", questions())
def test_each_text_is_one_query_of_its_dialect_over_tables_and_columns_that_there_are(
    name: str, dialect: Dialect
) -> None:
    asked = question(name)
    (parsed,) = sqlglot.parse(asked.bound(dialect, needed(asked)), read=dialect, error_level=sqlglot.ErrorLevel.RAISE)
    assert isinstance(parsed, expressions.Select)
    tables = {table.name for table in parsed.find_all(expressions.Table) if table.name != "causes"}
    tables -= {part.alias for part in parsed.find_all(expressions.CTE)} | {"names"}
    assert tables == set(asked.tables)
    assert tables <= set(TABLES)


@pytest.mark.parametrize("name", questions())
def test_values_with_quotes_stay_one_text_in_every_dialect(name: str) -> None:
    asked = question(name)
    for dialect in DIALECTS:
        parsed = sqlglot.parse_one(asked.bound(dialect, needed(asked, cluster=HOSTILE)), read=dialect)
        texts = [literal.this for literal in parsed.find_all(expressions.Literal) if literal.is_string]
        assert texts.count(HOSTILE) == asked.texts[dialect].count(":cluster")


def test_a_text_is_the_same_in_all_dialects_where_that_is_possible() -> None:
    of_pods = {"cost-by-workload", "cost-by-node", "cost-by-image"}
    differing = {asked.name for asked in questions().values() if len(set(asked.texts.values())) > 1}
    in_time = {"finding-durations", "short-sessions", "lag-in-time"}
    assert differing == {"causes-of-a-group", "members-that-cause", *in_time, *of_pods}


def test_a_text_for_spark_differs_from_that_for_duckdb_in_one_function() -> None:
    for name in ("finding-durations", "short-sessions", "lag-in-time"):
        other = sqlglot.transpile(question(name).texts["duckdb"], read="duckdb", write="spark")[0]
        own = sqlglot.transpile(question(name).texts["spark"], read="spark", write="spark")[0]
        # sqlglot writes out the two systems' defaults: times have no zone, and nulls have a place in the order.
        plain = [re.sub(r"_NTZ|_LTZ| NULLS (FIRST|LAST)", "", text) for text in (own, other)]
        assert plain[0].replace("TIMESTAMPDIFF(", "DATEDIFF(") == plain[1]


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("most-rebalances", {"topic": "t"}, "takes since, until, cluster, limit, not topic"),
        ("who-owned", {"topic": "t"}, "needs queue"),
        ("who-owned", {}, "needs topic, queue"),
        ("most-rebalances", {"limit": 0}, "limit"),
        ("most-rebalances", {"limit": 10**9}, "limit"),
        ("most-rebalances", {"limit": True}, "limit"),
        ("most-rebalances", {"limit": "1; DROP TABLE rebalances"}, "limit"),
        ("most-rebalances", {"since": "yesterday"}, "since"),
        ("most-rebalances", {"since": 10**18}, "since"),
        ("most-rebalances", {"cluster": 7}, "cluster"),
        ("who-owned", {"topic": "t", "queue": -2}, "queue"),
    ],
)
def test_wrong_parameters_are_refused_by_name(name: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        question(name).values(given)


def test_an_unknown_question_is_not_found() -> None:
    with pytest.raises(NotFoundError, match="`query` alone lists them"):
        question("../../etc/passwd")


def test_values_are_bound_by_place_and_never_become_text() -> None:
    text, values = question("most-rebalances").positional({"cluster": HOSTILE, "since": 1_767_225_600_007})
    assert text.count("?") == len(values) == 5
    assert values == ["2026-01-01 00:00:00.007", "2100-01-01 00:00:00.000", HOSTILE, HOSTILE, 100]
    assert HOSTILE not in text
