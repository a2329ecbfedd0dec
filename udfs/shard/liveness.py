"""Core: the last heartbeat of each member, in arrays, and the groups that are due because of it. No I/O.

A row is one member that is tracked by heartbeats: the upper 40 bits of its key, its last applied heartbeat, its session
timeout. Rows are ordered by group (in the order of the shard's groups), then by key. A heartbeat without a description
costs only a search in this table, unless its member has no row, it comes after a missed deadline, or it is late.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from udfs.model.arrays import Int64, UInt64, find_sorted
from udfs.shard.state_format import (
    KEY_BYTES,
    KEY_SHIFT,
    Buffer,
    must_hold,
    pack_column,
    pack_keys,
    pack_parts,
    unpack_column,
    unpack_keys,
    unpack_parts,
)

Bools: TypeAlias = npt.NDArray[np.bool_]
GROUP_SHIFT = np.uint64(8 * KEY_BYTES)  # a position is the number of a group, followed by the 40 bits of a member's key
_MIXED = -1  # replaces a group's session timeout if its members' timeouts differ


class AppliedHeartbeats(NamedTuple):
    """The result of one batch's heartbeats of members with a row.

    Attributes:
        members, times: The pairs that are due, in any order.
        is_late: Whether each pair is older than both the clock before the batch and its member's last heartbeat.
        last_before: Each row's last heartbeat before the batch.
        due_groups: Whether, in each group, a deadline has passed, or a heartbeat is later than the deadline before it.
    """

    members: Int64
    times: Int64
    is_late: Bools
    last_before: Int64
    due_groups: Bools


class HeartbeatRows(NamedTuple):
    """A group's members that are tracked by heartbeats, in the order of their keys."""

    keys: UInt64
    last: Int64
    timeouts: Int64


