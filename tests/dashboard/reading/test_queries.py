"""Queries see the tables that they are given, and nothing else; they end in time."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from dashboard.reading.queries import Queries, QueryTimeoutError


@pytest.fixture(scope="module")
def queries() -> Queries:
    return Queries(memory_bytes=128 << 20, timeout_ms=300)


def test_a_query_reads_its_tables_and_takes_values_as_parameters(queries: Queries) -> None:
    rows = pa.table({"name": ["a", "b'; drop table groups; --"], "number": [1, 2]})
    found = queries.run("select number from groups where name = ?", {"groups": rows}, ["b'; drop table groups; --"])
    assert found.to_pylist() == [{"number": 2}]


def test_a_table_of_one_query_is_unknown_to_the_next(queries: Queries) -> None:
    queries.run("select * from once", {"once": pa.table({"a": [1]})})
    with pytest.raises(duckdb.CatalogException):
        queries.run("select * from once", {})


@pytest.mark.parametrize(
    "sql",
    [
        "select * from read_csv('/etc/hostname')",
        "select * from read_text('/etc/hostname')",
        "select * from 'http://127.0.0.1/x.parquet'",
    ],
)
def test_no_query_reaches_files_or_network(queries: Queries, sql: str) -> None:
    with pytest.raises(duckdb.Error):
        queries.run(sql, {})


def test_a_query_that_takes_too_long_is_interrupted(queries: Queries) -> None:
    with pytest.raises(QueryTimeoutError):
        queries.run("select count(*) from range(1000000000000) t(a) where a % 7 = 3", {})
    assert queries.run("select 1 as one", {}).to_pylist() == [{"one": 1}]
