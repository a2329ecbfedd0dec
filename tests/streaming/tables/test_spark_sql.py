"""The tables in Spark SQL."""

from __future__ import annotations

import pytest

from streaming.tables.journal_entries import RowFilter
from streaming.tables.predicates import predicate_of
from streaming.tables.replay_tables import EVERY_TABLE
from streaming.tables.schema import QUEUES, TRIGGERS
from streaming.tables.spark_sql import SPARK, ddl, sql_type


def test_nested_types_are_spelt_out() -> None:
    assert sql_type(QUEUES) == "ARRAY<STRUCT<`broker`: STRING, `queue_id`: BIGINT, `racks`: ARRAY<STRING>>>"
    assert sql_type(TRIGGERS).startswith("ARRAY<STRUCT<`kind`: STRING")


@pytest.mark.parametrize("name", sorted(EVERY_TABLE))
def test_every_column_has_its_type_and_comment(name: str) -> None:
    sql = ddl(EVERY_TABLE[name], f"lake.monitor.{name}")
    assert sql.startswith(f"CREATE TABLE IF NOT EXISTS lake.monitor.{name} (")
    assert sql.count(" COMMENT ") == len(EVERY_TABLE[name].columns)
    for column in EVERY_TABLE[name].columns:
        assert f"`{column.name}` {sql_type(column.type)} COMMENT '" in sql


def test_a_filter_names_files_by_texts_times_and_ends() -> None:
    wanted = RowFilter({"group_id": ["it's", "b"]}, {"minute": (1, 2)}, "valid_to", 3)
    assert predicate_of(wanted, SPARK) == (
        "`group_id` IN ('b', 'it\\'s') AND `minute` BETWEEN timestamp_millis(1) AND timestamp_millis(2)"
        " AND (`valid_to` IS NULL OR `valid_to` >= timestamp_millis(3))"
    )
