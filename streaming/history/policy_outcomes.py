"""Shell: what a group's history comes to, as recorded and under policies. No Spark."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from streaming.history.group_history import found_history
from streaming.history.group_rows import GroupRows, UnknownPastError
from streaming.history.identity import GenerationResult, compared
from streaming.history.policy_notes import excluded_notes, notes_of, undecided_notes
from streaming.history.policy_texts import policy_of
from streaming.tables.schema import Row
from streaming.views.measured_rebalances import Measured, measured
from udfs.group.assignment.library_choice import COOPERATIVE
from udfs.group.replay.policy import Policy, decided
from udfs.group.replay.replay import History, Replayed, replay
from udfs.group.replay.reported_past import RecordedDecision, ReportedPast
from udfs.model.config import CoreConfig

# What lasts for this share of a time lasts for nearly all of it: restarts are shorter.
LASTING: Final = 0.95


class PolicyOutcome(NamedTuple):
    """What rebalances of a span come to.

    Attributes:
        policy: As it was written; None for what was recorded. moved: Queues that moved to another member,
            as far as it is decided. stopped: Queues that stood still: in groups whose coordinator reports generations
            all that do so, else those that moved; None if a generation could not be decided.
        idle, spread: Means over the time in which they are known, up to the last recorded rebalance: members without a
            queue, and the difference between the most and the fewest queues of a member; None if never known.
        lasting_idle: So many members had no queue for nearly all of that time; None if that is not known.
        queue_pause_ms: Sum over all queues, as far as it is known; None if it is not. pause_estimate_ms: Stopped queues
            times what one stood still, also as recorded; None if one of them is unknown.
        waiting_pause_ms: The part of both of queues that stand still while rebalances wait for silent members.
        pause_unknown: How many rebalances that moved queues have no measured pause. gone: Ids of recorded rebalances
            that would not have been. added: Times of rebalances that were not. notes: Sentences on what the policy did
            to members, and on what the tables cannot tell of it.
    """

    policy: str | None
    rebalances: int
    moved: int
    stopped: int | None
    idle: float | None
    spread: float | None
    lasting_idle: int | None = None
    queue_pause_ms: int | None = None
    pause_estimate_ms: int | None = None
    waiting_pause_ms: int = 0
    pause_unknown: int = 0
    gone: tuple[str, ...] = ()
    added: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


class PolicyOutcomes(NamedTuple):
    """A group's history under each policy; the first outcome is as recorded.

    Attributes:
        recorded: Its rebalances in that time, at least one. results: Whether each was decided again as recorded, and
            each that was decided without having been recorded. pause_each: For how long a queue stood still in the
            recorded rebalances; what policies cost is estimated from it.
    """

    rows: GroupRows
    recorded: list[Row]
    results: list[GenerationResult]
    outcomes: list[PolicyOutcome]
    pause_each: Measured | None

    @property
    def since(self) -> int:
        """Return the time of the first rebalance that is covered."""
        return int(self.recorded[0]["event_time"])

    @property
    def until(self) -> int:
        """Return the time of the last rebalance that is covered."""
        return int(self.recorded[-1]["event_time"])

    @property
    def not_reproduced(self) -> list[GenerationResult]:
        """Return the rebalances that are not as recorded, and those that were not recorded."""
        return [result for result in self.results if not result.is_same]


def outcomes_of(
    rows: GroupRows,
    policies: Sequence[str],
    config: CoreConfig,
    until_ms: int | None,
    proceed: Callable[[], object] = lambda: None,
) -> PolicyOutcomes:
    """Replay a group's history as it was, and under each policy.

    Args:
        proceed: Called before each policy; what it raises ends this.

    Raises:
        UnknownPastError: It has no history, or none that a policy could change.
        NotFoundError, UnknowableError: See ``policy_of``.
    """
    changes = [policy_of(text, rows) for text in policies]
    history = found_history(rows, config.settle_ms).history
    as_recorded = replay(history, config)
    since = -1 if rows.begins_at is None else rows.begins_at
    recorded = [row for row in rows.rebalances if _is_within(row["event_time"], since, until_ms)]
    if not recorded:
        raise UnknownPastError(f"group {rows.group_id} has no rebalance in that time")
    past = _Past(rows, history, as_recorded, config, since, until_ms)
    results = [
        past.judged(result) for result in compared(rows, as_recorded) if _is_within(result.event_time, since, until_ms)
    ]
    pause_each = past.pause_of_each(recorded)
    paused = [row["queue_pause_ms"] for row in recorded if row["queue_pause_ms"] is not None]
    stopped_as_recorded = sum(map(past.stopped, recorded))
    outcomes = [
        _outcome(None, recorded)._replace(
            moved=sum(map(past.moved, recorded)),
            stopped=stopped_as_recorded,
            notes=tuple(past.notes()),
            queue_pause_ms=sum(paused) if paused else None,
            pause_estimate_ms=estimated(pause_each, stopped_as_recorded),
            pause_unknown=sum(bool(row["queues_moved"]) and row["queue_pause_ms"] is None for row in recorded),
        )
    ]
    before = {row["event_time"] for row in recorded}
    for text, policy in zip(policies, changes, strict=True):
        proceed()
        again, notes = past.under(policy)
        is_decided = not any(row.get("undecided") for row in again)
        stopped = past.paused(again) if is_decided else None
        times = {row["event_time"] for row in again}
        outcomes.append(
            _outcome(text, again)._replace(
                stopped=stopped,
                queue_pause_ms=(estimate := estimated(pause_each, stopped, waited := past.waited(again))),
                waiting_pause_ms=waited,
                pause_estimate_ms=estimate,
                gone=tuple(row["rebalance_id"] for row in recorded if row["event_time"] not in times),
                added=tuple(sorted(times - before)),
                notes=tuple(notes),
            )
        )
    return PolicyOutcomes(rows, recorded, results, outcomes, pause_each)


def _is_within(time_ms: int, since: int, until_ms: int | None) -> bool:
    return time_ms > since and (until_ms is None or time_ms <= until_ms)


class _Past:
    """A group's past, as it is decided under policies: by the coordinator, or generation by generation if reported."""

    def __init__(
        self,
        rows: GroupRows,
        history: History,
        as_recorded: Replayed,
        config: CoreConfig,
        since: int,
        until_ms: int | None,
    ) -> None:
        self._history, self._as_recorded, self._config = history, as_recorded, config
        self._since, self._until_ms = since, until_ms
        self._reported = None
        self._decisions: dict[tuple[int, int], RecordedDecision] = {}
        if rows.is_reported:
            self._reported = ReportedPast(history, as_recorded, config)
            for decision in self._reported.as_recorded():
                self._decisions[decision.recorded.time_ms, decision.recorded.generation] = decision

    def under(self, policy: Policy) -> tuple[list[Row], Iterator[str]]:
        """Return the rebalances under a policy, in the order of their times, and what is to be said of them."""
        names = ("event_time", "queues_moved", "idle_members", "spread")
        if self._reported is None:
            found = decided(policy, self._history, self._as_recorded, self._config)
            rows = [{name: getattr(row, name) for name in names} for row in found.replayed.rebalances]
            return self._within(rows), notes_of(policy, found.lived, self._history.system)
        generations, done = self._reported.under(policy)
        more = (*names, "queues_stopped", "waited_ms", "undecided")
        within = self._within([{name: getattr(row, name) for name in more} for row in generations])
        waits = [row["waited_ms"] for row in within if row["waited_ms"]]
        notes = notes_of(policy, done, self._history.system, waits)
        return within, itertools.chain(notes, undecided_notes(row["undecided"] for row in within))

    def _within(self, rows: Sequence[Row]) -> list[Row]:
        kept = [row for row in rows if _is_within(row["event_time"], self._since, self._until_ms)]
        return sorted(kept, key=lambda row: row["event_time"])

    def judged(self, result: GenerationResult) -> GenerationResult:
        """Return a result that is not as recorded, either, where the core does not give what a coordinator reported."""
        decision = self._decisions.get((result.event_time, result.generation))
        if decision is None or decision.reason is None or not result.is_same:
            return result
        return result._replace(differs=("owners",), reason=decision.reason)

    def moved(self, row: Row) -> int:
        """Return how many queues moved; one that a cooperative rebalance revoked first counts once."""
        decision = self._decision(row)
        given = decision is not None and decision.reason is None
        return decision.decided.queues_moved if decision is not None and given else row["queues_moved"] or 0

    def stopped(self, row: Row) -> int:
        """Return how many queues stood still: where a coordinator reports all that did, else those that moved."""
        decision = self._decision(row)
        if decision is None:
            return row["queues_moved"] or 0
        if decision.reason is None or decision.recorded.strategy != COOPERATIVE:
            return decision.decided.queues_stopped  # in an eager rebalance all stop, whoever gets them
        return (row["queues_moved"] or 0) + (row["queues_revoked"] or 0)

    def _decision(self, row: Row) -> RecordedDecision | None:
        return self._decisions.get((row["event_time"], row["generation"]))

    def notes(self) -> Iterator[str]:
        """Yield in which recorded generations the group did not have what the core decides."""
        return excluded_notes(
            decision.reason
            for decision in self._decisions.values()
            if _is_within(decision.recorded.time_ms, self._since, self._until_ms)
        )

    def paused(self, rows: Sequence[Row]) -> int:
        """Return how many queues paused: of reported groups all that stood still, else those that moved."""
        return sum(row["queues_moved" if self._reported is None else "queues_stopped"] or 0 for row in rows)

    @staticmethod
    def waited(rows: Sequence[Row]) -> int:
        """Return the queue-pause of the time in which rebalances waited for silent members."""
        return sum(row.get("waited_ms", 0) * (row.get("queues_stopped") or 0) for row in rows)

    def pause_of_each(self, recorded: Sequence[Row]) -> Measured | None:
        """Return for how long a queue stood still in rebalances."""
        pauses = [
            (row["queue_pause_ms"] / number, None)
            for row in recorded
            if (number := self.stopped(row)) and row["queue_pause_ms"] is not None
        ]
        return measured(pauses)


