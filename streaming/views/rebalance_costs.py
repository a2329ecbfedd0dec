"""Shell: what rebalances cost: queues without an owner, messages read twice, messages that waited."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from streaming.tables.arrow_rows import from_arrow_columns
from streaming.tables.schema import Row
from streaming.tables.shared_columns import COST_NAMES
from streaming.terminal.format import count, span_of_time
from streaming.views.reader import Reader, Within

# A finding comes of the rebalances before it.
BEFORE_MS = 3_600_000
_PAUSES = ("queue_pause_ms", "queue_pause_estimated_ms")


class Cost(msgspec.Struct, frozen=True):
    """What the rebalances of a group cost together; None = observed of none of them.

    Attributes:
        rebalances: How many.
        queue_pause_ms: Time without an owner, summed over queues, where it was observed.
        queue_pause_estimated_ms: The same where it was not observed.
        repeated_messages, repeated_estimated_messages, waiting_messages: As in table rebalances.
    """

    rebalances: int = 0
    queue_pause_ms: int | None = None
    queue_pause_estimated_ms: int | None = None
    repeated_messages: int | None = None
    repeated_estimated_messages: int | None = None
    waiting_messages: int | None = None

    def with_rebalance(self, row: Row) -> Cost:
        """Return the cost with that of one more rebalance."""
        estimated = row["queue_pause_estimated_ms"] if row["queue_pause_ms"] is None else None
        values = {**row, "queue_pause_estimated_ms": estimated}
        sums = {name: _sum(getattr(self, name), values[name]) for name in (*_PAUSES, *COST_NAMES)}
        return Cost(self.rebalances + 1, **sums)

    @property
    def text(self) -> str:
        """Return it as text, without what was not observed.

        Example:
            >>> Cost(2, 45_000, None, 1_200, None, 5_678).text
            '2 rebalances: queues paused for 45.0 s in total; 1200 messages were read twice; 5678 waited for new owners'
            >>> Cost(1, None, 250).text
            '1 rebalance: queues paused for about 250 ms in total (estimated)'
        """
        parts = [_pause(self.queue_pause_ms, self.queue_pause_estimated_ms)]
        parts += [repeated_text(self.repeated_messages, self.repeated_estimated_messages, "messages ")]
        if self.waiting_messages is not None:
            parts.append(f"{self.waiting_messages} waited for new owners")
        text = "; ".join(part for part in parts if part)
        return count(self.rebalances, "rebalance") + (f": {text}" if text else "")


def repeated_text(exact: int | None, estimated: int | None, things: str = "") -> str:
    """Return how many messages were read twice; empty = not observed.

    Example:
        >>> repeated_text(3, None), repeated_text(None, 4), repeated_text(None, None)
        ('3 were read twice', 'about 4 were read twice (estimated)', '')
    """
    if exact is None:
        return "" if estimated is None else f"about {estimated} {things}were read twice (estimated)"
    return f"{exact} {things}were read twice" + (
        "" if estimated is None else f", and about {estimated} more (estimated)"
    )


def costs_before(reader: Reader, findings: Iterable[Row]) -> Mapping[str, Cost]:
    """Return what the rebalances of a finding's group cost in the hour up to its opening, by the id of the finding.

    A finding of a cluster has none, nor has one whose group did not rebalance then.
    """
    by_group: dict[tuple[str, str], list[Row]] = {}
    for row in findings:
        if row["group_id"] is not None and row["opened_at"] is not None:
            by_group.setdefault((row["cluster"], row["group_id"]), []).append(row)
    if not by_group:
        return {}
    opened = [row["opened_at"] for rows in by_group.values() for row in rows]
    where = {
        "cluster": {cluster for cluster, _ in by_group},
        "group_id": {group for _, group in by_group},
        "event_time": Within(min(opened) - BEFORE_MS, max(opened) + 1),
    }
    found: dict[str, Cost] = {}
    names = ("cluster", "group_id", "event_time", *_PAUSES, *COST_NAMES)
    table = reader.read("rebalances", columns=names, where=where)
    for values in zip(*from_arrow_columns(table, names), strict=True):
        rebalance: dict[str, Any] = dict(zip(names, values, strict=True))
        for finding in by_group.get((rebalance["cluster"], rebalance["group_id"]), ()):
            if finding["opened_at"] - BEFORE_MS < rebalance["event_time"] <= finding["opened_at"]:
                name = finding["finding_id"]
                found[name] = found.get(name, Cost()).with_rebalance(rebalance)
    return found


def _pause(observed: int | None, estimated: int | None) -> str:
    if observed is None and estimated is None:
        return ""
    if observed is None:
        return f"queues paused for about {span_of_time(estimated or 0)} in total (estimated)"
    more = "" if estimated is None else f", and about {span_of_time(estimated)} more (estimated)"
    return f"queues paused for {span_of_time(observed)} in total{more}"


def _sum(one: int | None, other: int | None) -> int | None:
    return one if other is None else (one or 0) + other
