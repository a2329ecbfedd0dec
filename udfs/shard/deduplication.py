"""Core: the remembered ids of a shard's groups and topics, by which repeated events are recognized. No I/O.

An id is kept as 64 bits of its hash with the time from which it counts. `docs/decisions.md` has the collision rate.
"""

from __future__ import annotations

import hashlib

import numpy as np

from udfs.shard.grouped_times import GroupedTimes
from udfs.shard.state_format import Buffer

_ID_BYTES = 8


def id_key(event_id: str) -> int:
    """Return the key under which an id is remembered: 64 bits of hash."""
    return int.from_bytes(hashlib.blake2b(event_id.encode(), digest_size=_ID_BYTES).digest(), "big")


class DedupWindow:
    """The remembered ids of one group or topic.

    An event counts from its own time on or, if the clock had passed that before the batch, from the clock on: a late
    event, however old, is remembered as long as any other.
    """

    def __init__(self, remembered: dict[int, int], clock_before: int | None, span_ms: int) -> None:
        self._remembered = remembered
        self._clock_before = clock_before
        self._span_ms = span_ms
        self.changed = False

    def set_clock_before(self, clock: int | None) -> None:
        """Set the clock before the batch whose events follow."""
        self._clock_before = clock

    def is_repeat(self, event_id: str, time_ms: int) -> bool:
        """Return whether an event being applied is a repeat; remember it if it is the first with its id."""
        key = id_key(event_id)
        if self._is_remembered(key, time_ms):
            return True
        self._remembered[key] = self._counts_from(time_ms)
        self.changed = True
        return False

    def was_applied(self, event_id: str, time_ms: int) -> bool:
        """Return whether an event is a repeat, without remembering it."""
        return self._is_remembered(id_key(event_id), time_ms)

    def _is_remembered(self, key: int, time_ms: int) -> bool:
        first = self._remembered.get(key)
        return first is not None and self._counts_from(time_ms) - first <= self._span_ms

    def _counts_from(self, time_ms: int) -> int:
        return time_ms if self._clock_before is None else max(time_ms, self._clock_before)

    def rows(self) -> dict[int, int]:
        """Return the remembered ids: key -> time."""
        return self._remembered


class DedupStore:
    """The windows of a shard's groups and topics, decoded on first use."""

    def __init__(self, data: Buffer, clock_before: int | None, span_ms: int) -> None:
        self._data = data
        self._table: GroupedTimes | None = None
        self._clock_before = clock_before
        self._span_ms = span_ms
        self._windows: dict[int, DedupWindow] = {}

    def set_clock_before(self, clock: int) -> None:
        """Drop ids older than this clock; to be called before any window is used."""
        self._clock_before = clock

    def of(self, key: int) -> DedupWindow:
        """Return the window of a group or topic."""
        window = self._windows.get(key)
        if window is None:
            window = DedupWindow(self.remembered(key), self._clock_before, self._span_ms)
            self._windows[key] = window
        return window

    def remembered(self, key: int) -> dict[int, int]:
        """Return the ids remembered before the batch: key of the id -> time."""
        keys, times = self._decoded().of(key)
        return dict(zip(keys.tolist(), times.tolist(), strict=True))

    def remember(self, key: int, rows: dict[int, int]) -> None:
        """Restore remembered ids from another state."""
        window = DedupWindow(self.of(key).rows() | rows, self._clock_before, self._span_ms)
        window.changed = True
        self._windows[key] = window

    def keep_since(self, clock_before: int | None) -> None:
        """Keep the ids that a group with waiting input from this clock on may still need."""
        if clock_before is not None and self._clock_before is not None:
            self._clock_before = min(self._clock_before, clock_before)

    def encode(self, oldest: int | None) -> tuple[Buffer, int | None]:
        """Encode the ids; return also the time of the oldest one.

        Args:
            oldest: The time that this returned before. Expired ids are removed when others change, else once the oldest
                has been expired for a tenth of the span.
        """
        changed = {key: window.rows() for key, window in self._windows.items() if window.changed}
        horizon = None if self._clock_before is None else self._clock_before - self._span_ms
        stale = oldest is not None and horizon is not None and oldest < horizon - self._span_ms // 10
        if not changed and not stale:
            return self._data, oldest
        table = self._decoded()
        table.replace(changed)
        if horizon is not None:
            table.keep(table.times >= horizon)
        return table.encode(), int(table.times.min()) if len(table) else None

    def _decoded(self) -> GroupedTimes:
        if self._table is None:
            self._table = GroupedTimes(self._data)
        return self._table


def topic_dedup_key(topic_key: int) -> int:
    """Return the key of a topic's window: a group of the same name has another."""
    return int(np.uint64(topic_key) ^ np.uint64(0x746F706963))
