"""Dashboard: what is around a rebalance: those of its group before and after it, and those of others at that time."""

from __future__ import annotations

from typing import NamedTuple

from dashboard.reading.listing_query import plain_rows
from dashboard.reading.questions import Reading
from dashboard.reading.window import MINUTE_MS
from streaming.tables.schema import Row
from streaming.views.reader import Within

# Other groups are listed within this time before and after it, at most so many of their rebalances, the nearest first.
NEAR_MS = MINUTE_MS
MOST_OTHERS = 50
_PLACE = ("rebalance_id", "event_time", "generation")
_OTHER = (*_PLACE, "cluster", "group_id", "trigger", "triggers", "queues_moved", "members_before", "members_after")


class Neighbours(NamedTuple):
    """What is around a rebalance.

    Attributes:
        previous, following: Those of the same group next to it; None if there is none.
        others: Those of other groups within ``NEAR_MS``, the nearest first. other_count: How many there are.
    """

    previous: Row | None
    following: Row | None
    others: list[Row]
    other_count: int


def neighbours(reading: Reading, rebalance: Row) -> Neighbours:
    """Return what is around a row of ``rebalances``."""
    of_group = {name: rebalance[name] for name in ("cluster", "group_id")}
    rows = plain_rows(reading.columns("rebalances", _PLACE, of_group))
    rows.sort(key=lambda row: (row["event_time"], row["generation"] or 0, row["rebalance_id"]))
    place = next(place for place, row in enumerate(rows) if row["rebalance_id"] == rebalance["rebalance_id"])
    at_ms = rebalance["event_time"]
    within = {"event_time": Within(at_ms - NEAR_MS, at_ms + NEAR_MS + 1)}
    near = plain_rows(reading.tables.read("rebalances", columns=_OTHER, where=within))
    others = [row for row in near if (row["cluster"], row["group_id"]) != (rebalance["cluster"], rebalance["group_id"])]
    others.sort(key=lambda row: (abs(row["event_time"] - at_ms), row["cluster"], row["group_id"], row["rebalance_id"]))
    return Neighbours(
        rows[place - 1] if place else None,
        rows[place + 1] if place + 1 < len(rows) else None,
        others[:MOST_OTHERS],
        len(others),
    )
