"""Core: what is wrong with a group, as numbered rules, worst first. No I/O.

Each rule looks at one rebalance and answers what it found, or None; what it found stands open until the rule
answers None after a later rebalance, or, where it says so, until its time has come.

1. ``strategy_failed``: the strategy could not answer.
2. ``expected_differs``: the clients report an assignment that differs from the recomputed one.
3. ``generations_missed``: the source went over generations that were never seen.
4. ``duplicate_ids``: two live connections go by one client id.
5. ``strategies_differ``: members deal with different strategies.
6. ``subscriptions_differ``: members of one RocketMQ group subscribe to different topics.
7. ``unassigned_queues``: nobody holds some queues of subscribed topics.
8. ``flapping``: many rebalances in a short time.
9. ``idle_members``: more members than queues.

``events_late`` is opened by the late event itself, see ``late_found``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

# Six rebalances within ten minutes: a rolling restart of a small group stays below, a crash loop does not.
FLAPPING_REBALANCES = 6
FLAPPING_WITHIN_MS = 600_000
# A finding of late events closes when none came for so long (event time).
LATE_CLOSES_AFTER_MS = 600_000
_NAMED_AT_MOST = 3


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule found."""

    severity: Literal["info", "warning", "critical"]
    message: str
    advice: str
    evidence: Sequence[str] = ()
    closes_at: int | None = None


class Outcome(msgspec.Struct, kw_only=True):
    """One rebalance as the rules look at it.

    Attributes:
        agrees: Computed = reported; None where they cannot be compared.
        names: How many live members go by each client id, those above one. strategies: What members deal with.
        subscription_sets: How many different ones.
        handing_over: Some queues have no owner because a cooperative move is under way.
        recent: Times of the newest rebalances, this one included, ascending.
        evidence: Ids of the events that caused it.
    """

    system: str
    at: int
    generation: int
    members: int
    queues: int
    error: str | None
    agrees: bool | None
    queues_differing: int | None
    generations_missed: int | None
    names: Sequence[str]
    strategies: Sequence[str]
    subscription_sets: int
    unassigned: int
    handing_over: bool
    idle: int
    recent: Sequence[int]
    evidence: Sequence[str]


def _strategy_failed(one: Outcome) -> Found | None:
    if one.error is None or one.error == "not_recomputable":
        return None
    return Found(
        severity="critical",
        message=f"The strategy gave no answer: {one.error}. Members keep what they held.",
        advice="Give all members of the group a strategy that they have in common and that this monitor knows.",
        evidence=one.evidence,
    )


def _expected_differs(one: Outcome) -> Found | None:
    if one.agrees is not False:
        return None
    return Found(
        severity="warning",
        message=f"{one.queues_differing} queues are not where the strategy puts them (generation {one.generation}).",
        advice="Compare both assignments of the group; look for members of another version, or with other settings.",
        evidence=one.evidence,
    )


def _generations_missed(one: Outcome) -> Found | None:
    if not one.generations_missed:
        return None
    return Found(
        severity="warning",
        message=f"{one.generations_missed} generations before generation {one.generation} were never seen.",
        advice="Their records were compacted away, or the source was not read: causes in between are not known.",
        evidence=one.evidence,
    )


def _duplicate_ids(one: Outcome) -> Found | None:
    if not one.names:
        return None
    return Found(
        severity="critical",
        message=f"More than one live connection goes by {_list(one.names)}: they take the same queues.",
        advice="Give each consumer a client id of its own (instance name, or one address for each process).",
        evidence=one.evidence,
    )


def _strategies_differ(one: Outcome) -> Found | None:
    if len(one.strategies) < 2 or one.system == "kafka":
        return None
    return Found(
        severity="critical",
        message=f"Members deal with different strategies: {_list(one.strategies)}.",
        advice="Set one strategy for all consumers of the group: queues may have two owners or none.",
        evidence=one.evidence,
    )


def _subscriptions_differ(one: Outcome) -> Found | None:
    if one.system != "rocketmq" or one.subscription_sets < 2:
        return None
    return Found(
        severity="warning",
        message=f"Members of the group have {one.subscription_sets} different subscriptions.",
        advice="RocketMQ wants all consumers of a group to subscribe alike: the last heartbeat overwrites the others.",
        evidence=one.evidence,
    )


def _unassigned_queues(one: Outcome) -> Found | None:
    if not one.unassigned or not one.members or one.handing_over:
        return None
    return Found(
        severity="warning",
        message=f"Nobody holds {one.unassigned} queues of subscribed topics: their messages wait.",
        advice="See whether all members subscribe to the topic, and whether their strategy gives every queue away.",
        evidence=one.evidence,
    )


def _flapping(one: Outcome) -> Found | None:
    within = [at for at in one.recent if at > one.at - FLAPPING_WITHIN_MS]
    if len(within) < FLAPPING_REBALANCES:
        return None
    return Found(
        severity="warning",
        message=f"{FLAPPING_REBALANCES} or more rebalances within {FLAPPING_WITHIN_MS // 60_000} minutes.",
        advice="See who comes and goes: crash loops, session timeouts that are too short, polls that take too long.",
        evidence=one.evidence,
        closes_at=within[-FLAPPING_REBALANCES] + FLAPPING_WITHIN_MS,
    )


def _idle_members(one: Outcome) -> Found | None:
    if not one.idle or not one.queues:
        return None
    return Found(
        severity="info",
        message=f"{one.idle} of {one.members} members hold no queue.",
        advice="There are more members than queues can use: add queues or run fewer consumers.",
        evidence=one.evidence,
    )


RULES: tuple[tuple[str, Callable[[Outcome], Found | None]], ...] = (
    ("strategy_failed", _strategy_failed),
    ("expected_differs", _expected_differs),
    ("generations_missed", _generations_missed),
    ("duplicate_ids", _duplicate_ids),
    ("strategies_differ", _strategies_differ),
    ("subscriptions_differ", _subscriptions_differ),
    ("unassigned_queues", _unassigned_queues),
    ("flapping", _flapping),
    ("idle_members", _idle_members),
)


def late_found(at: int, number: int, event_id: str) -> Found:
    """Answer the finding ``events_late``; it closes when no late event came for ten minutes of event time."""
    return Found(
        severity="warning",
        message=f"Events came after what followed them was judged; {number} of this group so far.",
        advice="Raise the allowed lateness, or see why the source is slow; rejected_events lists them.",
        evidence=(event_id,),
        closes_at=at + LATE_CLOSES_AFTER_MS,
    )


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED_AT_MOST])
    more = len(names) - _NAMED_AT_MOST
    return f"{shown} and {more} more" if more > 0 else shown
