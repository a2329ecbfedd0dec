"""Every query of the README and of the page of queries runs where the page says that it runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot
from pyspark.sql.pandas.types import from_arrow_schema

from streaming.tables.arrow_rows import to_arrow
from streaming.tables.replay_tables import EVERY_TABLE
from streaming.tables.schema import FINDINGS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "queries.md").read_text(encoding="utf-8")
_OF_DUCKDB_ALONE = "-- DuckDB\n"


def blocks(text: str) -> list[str]:
    """Return the queries of a page."""
    return re.findall(r"^```sql\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


ON_PAGE = blocks(PAGE)
QUERIES = list(dict.fromkeys([*blocks((ROOT / "README.md").read_text(encoding="utf-8")), *ON_PAGE]))
PORTABLE = [query for query in QUERIES if not query.startswith(_OF_DUCKDB_ALONE)]


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with all tables, without rows."""
    with duckdb.connect() as opened:
        for table in EVERY_TABLE.values():
            opened.register(table.name, table.schema.empty_table())
        yield opened


@pytest.mark.parametrize("query", QUERIES)
def test_the_queries_run(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    assert connection.sql(query).fetchall() == []


@pytest.mark.spark
def test_the_queries_run_in_spark(spark: Any) -> None:
    for table in EVERY_TABLE.values():
        spark.createDataFrame([], from_arrow_schema(table.schema)).createOrReplaceTempView(table.name)
    assert [query for query in PORTABLE if spark.sql(query).collect()] == []


@pytest.mark.parametrize("query", PORTABLE)
def test_the_grammar_of_trino_takes_the_queries(query: str) -> None:
    (tree,) = sqlglot.parse(query, read="trino")
    assert tree is not None
    assert "GROUP BY ALL" not in query


def test_one_query_is_of_duckdb_alone() -> None:
    assert len(QUERIES) == len(PORTABLE) + 1


def test_the_readme_shows_two_queries_of_the_page() -> None:
    assert len(QUERIES) == len(ON_PAGE)
    assert len(blocks((ROOT / "README.md").read_text(encoding="utf-8"))) == 2


def test_the_lines_for_python_run(
    story_tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "tables").symlink_to(story_tables)
    monkeypatch.chdir(tmp_path)
    lines = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    opening, following = (text for text in lines if "DeltaTable(" in text)
    exec(compile(opening, "queries.md", "exec"), {})
    assert "trigger" in capsys.readouterr().out
    written = {log.parent.name for log in story_tables.glob("*/_delta_log")}
    assert {"rebalances", "findings"} < written
    assert {name for (name,) in duckdb.sql("SELECT view_name FROM duckdb_views()").fetchall()} >= written
    names: dict[str, Any] = {}
    exec(compile(following, "queries.md", "exec"), names)
    assert names["rows"].num_rows > 0


def test_queries_name_the_broker_of_each_queue() -> None:
    """Without the broker, a queue of RocketMQ seems to have several owners: each broker numbers its queues from 0."""
    of_queues = [query for query in QUERIES if re.search(r"FROM (assignments|queue_progress)", query)]
    assert len(of_queues) > 2
    assert [query for query in of_queues if "broker" not in query.partition("FROM")[0]] == []


def test_the_query_of_findings_lists_the_worst_first() -> None:
    (query,) = [query for query in QUERIES if "severity" in query]
    rows = [{"severity": severity} for severity in ("info", "critical", "warning")]
    with duckdb.connect() as opened:
        opened.register("findings", to_arrow(FINDINGS, rows))
        assert [row[0] for row in opened.execute(query).fetchall()] == ["critical", "warning", "info"]


def test_every_table_is_described_with_columns_that_it_has() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", PAGE, re.MULTILINE))
    assert set(rows) == set(EVERY_TABLE)
    # Words in code that are not columns: a kind, and values of a column.
    others = {"queues_reassigned", "computed", "reported"}
    for name, text in rows.items():
        named = set(re.findall(r"`(\w+)`", text)) - others
        assert named <= set(EVERY_TABLE[name].schema.names), name
