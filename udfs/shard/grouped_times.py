"""Core: one time for each (group, key), packed, for commits of queues and remembered ids. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from udfs.model.arrays import Int64, UInt64, distinct, find_sorted
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

_KEY_BYTES = 8


class GroupedTimes:
    """A sorted table of (group key, key, time).

    Attributes:
        groups: Keys of the groups that have rows, ascending. counts: The number of rows of each.
        keys, times: The rows, by group, then by key.
    """

    def __init__(self, data: Buffer = b"") -> None:
        groups, counts, keys, times = unpack_parts(data, 4)
        self.groups: UInt64 = np.frombuffer(groups, dtype="<u8").astype(np.uint64, copy=False)
        self.keys: UInt64 = widen(keys, _KEY_BYTES)
        self.counts: Int64 = unpack_column(counts, len(self.groups))
        must_hold(
            int(self.counts.sum()) == len(self.keys) and (self.counts >= 0).all(), "rows do not match their groups"
        )
        self.times: Int64 = unpack_column(times, len(self.keys))

    def encode(self) -> bytes:
        """Return bytes that decode to an equal table."""
        if not len(self.times):
            return b""
        groups = self.groups.astype("<u8", copy=False).tobytes()
        return pack_parts(groups, pack_column(self.counts), narrow(self.keys, _KEY_BYTES), pack_column(self.times))

    def __len__(self) -> int:
        return len(self.times)

    def of(self, group: int) -> tuple[UInt64, Int64]:
        """Return the keys and times of one group."""
        at = int(np.searchsorted(self.groups, np.uint64(group)))
        if at == len(self.groups) or int(self.groups[at]) != group:
            return self.keys[:0], self.times[:0]
        end = int(self.counts[: at + 1].sum())
        rows = slice(end - int(self.counts[at]), end)
        return self.keys[rows], self.times[rows]

    def raise_to(self, groups: UInt64, keys: UInt64, times: Int64) -> None:
        """Set the time of each (group, key) to the greatest one given, old or new."""
        if not len(times):
            return
        self._add_groups(distinct(groups))
        numbers = np.concatenate([self._numbers(), find_sorted(self.groups, groups)])
        keys, times = np.concatenate([self.keys, keys]), np.concatenate([self.times, times])
        order = np.lexsort((keys, numbers))
        numbers, keys, times = numbers[order], keys[order], times[order]
        is_first = np.ones(len(keys), dtype=np.bool_)
        is_first[1:] = (numbers[1:] != numbers[:-1]) | (keys[1:] != keys[:-1])
        self.keys = keys[is_first]
        self.times = np.maximum.reduceat(times, np.flatnonzero(is_first))
        self.counts = np.bincount(numbers[is_first], minlength=len(self.groups)).astype(np.int64)

    def replace(self, rows: Mapping[int, Mapping[int, int]]) -> None:
        """Set all rows of these groups: group key -> key -> time."""
        replaced = self._numbers_in(rows)
        if replaced.any():
            self.keep(~replaced)
        count = sum(len(of_group) for of_group in rows.values())
        if not count:
            return
        groups = np.repeat(
            np.fromiter(rows, dtype=np.uint64, count=len(rows)), [len(of_group) for of_group in rows.values()]
        )
        keys = np.fromiter((key for of_group in rows.values() for key in of_group), dtype=np.uint64, count=count)
        times = np.fromiter((at for of_group in rows.values() for at in of_group.values()), dtype=np.int64, count=count)
        self.raise_to(groups, keys, times)

    def keep(self, rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> None:
        """Drop all other rows, and groups left without any."""
        counts = np.bincount(self._numbers()[rows], minlength=len(self.groups)).astype(np.int64)
        self.keys, self.times = self.keys[rows], self.times[rows]
        self.groups, self.counts = self.groups[counts > 0], counts[counts > 0]

    def _numbers(self) -> Int64:
        return np.repeat(np.arange(len(self.groups)), self.counts)

    def _numbers_in(self, rows: Mapping[int, object]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        wanted = np.fromiter(rows, dtype=np.uint64, count=len(rows))
        return np.repeat(find_sorted(np.sort(wanted), self.groups) >= 0, self.counts)

    def _add_groups(self, groups: UInt64) -> None:
        fresh = groups[find_sorted(self.groups, groups) < 0]
        where = np.searchsorted(self.groups, fresh)
        self.groups = np.insert(self.groups, where, fresh)
        self.counts = np.insert(self.counts, where, 0)
