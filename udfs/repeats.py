"""Core: the remembered ids of a shard's groups and topics, by which repeated events are known. No I/O.

An id is kept as 40 bits of its hash beside the time at which it was first applied: within one group, two different
ids are taken for one with a chance of about one in a million million.
"""

from __future__ import annotations

import hashlib

import numpy as np

from udfs.grouped_times import GroupedTimes
from udfs.state_codec import Buffer

_ID_BYTES = 5


def id_key(event_id: str) -> int:
    """Answer the key under which an id is remembered: 40 bits of hash, in the upper bits of 64."""
    return int.from_bytes(hashlib.blake2b(event_id.encode(), digest_size=_ID_BYTES).digest(), "big") << 24


class Ledger:
    """The remembered ids of one group or topic.

    An id counts as long as it was first applied within the span, and not earlier than the clock as it stood
    before the batch less the span: what this batch forgets does not depend on when it is swept out.
    """

    def __init__(self, remembered: dict[int, int], horizon: int | None, span_ms: int) -> None:
        self._remembered = remembered
        self._horizon = horizon
        self._span_ms = span_ms
        self.changed = False

    def is_repeat(self, event_id: str, time_ms: int) -> bool:
        """Judge an event as it is applied, and remember it when it is the first with its id."""
        if self.was_applied(event_id, time_ms):
            return True
        self._remembered[id_key(event_id)] = time_ms
        self.changed = True
        return False

    def was_applied(self, event_id: str, time_ms: int) -> bool:
        """Judge an event without remembering it."""
        first = self._remembered.get(id_key(event_id))
        if first is None or (self._horizon is not None and first < self._horizon):
            return False
        return time_ms - first <= self._span_ms

    def rows(self) -> dict[int, int]:
        """Answer what is remembered: key -> time."""
        return self._remembered


class Repeats:
    """The ledgers of a shard, decoded when one is asked for."""

    def __init__(self, data: Buffer, clock_before: int | None, span_ms: int) -> None:
        self._data = data
        self._table: GroupedTimes | None = None
        self._horizon = None if clock_before is None else clock_before - span_ms
        self._span_ms = span_ms
        self._ledgers: dict[int, Ledger] = {}

    def set_clock_before(self, clock: int) -> None:
        """Forget what that clock has left behind; before any ledger is asked for."""
        self._horizon = clock - self._span_ms

    def of(self, key: int) -> Ledger:
        """Answer the ledger of a group or topic."""
        ledger = self._ledgers.get(key)
        if ledger is None:
            ledger = Ledger(self.remembered(key), self._horizon, self._span_ms)
            self._ledgers[key] = ledger
        return ledger

    def remembered(self, key: int) -> dict[int, int]:
        """Answer what was remembered before the batch: key of the id -> time."""
        keys, times = self._decoded().of(key)
        return dict(zip(keys.tolist(), times.tolist(), strict=True))

    def remember(self, key: int, rows: dict[int, int]) -> None:
        """Put remembered ids in, as they stood elsewhere."""
        ledger = self.of(key)
        ledger.rows().update(rows)
        ledger.changed = True

    def encode(self, oldest: int | None) -> tuple[Buffer, int | None]:
        """Answer the bytes, and the time of the oldest id in them.

        Args:
            oldest: What this answered before. Ids are swept out when others change, else once the oldest has
                been forgotten for a tenth of the span.
        """
        changed = {key: ledger.rows() for key, ledger in self._ledgers.items() if ledger.changed}
        stale = oldest is not None and self._horizon is not None and oldest < self._horizon - self._span_ms // 10
        if not changed and not stale:
            return self._data, oldest
        table = self._decoded()
        table.replace(changed)
        if self._horizon is not None:
            table.keep(table.times >= self._horizon)
        return table.encode(), int(table.times.min()) if len(table) else None

    def _decoded(self) -> GroupedTimes:
        if self._table is None:
            self._table = GroupedTimes(self._data)
        return self._table


def topic_ledger_key(topic_key: int) -> int:
    """Answer the key of a topic's ledger: a group of the same name has another."""
    return int(np.uint64(topic_key) ^ np.uint64(0x746F706963))
