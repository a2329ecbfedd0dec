"""Core: all that one shard of one cluster remembers between batches. No I/O.

Hot columns are read and written in every batch; the rest stays encoded until something asks for it, and is
copied as it is when nothing changed it.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import msgspec
import numpy as np

from udfs.cold import ColdBlocks
from udfs.commits import Commits
from udfs.errors import StateVersionError
from udfs.events import System
from udfs.liveness import Liveness, Rows
from udfs.packing import CarriedEvent, Int64, UInt64, hash_texts
from udfs.repeats import Repeats
from udfs.rules import Rules
from udfs.silence import Silence
from udfs.state_codec import KEY_SHIFT, Buffer, Header, Section, Sections, pack_state, unpack_state
from udfs.topics import Topics
from udfs.watch import Watch

T = TypeVar("T")


class Record(msgspec.Struct, array_like=True):
    """What the cold blocks hold of one group.

    Attributes:
        last_applied: The last thing applied: a change that makes a rebalance, an expiry, a snapshot.
        seen: Only where the keys of two members collide: the group then has no rows in the hot columns, every
            heartbeat of it is looked at, and this is what its members were last seen at.
        group: The group's own encoding.
    """

    name: str
    system: System
    last_applied: int | None
    seen: dict[str, int] | None
    group: bytes


class Stranger(msgspec.Struct, array_like=True):
    """A heartbeat that waits, of a member that has no row."""

    system: System
    group: str
    member_id: str
    time: int


class Written(NamedTuple):
    """What becomes of one group in a batch; ``topics`` as hashes."""

    record: bytes
    last_seen: dict[str, int]
    session_timeouts_ms: dict[str, int]
    wake_at: int | None
    topics: list[int]


class ShardState:
    """One shard's memory, opened for one batch."""

    def __init__(self, cluster: str, data: bytes | None, rules: Rules) -> None:
        header, sections = unpack_state(data) if data else (Header(), {})
        self.header: Header = header
        self._sections: Sections = sections
        self.clock_before: int | None = header.clock
        self.groups = ColdBlocks(self._body("groups"))
        self.live = Liveness(
            len(self.groups.keys),
            self._body("members"),
            self._body("seen"),
            self._body("waiting_heartbeats"),
        )
        self.watch = Watch(len(self.groups.keys), self._body("watch"))
        self.topics = Topics(cluster, self._body("topics"))
        self.repeats = Repeats(self._body("repeats"), header.clock, rules.repeat_span_ms)
        self.commits = Commits(self._body("commits"), self._body("waiting_commits"))
        self.silence: Silence = _decode(self._body("silence"), Silence) or Silence()
        self.events: list[CarriedEvent] = _decode(self._body("waiting_events"), list[CarriedEvent]) or []
        self.strangers: list[Stranger] = _decode(self._body("strangers"), list[Stranger]) or []
        self._forget_ms = rules.forget_after_ms
        self._regrouped = False

    def set_clock_before(self, clock: int) -> None:
        """Take the clock as the one that stood before this batch."""
        self.clock_before = clock
        self.repeats.set_clock_before(clock)

    def find(self, keys: UInt64) -> Int64:
        """Answer the number of each group, −1 for those that are not known."""
        return self.groups.find(keys)

    def record(self, number: int) -> Record:
        """Answer what is stored of a group; in ascending order each cold block is opened once."""
        return _RECORDS.decode(self.groups.read(number))

    def seen_of(self, number: int, last: Int64) -> dict[int, int]:
        """Answer a group's rows out of ``last``: key -> last heartbeat."""
        rows = self.rows_of(number)
        return dict(zip(self.live.keys[rows].tolist(), last[rows].tolist(), strict=True))

    def rows_of(self, number: int) -> slice:
        """Answer where a group's rows lie."""
        first, last = np.searchsorted(self.live.numbers, [number, number + 1]).tolist()
        return slice(first, last)

    def encode(self) -> bytes:
        """Answer the state as bytes."""
        header = self.header
        header.batches += 1
        header.groups, header.members = len(self.groups.keys), len(self.live.keys)
        repeats, header.oldest_remembered = self.repeats.encode(header.oldest_remembered)
        forget_before = None if header.clock is None else header.clock - self._forget_ms
        commits, waiting_commits = self.commits.encode(forget_before)
        bodies: dict[str, Buffer] = {
            "groups": self.groups.encode() if self._regrouped else self._body("groups"),
            "members": self.live.encode_members() if self._regrouped else self._body("members"),
            "watch": self.watch.encode() if self._regrouped else self._body("watch"),
            "seen": self.live.encode_seen(),
            "waiting_heartbeats": self.live.encode_waiting(),
            "waiting_events": msgspec.msgpack.encode(self.events) if self.events else b"",
            "strangers": msgspec.msgpack.encode(self.strangers) if self.strangers else b"",
            "topics": self.topics.encode(),
            "repeats": repeats,
            "commits": commits,
            "waiting_commits": waiting_commits,
            "silence": msgspec.msgpack.encode(self.silence) if self.silence != Silence() else b"",
        }
        return pack_state(header, {name: self._section(name, body) for name, body in bodies.items()})

    def _body(self, name: str) -> Buffer:
        section = self._sections.get(name)
        return b"" if section is None else section.body

    def _section(self, name: str, body: Buffer) -> Section:
        """Answer the section that is stored already when this is its body still."""
        section = self._sections.get(name)
        return section if section is not None and section.body is body else Section(body)

    def write(self, groups: dict[int, Written]) -> list[tuple[int, int, int]]:
        """Write what became of groups, old and new: by key.

        Returns: waiting heartbeats whose member has no row any more: (group key, key, time).
        """
        if not groups:
            return []
        self._regrouped = True
        inserted = self.groups.write({key: written.record for key, written in groups.items()})
        keys = np.sort(np.fromiter(groups, dtype=np.uint64, count=len(groups)))
        numbers = self.find(keys)
        ordered = [groups[key] for key in keys.tolist()]
        self.watch.replace(inserted, numbers, [w.wake_at for w in ordered], [w.topics for w in ordered])
        lost = self.live.replace(inserted, numbers, _rows_of(ordered))
        return [(int(self.groups.keys[number]), key, at) for number, key, at in lost]


def cut_keys(member_ids: list[str]) -> UInt64:
    """Answer the keys of members as the hot columns hold them: 40 bits, in the upper bits of 64."""
    return np.asarray((hash_texts(member_ids) >> KEY_SHIFT) << KEY_SHIFT)


def _rows_of(written: list[Written]) -> list[Rows]:
    """Hash all members at once, and answer the rows of each group by key."""
    sizes = [len(one.last_seen) for one in written]
    keys = cut_keys([member_id for one in written for member_id in one.last_seen])
    last = np.fromiter((at for one in written for at in one.last_seen.values()), np.int64, len(keys))
    timeouts = np.fromiter(
        (one.session_timeouts_ms[member_id] for one in written for member_id in one.last_seen), np.int64, len(keys)
    )
    rows: list[Rows] = []
    start = 0
    for size in sizes:
        part = slice(start, start + size)
        order = np.argsort(keys[part])
        rows.append(Rows(keys[part][order], last[part][order], timeouts[part][order]))
        start += size
    return rows


def _decode(data: Buffer, kind: type[T]) -> T | None:
    if not len(data):
        return None
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise StateVersionError(f"a section of the state cannot be read: it is damaged ({error})") from error


_RECORDS = msgspec.msgpack.Decoder(Record)
