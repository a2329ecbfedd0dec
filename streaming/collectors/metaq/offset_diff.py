"""Shell: converts previous and current offsets into ``progress`` events. No I/O here."""

from __future__ import annotations

from collections.abc import Sequence

from streaming.collectors.metaq.zk_reader import Offset
from streaming.collectors.metaq.znodes import read_partition
from udfs.model.events import Progress, QueueOffset, event_fields


class OffsetDiff:
    """The last read offsets, from which moves are found. The first read of an offset shows no commit."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._offsets: dict[str, dict[tuple[str, str], int]] = {}

    def diff(self, group: str, offsets: Sequence[Offset], read_ms: int) -> list[Progress]:
        """Compare a group's offsets with those of the previous read.

        Args:
            read_ms: The time of the read, which new offsets get. Moved offsets get the time of the newest commit.
        """
        before = self._offsets.get(group, {})
        self._offsets[group] = {(offset.topic, offset.partition): offset.offset for offset in offsets}
        moved = [
            offset for offset in offsets if before.get((offset.topic, offset.partition), offset.offset) != offset.offset
        ]
        new = [offset for offset in offsets if (offset.topic, offset.partition) not in before]
        events = [self._progress(group, moved, max(offset.at for offset in moved), moved=True)] if moved else []
        return [*events, self._progress(group, new, read_ms, moved=False)] if new else events

    def _progress(self, group: str, offsets: Sequence[Offset], at_ms: int, *, moved: bool) -> Progress:
        queues = []
        for offset in sorted(offsets):
            broker, number = read_partition(offset.partition)
            queues.append(
                QueueOffset(topic=offset.topic, queue_id=number, broker=broker, offset=offset.offset, moved=moved)
            )
        return Progress(
            **event_fields("metaq", self._cluster, at_ms),
            group=group,
            queues=tuple(queues),
        )

    def forget(self, group: str) -> None:
        """Forget a deleted group."""
        self._offsets.pop(group, None)
