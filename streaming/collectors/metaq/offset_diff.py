"""Shell: previous and current offsets -> ``progress`` events. No I/O here."""

from __future__ import annotations

from collections.abc import Sequence

from streaming.collectors.metaq.zk_reader import Offset
from streaming.collectors.metaq.znodes import read_partition
from udfs.model.events import SCHEMA_VERSION, Progress, QueueOffset


class OffsetDiff:
    """Remembers offsets, and reports which have moved. The first read of an offset is no evidence."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._seen: dict[str, dict[tuple[str, str], int]] = {}

    def diff(self, group: str, offsets: Sequence[Offset]) -> list[Progress]:
        """Compare a group's offsets with those of the read before; the event has the time of the newest commit."""
        before = self._seen.get(group)
        self._seen[group] = {(one.topic, one.partition): one.offset for one in offsets}
        if before is None:
            return []
        moved = [one for one in offsets if before.get((one.topic, one.partition), one.offset) != one.offset]
        if not moved:
            return []
        queues = []
        for one in sorted(moved):
            broker, number = read_partition(one.partition)
            queues.append(QueueOffset(topic=one.topic, queue_id=number, broker=broker, offset=one.offset))
        return [
            Progress(
                schema_version=SCHEMA_VERSION,
                event_time=max(one.at for one in moved),
                system="metaq",
                cluster=self._cluster,
                group=group,
                queues=tuple(queues),
            )
        ]

    def forget(self, group: str) -> None:
        """Forget a deleted group."""
        self._seen.pop(group, None)
