"""Core: how far each group has read each of its queues, packed. No I/O.

It has four parts, so that a batch writes only what changes: the queues with their names; row by row, the newest
commit with the one before it and two earlier ones, the newest end offset, and the newest position; how each queue
moves, see ``standstills.Waits``; and where its log begins, see ``log_starts``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from udfs.model.arrays import Int64, UInt64, find_sorted
from udfs.model.observations import UNKNOWN
from udfs.model.systems import BY_NUMBER, KAFKA, SYSTEMS
from udfs.packets.packed_texts import PackedTexts
from udfs.packets.packet import mix
from udfs.packets.progress_columns import NamedGroup, PackedNames, place_of
from udfs.shard.log_starts import STARTS, WRITTEN, decode_starts, encode_starts
from udfs.shard.state_format import (
    Buffer,
    must_hold,
    narrow,
    pack_column,
    pack_parts,
    unpack_column,
    unpack_parts,
    widen,
)

Booleans: TypeAlias = npt.NDArray[np.bool_]

_KEY_BYTES = 8
_UNNAMED = NamedGroup("", KAFKA.name)
# Flags for the values that a row has.
_APPLIED, _COMMITTED, _BEFORE, _ENDS, _READ, _MOVED, _EARLIER, _EARLIEST = (1 << bit for bit in range(8))
MOTION = ("advanced_times", "waiting_times", "grown_times", "usual_waits")
COLUMNS = (
    "times",
    "offsets",
    "former_times",
    "former_offsets",
    "ends",
    "end_times",
    "positions",
    "position_times",
    "earlier_times",
    "earliest_times",
    *MOTION,
    *STARTS,
    *WRITTEN,
)


class QueueRow(msgspec.Struct, array_like=True):
    """One row by itself: times and offsets as in ``QueueTable``, ``UNKNOWN`` if missing."""

    queue: int
    topic: str | None
    broker: str | None
    queue_id: int
    applied: bool
    moved: bool
    values: tuple[int, ...]  # in the order of COLUMNS


class QueueTable:
    """A table of (group, queue), by group, then by key.

    Attributes:
        groups: Keys of the groups that have rows, ascending. counts: The number of rows of each. names: Names of the
            groups by key, with their systems.
        keys: Keys of the queues. places: Index into ``place_names``, or -1. queue_ids: Their numbers.
        applied: Whether any observation of the row was applied; otherwise it is only expected.
        moved: Whether its commit or end offset changed in the span of event time that is still open.
        columns: By name, see ``COLUMNS``: the newest commit (time, offset) and the one before it, the newest end and
            position (offset, time), the times of earlier commits, see ``Newest``, and how the queue moves, see
            ``standstills.Waits``, and what is known of its log, see ``log_starts``; ``UNKNOWN`` if missing.
    """

    def __init__(self, queues: Buffer = b"", offsets: Buffer = b"", motion: Buffer = b"", starts: Buffer = b"") -> None:
        groups, counts, names, keys, places, ids, place_names, systems = unpack_parts(queues, 8)
        self.groups: UInt64 = np.frombuffer(groups, "<u8").astype(np.uint64)
        self.counts: Int64 = unpack_column(counts, len(self.groups))
        self.keys: UInt64 = widen(keys, _KEY_BYTES)
        count = len(self.keys)
        must_hold(int(self.counts.sum()) == count and (self.counts >= 0).all(), "rows do not match their groups")
        self.places: Int64 = unpack_column(places, count)
        self.queue_ids: Int64 = unpack_column(ids, count)
        numbers = unpack_column(systems, len(self.groups)).tolist()
        self.names: dict[int, NamedGroup] = {
            key: NamedGroup(name, BY_NUMBER[number])
            for key, name, number in zip(self.groups.tolist(), _texts(names), numbers, strict=False)
            if name
        }
        self.place_names: list[str] = _texts(place_names)
        must_hold(not count or int(self.places.max()) < len(self.place_names), "a queue has no name")
        self._place_numbers = {name: number for number, name in enumerate(self.place_names)}
        self._read_offsets(offsets, count)
        self._read_motion(motion, count)
        self.columns |= decode_starts(starts, count)
        self._lookup: tuple[UInt64, Int64] | None = None
        self._by_key: tuple[UInt64, Int64] | None = None

    def _read_offsets(self, data: Buffer, count: int) -> None:
        flags, times, offsets, gaps, steps, lags, end_times, leads, position_times, earlier, earliest = (
            unpack_column(part, count) for part in unpack_parts(data, 11)
        )
        base = np.maximum(offsets, 0)
        self.applied: Booleans = flags & _APPLIED > 0
        self.moved: Booleans = flags & _MOVED > 0
        self.columns: dict[str, Int64] = {
            "times": _where(flags & _COMMITTED > 0, times),
            "offsets": offsets,
            "former_times": _where(flags & _BEFORE > 0, times - gaps),
            "former_offsets": _where(flags & _BEFORE > 0, offsets - steps),
            "ends": _where(flags & _ENDS > 0, base + lags),
            "end_times": _where(flags & _ENDS > 0, end_times),
            "positions": _where(flags & _READ > 0, base + leads),
            "position_times": _where(flags & _READ > 0, position_times),
            "earlier_times": _where(flags & _EARLIER > 0, times - earlier),
            "earliest_times": _where(flags & _EARLIEST > 0, times - earlier - earliest),
        }

    def _read_motion(self, data: Buffer, count: int) -> None:
        """Decode how queues move; state of release 0.2.0 lacks it."""
        if not len(data):
            self.columns |= {name: np.full(count, UNKNOWN, np.int64) for name in MOTION}
            return
        advanced, waiting, grown, usual = (unpack_column(part, count) for part in unpack_parts(data, 4))
        self.columns |= {
            "advanced_times": _where(advanced > 0, self.columns["times"] + 1 - advanced),
            "waiting_times": _where(waiting > 0, self.columns["end_times"] + 1 - waiting),
            "grown_times": _where(grown > 0, self.columns["end_times"] + 1 - grown),
            "usual_waits": usual - 1,
        }

    def encode_queues(self) -> bytes:
        """Encode the queues and their names."""
        if not len(self.keys):
            return b""
        named = [self.names.get(key, _UNNAMED) for key in self.groups.tolist()]
        return pack_parts(
            self.groups.astype("<u8").tobytes(),
            pack_column(self.counts),
            _packed([queue.name for queue in named]),
            narrow(self.keys, _KEY_BYTES),
            pack_column(self.places),
            pack_column(self.queue_ids),
            _packed(self.place_names),
            pack_column(np.array([SYSTEMS[queue.system].number for queue in named], np.int64)),
        )

    def encode_offsets(self) -> bytes:
        """Encode the queues' observations."""
        if not len(self.keys):
            return b""
        columns, base = self.columns, np.maximum(self.columns["offsets"], 0)
        committed, before = columns["times"] != UNKNOWN, columns["former_times"] != UNKNOWN
        ends, read = columns["end_times"] != UNKNOWN, columns["position_times"] != UNKNOWN
        earlier, earliest = columns["earlier_times"] != UNKNOWN, columns["earliest_times"] != UNKNOWN
        flags = np.zeros(len(self.keys), np.int64)
        for bit, which in (
            (_APPLIED, self.applied),
            (_COMMITTED, committed),
            (_BEFORE, before),
            (_ENDS, ends),
            (_READ, read),
            (_MOVED, self.moved),
            (_EARLIER, earlier),
            (_EARLIEST, earliest),
        ):
            flags |= bit * which
        return pack_parts(
            *(
                pack_column(column)
                for column in (
                    flags,
                    _filled(committed, columns["times"]),
                    columns["offsets"],
                    _filled(before, columns["times"] - columns["former_times"]),
                    _filled(before, columns["offsets"] - columns["former_offsets"]),
                    _filled(ends, columns["ends"] - base),
                    _filled(ends, columns["end_times"]),
                    _filled(read, columns["positions"] - base),
                    _filled(read, columns["position_times"]),
                    _filled(earlier, columns["times"] - columns["earlier_times"]),
                    _filled(earliest, columns["earlier_times"] - columns["earliest_times"]),
                )
            )
        )

    def encode_motion(self) -> bytes:
        """Encode how the queues move, in times before those of their commits and ends; nothing if none is known."""
        columns = self.columns
        if all((columns[name] == UNKNOWN).all() for name in MOTION):
            return b""
        gaps = (
            np.where(columns[name] == UNKNOWN, 0, columns[of] + 1 - columns[name])
            for name, of in (("advanced_times", "times"), ("waiting_times", "end_times"), ("grown_times", "end_times"))
        )
        return pack_parts(*map(pack_column, gaps), pack_column(columns["usual_waits"] + 1))

    def encode_starts(self) -> bytes:
        """Encode where the logs begin."""
        return encode_starts(self.columns)

    def frozen(self) -> QueueTable:
        """Return a table with the same rows that keeps their current values."""
        kept = copy.copy(self)
        kept.applied = self.applied.copy()
        kept.columns = {name: column.copy() for name, column in self.columns.items()}
        return kept

    def __len__(self) -> int:
        return len(self.keys)

    # ---- reading

    def row_groups(self) -> Int64:
        """Return for each row the index of its group."""
        return np.repeat(np.arange(len(self.groups)), self.counts)

    def rows_of(self, group: int) -> slice:
        """Return the rows of one group."""
        at = int(np.searchsorted(self.groups, np.uint64(group)))
        if at == len(self.groups) or int(self.groups[at]) != group:
            return slice(0, 0)
        end = int(self.counts[: at + 1].sum())
        return slice(end - int(self.counts[at]), end)

    def groups_of(self, rows: Int64) -> UInt64:
        """Return the distinct groups of some rows."""
        return self.groups[np.unique(self.row_groups()[rows])] if len(rows) else self.groups[:0]

    def find(self, groups: UInt64, keys: UInt64) -> Int64:
        """Return the row of each (group, queue), -1 if there is none."""
        if self._lookup is None:
            mixed = mix(self.groups[self.row_groups()], self.keys)
            order = np.argsort(mixed)
            self._lookup = (mixed[order], order)
        mixed, order = self._lookup
        found = find_sorted(mixed, mix(groups, keys))
        return np.where(found >= 0, order[found] if len(order) else -1, -1)

    def by_key(self) -> tuple[UInt64, Int64]:
        """Return the keys of the queues of all groups, ascending, and their rows."""
        if self._by_key is None:
            order = np.argsort(self.keys, kind="stable")
            self._by_key = self.keys[order], order
        return self._by_key

    def place(self, row: int) -> tuple[str, str | None] | None:
        """Return topic and broker of a row's queue, if it has a name."""
        number = int(self.places[row])
        return None if number < 0 else place_of(self.place_names[number])

    def row(self, number: int) -> QueueRow:
        """Return one row by itself."""
        topic, broker = self.place(number) or (None, None)
        return QueueRow(
            int(self.keys[number]),
            topic,
            broker,
            int(self.queue_ids[number]),
            bool(self.applied[number]),
            bool(self.moved[number]),
            tuple(int(self.columns[name][number]) for name in COLUMNS),
        )

    # ---- rows

    def expect(self, groups: UInt64, keys: UInt64, most: int) -> bool:
        """Add rows that are missing, up to the limit; return whether any was added."""
        missing = self.find(groups, keys) < 0
        room = most - len(self)
        if not missing.any() or room <= 0:
            return False
        groups, keys = groups[missing], keys[missing]
        order = np.lexsort((keys, groups))
        groups, keys = groups[order], keys[order]
        first = np.ones(len(keys), np.bool_)
        first[1:] = (groups[1:] != groups[:-1]) | (keys[1:] != keys[:-1])
        groups, keys = groups[first][:room], keys[first][:room]
        all_groups = np.concatenate([self.groups[self.row_groups()], groups])
        all_keys = np.concatenate([self.keys, keys])
        order = np.lexsort((all_keys, all_groups))

        def grown(column: npt.NDArray[np.generic], blank: int) -> npt.NDArray[np.generic]:
            return np.concatenate([column, np.full(len(keys), blank, column.dtype)])[order]

        self._replace_rows(all_groups[order], all_keys[order], grown)
        return True

    def name(self, names: PackedNames) -> bool:
        """Name the rows of groups and queues that have no name yet; return whether any was named."""
        unnamed = [(key, named) for key, named in names.groups().items() if key not in self.names]
        present = set(self.groups.tolist())
        new = {key: named for key, named in unnamed if key in present}
        self.names |= new
        rows = np.flatnonzero(self.places < 0)
        if not len(rows):
            return bool(new)
        queue_keys, places, ids, place_names = names.queues()
        found = find_sorted(queue_keys, self.keys[rows])
        rows, found = rows[found >= 0], found[found >= 0]
        used = np.unique(places[found])
        numbers = np.full(len(place_names), -1, np.int64)
        for place in used.tolist():
            number = self._place_numbers.setdefault(place_names[place], len(self.place_names))
            if number == len(self.place_names):
                self.place_names.append(place_names[place])
            numbers[place] = number
        self.places[rows] = numbers[places[found]]
        self.queue_ids[rows] = ids[found]
        return bool(new) or len(rows) > 0

    def keep(self, rows: Booleans) -> None:
        """Drop all other rows, and groups left without any."""
        groups = self.groups[self.row_groups()][rows]
        self._replace_rows(groups, self.keys[rows], lambda column, _: column[rows])
        kept = set(self.groups.tolist())
        self.names = {key: named for key, named in self.names.items() if key in kept}

    def put(self, group: int, named: NamedGroup | None, rows: Mapping[int, QueueRow]) -> None:
        """Set rows of a group that come from another table."""
        keys = np.fromiter(rows, np.uint64, len(rows))
        groups = np.full(len(keys), group, np.uint64)
        self.expect(groups, keys, len(self) + len(keys))
        if named is not None:
            self.names[group] = named
        for number, row in zip(self.find(groups, keys).tolist(), rows.values(), strict=True):
            self.applied[number], self.moved[number], self.queue_ids[number] = row.applied, row.moved, row.queue_id
            for column, value in zip(COLUMNS, row.values, strict=False):  # older exports lack the last columns
                self.columns[column][number] = value
            if row.topic is not None:
                place = f"{row.topic}\x00{row.broker or ''}"
                self.places[number] = self._place_numbers.setdefault(place, len(self.place_names))
                if len(self._place_numbers) > len(self.place_names):
                    self.place_names.append(place)

    def _replace_rows(
        self,
        groups: UInt64,
        keys: UInt64,
        move: Callable[[npt.NDArray[np.generic], int], npt.NDArray[np.generic]],
    ) -> None:
        self.groups, counts = np.unique(groups, return_counts=True)
        self.counts, self.keys = counts.astype(np.int64), keys
        self.places = np.asarray(move(self.places, -1), np.int64)
        self.queue_ids = np.asarray(move(self.queue_ids, 0), np.int64)
        self.applied = np.asarray(move(self.applied, 0), np.bool_)
        self.moved = np.asarray(move(self.moved, 0), np.bool_)
        self.columns = {name: np.asarray(move(column, UNKNOWN), np.int64) for name, column in self.columns.items()}
        self._lookup = self._by_key = None


def _where(valid: Booleans, values: Int64) -> Int64:
    return np.where(valid, values, UNKNOWN)


def _filled(valid: Booleans, values: Int64) -> Int64:
    """Fill gaps with a value that takes no more bytes than the others do."""
    return np.where(valid, values, values[valid].max() if valid.any() else 0)


def _packed(texts: list[str]) -> bytes:
    return msgspec.msgpack.encode(PackedTexts.pack(texts))


def _texts(data: Buffer) -> list[str]:
    return msgspec.msgpack.decode(data, type=PackedTexts).unpack() if len(data) else []
