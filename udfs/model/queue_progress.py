"""Core: how far groups have read their queues, as decided rows. No I/O."""

from __future__ import annotations

import msgspec


class QueueProgress(msgspec.Struct, kw_only=True):
    """Rows of ``queue_progress``: queues of one topic and broker that moved within one span of event time.

    Attributes:
        span_start: Event time.
        queues: Queue id, committed offset, its time, end offset, its time, and where the log begins; as of the span's
            end, None if unknown.
    """

    cluster: str
    group_id: str
    topic: str
    broker: str | None
    span_start: int
    queues: list[tuple[int, int | None, int | None, int | None, int | None, int | None]]