def _outcome(policy: str | None, rows: Sequence[Row]) -> PolicyOutcome:
    return PolicyOutcome(
        policy=policy,
        rebalances=len(rows),
        moved=sum(row["queues_moved"] or 0 for row in rows),
        stopped=0,
        idle=_mean(rows, "idle_members"),
        spread=_mean(rows, "spread"),
        lasting_idle=_lasting_idle(rows),
    )


def estimated(each: Measured | None, number: int | None, more: int = 0) -> int | None:
    """Return what so many queues cost, by the median of one, and what is more; None if one of the two is unknown."""
    return None if each is None or number is None else round(each.times(number).middle) + more


def _spans(rows: Sequence[Row], name: str) -> list[tuple[float, int]]:
    """Return the values of a figure, as far as it is known, each with how long it lasted."""
    return [
        (float(row[name]), after["event_time"] - row["event_time"])
        for row, after in itertools.pairwise(rows)
        if row[name] is not None
    ]


def _lasting_idle(rows: Sequence[Row]) -> int | None:
    """Return how many members at least had no queue for nearly all of the time; None if that is not known."""
    left_ms = LASTING * (rows[-1]["event_time"] - rows[0]["event_time"]) if rows else 0
    if not left_ms:
        return None
    for idle, span_ms in sorted(_spans(rows, "idle_members"), reverse=True):
        left_ms -= span_ms
        if left_ms <= 0:
            return int(idle)
    return None


def _mean(rows: Sequence[Row], name: str) -> float | None:
    """Return the mean of a figure over the time from the first to the last rebalance, as far as it is known."""
    known = _spans(rows, name)
    total = sum(span for _, span in known)
    if total:
        return math.fsum(figure * span for figure, span in known) / total
    return None if not rows or rows[-1][name] is None else float(rows[-1][name])
