"""Columns and properties as the Delta log has them."""

from __future__ import annotations

from streaming.tables.delta_schema import delta_fields, properties
from streaming.tables.schema import ASSIGNMENTS, REBALANCES


def test_only_history_is_append_only() -> None:
    assert properties(REBALANCES)["delta.appendOnly"] == "true"
    assert properties(ASSIGNMENTS)["delta.appendOnly"] == "false"


def test_each_column_has_its_type_and_its_comment() -> None:
    fields = {field["name"]: field for field in delta_fields(REBALANCES)}
    assert list(fields) == list(REBALANCES.names)
    assert fields["pause_ms"]["type"] == "long"
    assert fields["triggers"]["type"]["elementType"]["fields"][0]["name"] == "kind"
    assert all(field["nullable"] and field["metadata"]["comment"] for field in fields.values())
