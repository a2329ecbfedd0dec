"""Core: what is wrong with a group, as numbered rules, worst first. No I/O.

Each rule evaluates one rebalance and returns a finding, or None; a finding stays open until its rule
returns None after a later rebalance, or, where ``closes_at`` is set, until that time.

1. ``strategy_failed``: the strategy failed.
2. ``expected_differs``: the clients report an assignment that differs from the recomputed one.
3. ``generations_missed``: generations before this one were not observed.
4. ``duplicate_ids``: two live connections use one client id.
5. ``strategies_differ``: members use different strategies.
6. ``subscriptions_differ``: members of one RocketMQ group subscribe to different topics.
7. ``unassigned_queues``: some queues of subscribed topics have no owner.
8. ``flapping``: many more rebalances than usual for the group.
9. ``idle_members``: more members than queues.

``events_late`` is opened by the late event itself, see ``late_found``, ``rebalance_stuck`` by a timer, see
``stuck_found``, ``duplicate_instance`` in ``duplicate_instances``. Observations that only the source can make come with
its snapshots, by the kinds of ``OBSERVED``, and stay open until a snapshot comes without them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import msgspec

from udfs.group.batch.differing_queues import differing_sentence
from udfs.group.state.assignment_diff import Changed
from udfs.group.state.flapping import Flapping
from udfs.model.systems import SYSTEMS
from udfs.model.timestamps import write_timestamp

Severity: TypeAlias = Literal["info", "warning", "critical"]

# A finding of late events closes when none came for this long (event time).
LATE_CLOSES_AFTER_MS = 600_000
STUCK = "rebalance_stuck"
_NAMED_AT_MOST = 3
# The longest detail of an observation; longer ones are cut.
MAX_DETAIL_LENGTH = 1_000
# The most observations of one snapshot, in the order of their kinds.
MAX_OBSERVATIONS = 64


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The finding of a rule."""

    severity: Severity
    message: str
    advice: str
    evidence: Sequence[str] = ()
    closes_at: int | None = None


class Outcome(msgspec.Struct, kw_only=True):
    """One rebalance as the rules evaluate it.

    Attributes:
        agrees: Computed = reported; None where they cannot be compared.
        differing: Queues whose reported owners are not the computed ones.
        names: Client ids with several live members, with their number. strategies: The strategies in use.
        subscription_sets: How many different ones.
        handing_over: Some queues have no owner because a cooperative rebalance is in progress.
        flapping: How much more often than usual it rebalances; None: not so often.
        evidence: Ids of the events that caused it.
    """

    system: str
    at: int
    generation: int
    members: int
    queues: int
    error: str | None = None
    agrees: bool | None = None
    differing: Sequence[Changed] = ()
    generations_missed: int | None = None
    names: Sequence[str] = ()
    strategies: Sequence[str] = ()
    subscription_sets: int = 0
    unassigned: int
    handing_over: bool
    idle: int
    flapping: Flapping | None = None
    evidence: Sequence[str]


def _strategy_failed(one: Outcome) -> Found | None:
    if one.error is None or one.error == "not_recomputable":
        return None
    return Found(
        severity="critical",
        message=f"The strategy failed: {one.error}. Members keep their previous queues.",
        advice="Configure one strategy for all members of the group, and one that this monitor supports.",
        evidence=one.evidence,
    )


def _expected_differs(one: Outcome) -> Found | None:
    if one.agrees is not False:
        return None
    return Found(
        severity="warning",
        message=f"{differing_sentence(one.differing)} (generation {one.generation}).",
        advice="Compare the computed and the reported assignment; check for members with another client version"
        " or other settings.",
        evidence=one.evidence,
    )


def _generations_missed(one: Outcome) -> Found | None:
    if not one.generations_missed:
        return None
    return Found(
        severity="warning",
        message=_phrase(
            one.generations_missed,
            "{} generation before generation {} was not observed.",
            "{} generations before generation {} were not observed.",
            one.generation,
        ),
        advice="Records were compacted before they were read, or the source was not read: the causes in between are"
        " unknown.",
        evidence=one.evidence,
    )


