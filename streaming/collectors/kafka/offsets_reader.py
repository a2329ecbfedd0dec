"""Shell: reads ``__consumer_offsets`` without Spark, and appends its events to a log."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import msgspec
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, Message, TopicPartition

from streaming.collectors.event_log import EventLog, LogFull
from streaming.collectors.kafka.metadata_client import GROUP_PREFIX
from streaming.collectors.kafka.options import KafkaOptions
from streaming.machine.clock import now_ms
from streaming.machine.logs import LIBRDKAFKA, logger
from udfs.kafka.consumer_offsets import NO_TIMESTAMP, OFFSETS_TOPIC, GroupPatterns, events_of, raw_of
from udfs.model.events import AnyEvent, Clock, Progress, QueueOffset, event_fields
from udfs.model.losses import Loss
from udfs.model.rejection import Rejection

_RECORDS_AT_ONCE = 5_000
_WAIT_S = 0.5
# Events are gathered for this long unless there are many, because a file every half second would be too many.
_GATHER_S = 1.0
_GATHERED_AT_MOST = 50_000
_SHOWN_RAW = 2_000
_TIMEOUT_S = 10.0
# A clock event that only reports a loss must not advance the clock, so it is as far behind as a record may be.
_BEHIND_MS = 600_000
_log = logger("kafka")


class OffsetsReader:
    """Reads from the offsets in its log's memory, else from the earliest available record."""

    def __init__(self, options: KafkaOptions, log: EventLog, *, partitions: int) -> None:
        self._cluster = options.cluster
        self._patterns = GroupPatterns(options.include_groups, options.exclude_groups)
        self._event_log = log
        # Offsets up to which records were read; accepted by the log, which may wait for its disk; and stored.
        self._read = _remembered(log)
        self._taken = dict(self._read)
        self._written = dict(self._read)
        self._log_is_full = False
        self._gathered: list[AnyEvent] = []
        self._gathered_since = time.monotonic()
        # Each partition maps to a sentence on deleted records, until the first record after them ends the gap.
        self._deleted: dict[int, str] = {}
        self._stuck: set[int] = set()
        self.rejected = 0
        self._consumer = Consumer(
            {
                **options.librdkafka(),
                "group.id": f"{GROUP_PREFIX}-reader",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                # Records that were deleted before they were read are an error, and become a finding.
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
                "logger": LIBRDKAFKA,
            }
        )
        begin = -2  # the earliest: OFFSET_BEGINNING
        self._consumer.assign(
            [TopicPartition(OFFSETS_TOPIC, number, self._read.get(number, begin)) for number in range(partitions)]
        )

    def offsets_read(self) -> Mapping[int, int]:
        """Return how far everything is in the log: partition -> next offset."""
        return self._written

    def step(self) -> None:
        """Read records for half a second, and append them to the log when it is time.

        While the log accepts nothing more, nothing is read.
        """
        if self._log_is_full:
            if not self.write():
                time.sleep(_WAIT_S)
            return
        for message in self._consumer.consume(_RECORDS_AT_ONCE, _WAIT_S):
            self._take(message)
        for partition in sorted(self._stuck):
            self._pass_over(partition)
            self._stuck.discard(partition)
        old = time.monotonic() - self._gathered_since >= _GATHER_S
        if self._read != self._taken and (old or len(self._gathered) >= _GATHERED_AT_MOST):
            self.write()
        self._note_written()

    def write(self) -> bool:
        """Append all read events to the log; return whether it accepted them."""
        try:
            self._event_log.append(fold(self._gathered))
        except LogFull:
            self._log_is_full = True
            return False
        self._log_is_full = False
        if self._gathered or self._read != self._taken:
            self._event_log.keep_memory(msgspec.json.encode(self._read))
        self._gathered = []
        self._gathered_since = time.monotonic()
        self._taken = dict(self._read)
        self._note_written()
        return True

    def close(self) -> None:
        """Append the read events, and close the connection."""
        self.write()
        self._consumer.close()

    def _note_written(self) -> None:
        # No clock may precede records that only wait for a disk.
        if self._written != self._taken and self._event_log.flush():
            self._written = self._taken

    def _take(self, message: Message) -> None:
        error, partition, offset = message.error(), message.partition(), message.offset()
        if partition is None:
            return  # This is an error of the whole client, which reconnects by itself.
        if error is not None and error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._stuck.add(partition)
        if offset is None or (error is not None and error.code() != KafkaError._PARTITION_EOF):
            return
        if error is not None:
            # The position also passes transaction markers, which are not records.
            self._read[partition] = offset
            self._report_missing(partition, None)
            return
        kind, time_ms = message.timestamp()
        timestamp_ms = NO_TIMESTAMP if kind == TIMESTAMP_NOT_AVAILABLE else time_ms
        self._report_missing(partition, None if timestamp_ms == NO_TIMESTAMP else timestamp_ms)
        for outcome in events_of(
            message.key(), message.value(), timestamp_ms, self._cluster, self._patterns, offset=offset
        ):
            if isinstance(outcome, Rejection):
                self._append(outcome, message)
            else:
                self._gathered.append(outcome)
        self._read[partition] = offset + 1

    def _pass_over(self, partition: int) -> None:
        """Continue with the first existing record, if the next one to read no longer exists.

        If a partition ends before it, it was recreated: it is read from its beginning, and nothing is missing.
        """
        place = TopicPartition(OFFSETS_TOPIC, partition)
        first, _ = self._consumer.get_watermark_offsets(place, timeout=_TIMEOUT_S)
        at = self._read.get(partition, 0)
        if at < first:
            offsets = f"partition {partition}: offsets {at} to {first - 1}"
            what = f"Records of {OFFSETS_TOPIC} ({offsets}) were deleted before they were read"
            _log.error("records were deleted before they were read", cluster=self._cluster, what=what)
            self._deleted[partition] = what
        self._read[partition] = first
        # `seek` fails for an invalid position.
        self._consumer.incremental_unassign([place])
        self._consumer.incremental_assign([TopicPartition(OFFSETS_TOPIC, partition, first)])

    def _report_missing(self, partition: int, until_ms: int | None) -> None:
        what = self._deleted.pop(partition, None)
        if what is None:
            return
        now = now_ms()
        self._gathered.append(
            Clock(
                **event_fields("kafka", self._cluster, now - _BEHIND_MS if until_ms is None else until_ms),
                lost=(Loss(what=what, until_ms=until_ms, noticed_ms=now),),
            )
        )

    def _append(self, rejection: Rejection, message: Message) -> None:
        self.rejected += 1
        _log.warning(
            "a record cannot be decoded",
            reason=rejection.reason,
            detail=rejection.detail,
            group=rejection.group_id,
            position=f"{message.partition()}:{message.offset()}",
            raw=raw_of(message.key(), message.value()).decode()[:_SHOWN_RAW],
        )


def _remembered(log: EventLog) -> dict[int, int]:
    memory = log.read_memory()
    try:
        return {} if memory is None else msgspec.json.decode(memory, type=dict[int, int])
    except msgspec.DecodeError:
        _log.warning("the stored offsets are unreadable; everything is read again")
        return {}


def fold(events: Sequence[AnyEvent]) -> list[AnyEvent]:
    """Merge a group's commits with the same timestamp into one event; other events stay as they are, in order."""
    folded: list[AnyEvent] = []
    commits: dict[tuple[str, int], dict[tuple[str, int], QueueOffset]] = {}
    places: dict[tuple[str, int], int] = {}
    for event in events:
        if not isinstance(event, Progress):
            folded.append(event)
            continue
        group_and_time = (event.group, event.event_time)
        if group_and_time not in commits:
            places[group_and_time] = len(folded)
            folded.append(event)
        commits.setdefault(group_and_time, {}).update({(queue.topic, queue.queue_id): queue for queue in event.queues})
    for group_and_time, place in places.items():
        queues = commits[group_and_time]
        folded[place] = msgspec.structs.replace(folded[place], queues=tuple(queues[key] for key in sorted(queues)))
    return folded
