"""Shell: how old the next unread message of each queue is, by the brokers' time of a message near it, or by its ends.

Where brokers gave the time of the next unread message, it is that. Otherwise it was written after the last observed end
that is not beyond the commit, and after the message before it whose time is known; and no later than the first end that
is beyond it. A queue has a row for each span in which it moved, so its end did not grow in spans without one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from streaming.tables.arrow_rows import from_arrow_columns
from streaming.tables.schema import Row
from streaming.terminal.format import counted, span_text
from streaming.views.reader import Reader, Within
from udfs.model.arrays import Int64
from udfs.model.log_pace import STARTS_OF_PACE, LogPace
from udfs.model.observations import UNKNOWN
from udfs.packets.progress_columns import Booleans

_Queue: TypeAlias = tuple[str, str | None, int]

# Rows of one group that are at most this old are read; beyond them only a lower bound of an age is known.
HISTORY_MS = 86_400_000
# An end that was read first in a span may have grown before it: ends are read at least once in so long.
_READ_WITHIN_MS = 60_000
_NO_END = (UNKNOWN,) * 3
_COLUMNS = ("topic", "broker", "queue_id", "event_time", "end_offset", "end_at", "start_offset")


class LagAge(NamedTuple):
    """The age of a queue's next unread message, in ms.

    Attributes:
        lag_ms: Exact, or interpolated; None if only a lower bound is known. lag_min_ms, lag_max_ms: Bounds; both are 0
            if everything was read. lag_source: ``brokers`` if the time of a message at the commit, or before it, bounds
            the age more closely than the history of ends does; ``history``; None if nothing is known. deleted_in_ms:
            How long until retention deletes it, as fast as the start of the log moved last; 0 if it did; None if
            nothing waits, or the start does not move.
    """

    lag_ms: int | None = None
    lag_min_ms: int | None = None
    lag_max_ms: int | None = None
    lag_source: str | None = None
    deleted_in_ms: int | None = None


_NONE_WAITS = LagAge(0, 0, 0, "history")


def lag_ages(
    reader: Reader, where: Mapping[str, Any], newest: Mapping[_Queue, Row], known_ms: int
) -> dict[_Queue, LagAge]:
    """Return the age of the next unread message of each queue of a group, as far as it is known.

    Args:
        where: The cluster and the group. newest: The newest row of each queue. known_ms: Until when tables are known.
    """
    waiting = {queue: row for queue, row in newest.items() if row.get("lag")}
    found = {queue: _NONE_WAITS for queue, row in newest.items() if row.get("lag") == 0}
    if not waiting:
        return found
    history = _History(waiting)
    topics = {topic for topic, _, _ in waiting}
    since = Within(known_ms - HISTORY_MS)
    for block in reader.blocks(
        "queue_progress", columns=_COLUMNS, where={**where, "topic": topics, "event_time": since}
    ):
        history.add(block)
    ages = history.ages(known_ms)
    found |= {queue: ages.get(queue, LagAge()) for queue in waiting}
    return {queue: age._replace(deleted_in_ms=history.deleted_in_ms(queue, known_ms)) for queue, age in found.items()}


def lag_age_text(row: Mapping[str, Any]) -> str:
    """Return the age in seconds; ``>`` before a lower bound.

    Example:
        >>> lag_age_text({"lag_ms": 1_500, "lag_min_ms": 0}), lag_age_text({"lag_ms": None, "lag_min_ms": 61_000})
        ('2 s', '>61 s')
    """
    if row["lag_ms"] is not None:
        return f"{row['lag_ms'] / 1_000:.0f} s"
    return "-" if row["lag_min_ms"] is None else f">{row['lag_min_ms'] / 1_000:.0f} s"


def deleted_in_text(row: Mapping[str, Any]) -> str:
    """Return when retention deletes the next unread message of a queue.

    Example:
        >>> deleted_in_text({"deleted_in_ms": 3_723_000}), deleted_in_text({"deleted_in_ms": 0})
        ('in about 1 h 2 min', 'now')
    """
    left_ms = row["deleted_in_ms"]
    if left_ms is None:
        return "-"
    return f"in about {span_text(left_ms)}" if left_ms else "now"


def group_lag_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return how many messages wait for a group, in sum, and how old the oldest is; commits left over do not count.

    Args:
        rows: The result of ``progress``.

    Example:
        >>> row = {"topic": "t", "broker": None, "queue_id": 0, "lag": 7, "is_left_over": False}
        >>> group_lag_text([row | {"lag_ms": 61_000, "lag_min_ms": 60_000}])
        '7 messages wait, the oldest for 61 s'
    """
    queues = {
        (row["topic"], row["broker"], row["queue_id"]): row
        for row in rows
        if not row["is_left_over"] and row["queue_id"] is not None
    }
    known = [row for row in queues.values() if row["lag"] is not None]
    if not known:
        return "lag is not known"
    number = sum(row["lag"] for row in known)
    text = f"{counted(number, 'message')} wait{'s' if number == 1 else ''}"
    oldest = max(known, key=lambda row: row["lag_ms"] or row["lag_min_ms"] or 0)
    if number and lag_age_text(oldest) != "-":
        text += f", the oldest for {lag_age_text(oldest)}"
    at_risk = [row for row in known if row.get("deleted_in_ms") is not None]
    if at_risk:
        text += f", the first is deleted {deleted_in_text(min(at_risk, key=lambda row: row['deleted_in_ms']))}"
    unknown = len(queues) - len(known)
    return text + (f"; of {counted(unknown, 'queue')} the lag is not known" if unknown else "")