def _duplicate_ids(one: Outcome) -> Found | None:
    if not one.names:
        return None
    return Found(
        severity="critical",
        message=f"Several live connections use the same client id, {_list(one.names)}: they own the same queues.",
        advice="Give each consumer a unique client id (instance name, or one address for each process).",
        evidence=one.evidence,
    )


def _strategies_differ(one: Outcome) -> Found | None:
    if len(one.strategies) < 2 or SYSTEMS[one.system].members_vote:
        return None
    return Found(
        severity="critical",
        message=f"Members use different strategies: {_list(one.strategies)}.",
        advice="Configure one strategy for all consumers of the group: until then queues may have two owners or none.",
        evidence=one.evidence,
    )


def _subscriptions_differ(one: Outcome) -> Found | None:
    if not SYSTEMS[one.system].needs_equal_subscriptions or one.subscription_sets < 2:
        return None
    return Found(
        severity="warning",
        message=f"Members of the group have {one.subscription_sets} different subscriptions.",
        advice=f"{SYSTEMS[one.system].title} requires identical subscriptions for all consumers of a group: each"
        " heartbeat overwrites the previous subscription.",
        evidence=one.evidence,
    )


def _unassigned_queues(one: Outcome) -> Found | None:
    if not one.unassigned or not one.members or one.handing_over:
        return None
    return Found(
        severity="warning",
        message=_phrase(
            one.unassigned,
            "{} queue of a subscribed topic has no owner: its messages are not consumed.",
            "{} queues of subscribed topics have no owner: their messages are not consumed.",
        ),
        advice="Check that all members subscribe to the topic, that their strategy assigns every queue, and for a"
        " member that has not taken its queues.",
        evidence=one.evidence,
    )


def _flapping(one: Outcome) -> Found | None:
    if one.flapping is None:
        return None
    much = one.flapping
    return Found(
        severity="warning",
        message=f"{counted(much.rebalances, 'rebalance')} within {much.within_ms / 60_000:.1f} minutes; usual for this"
        f" group: {much.usual:.1f}.",
        advice="Check which members join and leave: crash loops, short session timeouts, polls that take too long.",
        evidence=one.evidence,
        closes_at=much.closes_at,
    )


def _idle_members(one: Outcome) -> Found | None:
    if not one.idle or not one.queues:
        return None
    return Found(
        severity="info",
        message=_phrase(one.idle, "{} of {} members owns no queue.", "{} of {} members own no queue.", one.members)
        if one.members > 1
        else "The only member owns no queue.",
        advice=_advice_for_idle(one),
        evidence=one.evidence,
    )


def _advice_for_idle(one: Outcome) -> str:
    if one.queues < one.members:
        return "There are more members than queues to assign: add queues or run fewer consumers."
    if one.unassigned:
        return "There are queues without an owner: look why nobody has taken them before adding or removing anything."
    even = "There are enough queues, but they are shared out evenly only within each topic, among its subscribers. "
    if SYSTEMS[one.system].members_vote:
        return even + "Use a strategy that shares out all of them together: roundrobin, sticky or cooperative-sticky."
    return even + "Give each topic as many queues as it has consumers, or run fewer."


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
    """Return the finding ``events_late``; it closes when no late event came for ten minutes of event time."""
    return Found(
        severity="warning",
        message=_phrase(
            number,
            "An event arrived after later events had been applied; it is the first late one of this group.",
            "Events arrived after later events had been applied; {} of this group so far.",
        ),
        advice="Raise time.allowed_lateness_ms, or check why the source is slow; the table rejected_events lists"
        " the events.",
        evidence=(event_id,),
        closes_at=at + LATE_CLOSES_AFTER_MS,
    )


