"""Shell: the job as a reader of a Kafka topic, and the records that were deleted before it read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from confluent_kafka import KafkaException

from streaming.collectors.kafka.metadata_client import MetadataClient
from streaming.collectors.kafka.options import KafkaOptions
from streaming.machine.clock import now_ms
from streaming.machine.logs import logger
from streaming.pipeline.pending_losses import PendingLosses
from streaming.pipeline.query_log import read_committed, topic_offsets
from streaming.stores.places import Place
from udfs.model.losses import Loss

# Every error of Spark about lost records contains this; those of executors lack the condition's name.
DATA_LOSS = "Some data may have been lost because they are not available in Kafka any more"
_NAMED_AT_MOST = 8
_TIMEOUT_S = 5.0  # an unavailable broker does not delay a start or a stop for long
_log = logger("kafka")


class Missed(NamedTuple):
    """Records of one partition from an offset (included) to another (excluded).

    Attributes:
        read: The position that had been read, if the partition now ends before it; None if the records are deleted.
    """

    partition: int
    first: int
    end: int
    read: int | None = None


def missed(
    read: Mapping[int, int], bounds: Mapping[int, tuple[int, int]], answered: Mapping[int, int]
) -> tuple[list[Missed], bool]:
    """Return unreported losses, and whether the query still has to skip a gap.

    Args:
        read: Partition -> next offset. A partition that is not in it is new, and begins at 0.
        bounds: First and end offset of each partition.
        answered: How far losses were reported; negative for a truncated partition: −1 − its end offset.
    """
    found = []
    is_behind = False
    for partition, (first, end) in sorted(bounds.items()):
        at, reported = read.get(partition, 0), answered.get(partition, 0)
        if end < at:
            is_behind = True
            if reported != -1 - end:
                found.append(Missed(partition, first, end, at))
        elif at < first:
            is_behind = True
            if max(at, reported) < first:
                found.append(Missed(partition, max(at, reported), first))
    return found, is_behind


class TopicReader:
    """Compares the offsets that finished batches have read with those that the broker still has.

    Args:
        clusters: Returns the clusters whose events the topic carries.
    """

    def __init__(
        self,
        topic: str,
        options: KafkaOptions,
        query: Place,
        losses: PendingLosses,
        clusters: Callable[[], Sequence[str]],
    ) -> None:
        self._topic = topic
        self._options = options
        self._query = query
        self._losses = losses
        self._clusters = clusters

    def is_behind(self) -> bool:
        """Report each loss once; return whether the query still has to skip a gap."""
        committed = read_committed(self._query)
        read = {} if committed is None else topic_offsets(committed, self._topic)
        if not read:
            return False  # nothing was read, and a new reader misses nothing
        try:
            with MetadataClient(self._options, timeout_s=_TIMEOUT_S) as view:
                return self._compare(view, read)
        except KafkaException as error:
            _log.warning("the remaining offsets are unknown", topic=self._topic, error=error.args[0].str())
            return False

    def _compare(self, view: MetadataClient, read: Mapping[int, int]) -> bool:
        bounds = view.offsets_bounds(view.offsets_partitions(self._topic), self._topic)
        source = f"topic:{self._topic}"
        kept = self._losses.answered(source) or {}
        answered = {int(partition): offset for partition, offset in kept.items()}
        found, is_behind = missed(read, bounds, answered)
        if found:
            deleted = [missed for missed in found if missed.read is None]
            cut = [missed for missed in found if missed.read is not None]
            losses = [self._deleted(view, deleted, bounds)] if deleted else []
            losses += [self._cut(view, cut)] if cut else []
            marks = [(cluster, loss) for loss in losses for cluster in self._clusters()]
            answers = {missed.partition: missed.end if missed.read is None else -1 - missed.end for missed in found}
            self._losses.report(source, {str(number): offset for number, offset in (answered | answers).items()}, marks)
        return is_behind

    def _deleted(self, view: MetadataClient, found: Sequence[Missed], bounds: Mapping[int, tuple[int, int]]) -> Loss:
        left = [(missed.partition, missed.end) for missed in found if missed.end < bounds[missed.partition][1]]
        offsets = _listed(
            [f"partition {missed.partition}: offsets {missed.first} to {missed.end - 1}" for missed in found]
        )
        return Loss(
            what=f"Records of the topic {self._topic} ({offsets}) were deleted before they were read",
            until_ms=max(self._times(view, left), default=None),
            noticed_ms=now_ms(),
        )

    def _cut(self, view: MetadataClient, found: Sequence[Missed]) -> Loss:
        offsets = _listed(
            [f"partition {missed.partition} ends at {missed.end}, and {missed.read} was read" for missed in found]
        )
        there = [
            (missed.partition, place)
            for missed in found
            if missed.first < missed.end
            for place in (missed.first, missed.end - 1)
        ]
        times = self._times(view, there)
        return Loss(
            what=f"The topic {self._topic} was recreated or truncated ({offsets}): the records before are not read",
            since_ms=min(times, default=None),
            until_ms=max(times, default=None),
            noticed_ms=now_ms(),
        )

    def _times(self, view: MetadataClient, places: Sequence[tuple[int, int]]) -> list[int]:
        times = [view.record_time(partition, offset, self._topic) for partition, offset in places[:_NAMED_AT_MOST]]
        return [at for at in times if at is not None]


def _listed(parts: Sequence[str]) -> str:
    more = len(parts) - _NAMED_AT_MOST
    return "; ".join([*parts[:_NAMED_AT_MOST], *([f"and {more} more partitions"] if more > 0 else [])])