class Liveness:
    """The table of members, and the heartbeats that wait for the clock.

    Attributes:
        counts: Rows of each group, in the order of the shard's groups.
        keys, last, timeouts: The rows.
        waiting_members, waiting_times: Row and time of heartbeats at or after the clock, in any order.
    """

    def __init__(self, groups: int, members: Buffer = b"", last: Buffer = b"", waiting: Buffer = b"") -> None:
        counts, keys, group_timeouts, mixed_rows, mixed = unpack_parts(members, 5)
        self.counts: Int64 = unpack_column(counts, groups) if len(members) else np.zeros(groups, dtype=np.int64)
        self.keys: UInt64 = unpack_keys(keys)
        rows = len(self.keys)
        must_hold(int(self.counts.sum()) == rows and (self.counts >= 0).all(), "members do not match their groups")
        timeouts = unpack_column(group_timeouts, groups if len(members) else 0)
        self.timeouts: Int64 = np.repeat(timeouts, self.counts) if len(members) else self._none()
        mixed_places = unpack_column(mixed_rows)
        must_hold(_are_within(mixed_places, rows), "timeouts of unknown members")
        self.timeouts[mixed_places] = unpack_column(mixed, len(mixed_places))
        self.last: Int64 = unpack_column(last, rows)
        waiting_members, waiting_times = unpack_parts(waiting, 2)
        self.waiting_members: Int64 = unpack_column(waiting_members)
        must_hold(_are_within(self.waiting_members, rows), "heartbeats of unknown members")
        self.waiting_times: Int64 = unpack_column(waiting_times, len(self.waiting_members))
        self.numbers: Int64 = np.repeat(np.arange(len(self.counts)), self.counts)

    @staticmethod
    def _none() -> Int64:
        return np.empty(0, dtype=np.int64)

    def encode_members(self) -> bytes:
        """Encode the part that heartbeats do not change."""
        starts = np.concatenate([[0], np.cumsum(self.counts)[:-1]]) if len(self.counts) else self._none()
        filled = self.counts > 0
        group_timeouts = np.zeros(len(self.counts), dtype=np.int64)
        if len(self.keys):
            least = np.minimum.reduceat(self.timeouts, starts[filled])
            most = np.maximum.reduceat(self.timeouts, starts[filled])
            group_timeouts[filled] = np.where(least == most, least, _MIXED)
            # An empty group gets its neighbours' timeout, because a column of one value takes no bytes.
            group_timeouts[~filled] = group_timeouts[filled].max()
        mixed = np.flatnonzero(np.repeat(group_timeouts == _MIXED, self.counts))
        return pack_parts(
            pack_column(self.counts),
            pack_keys(self.keys),
            pack_column(group_timeouts),
            pack_column(mixed),
            pack_column(self.timeouts[mixed]),
        )

    def encode_last_heartbeats(self) -> bytes:
        """Encode the last heartbeats."""
        return pack_column(self.last)

    def encode_waiting(self) -> bytes:
        """Encode the waiting heartbeats."""
        if not len(self.waiting_times):
            return b""
        return pack_parts(pack_column(self.waiting_members), pack_column(self.waiting_times))

    def places(self) -> UInt64:
        """Return the sort keys of the rows: number of the group, then 40 bits of the key."""
        return places_of(self.numbers, self.keys)

    def apply_due(self, members: Int64, times: Int64, clock_before: int | None, clock: int | None) -> AppliedHeartbeats:
        """Apply the due heartbeats of members with a row, waiting and new; the others wait.

        Args:
            members: Row of each new heartbeat. times: Its time. Repeats are harmless.
            clock: None if nothing is due.
        """
        if len(self.waiting_times):
            members = np.concatenate([self.waiting_members, members])
            times = np.concatenate([self.waiting_times, times])
        due = times < clock if clock is not None else np.zeros(len(times), dtype=np.bool_)
        self.waiting_members, self.waiting_times = members[~due], times[~due]
        if len(self.waiting_times) > len(self.keys):
            self._drop_repeats()
        members, times = members[due], times[due]
        before = self.last
        is_late = np.zeros(len(times), dtype=np.bool_)
        if clock_before is not None:
            is_late = np.asarray((times < clock_before) & (times < before[members]))
        due_groups = np.zeros(len(self.counts), dtype=np.bool_)
        due_groups[self.numbers[self._members_with_a_gap(members, times)]] = True
        if len(members):
            self.last = before.copy()
            np.maximum.at(self.last, members, times)
        if clock is not None:
            due_groups[self.numbers[self.last + self.timeouts < clock]] = True
        return AppliedHeartbeats(members, times, is_late, before, due_groups)

    def _members_with_a_gap(self, members: Int64, times: Int64) -> Int64:
        """Return the rows with a heartbeat later than the deadline before it."""
        far = times - self.last[members] > self.timeouts[members]
        if not far.any():
            return self._none()
        suspects = np.isin(members, members[far])
        order = np.lexsort((times[suspects], members[suspects]))
        rows, at = members[suspects][order], times[suspects][order]
        former = np.empty_like(at)
        former[1:] = at[:-1]
        first = np.ones(len(rows), dtype=np.bool_)
        first[1:] = rows[1:] != rows[:-1]
        former[first] = self.last[rows[first]]
        former = np.maximum(former, self.last[rows])
        return np.asarray(rows[at - former > self.timeouts[rows]])

    def _drop_repeats(self) -> None:
        order = np.lexsort((self.waiting_times, self.waiting_members))
        members, times = self.waiting_members[order], self.waiting_times[order]
        kept = np.ones(len(members), dtype=np.bool_)
        kept[1:] = (members[1:] != members[:-1]) | (times[1:] != times[:-1])
        self.waiting_members, self.waiting_times = members[kept], times[kept]

    def replace(self, inserted: Int64, numbers: Int64, rows: list[HeartbeatRows]) -> list[tuple[int, int, int]]:
        """Insert new groups and set all rows of some groups.

        Args:
            inserted: For each new group, ascending, the old number that it is inserted before.
            numbers: The groups whose rows are set, in the new numbering, ascending, distinct; ``rows`` of each.
        Returns: waiting heartbeats whose member has no row now: (new number of the group, key, time).
        """
        waiting = self.places()[self.waiting_members]
        if len(inserted):
            self.counts = np.insert(self.counts, inserted, 0)
            moved = np.searchsorted(inserted, np.arange(int(self.numbers.max(initial=-1)) + 1), side="right")
            shift = moved.astype(np.uint64)
            waiting = waiting + (shift[(waiting >> GROUP_SHIFT).astype(np.int64)] << GROUP_SHIFT)
            self.numbers = self.numbers + moved[self.numbers]
        stay = ~np.isin(self.numbers, numbers)
        staying = places_of(self.numbers[stay], self.keys[stay])
        sizes = np.asarray([len(row.keys) for row in rows], dtype=np.int64)
        fresh_numbers = np.repeat(numbers, sizes)
        fresh = HeartbeatRows(*(np.concatenate(column) for column in zip(*rows, strict=True))) if rows else _NO_ROWS
        where = np.searchsorted(staying, places_of(fresh_numbers, fresh.keys))
        self.keys = np.insert(self.keys[stay], where, fresh.keys)
        self.last = np.insert(self.last[stay], where, fresh.last)
        self.timeouts = np.insert(self.timeouts[stay], where, fresh.timeouts)
        self.numbers = np.insert(self.numbers[stay], where, fresh_numbers)
        self.counts[numbers] = sizes
        rows_of_waiting = find_sorted(self.places(), waiting)
        lost = rows_of_waiting < 0
        without_row = [
            (place >> 40, (place & ((1 << 40) - 1)) << 24, at)
            for place, at in zip(waiting[lost].tolist(), self.waiting_times[lost].tolist(), strict=True)
        ]
        self.waiting_members, self.waiting_times = rows_of_waiting[~lost], self.waiting_times[~lost]
        return without_row


def places_of(numbers: Int64, keys: UInt64) -> UInt64:
    """Return the sort keys of rows: number of the group, then the upper 40 bits of the key."""
    return np.asarray((numbers.astype(np.uint64) << GROUP_SHIFT) | (keys >> KEY_SHIFT))


def _are_within(places: Int64, count: int) -> bool:
    return not len(places) or (int(places.min()) >= 0 and int(places.max()) < count)


_NO_ROWS = HeartbeatRows(np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
