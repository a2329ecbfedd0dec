"""Rows as dicts and as columns: the same values, times as milliseconds and as TIMESTAMPs."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from streaming.tables.arrow_rows import as_schema, from_arrow, from_arrow_columns, to_arrow
from streaming.tables.schema import GROUPS, TABLES, TIME
from tests.streaming.tables.journals import T0


def test_times_go_in_and_out_as_milliseconds() -> None:
    table = TABLES["topics"]
    row = {
        "cluster": "c1",
        "topic": "t",
        "queue_count": 1,
        "queues": [{"broker": "b", "queue_id": 0, "racks": ["r1", "r2"]}],
        "valid_from": T0 + 7,
        "valid_to": None,
        "topic_id": "b4aNrJ45RLuOpWrXbYghEA",
    }
    assert from_arrow(table, to_arrow(table, [row])) == [row]
    assert str(to_arrow(table, [row])["valid_from"][0].as_py()) == "2026-01-01 00:00:00.007000+00:00"


@pytest.mark.parametrize("name", sorted(TABLES))
def test_fields_that_a_row_lacks_are_null_and_unknown_ones_are_left_out(name: str) -> None:
    table = TABLES[name]
    columns = to_arrow(table, [{"note": "of no column"}])
    assert columns.schema == table.schema
    assert from_arrow(table, columns) == [dict.fromkeys(table.names)]
    assert to_arrow(table, []).schema == table.schema
    assert from_arrow(table, to_arrow(table, [])) == []


def test_columns_that_are_not_there_are_left_out_and_those_of_others_too() -> None:
    columns = pa.table({"note": ["n"], "members": [3], "cluster": ["c1"]})
    assert from_arrow(GROUPS, columns) == [{"cluster": "c1", "members": 3}]


@pytest.mark.parametrize("time", [0, 1, T0 + 999, -1, -T0, None])
def test_every_millisecond_is_kept_before_1970_too(time: int | None) -> None:
    columns = to_arrow(TABLES["topics"], [{"valid_from": time}])
    assert columns["valid_from"].type == TIME
    assert from_arrow_columns(columns, ["valid_from"]) == [[time]]
    if time is not None:
        assert pc.cast(columns["valid_from"], pa.int64()).to_pylist() == [time * 1_000]


def test_times_finer_than_milliseconds_are_truncated() -> None:
    columns = pa.table({"valid_from": pa.array([1_999, 2_000], TIME)})
    assert from_arrow_columns(columns, ["valid_from"]) == [[1, 2]]


def test_columns_are_lists_in_the_order_in_which_they_are_named() -> None:
    columns = pa.table({"a": [1, 2], "b": pa.array([5_000, None], TIME)})
    assert from_arrow_columns(columns, ["b", "a"]) == [[5, None], [1, 2]]
    assert from_arrow_columns(columns, []) == []


def test_rows_of_an_older_release_get_the_columns_that_they_lack() -> None:
    older = pa.table({"b": pa.array([1], pa.int32()), "of others": ["x"]})
    schema = pa.schema([("a", pa.string()), ("b", pa.int64())])
    assert as_schema(older, schema).schema == schema
    assert as_schema(older, schema).to_pylist() == [{"a": None, "b": 1}]
    with pytest.raises(pa.ArrowInvalid):
        as_schema(pa.table({"a": ["x"], "b": ["no number"]}), schema)
