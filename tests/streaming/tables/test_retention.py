"""Old rows, as SQL and as counts; rows that still hold are never old."""

from __future__ import annotations

import json

import duckdb
import pyarrow as pa
import pytest

from streaming.tables.predicates import Dialect
from streaming.tables.replay_tables import EVERY_TABLE
from streaming.tables.retention import (
    DROPPED_BEFORE,
    RETENTIONS,
    Dropped,
    OldRows,
    condition,
    count_dropped,
    counting_sql,
    dropped_before,
    noted,
    to_drop,
)

DIALECT = Dialect(str, lambda text: "'" + text.replace("'", "''") + "'")
BY_GROUP = RETENTIONS["group_minutes"]


def minutes(*rows: tuple[str, str, int]) -> pa.Table:
    cluster, group_id, minute = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table({"cluster": cluster, "group_id": group_id, "minute": pa.array(minute, pa.int64())})


def found(old: OldRows, rows: pa.Table) -> tuple[Dropped, ...]:
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        counted = connection.sql(counting_sql(old, "rows", DIALECT)).to_arrow_table()
    return count_dropped(old, to_drop(old, counted))


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        ((("c", "g", 99),), 0),  # the only row is the last one
        ((("c", "g", 98), ("c", "g", 99)), 1),
        ((("c", "g", 99), ("c", "g", 100)), 0),  # what held at 100 began at 99 at the latest
        ((("c", "g", 98), ("c", "g", 99), ("c", "g", 100)), 1),
        ((("c", "deleted", 99),), 1),
        ((("c", "deleted", 100),), 0),
        ((("another", "g", 1), ("another", "g", 2)), 0),  # the age of this cluster's rows is not known
        ((), 0),
    ],
)
def test_the_last_row_of_a_group_stays_and_so_do_rows_from_the_bound_on(
    rows: tuple[tuple[str, str, int], ...], count: int
) -> None:
    old = OldRows(BY_GROUP, {"c": 100}, lambda: {("c", "g"), ("another", "g")})
    assert sum(dropped.rows for dropped in found(old, minutes(*rows))) == count


def test_counts_are_by_cluster_with_the_time_of_each() -> None:
    rows = minutes(("b", "g", 1), ("b", "g", 2), ("a", "g", 1), ("a", "h", 7))
    assert found(OldRows(BY_GROUP, {"a": 5, "b": 9}), rows) == (("a", 1, 5), ("b", 2, 9))


def test_without_a_cluster_nothing_is_old() -> None:
    assert condition(OldRows(BY_GROUP, {}), DIALECT) == "false"
    assert found(OldRows(BY_GROUP, {}), minutes(("c", "g", 1))) == ()


@pytest.mark.parametrize("name", sorted(name for name in RETENTIONS if EVERY_TABLE[name].ends))
def test_open_rows_are_never_old(name: str) -> None:
    """The condition compares only the end, and a null end is less than any time."""
    ends = EVERY_TABLE[name].ends
    rows = pa.table({"cluster": ["c", "c"], ends: pa.array([None, 1], pa.int64())})
    assert found(OldRows(RETENTIONS[name], {"c": 2**50}), rows) == (("c", 1, 2**50),)


def test_the_note_of_a_table_keeps_the_latest_time_of_each_cluster() -> None:
    old = OldRows(RETENTIONS["assignments"], {"a": 5, "b": 6, "c": 7})
    before = {DROPPED_BEFORE: json.dumps({"a": 9, "b": 1})}
    assert dropped_before({DROPPED_BEFORE: noted(old, (Dropped("a", 1, 5), Dropped("b", 1, 6)), before)}) == {
        "a": 9,
        "b": 6,
    }
    assert dropped_before({}) == {}
