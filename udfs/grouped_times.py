"""Core: one time for each (group, key), packed: commits of queues, ids remembered. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from udfs.cold import find_sorted
from udfs.packing import Int64, UInt64
from udfs.state_codec import KEY_SHIFT, Buffer, narrow, pack_column, pack_parts, unpack_column, unpack_parts, widen

GROUP_SHIFT = np.uint64(40)  # a place is the number of a group, then 40 bits of the key


class GroupedTimes:
    """A sorted table of (group key, key, time).

    Two keys of one group whose upper 40 bits are equal count as the same.

    Attributes:
        groups: Keys of the groups that have rows, ascending; counts: rows of each.
        keys, times: The rows, by group, then by key.
    """

    def __init__(self, data: Buffer = b"", key_bytes: int = 5) -> None:
        self._key_bytes = key_bytes
        groups, counts, keys, times = unpack_parts(data, 4)
        self.groups: UInt64 = np.frombuffer(groups, dtype="<u8").astype(np.uint64, copy=False)
        self.counts: Int64 = unpack_column(counts)
        self.keys: UInt64 = np.asarray(widen(keys, key_bytes) << np.uint64(64 - 8 * key_bytes))
        self.times: Int64 = unpack_column(times)

    def encode(self) -> bytes:
        """Answer the bytes from which an equal table is built."""
        if not len(self.times):
            return b""
        groups = self.groups.astype("<u8", copy=False).tobytes()
        keys = narrow(self.keys >> np.uint64(64 - 8 * self._key_bytes), self._key_bytes)
        return pack_parts(groups, pack_column(self.counts), keys, pack_column(self.times))

    def __len__(self) -> int:
        return len(self.times)

    def of(self, group: int) -> tuple[UInt64, Int64]:
        """Answer the keys and times of one group."""
        at = int(np.searchsorted(self.groups, np.uint64(group)))
        if at == len(self.groups) or int(self.groups[at]) != group:
            return self.keys[:0], self.times[:0]
        end = int(self.counts[: at + 1].sum())
        rows = slice(end - int(self.counts[at]), end)
        return self.keys[rows], self.times[rows]

    def raise_to(self, groups: UInt64, keys: UInt64, times: Int64) -> None:
        """Set the time of each (group, key) to the greatest told, old or new."""
        if not len(times):
            return
        self._add_groups(np.unique(groups))
        asked = self._places_of(find_sorted(self.groups, groups), keys)
        standing = self._places()
        found = find_sorted(standing, asked)
        known = found >= 0
        np.maximum.at(self.times, found[known], times[known])
        if known.all():
            return
        fresh, first, inverse = np.unique(asked[~known], return_index=True, return_inverse=True)
        newest = np.full(len(fresh), np.iinfo(np.int64).min, dtype=np.int64)
        np.maximum.at(newest, inverse, times[~known])
        self._insert(standing, fresh, keys[~known][first], newest)

    def replace(self, rows: Mapping[int, Mapping[int, int]]) -> None:
        """Set all rows of these groups: group key -> key -> time."""
        gone = self._numbers_in(rows)
        if gone.any():
            self.keep(~gone)
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
        """Drop all other rows, and the groups left without any."""
        counts = np.bincount(self._numbers()[rows], minlength=len(self.groups)).astype(np.int64)
        self.keys, self.times = self.keys[rows], self.times[rows]
        self.groups, self.counts = self.groups[counts > 0], counts[counts > 0]

    def _numbers(self) -> Int64:
        return np.repeat(np.arange(len(self.groups)), self.counts)

    def _numbers_in(self, rows: Mapping[int, object]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        wanted = np.fromiter(rows, dtype=np.uint64, count=len(rows))
        return np.repeat(np.isin(self.groups, wanted), self.counts)

    def _places(self) -> UInt64:
        return self._places_of(self._numbers(), self.keys)

    @staticmethod
    def _places_of(numbers: Int64, keys: UInt64) -> UInt64:
        return np.asarray((numbers.astype(np.uint64) << GROUP_SHIFT) | (keys >> KEY_SHIFT))

    def _add_groups(self, groups: UInt64) -> None:
        fresh = groups[find_sorted(self.groups, groups) < 0]
        where = np.searchsorted(self.groups, fresh)
        self.groups = np.insert(self.groups, where, fresh)
        self.counts = np.insert(self.counts, where, 0)

    def _insert(self, standing: UInt64, places: UInt64, keys: UInt64, times: Int64) -> None:
        where = np.searchsorted(standing, places)
        self.keys = np.insert(self.keys, where, keys)
        self.times = np.insert(self.times, where, times)
        numbers = (places >> GROUP_SHIFT).astype(np.int64)
        self.counts = self.counts + np.bincount(numbers, minlength=len(self.groups)).astype(np.int64)
