"""Columns that several tables have: one type and one comment wherever they are."""

from __future__ import annotations

import pyarrow as pa
import pytest

from streaming.tables import shared_columns
from streaming.tables.columns import LONG, Column
from streaming.tables.schema import TABLES
from streaming.tables.shared_columns import costs, described

SHARED = [value for value in vars(shared_columns).values() if isinstance(value, Column)]


@pytest.mark.parametrize("column", SHARED, ids=lambda column: column.name)
def test_a_shared_column_is_in_several_tables(column: Column) -> None:
    assert sum(column in table.columns for table in TABLES.values()) > 1


def test_a_column_of_one_name_has_one_type_in_all_tables() -> None:
    types: dict[str, set[pa.DataType]] = {}
    for table in TABLES.values():
        for column in table.columns:
            types.setdefault(column.name, set()).add(column.type)
    assert {column.name: types[column.name] for column in SHARED} == {column.name: {column.type} for column in SHARED}


def test_costs_name_the_moves_that_they_are_of() -> None:
    assert [(column.name, column.type) for column in costs("; summed")] == [
        ("repeated_messages", LONG),
        ("repeated_estimated_messages", LONG),
        ("waiting_messages", LONG),
        ("waiting_estimated_messages", LONG),
    ]
    assert all(column.comment.endswith("; summed") for column in costs("; summed"))


def test_a_description_has_the_type_of_each_field() -> None:
    host, subscriptions = described("host", "subscriptions")
    assert (host.type, subscriptions.type) == (pa.string(), pa.list_(pa.string()))
    assert host.comment != subscriptions.comment
