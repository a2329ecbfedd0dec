"""Core: the state of one shard of one cluster between batches. No I/O.

Hot columns are read and written in every batch; the rest stays encoded until it is used, and its bytes are copied
when unchanged.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import msgspec
import numpy as np

from udfs.model.arrays import Int64, UInt64
from udfs.model.config import CoreConfig
from udfs.model.group_api import GroupOutput
from udfs.model.systems import System
from udfs.packets.packet import CarriedEvent, hash_texts
from udfs.shard.backlog import Backlog
from udfs.shard.block_store import BlockStore
from udfs.shard.cluster_time import ClusterTime
from udfs.shard.commits import Commits
from udfs.shard.deduplication import DedupStore
from udfs.shard.liveness import HeartbeatRows, Liveness
from udfs.shard.source_gaps import SourceGaps
from udfs.shard.state_format import (
    KEY_SHIFT,
    Buffer,
    Header,
    Sections,
    StateSection,
    pack_state,
    refusing,
    unpack_state,
)
from udfs.shard.topics import Topics
from udfs.shard.wake_index import WakeIndex, topic_hash

T = TypeVar("T")


class Record(msgspec.Struct, array_like=True):
    """One group in the cold blocks.

    Attributes:
        last_applied: Events before it are late (``GroupOutput.last_applied_ms``).
        last_heartbeats: The last heartbeat of each member; only if the keys of two members collide: the group then has
            no rows in the hot columns, and its heartbeats are applied one by one.
        group: The group's own encoding.
    """

    name: str
    system: System
    last_applied: int | None
    last_heartbeats: dict[str, int] | None
    group: bytes

    def after(self, advanced: GroupOutput) -> Record:
        """Return the record of an advanced group, whose events may name another system than assumed."""
        system = self.system if advanced.system is None else advanced.system
        return msgspec.structs.replace(self, system=system, last_applied=advanced.last_applied_ms)


class UnknownMemberHeartbeat(msgspec.Struct, array_like=True):
    """A waiting heartbeat of a member without a row."""

    system: System
    group: str
    member_id: str
    time: int


class Written(NamedTuple):
    """The new state of one group after a batch; ``topics`` as hashes."""

    record: bytes
    last_heartbeat: dict[str, int]
    session_timeouts_ms: dict[str, int]
    wake_at: int | None
    topics: list[int]


class ShardState:
    """One shard's state, opened for one batch."""

    def __init__(self, cluster: str, data: bytes | None, config: CoreConfig) -> None:
        header, sections = unpack_state(data) if data else (Header(), {})
        self.header: Header = header
        self._sections: Sections = sections
        self.clock_before: int | None = header.clock
        self._forget_ms = config.forget_after_ms
        self._regrouped = False
        with refusing("a section of the state"):
            self._open(cluster, config)

    def _open(self, cluster: str, config: CoreConfig) -> None:
        header = self.header
        self.groups = BlockStore(self._body("groups"))
        self.live = Liveness(
            len(self.groups.keys),
            self._body("members"),
            self._body("seen"),
            self._body("waiting_heartbeats"),
        )
        self.wake_index = WakeIndex(len(self.groups.keys), self._body("watch"))
        self.backlog = Backlog(self._body("backlog"))
        self.topics = Topics(cluster, self._body("topics"), self._body("topic_changes"), header.batches)
        self.dedup = DedupStore(self._body("repeats"), header.clock, config.repeat_span_ms)
        self.commits = Commits(
            self._body("queues"),
            self._body("offsets"),
            self._body("waiting_progress"),
            self._body("waiting_ends"),
            self._body("motion"),
            self._body("starts"),
            config.max_progress_queues,
        )
        self.silence: SourceGaps = _decode(self._body("silence"), SourceGaps) or SourceGaps()
        self.events: list[CarriedEvent] = _decode(self._body("waiting_events"), list[CarriedEvent]) or []
        self.unknown_member_heartbeats: list[UnknownMemberHeartbeat] = (
            _decode(self._body("strangers"), list[UnknownMemberHeartbeat]) or []
        )
        # An older state has no cluster time; the clock takes its place.
        reached = None if header.clock is None else header.clock + config.allowed_lateness_ms
        self.time: ClusterTime = _decode(self._body("cluster_time"), ClusterTime) or ClusterTime(recorded=reached)

    def set_clock_before(self, clock: int) -> None:
        """Make the current clock the one before this batch."""
        self.clock_before = clock
        self.dedup.set_clock_before(clock)

    def find(self, keys: UInt64) -> Int64:
        """Return the number of each group, −1 for unknown groups."""
        return self.groups.find(keys)

    def seen_in_commits(self) -> Int64:
        """Return the numbers of groups whose commits alone make them due.

        Their queues have waited too long (without topics none has an owner), went back, begin to be committed, or are
        near the start of their log.
        """
        stalled, others = self.find(self.commits.standing.groups()), self.find(self.commits.groups_to_see())
        stalled = stalled[stalled >= 0]
        return np.concatenate([stalled[self.wake_index.counts[stalled] > 0], others[others >= 0]])

    def record(self, number: int) -> Record:
        """Return a stored group; in ascending order each cold block is decompressed once."""
        return _RECORDS.decode(self.groups.read(number))

    def rows_of(self, number: int) -> slice:
        """Return the range of a group's rows."""
        first, last = np.searchsorted(self.live.numbers, [number, number + 1]).tolist()
        return slice(first, last)

    def encode(self) -> bytes:
        """Return the state as bytes."""
        header = self.header
        topic_changes = self.topics.encode_changes(self.backlog.oldest_batch())
        self.dedup.keep_since(self.backlog.oldest_clock())
        header.batches += 1
        header.groups, header.members = len(self.groups.keys), len(self.live.keys)
        repeats, header.oldest_remembered = self.dedup.encode(header.oldest_remembered)
        forget_before = None if header.clock is None else header.clock - self._forget_ms
        queues, offsets, waiting_progress, waiting_ends, motion, starts = self.commits.encode(forget_before)
        unknown = self.unknown_member_heartbeats
        bodies: dict[str, Buffer] = {
            "groups": self.groups.encode() if self._regrouped else self._body("groups"),
            "members": self.live.encode_members() if self._regrouped else self._body("members"),
            "watch": self.wake_index.encode() if self._regrouped else self._body("watch"),
            "seen": self.live.encode_last_heartbeats(),
            "waiting_heartbeats": self.live.encode_waiting(),
            "waiting_events": msgspec.msgpack.encode(self.events) if self.events else b"",
            "strangers": msgspec.msgpack.encode(unknown) if unknown else b"",
            "topics": self.topics.encode(),
            "topic_changes": topic_changes,
            "backlog": self.backlog.encode(),
            "repeats": repeats,
            "queues": queues,
            "offsets": offsets,
            "waiting_progress": waiting_progress,
            "waiting_ends": waiting_ends,
            "motion": motion,
            "starts": starts,
            "cluster_time": msgspec.msgpack.encode(self.time) if self.time != ClusterTime() else b"",
            "silence": msgspec.msgpack.encode(self.silence) if self.silence != SourceGaps() else b"",
        }
        return pack_state(header, {name: self._section(name, body) for name, body in bodies.items()})

    def _body(self, name: str) -> Buffer:
        section = self._sections.get(name)
        return b"" if section is None else section.body

    def _section(self, name: str, body: Buffer) -> StateSection:
        """Return the stored section if its body is unchanged."""
        section = self._sections.get(name)
        return section if section is not None and section.body is body else StateSection(body)

    def write(self, groups: dict[int, Written]) -> list[tuple[int, int, int]]:
        """Store the new states of groups, by key.

        Returns: waiting heartbeats whose member no longer has a row: (group key, key, time).
        """
        if not groups:
            return []
        self._regrouped = True
        inserted = self.groups.write({key: written.record for key, written in groups.items()})
        keys = np.sort(np.fromiter(groups, dtype=np.uint64, count=len(groups)))
        numbers = self.find(keys)
        ordered = [groups[key] for key in keys.tolist()]
        self.wake_index.replace(inserted, numbers, [w.wake_at for w in ordered], [w.topics for w in ordered])
        lost = self.live.replace(inserted, numbers, _rows_of(ordered))
        return [(int(self.groups.keys[number]), key, at) for number, key, at in lost]


