"""Progress of queues is the same after it was written as JSON."""

from __future__ import annotations

import msgspec

from udfs.model.queue_progress import QueueFigures, QueueProgress


def test_progress_survives_the_way() -> None:
    queues = [QueueFigures(3, 5, 61_000, 9, 61_500, 2, 5, 60_900), QueueFigures(4, None, None, 9, 61_500)]
    row = QueueProgress(cluster="c", group_id="g", topic="t", broker=None, span_start=60_000, queues=queues)
    assert msgspec.json.decode(msgspec.json.encode(row), type=QueueProgress) == row
