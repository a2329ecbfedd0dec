"""Progress of queues is the same after it was written as JSON."""

from __future__ import annotations

import msgspec

from udfs.model.queue_progress import QueueProgress


def test_progress_survives_the_way() -> None:
    row = QueueProgress(
        cluster="c", group_id="g", topic="t", broker=None, span_start=60_000, queues=[(3, 5, 61_000, 9, 61_500, 2)]
    )
    assert msgspec.json.decode(msgspec.json.encode(row), type=QueueProgress) == row
