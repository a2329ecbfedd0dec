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

``events_late`` is opened by the late event itself, see ``late_found``. What only the source can see comes with its
snapshots, by the kinds of ``OBSERVED``, and stands open until a snapshot comes without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import msgspec

Severity: TypeAlias = Literal["info", "warning", "critical"]

# Six rebalances within ten minutes: a rolling restart of a small group stays below, a crash loop does not.
FLAPPING_REBALANCES = 6
FLAPPING_WITHIN_MS = 600_000
# A finding of late events closes when none came for so long (event time).
LATE_CLOSES_AFTER_MS = 600_000
_NAMED_AT_MOST = 3
# What a source says of something wrong is cut there.
MAX_DETAIL_LENGTH = 1_000
# So many different things are taken from one snapshot, in the order of their kinds.
MAX_OBSERVATIONS = 64


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule found."""

    severity: Severity
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
        message=_said(
            one.queues_differing or 0,
            "{} queue is not where the strategy puts it",
            "{} queues are not where the strategy puts them",
        )
        + f" (generation {one.generation}).",
        advice="Compare both assignments of the group; look for members of another version, or with other settings.",
        evidence=one.evidence,
    )


def _generations_missed(one: Outcome) -> Found | None:
    if not one.generations_missed:
        return None
    return Found(
        severity="warning",
        message=_said(
            one.generations_missed,
            "{} generation before generation {} was never seen.",
            "{} generations before generation {} were never seen.",
            one.generation,
        ),
        advice="Records were compacted away, or the source was not read: causes in between are not known.",
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
        message=_said(
            one.unassigned,
            "Nobody holds {} queue of a subscribed topic: its messages wait.",
            "Nobody holds {} queues of subscribed topics: their messages wait.",
        ),
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
        message=_said(one.idle, "{} of {} members holds no queue.", "{} of {} members hold no queue.", one.members)
        if one.members > 1
        else "The only member holds no queue.",
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
        message=_said(
            number,
            "An event came after what followed it was judged; the first of this group.",
            "Events came after what followed them was judged; {} of this group so far.",
        ),
        advice="Raise the allowed lateness, or see why the source is slow; rejected_events lists them.",
        evidence=(event_id,),
        closes_at=at + LATE_CLOSES_AFTER_MS,
    )


def differing_found(number: int) -> Found:
    """Answer the finding ``expected_differs`` of members that say themselves what they hold."""
    return Found(
        severity="warning",
        message=_said(
            number,
            "{} queue is held by others than the group's strategy says.",
            "{} queues are held by others than the group's strategy says.",
        ),
        advice="Look for members with another strategy or another list of members, and for one that hangs.",
    )


# What sources see: kind, severity, sentence, advice; the source's own words follow the sentence.
OBSERVED: dict[str, tuple[Severity, str, str]] = {
    "brokers_disagree": (
        "warning",
        "Brokers list different members of the group: who asks one gets another answer than who asks the other.",
        "It passes once all clients have sent heartbeats to all brokers (30 s); else look for one that is cut off.",
    ),
    "changes_missed": (
        "warning",
        "The group changed more often than was seen: rebalances in between are not known.",
        "Look for members that come and go within moments, and for a source that was not read for a while.",
    ),
    "duplicate_unreachable": (
        "warning",
        "Two connections go by one client id: only one of them can be asked what it holds.",
        "Give each consumer a client id of its own (instance name, or one address for each process).",
    ),
    "members_unseen": (
        "warning",
        "The group has members that the brokers' lists do not show, such as clients of a proxy.",
        "What they hold is not known: neither members nor queues are guessed.",
    ),
    "not_polled": (
        "warning",
        "The group was not polled in time: what is told of it is older than one round.",
        "Raise the poll interval, or leave groups out that need not be watched.",
    ),
    "running_info_missing": (
        "warning",
        "Members do not tell what they hold: they hang, or their client cannot be asked.",
        "Look at those processes; a client that does not answer for two minutes is dropped by its broker.",
    ),
    "static_topic": (
        "info",
        "A topic's queues are mapped to logical ones: their brokers are not those that store them.",
        "Nothing needs to be done.",
    ),
    "unreadable_nodes": (
        "warning",
        "What some of the group's nodes hold cannot be read: those members or owners are left out.",
        "See who writes them: another version of the client, or another program under the same root.",
    ),
    "subscriptions_flap": (
        "critical",
        "Members of the group overwrite each other's subscriptions at the broker, heartbeat by heartbeat.",
        "Let all consumers of a group subscribe to the same topics with the same expressions.",
    ),
}


def observed(kind: str, details: Sequence[str], event_id: str) -> Found:
    """Answer the finding of something that a source saw; a kind that is not known speaks for itself.

    Args:
        details: In the source's own words, distinct, in order.
    """
    words = "; ".join(details)
    words = words if len(words) <= MAX_DETAIL_LENGTH else words[: MAX_DETAIL_LENGTH - 1] + "…"
    severity, sentence, advice = OBSERVED.get(
        kind, ("info", f"The source says: {kind:.100}.", "See what the source means by it.")
    )
    message = f"{sentence} {words}" if words else sentence
    return Found(severity=severity, message=message, advice=advice, evidence=(event_id,))


def counted(number: int, noun: str) -> str:
    """Answer a number with its noun, which takes an s."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _said(number: int, one: str, many: str, *rest: int) -> str:
    return (one if number == 1 else many).format(number, *rest)


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED_AT_MOST])
    more = len(names) - _NAMED_AT_MOST
    return f"{shown} and {more} more" if more > 0 else shown