class LogStarts:
    """Where one queue's log began, each with the time by which it did; those beyond where it begins now are another's.

    Args:
        current: Where it begins now.
    """

    def __init__(self, current: int | None) -> None:
        self._current = current
        self._since: dict[int, int] = {}

    def add(self, start: int | None, at_ms: int) -> None:
        """Add an observation, in any order."""
        if start is not None and self._current is not None and start <= self._current:
            self._since[start] = min(at_ms, self._since.get(start, at_ms))

    def reach_ms(self, offset: int, known_ms: int) -> int | None:
        """Return how long after a time the log begins beyond an offset."""
        if self._current is None:
            return None
        if self._current > offset:
            return 0
        starts = [(at, start) for start, at in sorted(self._since.items(), reverse=True)][:STARTS_OF_PACE]
        if any(at <= earlier for (at, _), (earlier, _) in pairwise(starts)):
            return None
        pace = LogPace.of(starts, known_ms)
        return None if pace is None else pace.left_ms(offset, known_ms)


class _History:
    """For each queue (time, span, end) of the last end up to its commit, and of the first beyond it."""

    def __init__(self, waiting: Mapping[_Queue, Row]) -> None:
        self._committed = {queue: row["committed_offset"] for queue, row in waiting.items()}
        self._written = {queue: written_of(row) for queue, row in waiting.items()}
        self._starts = {queue: LogStarts(row.get("start_offset")) for queue, row in waiting.items()}
        self._up_to: dict[_Queue, tuple[int, int, int]] = {}
        self._beyond: dict[_Queue, tuple[int, int, int]] = {}

    def add(self, block: pa.Table) -> None:
        """Add rows, in any order."""
        for topic, broker, queue_id, span, end, at, start in zip(*from_arrow_columns(block, _COLUMNS), strict=True):
            queue = topic, broker, queue_id
            committed = self._committed.get(queue)
            if committed is None or end is None or at is None:
                continue
            self._starts[queue].add(start, at)
            seen = at, span, end
            if end <= committed:
                self._up_to[queue] = max(seen, self._up_to.get(queue, seen))
            else:
                self._beyond[queue] = min(seen, self._beyond.get(queue, seen))

    def deleted_in_ms(self, queue: _Queue, known_ms: int) -> int | None:
        """Return how long after a time retention deletes the next unread message of a queue."""
        return self._starts[queue].reach_ms(self._committed[queue], known_ms) if queue in self._starts else None

    def ages(self, known_ms: int) -> dict[_Queue, LagAge]:
        """Return the ages at a time."""
        exact = [queue for queue, (offset, _) in self._written.items() if offset == self._committed[queue]]
        queues = list(self._beyond.keys() | exact)
        if not queues:
            return {}
        committed = np.array([self._committed[queue] for queue in queues])
        written = list(np.array([self._written[queue] for queue in queues]).T)
        before, _, end_before = np.array([self._up_to.get(queue, _NO_END) for queue in queues]).T
        after, span, end_after = np.array([self._beyond.get(queue, _NO_END) for queue in queues]).T
        bounds = (before, end_before), (after, end_after)
        ages, by_brokers = ages_of(committed, written, *bounds, span, np.array(known_ms))
        found = {}
        columns = (column.tolist() for column in (*ages, by_brokers))
        for queue, age, least, most, is_by_brokers in zip(queues, *columns, strict=True):
            source = "brokers" if is_by_brokers else "history"
            found[queue] = LagAge(_or_none(age), least, _or_none(most), source)
        return found


def written_of(row: Mapping[str, Any]) -> tuple[int, int]:
    """Return offset and time of the message whose time brokers gave; ``UNKNOWN`` if there is none."""
    offset, at = row.get("written_offset"), row.get("written_at")
    return (UNKNOWN, UNKNOWN) if offset is None or at is None else (offset, at)


def _or_none(age: int) -> int | None:
    return None if age == UNKNOWN else age


def ages_of(
    committed: Int64,
    written: Sequence[Int64],
    up_to: tuple[Int64, Int64],
    beyond: tuple[Int64, Int64],
    span: Int64,
    known_ms: Int64,
) -> tuple[tuple[Int64, Int64, Int64], Booleans]:
    """Return ``lag_ms``, ``lag_min_ms`` and ``lag_max_ms`` of queues, as ``LagAge`` has them; ``UNKNOWN`` is none.

    Args:
        written: The result of ``written_of``, in columns. up_to: Time and offset of the last end up to the commit;
            ``UNKNOWN`` if there is none. beyond: Of the first end beyond it; ``UNKNOWN`` only where ``written`` is at
            the commit. span: The span in which that was read. known_ms: The time for which the ages are.
    Returns: the second one is which of them are by a message's time.
    """
    message, message_at = written
    (before, end_before), (after, end_after) = up_to, beyond
    # A smaller end after the first one beyond the commit is that of a topic that was made again.
    is_bounded = (before != UNKNOWN) & (before <= after)
    since = np.minimum(np.maximum(before, span - _READ_WITHIN_MS), after)
    is_exact = (message != UNKNOWN) & (message == committed)
    is_closer = (message != UNKNOWN) & (message < committed) & (message_at <= after)
    is_closer &= ~is_bounded | (message_at > since)
    since, end_before = np.where(is_closer, message_at, since), np.where(is_closer, message, end_before)
    share = (committed - end_before) / np.maximum(1, end_after - end_before)
    times = since + np.rint((after - since) * share).astype(np.int64), after, since
    is_known = is_bounded | is_closer | is_exact, np.True_, is_bounded | is_closer | is_exact
    age, least, most = (
        np.where(known, np.maximum(0, known_ms - np.where(is_exact, message_at, at)), UNKNOWN)
        for at, known in zip(times, is_known, strict=True)
    )
    return (age, least, most), is_exact | is_closer
