"""Decisions of shards become the same rows of tables for several batches as for one at a time."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pytest

from streaming.pipeline import decided_rows
from streaming.pipeline.decided_rows import change_row, parse_batches, rebalance_row, rejected_row
from streaming.tables.arrow_rows import from_arrow
from streaming.tables.schema import CHANGES, REBALANCES, REJECTED_EVENTS
from tests.streaming.pipeline.test_sink import a_rebalance, a_rejected
from tests.streaming.tables.test_materializer import some_changes


def bodies(values: list[object]) -> list[str]:
    return [msgspec.json.encode(value).decode() for value in values]


def test_a_change_keeps_the_text_of_its_body() -> None:
    (body,) = bodies([some_changes()[0]])
    row = change_row(body, 7)
    assert (row["kind"], row["batch"], row["subject"], row["group_id"]) == ("topic_changed", 7, "orders", None)
    assert row["body"] in body


@pytest.mark.parametrize("rows_at_once", [1, 2, 100])
def test_batches_give_the_rows_of_each_body(rows_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decided_rows, "_ROWS_AT_ONCE", rows_at_once)
    cases = (
        ("rebalance", REBALANCES, [a_rebalance(number) for number in range(3)], rebalance_row),
        ("change", CHANGES, some_changes()[:5], lambda body: change_row(body, 7)),
        ("rejected", REJECTED_EVENTS, [a_rejected(number) for number in range(3)], rejected_row),
    )
    for kind, table, values, row_of in cases:
        texts = bodies(values)  # type: ignore[arg-type]
        batches = [pa.record_batch({"body": texts[:2]}), pa.record_batch({"body": texts[2:]})]
        parsed = list(parse_batches(kind, 7, iter(batches)))
        assert all(batch.schema == table.schema for batch in parsed)
        found = from_arrow(table, pa.Table.from_batches(parsed))
        assert found == [{name: row_of(text).get(name) for name in table.names} for text in texts]
