"""Core: how far groups have come in their queues, as decided rows. No I/O."""

from __future__ import annotations

import msgspec


class QueueProgress(msgspec.Struct, kw_only=True):
    """Rows of ``queue_progress``: queues of one topic and broker that moved within one span of event time.

    Attributes:
        span_start: Of event time.
        queues: Queue id, committed offset, when it was committed, end of the queue, when that was observed; as of the
            span's end, None where it is not known.
    """

    cluster: str
    group_id: str
    topic: str
    broker: str | None
    span_start: int
    queues: list[tuple[int, int | None, int | None, int | None, int | None]]
