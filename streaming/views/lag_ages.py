"""Shell: how old the next unread message of each queue is, from the history of its ends in ``queue_progress``.

The next unread message was written after the last observed end that is not beyond the commit, and no later than the
first one that is. A queue has a row for each span in which it moved, so its end did not grow in spans without one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from streaming.tables.arrow_rows import from_arrow_columns
from streaming.tables.schema import Row
from streaming.terminal.format import counted
from streaming.views.reader import Reader, Within
from udfs.model.arrays import Int64
from udfs.model.observations import UNKNOWN

_Queue: TypeAlias = tuple[str, str | None, int]

# Rows of one group that are at most this old are read; beyond them only a lower bound of an age is known.
HISTORY_MS = 86_400_000
# An end that was read first in a span may have grown before it: ends are read at least once in so long.
_READ_WITHIN_MS = 60_000
_COLUMNS = ("topic", "broker", "queue_id", "event_time", "end_offset", "end_at")


class LagAge(NamedTuple):
    """The age of a queue's next unread message, in ms.

    Attributes:
        lag_ms: Interpolated between two observed ends; None if only a lower bound is known. lag_min_ms, lag_max_ms:
            Bounds; both are 0 if everything was read. lag_source: ``history``, or None if nothing is known.
    """

    lag_ms: int | None = None
    lag_min_ms: int | None = None
    lag_max_ms: int | None = None
    lag_source: str | None = None


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
    return found | history.ages(known_ms)


def lag_age_text(row: Mapping[str, Any]) -> str:
    """Return the age in seconds; ``>`` before a lower bound.

    Example:
        >>> lag_age_text({"lag_ms": 1_500, "lag_min_ms": 0}), lag_age_text({"lag_ms": None, "lag_min_ms": 61_000})
        ('2 s', '>61 s')
    """
    if row["lag_ms"] is not None:
        return f"{row['lag_ms'] / 1_000:.0f} s"
    return "-" if row["lag_min_ms"] is None else f">{row['lag_min_ms'] / 1_000:.0f} s"


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
    unknown = len(queues) - len(known)
    return text + (f"; of {counted(unknown, 'queue')} the lag is not known" if unknown else "")


class _History:
    """For each queue (time, span, end) of the last end up to its commit, and of the first beyond it."""

    def __init__(self, waiting: Mapping[_Queue, Row]) -> None:
        self._committed = {queue: row["committed_offset"] for queue, row in waiting.items()}
        self._up_to: dict[_Queue, tuple[int, int, int]] = {}
        self._beyond: dict[_Queue, tuple[int, int, int]] = {}

    def add(self, block: pa.Table) -> None:
        """Add rows, in any order."""
        for topic, broker, queue_id, span, end, at in zip(*from_arrow_columns(block, _COLUMNS), strict=True):
            queue = topic, broker, queue_id
            committed = self._committed.get(queue)
            if committed is None or end is None or at is None:
                continue
            seen = at, span, end
            if end <= committed:
                self._up_to[queue] = max(seen, self._up_to.get(queue, seen))
            else:
                self._beyond[queue] = min(seen, self._beyond.get(queue, seen))

    def ages(self, known_ms: int) -> dict[_Queue, LagAge]:
        """Return the ages at a time."""
        queues = list(self._beyond)
        if not queues:
            return {}
        committed = np.array([self._committed[queue] for queue in queues])
        before, _, end_before = np.array([self._up_to.get(queue, (UNKNOWN,) * 3) for queue in queues]).T
        after, span, end_after = np.array([self._beyond[queue] for queue in queues]).T
        ages = ages_of(committed, (before, end_before), (after, end_after), span, np.array(known_ms))
        found = {}
        for queue, age, least, most in zip(queues, *(column.tolist() for column in ages), strict=True):
            is_bounded = age != UNKNOWN
            found[queue] = LagAge(age if is_bounded else None, least, most if is_bounded else None, "history")
        return found


def ages_of(
    committed: Int64, up_to: tuple[Int64, Int64], beyond: tuple[Int64, Int64], span: Int64, known_ms: Int64
) -> tuple[Int64, Int64, Int64]:
    """Return ``lag_ms``, ``lag_min_ms`` and ``lag_max_ms`` of queues, as ``LagAge`` has them; ``UNKNOWN`` is none.

    Args:
        up_to: Time and offset of the last end up to the commit; ``UNKNOWN`` if there is none. beyond: Of the first end
            beyond it. span: The span in which that was read. known_ms: The time for which the ages are.
    """
    (before, end_before), (after, end_after) = up_to, beyond
    # A smaller end after the first one beyond the commit is that of a topic that was made again.
    is_bounded = (before != UNKNOWN) & (before <= after)
    since = np.minimum(np.maximum(before, span - _READ_WITHIN_MS), after)
    share = (committed - end_before) / np.maximum(1, end_after - end_before)
    written = since + np.rint((after - since) * share).astype(np.int64)
    age, most = (np.where(is_bounded, np.maximum(0, known_ms - at), UNKNOWN) for at in (written, since))
    return age, np.maximum(0, known_ms - after), most
