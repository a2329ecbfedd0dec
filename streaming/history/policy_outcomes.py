"""Shell: what a group's history comes to, as recorded and under policies. No Spark."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

from streaming.history.group_history import found_history
from streaming.history.group_rows import GroupRows, UnknownPastError
from streaming.history.identity import GenerationResult, compared
from streaming.history.policy_texts import policy_of
from streaming.tables.schema import Row
from udfs.group.replay.policy import under
from udfs.group.replay.replay import Replayed, replay
from udfs.model.config import CoreConfig


class PolicyOutcome(NamedTuple):
    """What rebalances of a span come to.

    Attributes:
        policy: As it was written; None for what was recorded. moved: Queues that moved to another member.
        idle, spread: Means over time, up to the last recorded rebalance: members without a queue, and the difference
            between the most and the fewest queues of a member.
        queue_pause_ms: Sum over all queues; None if unknown. gone: Ids of recorded rebalances that would not have been.
        added: Times of rebalances that were not.
    """

    policy: str | None
    rebalances: int
    moved: int
    idle: float
    spread: float
    queue_pause_ms: int | None
    gone: tuple[str, ...] = ()
    added: tuple[int, ...] = ()


class PolicyOutcomes(NamedTuple):
    """A group's history under each policy; the first outcome is as recorded.

    Attributes:
        results: Whether each recorded rebalance was decided again as recorded. since, until: The time that is covered.
    """

    rows: GroupRows
    results: list[GenerationResult]
    outcomes: list[PolicyOutcome]
    since: int
    until: int

    @property
    def not_reproduced(self) -> list[GenerationResult]:
        """Return the recorded rebalances that the tables do not give again."""
        return [result for result in self.results if not result.is_same]


def outcomes_of(rows: GroupRows, policies: Sequence[str], config: CoreConfig, until_ms: int | None) -> PolicyOutcomes:
    """Replay a group's history as it was, and under each policy.

    Raises:
        UnknownPastError: It has no history, or none that a policy could change.
        NotFoundError, UnknowableError: See ``policy_of``.
    """
    changes = [policy_of(text, rows) for text in policies]
    if policies and rows.rebalances[0]["generation_source"] == "reported":
        raise UnknownPastError(
            f"the coordinator of group {rows.group_id} decided its generations: how it would have under a policy is not"
            " computed yet; without --policy its history is decided again"
        )
    history = found_history(rows, config.settle_ms).history
    as_recorded = replay(history, config)
    since = -1 if rows.begins_at is None else rows.begins_at
    recorded = [row for row in rows.rebalances if _is_within(row["event_time"], since, until_ms)]
    if not recorded:
        raise UnknownPastError(f"group {rows.group_id} has no rebalance in that time")
    until = recorded[-1]["event_time"]
    results = [result for result in compared(rows, as_recorded) if _is_within(result.event_time, since, until_ms)]
    each_ms = _pause_for_each(recorded)
    outcomes = [_outcome(None, recorded, _paused(recorded))]
    for text, policy in zip(policies, changes, strict=True):
        again = _rows_of(replay(under(policy, history), config), since, until_ms)
        outcome = _outcome(text, again, None)
        times = {row["event_time"] for row in again}
        before = {row["event_time"] for row in recorded}
        outcomes.append(
            outcome._replace(
                queue_pause_ms=None if each_ms is None else round(each_ms * outcome.moved),
                gone=tuple(row["rebalance_id"] for row in recorded if row["event_time"] not in times),
                added=tuple(sorted(times - before)),
            )
        )
    return PolicyOutcomes(rows, results, outcomes, recorded[0]["event_time"], until)


def _is_within(time_ms: int, since: int, until_ms: int | None) -> bool:
    return time_ms > since and (until_ms is None or time_ms <= until_ms)


def _rows_of(replayed: Replayed, since: int, until_ms: int | None) -> list[Row]:
    names = ("event_time", "queues_moved", "idle_members", "spread")
    rows = [{name: getattr(found, name) for name in names} for found in replayed.rebalances]
    return sorted(
        (row for row in rows if _is_within(row["event_time"], since, until_ms)), key=lambda row: row["event_time"]
    )


def _outcome(policy: str | None, rows: Sequence[Row], queue_pause_ms: int | None) -> PolicyOutcome:
    return PolicyOutcome(
        policy=policy,
        rebalances=len(rows),
        moved=sum(row["queues_moved"] or 0 for row in rows),
        idle=_mean(rows, "idle_members"),
        spread=_mean(rows, "spread"),
        queue_pause_ms=queue_pause_ms,
    )


def _mean(rows: Sequence[Row], name: str) -> float:
    """Return the mean of a figure over the time from the first to the last rebalance."""
    if not rows:
        return 0.0
    spans: list[int] = [after["event_time"] - row["event_time"] for row, after in itertools.pairwise(rows)]
    if not sum(spans):
        return float(rows[-1][name] or 0)
    figures = [float(row[name] or 0) for row in rows]
    return math.fsum(figure * span for figure, span in zip(figures, spans, strict=False)) / sum(spans)


def _paused(rows: Sequence[Row]) -> int | None:
    known = [row["queue_pause_ms"] for row in rows if row["queue_pause_ms"] is not None]
    return sum(known) if known else None


def _pause_for_each(rows: Sequence[Row]) -> float | None:
    """Return for how long a queue that moved stood still, in the median of the recorded rebalances."""
    known: list[Any] = [
        row["queue_pause_ms"] / row["queues_moved"]
        for row in rows
        if row["queues_moved"] and row["queue_pause_ms"] is not None
    ]
    return median(known) if known else None
