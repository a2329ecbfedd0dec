"""Rules that every question follows."""

from __future__ import annotations

from dashboard.reading.questions import Reading


def test_columns_are_read_once_for_a_version(reading: Reading) -> None:
    first = reading.columns("groups", ["group_id"], {"cluster": "c1"})
    assert reading.columns("groups", ["group_id"], {"cluster": "c1"}) is first
    assert reading.columns("groups", ["group_id"], {"cluster": "c2"}) is not first
    assert "orders" in first["group_id"].to_pylist()


def test_sql_runs_over_columns(reading: Reading) -> None:
    groups = reading.columns("groups", ["group_id"])
    found = reading.sql("select count(*) as n from groups where group_id = ?", {"groups": groups}, ["orders"])
    assert found.to_pylist() == [{"n": 1}]
