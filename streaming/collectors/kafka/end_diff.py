"""Shell: ends and starts of partitions that moved since they were last reported, as events of topics. No I/O here."""

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
        self._reported: dict[tuple[str, int], QueueEnd] = {}

    def is_due(self, at_ms: int) -> bool:
        """Return whether the end offsets are to be read now."""
        return self._interval_ms > 0 and at_ms >= self._due_at

    def diff(
        self, ends: Mapping[tuple[str, int], int], starts: Mapping[tuple[str, int], int], at_ms: int
    ) -> list[QueueEnds]:
        """Return the partitions whose end or start moved, by topic; a start that could not be read is left out."""
        moved: dict[str, list[QueueEnd]] = {}
        for (topic, partition), end in sorted(ends.items()):
            before, start = self._reported.get((topic, partition)), starts.get((topic, partition))
            if before is None or before.end_offset != end or start not in (None, before.start_offset):
                moved.setdefault(topic, []).append(QueueEnd(partition, end, start_offset=start))
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
        written = {(event.topic, queue.queue_id): queue for event in events for queue in event.queues}
        self._reported = {place: queue for place, queue in (self._reported | written).items() if place in ends}
        self._due_at = at_ms + self._interval_ms * (1 if is_complete else _LATER)
