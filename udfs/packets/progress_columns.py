"""Core: how far groups have read their queues, packed: commits, positions and end offsets as columns. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from udfs.model.arrays import Int64, UInt32, UInt64
from udfs.model.observations import UNKNOWN
from udfs.model.systems import BY_NUMBER, SYSTEMS, System
from udfs.packets.packed_texts import PackedTexts

Booleans: TypeAlias = npt.NDArray[np.bool_]


class NamedGroup(NamedTuple):
    """The name of a group, and its system: commits travel and wait without an event that has it."""

    name: str
    system: System


# Topic, broker (if queues are numbered per broker), number.
NamedQueue: TypeAlias = tuple[str, str | None, int]
_SEPARATOR = "\x00"  # no name has control characters


class ProgressColumns(NamedTuple):
    """Observations of queues of groups, as columns; a missing offset is ``UNKNOWN``.

    Attributes:
        groups, queues: The results of ``packet.group_keys`` and ``packet.queue_keys``. times: Epoch ms.
        offsets: Committed offsets. ends: End offsets. positions: The owners' positions.
        commits: Whether a commit was made then; otherwise only the rest was observed.
        written_offsets, written_times: A message near the commit, and when it was written; both or none.
    """

    groups: UInt64
    queues: UInt64
    times: Int64
    offsets: Int64
    ends: Int64
    positions: Int64
    commits: Booleans
    written_offsets: Int64
    written_times: Int64

    @property
    def are_notes(self) -> Booleans:
        """Return which rows say only when a message was written, so nothing of the group."""
        others = (self.offsets == UNKNOWN) & (self.ends == UNKNOWN) & (self.positions == UNKNOWN)
        notes: Booleans = others & ~self.commits & (self.written_offsets != UNKNOWN)
        return notes

    def where(self, rows: Booleans | Int64 | slice) -> ProgressColumns:
        """Return the selected rows."""
        return ProgressColumns._make(column[rows] for column in self)

    @staticmethod
    def concat(parts: Sequence[ProgressColumns]) -> ProgressColumns:
        """Join parts, one after another."""
        if len(parts) == 1:
            return parts[0]
        return ProgressColumns._make(map(np.concatenate, zip(*(NO_PROGRESS, *parts), strict=True)))

    @staticmethod
    def of_commits(groups: UInt64, queues: UInt64, times: Int64, offsets: Int64 | None = None) -> ProgressColumns:
        """Make columns for commits alone."""
        unknown = np.full(len(times), UNKNOWN, np.int64)
        offsets = unknown if offsets is None else offsets
        commits = np.ones(len(times), np.bool_)
        return ProgressColumns(groups, queues, times, offsets, unknown, unknown, commits, unknown, unknown)

    def distinct(self, *before: UInt64) -> ProgressColumns:
        """Return sorted rows, one for each (group, queue, time), with the greatest values observed then.

        Args:
            before: For each row, a sort key that precedes its group.
        """
        order = np.lexsort((self.times, self.queues, self.groups, *before))
        groups, queues, times = self.groups[order], self.queues[order], self.times[order]
        fresh = np.ones(len(order), np.bool_)
        fresh[1:] = (groups[1:] != groups[:-1]) | (queues[1:] != queues[:-1]) | (times[1:] != times[:-1])
        if fresh.all():
            return ProgressColumns(groups, queues, times, *(_ordered(column, order) for column in self[3:]))
        firsts = np.flatnonzero(fresh)
        others = [np.maximum.reduceat(_ordered(column, order), firsts) for column in self[3:]]
        return ProgressColumns(groups[fresh], queues[fresh], times[fresh], *others)


def _ordered(column: npt.NDArray[Any], order: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
    """Return a column in an order; most columns have only one value."""
    return column if len(column) and (column == column[0]).all() else column[order]


NO_PROGRESS: Final = ProgressColumns._make(
    np.empty(0, kind) for kind in (np.uint64, np.uint64, *[np.int64] * 4, np.bool_, *[np.int64] * 2)
)


class PackedNames(msgspec.Struct, array_like=True):
    """Names behind keys: G distinct groups, Q distinct queues, little-endian.

    Attributes:
        group_keys: uint64[G], ascending. group_names: G names. group_systems: uint8[G], ``SystemProfile.number``.
        queue_keys: uint64[Q], ascending. queue_places: uint32[Q], index into ``places``. queue_ids: int64[Q].
        places: Distinct topics, each with its broker, separated by a null character.
    """

    group_keys: bytes
    group_names: PackedTexts
    group_systems: bytes
    queue_keys: bytes
    queue_places: bytes
    queue_ids: bytes
    places: PackedTexts

    @classmethod
    def pack(cls, groups: dict[int, NamedGroup], queues: dict[int, NamedQueue]) -> PackedNames:
        """Pack names by key."""
        places: dict[str, int] = {}
        numbers, ids = [], []
        for key in sorted(queues):
            topic, broker, queue_id = queues[key]
            numbers.append(places.setdefault(f"{topic}{_SEPARATOR}{broker or ''}", len(places)))
            ids.append(queue_id)
        return cls(
            np.array(sorted(groups), "<u8").tobytes(),
            PackedTexts.pack([groups[key].name for key in sorted(groups)]),
            bytes(SYSTEMS[groups[key].system].number for key in sorted(groups)),
            np.array(sorted(queues), "<u8").tobytes(),
            np.array(numbers, "<u4").tobytes(),
            np.array(ids, "<i8").tobytes(),
            PackedTexts.pack(list(places)),
        )

    def groups(self) -> dict[int, NamedGroup]:
        """Return the groups by key."""
        keys = np.frombuffer(self.group_keys, "<u8").tolist()
        systems = [BY_NUMBER[number] for number in self.group_systems]
        return dict(zip(keys, map(NamedGroup, self.group_names.unpack(), systems), strict=True))

    def queues(self) -> tuple[UInt64, UInt32, Int64, list[str]]:
        """Return key, place index and number of each queue; and the places, which ``place_of`` parses."""
        return (
            np.frombuffer(self.queue_keys, "<u8").astype(np.uint64),
            np.frombuffer(self.queue_places, "<u4").astype(np.uint32),
            np.frombuffer(self.queue_ids, "<i8").astype(np.int64),
            self.places.unpack(),
        )


def place_of(place: str) -> tuple[str, str | None]:
    """Return topic and broker of a packed place."""
    topic, _, broker = place.partition(_SEPARATOR)
    return topic, broker or None


class PackedProgress(msgspec.Struct, array_like=True):
    """Observations as from ``ProgressColumns.distinct``: P rows, little-endian.

    Attributes:
        group_keys, queue_keys: uint64[P]. times: int64[P].
        offsets, ends, positions: int64[P]; empty where all are unknown.
        others: uint8[P], 1 where a row is not a commit; empty if all are commits.
        names: Names of all groups and queues in it.
        written_offsets, written_times: int64[P]; empty where all are unknown.
    """

    group_keys: bytes
    queue_keys: bytes
    times: bytes
    offsets: bytes = b""
    ends: bytes = b""
    positions: bytes = b""
    others: bytes = b""
    names: PackedNames | None = None
    written_offsets: bytes = b""
    written_times: bytes = b""

    @classmethod
    def pack(cls, columns: ProgressColumns, names: PackedNames) -> PackedProgress:
        """Pack columns."""
        return cls(
            columns.groups.astype("<u8").tobytes(),
            columns.queues.astype("<u8").tobytes(),
            columns.times.astype("<i8").tobytes(),
            _offsets(columns.offsets),
            _offsets(columns.ends),
            _offsets(columns.positions),
            b"" if columns.commits.all() else (~columns.commits).astype(np.uint8).tobytes(),
            names,
            _offsets(columns.written_offsets),
            _offsets(columns.written_times),
        )

    def columns(self) -> ProgressColumns:
        """Return the columns."""
        times = np.frombuffer(self.times, "<i8").astype(np.int64)
        unknown = np.full(len(times), UNKNOWN, np.int64)
        packed = (self.offsets, self.ends, self.positions, self.written_offsets, self.written_times)
        offsets, ends, positions, written, written_times = (
            np.frombuffer(column, "<i8").astype(np.int64) if column else unknown for column in packed
        )
        return ProgressColumns(
            np.frombuffer(self.group_keys, "<u8").astype(np.uint64),
            np.frombuffer(self.queue_keys, "<u8").astype(np.uint64),
            times,
            offsets,
            ends,
            positions,
            np.frombuffer(self.others, np.uint8) == 0 if self.others else np.ones(len(times), np.bool_),
            written,
            written_times,
        )


def _offsets(column: Int64) -> bytes:
    return column.astype("<i8").tobytes() if (column != UNKNOWN).any() else b""


class PackedEnds(msgspec.Struct, array_like=True):
    """End offsets: E rows, little-endian.

    Attributes:
        queue_keys: uint64[E]. times, ends: int64[E]. starts: int64[E], where logs begin; empty if all are unknown.
    """

    queue_keys: bytes
    times: bytes
    ends: bytes
    starts: bytes = b""

    @classmethod
    def pack(cls, queues: UInt64, times: Int64, ends: Int64, starts: Int64 | None = None) -> PackedEnds:
        """Pack columns."""
        return cls(
            queues.astype("<u8").tobytes(),
            times.astype("<i8").tobytes(),
            ends.astype("<i8").tobytes(),
            b"" if starts is None else _offsets(starts),
        )

    def columns(self) -> tuple[UInt64, Int64, Int64, Int64]:
        """Return the columns."""
        times = np.frombuffer(self.times, "<i8").astype(np.int64)
        return (
            np.frombuffer(self.queue_keys, "<u8").astype(np.uint64),
            times,
            np.frombuffer(self.ends, "<i8").astype(np.int64),
            np.frombuffer(self.starts, "<i8").astype(np.int64) if self.starts else np.full(len(times), UNKNOWN),
        )
