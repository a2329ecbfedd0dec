"""Core: how far groups have read their queues, as decided rows. No I/O."""

from __future__ import annotations

from typing import NamedTuple

import msgspec


class QueueFigures(NamedTuple):
    """Offsets in one queue, and their times.

    Attributes:
        start_offset: Where its log begins. written_offset: A message near the commit, and when it was written.
    """

    queue_id: int
    committed_offset: int | None
    committed_at: int | None
    end_offset: int | None
    end_at: int | None
    start_offset: int | None = None
    written_offset: int | None = None
    written_at: int | None = None


class QueueProgress(msgspec.Struct, kw_only=True):
    """Rows of ``queue_progress``: queues of one topic and broker that moved within one span of event time.

    Attributes:
        span_start: Event time.
        queues: As of the span's end, None if unknown.
    """

    cluster: str
    group_id: str
    topic: str
    broker: str | None
    span_start: int
    queues: list[QueueFigures]
