"""Core: converts one batch of raw rows into packets for the shards. No I/O.

It packs and drops nothing, because it knows neither timeouts nor the events in other partitions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from operator import attrgetter
from typing import Literal, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from udfs.ingest.block_parser import parse_uniform_lines
from udfs.ingest.commit_columns import CommitColumns, pack_ends, pack_progress
from udfs.ingest.heartbeat_columns import HeartbeatColumns, pack_heartbeats
from udfs.ingest.parser import BareHeartbeat, admit, decode_lines, is_bare, is_blank, parse
from udfs.ingest.producers import speakers
from udfs.ingest.validation import CONTROL_CHARACTER
from udfs.kafka.consumer_offsets import EVERY_GROUP, GroupPatterns, raw_of
from udfs.kafka.consumer_offsets_batch import read_offsets
from udfs.model.annotations import Annotation, ContractEvent, annotation_change
from udfs.model.arrays import Int64
from udfs.model.config import CoreConfig
from udfs.model.events import AnyEvent, Clock, Heartbeat, Progress, QueueEnds, TopicQueues
from udfs.model.journal import Change, Rejected
from udfs.model.losses import Loss
from udfs.model.rejection import Rejection, rejected
from udfs.model.systems import KAFKA, SYSTEMS
from udfs.model.timestamps import EARLIEST_MS, LATEST_MS, read_timestamps
from udfs.packets.packet import READ_AFTER_MS, STATELESS, Packet, carry_event, cluster_key, group_keys, shard_of
from udfs.packets.progress_columns import NamedGroup, ProgressColumns

Packed: TypeAlias = tuple[str, int, Packet]  # cluster, shard, packet
Booleans: TypeAlias = npt.NDArray[np.bool_]


_EVENT_TIME = attrgetter("event_time")
_EVENT_ID = attrgetter("event_id")


class RawRows(msgspec.Struct):
    """Raw rows of one source.

    Attributes:
        source: Its name. values: The contents; null rows are ignored. position: Returns the position of a row.
    """

    source: str
    values: pa.BinaryArray
    position: Callable[[int], str]


class FollowedCluster(msgspec.Struct, frozen=True):
    """The Kafka cluster whose ``__consumer_offsets`` is read: its name in the tables and its followed groups."""

    cluster: str
    patterns: GroupPatterns = EVERY_GROUP


class ControlMark(msgspec.Struct, frozen=True):
    """A line of the control folder, written by the driver."""

    control: Literal["flush", "tick", "lost", "resume"]
    cluster: str
    time: int | None = None
    lost: Loss | None = None


class Combiner:
    """Gathers the rows of one batch, then packs them for the shards.

    Args:
        batch_ms: The batch's own timestamp.
    """

    def __init__(self, batch_ms: int, config: CoreConfig) -> None:
        self._batch_ms = batch_ms
        self._config = config
        self._columns: list[HeartbeatColumns] = []
        self._heartbeats: list[Heartbeat] = []
        self._commits: list[CommitColumns] = []
        self._progress: list[Progress] = []
        self._ends: list[QueueEnds] = []
        self._events: list[tuple[AnyEvent, str, str]] = []  # with source and position
        self._annotations: list[Change] = []
        self._rejected: list[Rejected] = []
        self._marks: list[ControlMark] = []

    def read_lines(self, rows: RawRows) -> None:
        """Add rows with one JSON event each."""
        uniform, others = parse_uniform_lines(rows.values, self._config.max_event_bytes)
        left = [others]
        for part in uniform:
            columns = HeartbeatColumns.of_uniform(part)
            valid = (columns.times >= EARLIEST_MS) & (columns.times <= self._latest_ms())
            self._columns.append(columns if valid.all() else columns.where(valid))
            left.append(part.rows[~valid])
        indexes = np.sort(np.concatenate(left))
        if len(indexes):
            self._read_singly(rows, indexes)

    def _read_singly(self, rows: RawRows, indexes: Int64) -> None:
        """Add rows that are parsed one by one."""
        some = rows.values.take(pa.array(indexes))
        values = some.fill_null(b"").to_pylist()
        decoded = decode_lines(values)
        bare = [place for place, event in enumerate(decoded) if event.__class__ is BareHeartbeat]
        rest = [place for place, event in enumerate(decoded) if event.__class__ is not BareHeartbeat]
        events: list[BareHeartbeat] = [decoded[place] for place in bare]  # type: ignore[misc]
        long = pc.greater(pc.binary_length(some), self._config.max_event_bytes).fill_null(False)
        refused = self._take_bare(events, bare, np.asarray(long))
        for place in [*rest, *refused]:
            raw = values[place]
            event = decoded[place]
            if event is None or isinstance(event, BareHeartbeat):
                if is_blank(raw):
                    continue
                outcome = parse(raw, self._batch_ms, self._config)
            else:
                outcome = admit(event, raw, self._batch_ms, self._config)
            self._take(outcome, raw, rows, int(indexes[place]))

    def read_records(
        self,
        rows: RawRows,
        keys: pa.BinaryArray,
        timestamps: Int64,
        followed: FollowedCluster,
        numbers: pa.Int64Array | None = None,
    ) -> None:
        """Add rows that are records of ``__consumer_offsets``.

        Args:
            timestamps: The records' timestamps, epoch ms; -1 if missing. numbers: Their offsets; None if unknown.
        """
        found = read_offsets(
            keys,
            rows.values,
            timestamps,
            cluster=followed.cluster,
            patterns=followed.patterns,
            latest_ms=self._latest_ms(),
            numbers=numbers,
        )
        columns = ProgressColumns.of_commits(found.group_keys, found.queue_keys, found.times, found.offsets)
        named = {key: NamedGroup(name, KAFKA.name) for key, name in found.groups.items()}
        self._commits.append(CommitColumns(followed.cluster, columns, named, found.queues))
        for index, outcome in found.others:
            self._take(outcome, raw_of(keys[index].as_py(), rows.values[index].as_py()), rows, index)

    def read_marks(self, rows: RawRows) -> None:
        """Add rows that are marks of the driver."""
        for index, raw in enumerate(rows.values.to_pylist()):
            if raw is None or is_blank(raw):
                continue
            try:
                self._marks.append(msgspec.json.decode(raw, type=ControlMark))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                self._reject(Rejection("unreadable_control_mark", str(error)), raw, rows, index)

    def refuse(self, row: Rejected) -> None:
        """Add an input that the reader has already found unreadable."""
        self._rejected.append(row)

    def packets(self) -> list[Packed]:
        """Return all packets, by (cluster, shard), sorted."""
        shards = self._config.shards
        packets: dict[tuple[str, int], Packet] = {}

        def packet(cluster: str, shard: int) -> Packet:
            return packets.setdefault((cluster, shard), Packet())

        columns = self._all_heartbeats()
        others = [*(event for event, _, _ in self._events), *self._progress]
        systems = self._systems(columns)
        spoken = speakers(columns, self._commits, others, self._batch_ms + READ_AFTER_MS)
        for cluster, times in self._times(columns).items():
            newest, recorded = int(times.max()), self._recorded(times)
            for shard in range(shards):
                sent = packet(cluster, shard)
                sent.newest_ms, sent.recorded_ms, sent.system = newest, recorded, systems[cluster]
                sent.speakers, sent.ahead = spoken.get(cluster, ([], []))
            home = packet(cluster, shard_of(cluster_key(cluster), shards))
            home.first_and_last_times = first_and_last_times(times, self._config.source_silent_after_ms)
        for cluster, shard, heartbeats in pack_heartbeats(columns, shards):
            packet(cluster, shard).heartbeats = heartbeats
        for cluster, shard, progress in pack_progress([*self._commits, *CommitColumns.of(self._progress)], shards):
            packet(cluster, shard).progress = progress
        for cluster, ends in pack_ends(self._ends).items():
            for shard in range(shards):
                packet(cluster, shard).ends = ends
        home_of = self._homes()
        for event, source, position in self._events:
            carried = carry_event(event, source, position)
            if isinstance(event, TopicQueues | QueueEnds | Clock):
                for shard in range(shards):
                    packet(event.cluster, shard).events.append(carried)
            else:
                packet(event.cluster, home_of[event.cluster, event.group]).events.append(carried)
        for mark in self._marks:
            for shard in range(shards):
                _mark(packet(mark.cluster, shard), mark)
        for row in self._rejected:
            packet(STATELESS, int(row.raw_sha256[:15], 16) % shards).rejected.append(row)
        for change in self._annotations:
            packet(STATELESS, shard_of(cluster_key(change.subject or ""), shards)).annotations.append(change)
        return [(cluster, shard, packets[cluster, shard]) for cluster, shard in sorted(packets)]

    def _recorded(self, times: Int64) -> int | None:
        """Return the newest time that is further behind the batch than a clock may be ahead."""
        recorded = times[times <= self._batch_ms - self._config.max_clock_skew_ms]
        return int(recorded.max()) if len(recorded) else None

    def _all_heartbeats(self) -> HeartbeatColumns:
        parts = list(self._columns)
        if self._heartbeats or not parts:
            times = np.array([heartbeat.event_time for heartbeat in self._heartbeats], np.int64)
            parts.append(HeartbeatColumns.of(self._heartbeats, times))
        return HeartbeatColumns.concat(parts)

    def _take_bare(self, events: list[BareHeartbeat], indexes: list[int], too_long: Booleans) -> list[int]:
        """Add the valid heartbeats; return the rows of the others.

        Args:
            indexes: The row of each heartbeat. too_long: For every row, whether it is longer than an event may be.
        """
        if not events:
            return []
        columns = HeartbeatColumns.of(events, read_timestamps(list(map(_EVENT_TIME, events))))
        valid = (columns.times >= EARLIEST_MS) & (columns.times <= self._latest_ms())
        if too_long.any():
            valid &= ~too_long[indexes]
        names = [columns.groups, columns.member_ids]
        if any(map(_EVENT_ID, events)):
            names.append(pa.array(map(_EVENT_ID, events), pa.string()))
        for column in names:
            valid &= _printable(column)
        valid &= _printable(columns.clusters.dictionary)[np.asarray(columns.clusters.indices)]
        if valid.all():
            self._columns.append(columns)
            return []
        self._columns.append(columns.where(valid))
        return [indexes[row] for row in np.flatnonzero(~valid).tolist()]

    def _latest_ms(self) -> int:
        return min(LATEST_MS, self._batch_ms + self._config.max_clock_skew_ms)

    def _take(self, outcome: ContractEvent | Rejection, raw: bytes, rows: RawRows, index: int) -> None:
        if isinstance(outcome, Rejection):
            self._reject(outcome, raw, rows, index)
        elif isinstance(outcome, Heartbeat) and is_bare(outcome):
            self._heartbeats.append(outcome)
        elif isinstance(outcome, Progress):
            self._progress.append(outcome)
        elif isinstance(outcome, QueueEnds):
            self._ends.append(outcome)
        elif isinstance(outcome, Annotation):
            self._annotations.append(annotation_change(outcome))
        else:
            self._events.append((outcome, rows.source, rows.position(index)))

    def _reject(self, rejection: Rejection, raw: bytes, rows: RawRows, index: int) -> None:
        self._rejected.append(
            rejected(
                rejection,
                raw,
                source=rows.source,
                position=rows.position(index),
                seen_at=self._batch_ms,
                raw_limit_bytes=self._config.raw_limit_bytes,
            )
        )

    def _homes(self) -> dict[tuple[str, str], int]:
        """Return the shard of each (cluster, group) of an event that is carried."""
        groups: dict[str, set[str]] = {}
        for event, _, _ in self._events:
            if not isinstance(event, TopicQueues | QueueEnds | Clock):
                groups.setdefault(event.cluster, set()).add(event.group)
        return {
            (cluster, name): shard_of(key, self._config.shards)
            for cluster, names in groups.items()
            for name, key in zip(names, group_keys(cluster, list(names)).tolist(), strict=True)
        }

    def _times(self, columns: HeartbeatColumns) -> dict[str, Int64]:
        """Return the event times of each cluster."""
        singly: dict[str, list[int]] = {}
        for event in (*(event for event, _, _ in self._events), *self._progress, *self._ends):
            singly.setdefault(event.cluster, []).append(event.event_time)
        found = [
            *columns.times_by_cluster().items(),
            *((part.cluster, part.columns.times) for part in self._commits),
            *((cluster, np.array(times, np.int64)) for cluster, times in singly.items()),
        ]
        parts: dict[str, list[Int64]] = {}
        for cluster, some in found:
            if len(some):
                parts.setdefault(cluster, []).append(some)
        return {cluster: np.concatenate(arrays) for cluster, arrays in parts.items()}

    def _systems(self, columns: HeartbeatColumns) -> dict[str, int]:
        """Return the number of each cluster's system; the lowest one if its events name several."""
        named = set(columns.systems_of_clusters())
        named |= {(part.cluster, group.system) for part in self._commits for group in part.groups.values()}
        others = (*(event for event, _, _ in self._events), *self._progress, *self._ends)
        named |= {(event.cluster, event.system) for event in others}
        numbers = sorted(((SYSTEMS[system].number, cluster) for cluster, system in named), reverse=True)
        return {cluster: number for number, cluster in numbers}


