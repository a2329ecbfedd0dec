"""Shell: end offsets of partitions that moved since they were last reported, as events of topics. No I/O here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from udfs.model.events import QueueEnd, QueueEnds, event_fields

_LATER = 6  # intervals, because reading partitions without a leader lasts until the timeout and delays the poll


class EndDiff:
    """The end offsets that were reported, and when the next report is due.

    Args:
        interval_ms: Time between reports; 0 for none.
    """

    def __init__(self, cluster: str, interval_ms: int) -> None:
        self._cluster = cluster
        self._interval_ms = interval_ms
        self._due_at = 0
        self._reported: dict[tuple[str, int], int] = {}

    def is_due(self, at_ms: int) -> bool:
        """Return whether the end offsets are to be read now."""
        return self._interval_ms > 0 and at_ms >= self._due_at

    def diff(self, ends: Mapping[tuple[str, int], int], at_ms: int) -> list[QueueEnds]:
        """Return the end offsets that moved, by topic."""
        moved: dict[str, list[QueueEnd]] = {}
        for (topic, partition), end in sorted(ends.items()):
            if self._reported.get((topic, partition)) != end:
                moved.setdefault(topic, []).append(QueueEnd(partition, end))
        return [
            QueueEnds(
                **event_fields("kafka", self._cluster, at_ms),
                topic=topic,
                queues=tuple(queues),
            )
            for topic, queues in moved.items()
        ]

    def note(
        self, events: Iterable[QueueEnds], ends: Mapping[tuple[str, int], int], at_ms: int, *, is_complete: bool = True
    ) -> None:
        """Remember what was written; partitions that no longer exist are forgotten.

        Args:
            is_complete: Whether no partition was missing; otherwise the next read comes later.
        """
        written = {(event.topic, queue.queue_id): queue.end_offset for event in events for queue in event.queues}
        self._reported = {place: end for place, end in (self._reported | written).items() if place in ends}
        self._due_at = at_ms + self._interval_ms * (1 if is_complete else _LATER)
