"""Core: rows of ``queue_progress`` for completed spans. No I/O."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from udfs.model.observations import UNKNOWN
from udfs.model.queue_progress import QueueFigures, QueueProgress
from udfs.packets.progress_columns import place_of
from udfs.shard.queue_spans import SpanRows
from udfs.shard.queue_table import QueueTable

_MOST_QUEUES = 100  # in one decided row; it bounds the rows of the table that it becomes


def progress_rows(cluster: str, table: QueueTable, spans: SpanRows, span_ms: int) -> Iterator[QueueProgress]:
    """Yield the rows by group, topic, broker and span."""
    named = table.places[spans.rows] >= 0
    spans = SpanRows(*(column[named] for column in spans))
    groups = table.row_groups()[spans.rows] if len(spans.rows) else spans.rows
    places, ids = table.places[spans.rows], table.queue_ids[spans.rows]
    order = np.lexsort((ids, spans.spans, places, groups))
    columns = [column[order].tolist() for column in (groups, places, spans.spans, ids, *spans[2:])]
    current: tuple[int, int, int] | None = None
    row: QueueProgress | None = None
    for group, place, span, queue_id, at, offset, end_at, end, *of_log in zip(*columns, strict=True):
        if row is None or current != (group, place, span) or len(row.queues) == _MOST_QUEUES:
            if row is not None:
                yield row
            owner = table.names.get(int(table.groups[group]))
            current = (group, place, span)
            topic, broker = place_of(table.place_names[place])
            row = QueueProgress(
                cluster=cluster,
                group_id=owner.name if owner else "",
                topic=topic,
                broker=broker,
                span_start=span * span_ms,
                queues=[],
            )
        row.queues.append(QueueFigures(queue_id, *map(_or_none, (offset, at, end, end_at, *of_log))))
    if row is not None:
        yield row


def _or_none(value: int) -> int | None:
    return None if value == UNKNOWN else value