def first_and_last_times(times: Int64, span_ms: int) -> list[tuple[int, int]]:
    """Return the first and last time in each span that has any, ascending.

    Example:
        >>> first_and_last_times(np.array([59_999, 5, 180_000, 7]), 60_000)
        [(5, 59999), (180000, 180000)]
    """
    ordered = np.sort(times)
    spans = ordered // span_ms
    starts = np.flatnonzero(np.diff(spans, prepend=spans[0] - 1))
    ends = np.append(starts[1:], len(ordered)) - 1
    return list(zip(ordered[starts].tolist(), ordered[ends].tolist(), strict=True))


def line_position(place: str, raw: bytes) -> str:
    """Return the position of a line in a file: the file and the line's content hash."""
    return f"{place}#{hashlib.sha256(raw).hexdigest()[:16]}"


def _mark(packet: Packet, mark: ControlMark) -> None:
    # A "resume" mark has no content: its arrival triggers the batch in which groups with remaining input continue.
    if mark.control == "flush":
        packet.flush = True
    elif mark.control == "lost":
        packet.losses += [mark.lost] if mark.lost is not None else []
    elif mark.time is not None:
        packet.tick_ms = max(mark.time, packet.tick_ms or mark.time)


def _printable(names: pa.StringArray) -> Booleans:
    """Return which names are free of control characters."""
    data = names.buffers()[2]
    content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    if not ((content < 0x20) | (content == 0x7F)).any():
        return np.ones(len(names), np.bool_)
    return np.array([CONTROL_CHARACTER.search(name or "") is None for name in names.to_pylist()])