def stuck_found(since: int, state: str, waits: str | None) -> Found:
    """Return the finding ``rebalance_stuck``; it closes when the group rebalances no longer.

    Args:
        since: When the rebalance began, or the first of several without a break between them; epoch ms.
    """
    message = f"The group has been rebalancing ({state}) since {write_timestamp(since)}"
    if waits:
        whole = len(waits) <= MAX_DETAIL_LENGTH
        message += f": {waits if whole else waits[: waits.rindex(' ', 0, MAX_DETAIL_LENGTH)] + ' …'}"
    return Found(
        severity="warning",
        message=f"{message}.",
        advice="Look for a member that takes long to revoke its queues or to join again (max.poll.interval.ms, long"
        " processing), for members that join and leave in turn, and into the log of the group's coordinator.",
    )


def differing_found(differing: Sequence[Changed]) -> Found:
    """Return the finding ``expected_differs`` of members that report their own queues."""
    return Found(
        severity="warning",
        message=f"{differing_sentence(differing)}.",
        advice="Check for members with another strategy or a different member list, and for a member that hangs.",
    )


# Observations of sources: kind, severity, message, advice; the source's detail follows the message.
OBSERVED: dict[str, tuple[Severity, str, str]] = {
    "brokers_disagree": (
        "warning",
        "Brokers return different member lists; clients may compute different assignments.",
        "It closes once all clients have sent heartbeats to all brokers (30 s). If it stays open, check for a client"
        " that cannot reach a broker.",
    ),
    "changes_missed": (
        "warning",
        "The group changed more often than it was polled: rebalances in between are unknown.",
        "Check for members that join and leave within seconds, and for a source that was not read for a while.",
    ),
    "duplicate_unreachable": (
        "warning",
        "Two connections use the same client id: only one of them can be queried for its queues.",
        "Give each consumer a unique client id (instance name, or one address for each process).",
    ),
    "members_unseen": (
        "warning",
        "The group has members that the brokers do not list, such as clients behind a proxy.",
        "Their assignment is unknown: the monitor guesses neither members nor queues.",
    ),
    "not_polled": (
        "warning",
        "The group was not polled in time: its reported state is older than one poll interval.",
        "Raise the poll interval, or exclude groups that need not be monitored.",
    ),
    "running_info_missing": (
        "warning",
        "Members do not report their queues: they hang, or their client does not support the query.",
        "Check those processes; a broker drops a client that sends no heartbeat for two minutes.",
    ),
    "static_topic": (
        "info",
        "The topic is static: its queues are logical, and their brokers are not those that store the messages.",
        "No action is needed.",
    ),
    "unreadable_nodes": (
        "warning",
        "The content of some of the group's nodes cannot be parsed: those members or owners are left out.",
        "Check which program writes them: another client version, or another program under the same root.",
    ),
    "subscriptions_flap": (
        "critical",
        "Members of the group overwrite each other's subscription at the broker with every heartbeat.",
        "Subscribe all consumers of the group to the same topics with the same expressions.",
    ),
}


def observed(kind: str, details: Sequence[str], event_id: str) -> Found:
    """Return the finding of an observation; an unknown kind is reported by its name.

    Args:
        details: The source's details, distinct, in order.
    """
    text = "; ".join(details)
    text = text if len(text) <= MAX_DETAIL_LENGTH else text[: MAX_DETAIL_LENGTH - 1] + "…"
    severity, sentence, advice = OBSERVED.get(
        kind, ("info", f"The source reports: {kind:.100}.", "See the source's documentation.")
    )
    message = f"{sentence} {text}" if text else sentence
    return Found(severity=severity, message=message, advice=advice, evidence=(event_id,))


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, which takes an s."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def reported_late(happened_at: int, applied_at: int) -> str:
    """Return the detail of a cause that came late; times in epoch ms."""
    return f"reported late: happened at {write_timestamp(happened_at)}, applied at {write_timestamp(applied_at)}"


def _phrase(number: int, one: str, many: str, *rest: int) -> str:
    return (one if number == 1 else many).format(number, *rest)


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED_AT_MOST])
    more = len(names) - _NAMED_AT_MOST
    return f"{shown} and {more} more" if more > 0 else shown
