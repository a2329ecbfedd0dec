"""Shell: the thread alongside the job that reports what ``__consumer_offsets`` lacks: topics, and the clock.

Each round, every few seconds, takes the time, records the end offsets of all partitions of ``__consumer_offsets``, and
reads the cluster's topics. Changes are written at once as ``topic_queues``. The round's ``clock`` is written only once
the query has read everything up to the recorded end offsets, so that no earlier record can come after it. Its time is
the brokers', as far as it is proven (``broker_clock``). ``allowed_lateness_ms`` covers records that were written but
not yet copied to all replicas, and brokers whose clocks differ.

If the broker is unavailable or refuses access, rounds fail, and are retried with growing pauses; meanwhile the
cluster's clock does not advance, because there is no evidence.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec
from confluent_kafka import KafkaError, KafkaException

from streaming.collectors.collector import CollectorStatus, CollectorThread, State, status_with_log
from streaming.collectors.event_log import EventLog
from streaming.collectors.kafka.broker_clock import BrokerClock
from streaming.collectors.kafka.coordinator_releases import CoordinatorReleases
from streaming.collectors.kafka.early_clock import EarlyClock
from streaming.collectors.kafka.end_diff import EndDiff
from streaming.collectors.kafka.groups_under_way import GroupsUnderWay
from streaming.collectors.kafka.metadata_client import REFUSALS, MetadataClient
from streaming.collectors.kafka.options import KafkaOptions
from streaming.collectors.kafka.topic_diff import TopicDiff
from streaming.collectors.kafka.unread_messages import UnreadMessages
from streaming.machine.clock import now_ms
from streaming.machine.logs import logger
from streaming.machine.process import since_boot_ms
from streaming.settings.defaults import default
from udfs.kafka.consumer_offsets import OFFSETS_TOPIC, GroupPatterns
from udfs.model.events import AnyEvent, Clock, event_fields

OffsetsRead = Callable[[], Mapping[int, int]]

_CHECK_EVERY_S = 0.1  # it checks this often whether the query has read up to a round's end offsets
_LONGEST_PAUSE_S = 30.0
_STOP_S = 8.0
LATENESS_MS = default("time", "allowed_lateness_ms")
POLL_INTERVAL_MS = default("kafka", "poll_interval_ms")
_SEEK_EVERY_S = 0.3  # it looks this often for a new record while the brokers' clock is not known precisely
_CLOSE_MS = 200
_READ_AT_MOST = 4  # at most this many timestamps of records are read after each batch of the query, one per partition
_MAX_WAITING_ROUNDS = 10_000  # about half a day for a query that is behind; after that the oldest are dropped
_log = logger("kafka")


class KafkaStatus(CollectorStatus, frozen=True, kw_only=True):
    """The state of a Kafka cluster's collector.

    Attributes:
        unread: Number of records of ``__consumer_offsets`` that the query has yet to read.
        ahead_ms: The estimated lead of this machine's clock over the brokers'.
        source: The source of groups: ``records`` of ``__consumer_offsets``, or ``admin`` calls.
    """

    source: Literal["records", "admin"] = "records"
    unread: int | None = None
    ahead_ms: int = 0


class _Memory(msgspec.Struct, array_like=True):
    """A collector's state across restarts.

    Attributes:
        topics: As written by ``TopicDiff``.
        under_way: Groups that it has reported to be rebalancing.
    """

    topics: msgspec.Raw = msgspec.Raw(b"{}")
    under_way: list[str] = []


def _read_memory(content: bytes | None) -> _Memory:
    return _Memory() if content is None else msgspec.json.decode(content, type=_Memory)


@dataclass(frozen=True)
class Round:
    """A pending clock, to be written with this time once the query has read up to these end offsets."""

    clock_ms: int
    ends: Mapping[int, int]


class KafkaCollector(CollectorThread):
    """Follows one cluster's metadata, from ``start`` to ``stop``; also a context manager.

    Args:
        log: The log of events, a source of the query.
        offsets_read: Returns how far the query has read ``__consumer_offsets``: partition -> next offset.
        lateness_ms: The job's allowed lateness; this long after a record that the query has read, a clock is written at
            once.
    """

    def __init__(
        self,
        options: KafkaOptions,
        log: EventLog,
        offsets_read: OffsetsRead,
        *,
        poll_interval_ms: int = POLL_INTERVAL_MS,
        lateness_ms: int = LATENESS_MS,
        view: Callable[[KafkaOptions], MetadataClient] = MetadataClient,
    ) -> None:
        self._options = options
        self._make_view = view
        self._view: MetadataClient | None = None
        self._log = log
        self._patterns = GroupPatterns(options.include_groups, options.exclude_groups)
        self._remember()
        self._clock = BrokerClock(poll_interval_ms)
        self._end_diff = EndDiff(options.cluster, options.ends_interval_ms)
        self._unread = UnreadMessages(options.cluster, options.unread_groups, self._patterns)
        self._offsets_read = offsets_read
        self._early = EarlyClock(lateness_ms)
        self._releases = CoordinatorReleases(options, self._patterns)
        self._slow_ms = max(lateness_ms, LATENESS_MS)  # results of a poll that took longer are late
        self._read_before: Mapping[int, int] = {}
        self._interval_s = poll_interval_ms / 1_000
        self._owed: deque[Round] = deque(maxlen=_MAX_WAITING_ROUNDS)
        self._ends: Mapping[int, int] = {}
        self._ends_at_ms = 0
        self._sought: Mapping[int, int] = {}
        self._sought_at_ms = 0
        self._status = KafkaStatus(cluster=options.cluster, since_ms=now_ms())
        super().__init__("kafka-collector")

    def stop(self) -> None:
        """Stop, and wait for the end, but only briefly if it is just waiting for a broker."""
        self._stopping.set()
        if not self._joined(_STOP_S):
            _log.warning("the cluster does not answer; its collector ends with the process")
            return
        with self._turn:
            self._hang_up()

    def status(self) -> KafkaStatus:
        """Return the current status; callable at any time, from any thread."""
        return status_with_log(self._status, self._log)

    def observe_once(self) -> bool:
        """Poll once now, in this thread; return whether the cluster answered."""
        with self._turn:
            try:
                self._observe()
            except KafkaException as error:
                self._failed(error.args[0])
                return False
            except OSError as error:
                self._cannot_write(error)
                return False
            self._set("connected", self._view.partial if self._view else None)
            return True

    def flush_clock(self) -> bool:
        """Write the newest clock that the query's reading allows; return whether one was written."""
        with self._turn:
            try:
                return self._write_allowed_clock()
            except OSError as error:
                self._cannot_write(error)
                return False

    def write_early_clock(self) -> None:
        """Write a clock before the next round if it decides something that the query has read."""
        with self._turn:
            if self._view is None or self._status.state != "connected":
                return
            try:
                self._note_read_records(self._view)
                clock_ms = self._clock.at(now_ms())
                if not self._early.is_due(clock_ms):
                    return
                self._early.passed(clock_ms)
                self._owed.append(Round(clock_ms, self._ends_now(self._view)))
                self._write_allowed_clock()
            except KafkaException as error:
                self._failed(error.args[0])
            except OSError as error:
                self._cannot_write(error)

    def seek_new_record(self) -> None:
        """Look for a record that was just written, to bound the brokers' clock while that is not precise."""
        began_ms = now_ms()
        with self._turn:
            uncertain_ms = self._clock.uncertain_ms
            is_close = uncertain_ms is not None and uncertain_ms <= _CLOSE_MS
            is_recent = began_ms - self._sought_at_ms < _SEEK_EVERY_S * 1_000
            if self._view is None or self._status.state != "connected" or is_close or is_recent:
                return
            try:
                self._see_newest(self._view, began_ms)
            except KafkaException as error:
                self._failed(error.args[0])

    def _see_newest(self, view: MetadataClient, began_ms: int) -> None:
        ends = {number: end for (_, number), end in view.ends({OFFSETS_TOPIC: len(self._ends)}).items()}
        moved = [number for number, end in sorted(ends.items()) if end > self._sought.get(number, end)]
        since_ms, self._sought, self._sought_at_ms = self._sought_at_ms, ends, began_ms
        if moved:
            self._see_record(view, moved[0], ends[moved[0]] - 1, written_after_ms=since_ms)

    def _see_record(
        self, view: MetadataClient, partition: int, offset: int, *, written_after_ms: int | None = None
    ) -> int | None:
        """Bound the brokers' clock by a record; return its time, if there is one."""
        record_ms = view.record_time(partition, offset)
        if record_ms is not None:
            self._clock.saw_record(record_ms, written_after_ms=written_after_ms, read_ms=now_ms())
        return record_ms

    def _note_read_records(self, view: MetadataClient) -> None:
        """Collect the times of the newest records that the query has read since the last call."""
        read, before = dict(self._offsets_read()), self._read_before
        self._read_before = read
        moved = [number for number, end in sorted(read.items()) if before and end > before.get(number, 0)]
        if len(moved) > _READ_AT_MOST:
            self._early.add(self._clock.at(now_ms()))
            return
        times = [self._see_record(view, number, read[number] - 1) for number in moved]
        for time_ms in sorted(time_ms for time_ms in times if time_ms is not None):
            self._early.add(time_ms)

    def _ends_now(self, view: MetadataClient) -> Mapping[int, int]:
        return {number: end for number, (_, end) in view.offsets_bounds(len(self._ends)).items()}

    def _run(self) -> None:
        next_s = time.monotonic()
        failures = 0
        while not self._stopping.is_set():
            began = time.monotonic()
            if began >= next_s:
                failures = 0 if self.observe_once() else failures + 1
                pause_s = min(_LONGEST_PAUSE_S, 0.5 * 2.0**failures)
                next_s = time.monotonic() + pause_s if failures else began + self._interval_s
            # The duration of these calls counts, because they wait for an unavailable broker.
            self.flush_clock()
            self.write_early_clock()
            self.seek_new_record()
            self._stopping.wait(max(0.0, min(_CHECK_EVERY_S, next_s - time.monotonic())))

    def _remember(self) -> None:
        """Continue from the last stored state."""
        cluster = self._options.cluster
        try:
            memory = _read_memory(self._log.read_memory())
            self._topics = TopicDiff(cluster, bytes(memory.topics))
        except msgspec.DecodeError:
            _log.warning("the remembered topics are unreadable; all topics are reported again", cluster=cluster)
            memory, self._topics = _Memory(), TopicDiff(cluster)
        self._under_way = GroupsUnderWay(cluster, self._patterns, memory.under_way)

    def _keep_memory(self) -> None:
        memory = _Memory(msgspec.Raw(self._topics.memory()), sorted(self._under_way.groups))
        self._log.keep_memory(msgspec.json.encode(memory))

    def _connected(self) -> MetadataClient:
        if self._view is None:
            self._view = self._make_view(self._options)
        return self._view

    def _observe(self) -> None:
        view = self._connected()
        before_ms = now_ms()
        # These snapshots come first: they get the time above, and a rebalance that begins later in this poll began
        # after it.
        states = view.groups_under_way()
        partitions = view.offsets_partitions()
        bounds = view.offsets_bounds(partitions)
        self._see_times(view, {number: end for number, (_, end) in bounds.items()}, before_ms)
        at_ms = self._clock.at(before_ms)
        self._report_topics(view, before_ms)
        if now_ms() - before_ms <= self._slow_ms:
            self._report_under_way(states, at_ms)
            if releases := self._releases.diff(view, at_ms):
                self._log.append(releases)
                self._releases.note(releases)
        # Otherwise a broker did not answer, and the groups shown by the others may be over by now.
        self._owed.append(Round(at_ms, self._ends))

    def _report_under_way(self, states: Mapping[str, str], at_ms: int) -> None:
        before = self._under_way.groups
        under_way = self._under_way.diff(states, at_ms)
        if under_way:
            self._log.append(under_way)
        if self._under_way.groups != before:
            self._keep_memory()

    def _report_topics(self, view: MetadataClient, before_ms: int) -> None:
        observed, read_ms = view.topics(self._topics.reported), now_ms()
        # Groups follow a change at once, so it is dated before the poll, but not so early that it would be late.
        at_ms = self._clock.at(max(before_ms, read_ms - self._slow_ms * 3 // 4))
        events = self._topics.diff(observed, at_ms)
        if events:
            self._log.append(events)
            self._keep_memory()
            _log.info("topics changed", cluster=self._options.cluster, topics=[event.topic for event in events][:20])
        self._report_ends(view, at_ms)

    def _report_ends(self, view: MetadataClient, at_ms: int) -> None:
        if not self._end_diff.is_due(at_ms):
            return
        partitions = {name: topic.partitions for name, topic in self._topics.reported.items()}
        starts = view.starts(partitions)
        ends = view.ends(partitions)
        moved = self._end_diff.diff(ends, starts, at_ms)
        is_complete = len(ends) == sum(partitions.values())
        unread = self._unread.read(view, ends, at_ms) if is_complete else []
        if moved or unread:
            self._log.append([*moved, *unread])
        self._end_diff.note(moved, ends, at_ms, is_complete=is_complete)

    def _see_times(self, view: MetadataClient, ends: Mapping[int, int], before_ms: int) -> None:
        """Read the first and the last record written since the round before, in one partition that has any."""
        moved = sorted(number for number, end in ends.items() if end > self._ends.get(number, 0))
        if moved:
            number = moved[0]
            if self._ends_at_ms and number in self._ends:
                self._see_record(view, number, self._ends[number], written_after_ms=self._ends_at_ms)
            self._see_record(view, number, ends[number] - 1)
        self._ends, self._ends_at_ms = dict(ends), before_ms

    def _write_allowed_clock(self) -> bool:
        read = self._offsets_read()
        # The end offsets of each poll cover those of the previous poll, so the permitted ones come first.
        allowed = 0
        for owed in self._owed:
            if any(read.get(number, 0) < end for number, end in owed.ends.items()):
                break
            allowed += 1
        unread = sum(max(0, end - read.get(number, 0)) for number, end in self._ends.items())
        self._set(self._status.state, self._status.detail, unread=unread)
        if not allowed:
            return False
        clock_ms = self._owed[allowed - 1].clock_ms
        event: AnyEvent = Clock(**event_fields("kafka", self._options.cluster, clock_ms))
        self._log.append([event])
        self._early.passed(clock_ms)
        for _ in range(allowed):
            self._owed.popleft()
        self._set(self._status.state, self._status.detail, unread=unread, clock_ms=clock_ms)
        return True

    def _failed(self, error: KafkaError) -> None:
        complaints = [error, *(self._view.complaints() if self._view is not None else ())]
        refusal = next((complaint for complaint in complaints if complaint.code() in REFUSALS), None)
        self._set("away" if refusal is None else "refused", (refusal or error).str())
        # A client that was refused keeps its old login; a new one reads the fixed one.
        self._hang_up()

    def _cannot_write(self, error: OSError) -> None:
        self._forget_unwritten()
        self._set("unwritable", str(error))

    def _forget_unwritten(self) -> None:
        """Report again what could not be written."""
        self._remember()

    def _hang_up(self) -> None:
        if self._view is not None:
            self._view.close()
            self._view = None

    def _set(
        self,
        state: State,
        detail: str | None = None,
        *,
        unread: int | None = None,
        clock_ms: int | None = None,
    ) -> None:
        before = self._status
        if state != before.state:
            emit = _log.info if state == "connected" else _log.warning
            emit(f"cluster {state}", cluster=self._options.cluster, detail=detail)
        self._status = KafkaStatus(
            cluster=self._options.cluster,
            source=before.source,
            groups=before.groups,
            unpolled=before.unpolled,
            state=state,
            since_ms=before.since_ms if state == before.state else now_ms(),
            detail=detail,
            topics=len(self._topics.reported),
            clock_ms=clock_ms or before.clock_ms,
            unread=before.unread if unread is None else unread,
            ahead_ms=self._clock.ahead_ms,
            answered_at_ms=since_boot_ms() if state == "connected" else before.answered_at_ms,
        )
