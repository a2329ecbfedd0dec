"""Shell: how long rebalances of a group stopped its queues, and what they cost, as measured in its own ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any, Final, NamedTuple

from streaming.tables.arrow_rows import from_arrow_columns
from streaming.tables.schema import Row
from streaming.terminal.format import count, span_of_time
from streaming.views.reader import Reader, Within

# Only the newest rebalances count: members, timeouts and clients change.
_NEWEST: Final = 100
# A commit rate is measured over this time: a row of a queue is of a minute, and a group may have many queues.
_RATE_MS: Final = 600_000
_COMMITS: Final = ("topic", "broker", "queue_id", "committed_offset", "committed_at")


class Measured(NamedTuple):
    """The range of a figure over several rebalances.

    Attributes:
        rebalances: How many of them have the figure. estimated: How many of these were estimated.
    """

    least: float
    middle: float
    most: float
    rebalances: int
    estimated: int = 0

    def times(self, number: int) -> Measured:
        """Return the range for this many of what was measured for one."""
        return Measured(self.least * number, self.middle * number, self.most * number, self.rebalances, self.estimated)

    @property
    def source(self) -> str:
        """Return from how many rebalances it is."""
        estimated = f", {self.estimated} of them estimated" if self.estimated else ""
        return f"from {count(self.rebalances, 'rebalance')} of this group{estimated}"

    def span_text(self) -> str:
        """Return the range of spans.

        Example:
            >>> Measured(800, 1_200, 3_000, 5, 1).span_text()
            '1.2 s (800 ms to 3.0 s, from 5 rebalances of this group, 1 of them estimated)'
        """
        whole = (round(number) for number in self[:3])
        least, middle, most = map(span_of_time, whole)
        return f"{middle} ({least} to {most}, {self.source})"

    def messages_text(self, source: str | None = None) -> str:
        """Return the range of numbers of messages, and what they are from: rebalances, unless it is another source."""
        numbers = f"{round(self.least):,} to {round(self.most):,}"
        return f"about {count(round(self.middle), 'message')} ({numbers}, {source or self.source})"

    @property
    def row(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "least": round(self.least),
            "median": round(self.middle),
            "most": round(self.most),
            "rebalances": self.rebalances,
            "estimated_rebalances": self.estimated,
        }


class Costs(NamedTuple):
    """What rebalances of one kind did to a group; None where none of them shows it.

    Attributes:
        pause_ms: The phases of the coordinator. outage_ms: The longest outage of a queue.
        repeated, waiting: Messages for each queue that got an owner.
    """

    pause_ms: Measured | None
    outage_ms: Measured | None
    repeated: Measured | None
    waiting: Measured | None


def costs_of(rebalances: Sequence[Row], *, with_expiries: bool) -> Costs:
    """Return the costs of the newest rebalances of a group.

    Args:
        rebalances: Oldest first. with_expiries: Only those in which sessions expired, else only the others: an expiry
            is noticed late, which counts.
    """
    fitting = [row for row in rebalances if _is_change(row) and _has_expiry(row) == with_expiries][-_NEWEST:]
    return Costs(
        pause_ms=measured((row["pause_ms"], row["pause_estimated_ms"]) for row in fitting),
        # Where no queue moved, none stood still: that shows nothing of those that move.
        outage_ms=measured((row["queue_outage_max_ms"], None) for row in fitting if row["queues_moved"]),
        repeated=_per_queue(fitting, "repeated"),
        waiting=_per_queue(fitting, "waiting"),
    )


def _is_change(row: Row) -> bool:
    return row["status"] == "completed" and bool(row["members_before"]) and bool(row["members_after"])


def _has_expiry(row: Row) -> bool:
    return any(cause["kind"] == "session_expired" for cause in row["triggers"] or ())


def _per_queue(rebalances: Iterable[Row], what: str) -> Measured | None:
    found: list[tuple[float | None, float | None]] = []
    for row in rebalances:
        queues = (row["queues_moved"] or 0) + (row["queues_assigned"] or 0)
        exact, estimated = row[f"{what}_messages"], row[f"{what}_estimated_messages"]
        if queues and estimated is not None:
            found.append((None, ((exact or 0) + estimated) / queues))
        elif queues and exact is not None:
            found.append((exact / queues, None))
    return measured(found)


def measured(pairs: Iterable[tuple[float | None, float | None]]) -> Measured | None:
    """Return the range of figures, each exact or estimated; None if there is none."""
    known = [pair for pair in pairs if pair != (None, None)]
    values = [estimated if exact is None else exact for exact, estimated in known]
    figures = [value for value in values if value is not None]
    if not figures:
        return None
    estimates = sum(exact is None for exact, _ in known)
    return Measured(min(figures), median(figures), max(figures), len(figures), estimates)


def commit_rate(reader: Reader, where: dict[str, Any], at_ms: int | None) -> float | None:
    """Return how many messages a second a group commits, in all its queues, in the newest minutes up to a time.

    Returns:
        None if no queue has two commits then.
    """
    newest = reader.newest_ms("queue_progress", "event_time")
    if newest is None:
        return None
    until = newest + 1 if at_ms is None else min(at_ms, newest) + 1
    rows = reader.read(
        "queue_progress", columns=_COMMITS, where=where | {"event_time": Within(until - _RATE_MS, until)}
    )
    seen: dict[tuple[Any, ...], list[tuple[int, int]]] = {}
    for topic, broker, queue_id, offset, at in zip(*from_arrow_columns(rows, _COMMITS), strict=True):
        if offset is not None and at is not None:
            seen.setdefault((topic, broker, queue_id), []).append((at, offset))
    ends = [(min(commits), max(commits)) for commits in seen.values()]
    rates = [(last[1] - first[1]) * 1_000 / (last[0] - first[0]) for first, last in ends if last[0] > first[0]]
    return sum(rates) if rates else None