def written_of(record: Record, group: bytes, advanced: GroupOutput, keys: UInt64) -> Written:
    """Return the record to store for a group; ``keys`` of the members of ``last_heartbeat``, in its order."""
    last_heartbeat, wake_at = advanced.last_heartbeat, advanced.wake_at
    collide = len(set(keys.tolist())) < len(keys)
    if collide:
        deadlines = [at + advanced.session_timeouts_ms[member_id] for member_id, at in last_heartbeat.items()]
        wake_at = min([*deadlines, *([] if wake_at is None else [wake_at])])
    stored = record.after(advanced)
    stored.last_heartbeats = dict(sorted(last_heartbeat.items())) if collide else None
    stored.group = group
    return Written(
        record=msgspec.msgpack.encode(stored),
        last_heartbeat={} if collide else last_heartbeat,
        session_timeouts_ms=advanced.session_timeouts_ms,
        wake_at=wake_at,
        topics=[topic_hash(topic) for topic in advanced.topics],
    )


def cut_keys(member_ids: list[str]) -> UInt64:
    """Return the keys of members as in the hot columns: 40 bits, in the upper bits of 64."""
    return np.asarray((hash_texts(member_ids) >> KEY_SHIFT) << KEY_SHIFT)


def _rows_of(written: list[Written]) -> list[HeartbeatRows]:
    """Hash all members at once, and return the rows of each group by key."""
    sizes = [len(group.last_heartbeat) for group in written]
    keys = cut_keys([member_id for group in written for member_id in group.last_heartbeat])
    last = np.fromiter((at for group in written for at in group.last_heartbeat.values()), np.int64, len(keys))
    timeouts = np.fromiter(
        (group.session_timeouts_ms[member_id] for group in written for member_id in group.last_heartbeat),
        np.int64,
        len(keys),
    )
    rows: list[HeartbeatRows] = []
    start = 0
    for size in sizes:
        part = slice(start, start + size)
        order = np.argsort(keys[part])
        rows.append(HeartbeatRows(keys[part][order], last[part][order], timeouts[part][order]))
        start += size
    return rows


def _decode(data: Buffer, kind: type[T]) -> T | None:
    if not len(data):
        return None
    return msgspec.msgpack.decode(data, type=kind)


_RECORDS = msgspec.msgpack.Decoder(Record)
