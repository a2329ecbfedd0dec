"""The tables in Spark SQL."""

from __future__ import annotations

import pytest

from streaming.tables.schema import QUEUES, TABLES, TRIGGERS
from streaming.tables.spark_sql import ddl, sql_type


def test_nested_types_are_spelt_out() -> None:
    assert sql_type(QUEUES) == "ARRAY<STRUCT<`broker`: STRING, `queue_id`: BIGINT, `racks`: ARRAY<STRING>>>"
    assert sql_type(TRIGGERS).startswith("ARRAY<STRUCT<`kind`: STRING")


@pytest.mark.parametrize("name", sorted(TABLES))
def test_every_column_has_its_type_and_comment(name: str) -> None:
    sql = ddl(TABLES[name], f"lake.monitor.{name}")
    assert sql.startswith(f"CREATE TABLE IF NOT EXISTS lake.monitor.{name} (")
    assert sql.count(" COMMENT ") == len(TABLES[name].columns)
    for column in TABLES[name].columns:
        assert f"`{column.name}` {sql_type(column.type)} COMMENT '" in sql
