"""Shell: what a group's history comes to, as recorded and under policies. No Spark."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from streaming.history.group_history import found_history
from streaming.history.group_rows import GroupRows, UnknownPastError
from streaming.history.identity import GenerationResult, compared
from streaming.history.policy_texts import policy_of
from streaming.tables.schema import Row
from streaming.views.measured_rebalances import Measured, measured
from udfs.group.replay.policy import under
from udfs.group.replay.replay import Replayed, replay
from udfs.model.config import CoreConfig


class PolicyOutcome(NamedTuple):
    """What rebalances of a span come to.

    Attributes:
        policy: As it was written; None for what was recorded. moved: Queues that moved to another member.
        idle, spread: Means over the time in which they are known, up to the last recorded rebalance: members without a
            queue, and the difference between the most and the fewest queues of a member; None if never known.
        queue_pause_ms: Sum over all queues, as far as it is known; None if it is not.
        pause_unknown: How many rebalances that moved queues have no measured pause. gone: Ids of recorded rebalances
            that would not have been. added: Times of rebalances that were not.
    """

    policy: str | None
    rebalances: int
    moved: int
    idle: float | None
    spread: float | None
    queue_pause_ms: int | None = None
    pause_unknown: int = 0
    gone: tuple[str, ...] = ()
    added: tuple[int, ...] = ()


class PolicyOutcomes(NamedTuple):
    """A group's history under each policy; the first outcome is as recorded.

    Attributes:
        results: Whether each recorded rebalance was decided again as recorded. pause_each: For how long a moved queue
            stood still in the recorded rebalances; what policies cost is estimated from it. since, until: The time that
            is covered.
    """

    rows: GroupRows
    results: list[GenerationResult]
    outcomes: list[PolicyOutcome]
    pause_each: Measured | None
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
    pause_each = _pause_of_each(recorded)
    paused = [row["queue_pause_ms"] for row in recorded if row["queue_pause_ms"] is not None]
    outcomes = [
        _outcome(None, recorded)._replace(
            queue_pause_ms=sum(paused) if paused else None,
            pause_unknown=sum(bool(row["queues_moved"]) and row["queue_pause_ms"] is None for row in recorded),
        )
    ]
    for text, policy in zip(policies, changes, strict=True):
        again = _rows_of(replay(under(policy, history), config), since, until_ms)
        outcome = _outcome(text, again)
        times = {row["event_time"] for row in again}
        before = {row["event_time"] for row in recorded}
        outcomes.append(
            outcome._replace(
                queue_pause_ms=None if pause_each is None else round(pause_each.times(outcome.moved).middle),
                gone=tuple(row["rebalance_id"] for row in recorded if row["event_time"] not in times),
                added=tuple(sorted(times - before)),
            )
        )
    return PolicyOutcomes(rows, results, outcomes, pause_each, recorded[0]["event_time"], until)


def _is_within(time_ms: int, since: int, until_ms: int | None) -> bool:
    return time_ms > since and (until_ms is None or time_ms <= until_ms)


def _rows_of(replayed: Replayed, since: int, until_ms: int | None) -> list[Row]:
    names = ("event_time", "queues_moved", "idle_members", "spread")
    rows = [{name: getattr(found, name) for name in names} for found in replayed.rebalances]
    return sorted(
        (row for row in rows if _is_within(row["event_time"], since, until_ms)), key=lambda row: row["event_time"]
    )


def _outcome(policy: str | None, rows: Sequence[Row]) -> PolicyOutcome:
    return PolicyOutcome(
        policy=policy,
        rebalances=len(rows),
        moved=sum(row["queues_moved"] or 0 for row in rows),
        idle=_mean(rows, "idle_members"),
        spread=_mean(rows, "spread"),
    )


def _mean(rows: Sequence[Row], name: str) -> float | None:
    """Return the mean of a figure over the time from the first to the last rebalance, as far as it is known."""
    known: list[tuple[float, int]] = [
        (float(row[name]), after["event_time"] - row["event_time"])
        for row, after in itertools.pairwise(rows)
        if row[name] is not None
    ]
    total = sum(span for _, span in known)
    if total:
        return math.fsum(figure * span for figure, span in known) / total
    return None if not rows or rows[-1][name] is None else float(rows[-1][name])


def _pause_of_each(rows: Sequence[Row]) -> Measured | None:
    """Return for how long a queue that moved stood still in rebalances."""
    return measured(
        (row["queue_pause_ms"] / row["queues_moved"], None)
        for row in rows
        if row["queues_moved"] and row["queue_pause_ms"] is not None
    )
