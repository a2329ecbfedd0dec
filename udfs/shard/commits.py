"""Core: when each queue of each group was last committed or pulled, packed. No I/O.

Commits are evidence about a queue's owner, never liveness: they wake no group. They are stored, and passed to the
group when something else wakes it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from udfs.model.arrays import Int64, UInt64
from udfs.packets.packet import PackedProgress
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
from udfs.shard.time_index import GroupedTimes

_KEY_BYTES = 8


class Commits:
    """The commits of a shard: the newest applied one of each queue, and those that wait for the clock."""

    def __init__(self, applied: Buffer = b"", waiting: Buffer = b"") -> None:
        self._data = applied
        self._waiting_data = waiting
        self._table: GroupedTimes | None = None
        groups, queues, times = unpack_parts(waiting, 3)
        self._groups: UInt64 = widen(groups, _KEY_BYTES)
        self._queues: UInt64 = widen(queues, _KEY_BYTES)
        must_hold(len(self._groups) == len(self._queues), "waiting commits are incomplete")
        self._times: Int64 = unpack_column(times, len(self._groups))
        self._due: tuple[UInt64, UInt64, Int64] = (self._groups[:0], self._queues[:0], self._times[:0])
        self._waiting_changed = False

    @property
    def waiting_times(self) -> Int64:
        """The times of all waiting commits."""
        return self._times

    def take(self, groups: UInt64, queues: UInt64, times: Int64) -> None:
        """Add commits of any time."""
        if len(times):
            self._groups = np.concatenate([self._groups, groups])
            self._queues = np.concatenate([self._queues, queues])
            self._times = np.concatenate([self._times, times])
            self._waiting_changed = True

    def take_packed(self, packed: PackedProgress) -> None:
        """Add the commits of a packet."""
        self.take(
            np.frombuffer(packed.group_keys, "<u8").astype(np.uint64),
            np.frombuffer(packed.queue_keys, "<u8").astype(np.uint64),
            np.frombuffer(packed.times, "<i8").astype(np.int64),
        )

    def settle(self, clock: int) -> None:
        """Make commits before the clock due; the others wait."""
        due = self._times < clock
        if not due.any():
            return
        groups, queues, times = self._groups[due], self._queues[due], self._times[due]
        order = np.lexsort((times, groups))
        self._due = (groups[order], queues[order], times[order])
        self._groups, self._queues, self._times = self._groups[~due], self._queues[~due], self._times[~due]
        self._waiting_changed = True

    def of(self, group: int) -> dict[int, list[int]]:
        """Return a group's commits: queue -> the one known before this batch, then the due ones, ascending."""
        answer: dict[int, list[int]] = {}
        if len(self._data) or self._table is not None:
            keys, times = self._decoded().of(group)
            answer = {key: [at] for key, at in zip(keys.tolist(), times.tolist(), strict=True)}
        groups, queues, moments = self._due
        if len(groups):
            first, last = np.searchsorted(groups, np.uint64(group)), np.searchsorted(groups, np.uint64(group), "right")
            for queue, at in zip(queues[first:last].tolist(), moments[first:last].tolist(), strict=True):
                known = answer.setdefault(queue, [])
                if not known or at > known[-1]:
                    known.append(at)
        return answer

    def waiting_of(self, group: int) -> list[tuple[int, int]]:
        """Return a group's commits that wait: (queue, time), ascending."""
        mine = self._groups == np.uint64(group)
        return sorted(zip(self._queues[mine].tolist(), self._times[mine].tolist(), strict=True))

    def of_others(self, groups: UInt64) -> list[tuple[int, int, int]]:
        """Return the commits, applied and waiting, of all groups but these: (group, queue, time)."""
        table = self._decoded()
        owners = np.concatenate([np.repeat(table.groups, table.counts), self._groups])
        queues, times = np.concatenate([table.keys, self._queues]), np.concatenate([table.times, self._times])
        others = ~np.isin(owners, groups)
        return sorted(zip(owners[others].tolist(), queues[others].tolist(), times[others].tolist(), strict=True))

    def restore(self, group: int, known: Sequence[tuple[int, int]]) -> None:
        """Restore a group's applied commits from another state: (queue, time)."""
        if known:
            queues = np.asarray([queue for queue, _ in known], dtype=np.uint64)
            times = np.asarray([at for _, at in known], dtype=np.int64)
            self._decoded().raise_to(np.full(len(known), group, dtype=np.uint64), queues, times)
            self._data = self._decoded().encode()

    def encode(self, forget_before: int | None) -> tuple[Buffer, Buffer]:
        """Encode the applied and the waiting commits; applied ones that are too old are dropped."""
        if len(self._due[2]):
            table = self._decoded()
            table.raise_to(*self._due)
            if forget_before is not None and table.times.min() < forget_before:
                table.keep(table.times >= forget_before)
            self._data = table.encode()
        if self._waiting_changed:
            self._waiting_data = b""
            if len(self._times):
                self._waiting_data = pack_parts(
                    narrow(self._groups, _KEY_BYTES), narrow(self._queues, _KEY_BYTES), pack_column(self._times)
                )
        return self._data, self._waiting_data

    def _decoded(self) -> GroupedTimes:
        if self._table is None:
            self._table = GroupedTimes(self._data)
        return self._table
