"""Queues that moved become rows by group, topic, broker and span."""

from __future__ import annotations

import numpy as np

from udfs.model.observations import UNKNOWN
from udfs.model.queue_progress import QueueProgress
from udfs.packets.progress_columns import NamedGroup
from udfs.shard.progress_rows import progress_rows
from udfs.shard.queue_spans import SpanRows
from udfs.shard.queue_table import QueueRow, QueueTable

GROUP = NamedGroup("g", "kafka")
VALUES = (UNKNOWN,) * 8


def table_of(*queues: QueueRow, named: NamedGroup | None = GROUP) -> QueueTable:
    table = QueueTable()
    table.put(1, named, {row.queue: row for row in queues})
    return table


def spans_of(*rows: tuple[int, ...]) -> SpanRows:
    return SpanRows._make(np.array(column, np.int64) for column in zip(*rows, strict=True))


def test_queues_of_one_topic_and_span_are_one_row() -> None:
    table = table_of(
        QueueRow(4, "t", None, 1, True, False, VALUES),
        QueueRow(5, "t", None, 0, True, False, VALUES),
        QueueRow(6, "u", "b", 0, True, False, VALUES),
    )
    spans = spans_of(
        (0, 7, 71, 10, 72, 15, 4, 9, 70),
        (1, 7, UNKNOWN, UNKNOWN, 72, 9, UNKNOWN, UNKNOWN, UNKNOWN),
        (0, 8, 81, 11, 72, 15, 6, 9, 70),
        (2, 7, 70, 3, *[UNKNOWN] * 5),
    )
    common = {"cluster": "c", "group_id": "g"}
    assert list(progress_rows("c", table, spans, 10)) == [
        QueueProgress(
            **common,
            topic="t",
            broker=None,
            span_start=70,
            queues=[(0, None, None, 9, 72, None, None, None), (1, 10, 71, 15, 72, 4, 9, 70)],
        ),
        QueueProgress(**common, topic="t", broker=None, span_start=80, queues=[(1, 11, 81, 15, 72, 6, 9, 70)]),
        QueueProgress(**common, topic="u", broker="b", span_start=70, queues=[(0, 3, 70, *[None] * 5)]),
    ]


def test_a_queue_without_a_name_has_no_row() -> None:
    table = table_of(QueueRow(4, None, None, 0, True, False, VALUES))
    assert list(progress_rows("c", table, spans_of((0, 7, 71, 10, 72, 15, 4, 9, 70)), 10)) == []


def test_a_row_has_at_most_a_hundred_queues() -> None:
    table = table_of(*(QueueRow(number, "t", None, number, True, False, VALUES) for number in range(250)))
    found = list(progress_rows("c", table, spans_of(*((row, 7, 71, 10, 72, 15, 4, 9, 70) for row in range(250))), 10))
    assert [len(row.queues) for row in found] == [100, 100, 50]
    assert [queue[0] for row in found for queue in row.queues] == list(range(250))
