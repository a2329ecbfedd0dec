"""Core: the rules that find what is wrong with a group. No I/O.

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
9. ``idle_members``: some members own no queue.

The late event itself opens ``events_late`` (``late_found``), a timer opens ``rebalance_stuck`` (``stuck_found``),
``duplicate_instances`` opens ``duplicate_instance``, and ``observed_findings`` opens those that only sources observe.
``finding_causes`` defines which finding follows from which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from udfs.group.batch.finding_texts import (
    clients_text,
    counted,
    differing_sentence,
    members_text,
    named,
    ownerless_text,
    phrase,
    queues_text,
)
from udfs.group.state.flapping import Flapping
from udfs.model.finding_names import (
    MAX_NAMED,
    FindingNames,
    NamedClient,
    NamedMember,
    NamedQueue,
    NamedSubscription,
)
from udfs.model.systems import SYSTEMS
from udfs.model.timestamps import write_timestamp

Severity: TypeAlias = Literal["info", "warning", "critical"]

# A finding of late events closes when no late event has come for this long (event time).
LATE_CLOSES_AFTER_MS = 600_000
STUCK = "rebalance_stuck"
_SUBSCRIPTIONS_SHOWN = 3
# The longest detail from a source's report; longer details are cut.
MAX_DETAIL_LENGTH = 1_000


class Found(FindingNames, frozen=True, kw_only=True):
    """A rule's finding, with everything that it names."""

    severity: Severity
    message: str
    advice: str
    evidence: Sequence[str] = ()
    closes_at: int | None = None


class Outcome(msgspec.Struct, kw_only=True):
    """One rebalance as input of the rules.

    Attributes:
        agrees: Whether the computed assignment is the reported one; None if they cannot be compared.
        names: Client ids with several live members, each with their number. strategies: The strategies in use.
        subscription_sets: The number of different subscriptions.
        duplicates: Members that share a client id. by_strategy: Members with their strategies. subscriptions: Each
            subscription with its members. ownerless, differing: Queues without an owner, and queues with an owner other
            than computed. idlers: Members without queues. grown: Topics whose new queues no generation has assigned.
            culprits: Clients by the rebalances that they caused, most first. Each of these lists has at most
            ``MAX_NAMED`` entries, in order, and is filled only if a rule may need it.
        culprit_version: The client version of the first of them.
        shown: The members' names in sentences, by their ids.
        handing_over: Some queues have no owner because a cooperative rebalance is in progress.
        flapping: How much more often than usual the group rebalances; None if not often enough.
        evidence: Ids of the events that caused the rebalance.
    """

    system: str
    at: int
    generation: int
    members: int
    queues: int
    error: str | None = None
    agrees: bool | None = None
    queues_differing: int | None = None
    generations_missed: int | None = None
    names: Sequence[str] = ()
    strategies: Sequence[str] = ()
    subscription_sets: int = 0
    unassigned: int
    handing_over: bool
    idle: int
    flapping: Flapping | None = None
    evidence: Sequence[str]
    duplicates: Sequence[NamedMember] = ()
    by_strategy: Sequence[NamedMember] = ()
    subscriptions: Sequence[NamedSubscription] = ()
    ownerless: Sequence[NamedQueue] = ()
    differing: Sequence[NamedQueue] = ()
    grown: Sequence[str] = ()
    idlers: Sequence[NamedMember] = ()
    culprits: Sequence[NamedClient] = ()
    culprit_version: str | None = None
    strategy: str | None = None
    shown: Mapping[str, str] = msgspec.field(default_factory=dict)


def of_members(members: Sequence[NamedMember], total: int | None = None) -> dict[str, Any]:
    """Return the fields of a finding that names members, and therefore their clients.

    Args:
        total: How many there are if ``members`` are only the first of them.
    """
    shown = members[:MAX_NAMED]
    clients = sorted({member.client for member in shown})
    return {
        "members": tuple(shown),
        "members_left_out": max(0, (len(members) if total is None else total) - len(shown)),
        "clients": tuple(NamedClient(client) for client in clients),
    }


def of_queues(queues: Sequence[NamedQueue], total: int) -> dict[str, Any]:
    """Return the fields of a finding that names queues, with their total number."""
    shown = tuple(queues[:MAX_NAMED])
    return {"queues": shown, "queues_left_out": max(0, total - len(shown)) if shown else 0}


def _strategy_failed(outcome: Outcome) -> Found | None:
    if outcome.error is None or outcome.error == "not_recomputable":
        return None
    return Found(
        severity="critical",
        message=f"The strategy failed: {outcome.error}. Members keep their previous queues."
        + _strategies_text(outcome, " Their strategies: {}."),
        advice="Configure one strategy for all members of the group, and one that this monitor supports.",
        evidence=outcome.evidence,
        **of_members(outcome.by_strategy, outcome.members),
    )


def _expected_differs(outcome: Outcome) -> Found | None:
    if outcome.agrees is not False:
        return None
    return Found(
        severity="warning",
        message=differing_sentence(outcome.differing, outcome.queues_differing or 0, outcome.shown)
        + f" (generation {outcome.generation}).",
        advice="Compare the computed and the reported assignment; check for members with another client version"
        " or other settings.",
        evidence=outcome.evidence,
        **of_queues(outcome.differing, outcome.queues_differing or 0),
    )


def _generations_missed(outcome: Outcome) -> Found | None:
    if not outcome.generations_missed:
        return None
    return Found(
        severity="warning",
        message=phrase(
            outcome.generations_missed,
            "{} generation before generation {} was not observed.",
            "{} generations before generation {} were not observed.",
            outcome.generation,
        ),
        advice="Records were compacted before they were read, or the source was not read: the causes in between are"
        " unknown.",
        evidence=outcome.evidence,
    )


def _duplicate_ids(outcome: Outcome) -> Found | None:
    if not outcome.names:
        return None
    return Found(
        severity="critical",
        message=f"Several live connections use the same client id, {named(outcome.names)}: they own the same queues"
        + _colon(named([f"{member.member_id} ({member.detail})" for member in outcome.duplicates])),
        advice="Give each consumer a unique client id (instance name, or one address for each process).",
        evidence=outcome.evidence,
        **of_members(outcome.duplicates),
    )


def _strategies_differ(outcome: Outcome) -> Found | None:
    if len(outcome.strategies) < 2 or SYSTEMS[outcome.system].members_vote:
        return None
    return Found(
        severity="critical",
        message=f"Members use different strategies: {_strategies_text(outcome, '{}') or named(outcome.strategies)}.",
        advice="Configure one strategy for all consumers of the group: until then queues may have two owners or none.",
        evidence=outcome.evidence,
        **of_members(outcome.by_strategy, outcome.members),
    )


def _subscriptions_differ(outcome: Outcome) -> Found | None:
    if not SYSTEMS[outcome.system].needs_equal_subscriptions or outcome.subscription_sets < 2:
        return None
    return Found(
        severity="warning",
        message=f"Members of the group have {outcome.subscription_sets} different subscriptions"
        + _colon(
            "; ".join(_subscription_text(each, outcome.shown) for each in outcome.subscriptions[:_SUBSCRIPTIONS_SHOWN])
        ),
        advice=f"{SYSTEMS[outcome.system].title} requires identical subscriptions for all consumers of a group: each"
        " heartbeat overwrites the previous subscription.",
        evidence=outcome.evidence,
        subscriptions=tuple(outcome.subscriptions),
        subscriptions_left_out=max(0, outcome.subscription_sets - len(outcome.subscriptions))
        if outcome.subscriptions
        else 0,
    )


def _unassigned_queues(outcome: Outcome) -> Found | None:
    if not outcome.unassigned or not outcome.members or outcome.handing_over:
        return None
    return Found(
        severity="warning",
        message=phrase(
            outcome.unassigned,
            "{} queue has no owner, and nobody consumes it",
            "{} queues have no owner, and nobody consumes them",
        )
        + _colon(queues_text(outcome.ownerless, outcome.unassigned))
        + ownerless_text(outcome.ownerless, (outcome.strategy or "").rpartition(".")[2], outcome.shown)
        + (f" No generation has followed the growth of {named(outcome.grown)}." if outcome.grown else ""),
        advice="Check that all members subscribe to the topic, that their strategy assigns every queue, and for a"
        " member that has not taken its queues.",
        evidence=outcome.evidence,
        **of_queues(outcome.ownerless, outcome.unassigned),
    )


def _flapping(outcome: Outcome) -> Found | None:
    if outcome.flapping is None:
        return None
    much = outcome.flapping
    return Found(
        severity="warning",
        message=f"{counted(much.rebalances, 'rebalance')} within {much.within_ms / 60_000:.1f} minutes; usual for this"
        f" group: {much.usual:.1f}."
        + _culprits_text(outcome, much.rebalances)
        + (f" It is an episode, {much.episode}." if much.episode else ""),
        advice="Check which members join and leave: crash loops, short session timeouts, polls that take too long.",
        evidence=outcome.evidence,
        closes_at=much.closes_at,
        clients=tuple(outcome.culprits[:MAX_NAMED]),
        clients_left_out=max(0, len(outcome.culprits) - MAX_NAMED),
    )


def _culprits_text(outcome: Outcome, rebalances: int) -> str:
    found = outcome.culprits
    return f" {clients_text(found, len(found), rebalances, outcome.culprit_version)}." if found else ""


def _idle_members(outcome: Outcome) -> Found | None:
    if not outcome.idle or not outcome.queues:
        return None
    return Found(
        severity="info",
        message=(
            phrase(outcome.idle, "{} of {} members owns no queue", "{} of {} members own no queue", outcome.members)
            if outcome.members > 1
            else "The only member owns no queue"
        )
        + _colon(members_text(outcome.idlers, outcome.idle, outcome.shown)),
        advice=_advice_for_idle(outcome),
        evidence=outcome.evidence,
        **of_members(outcome.idlers, outcome.idle),
    )


def _advice_for_idle(outcome: Outcome) -> str:
    if outcome.queues < outcome.members:
        return "There are more members than queues to assign: add queues or run fewer consumers."
    if outcome.unassigned:
        return "There are queues without an owner: look why nobody has taken them before adding or removing anything."
    even = "There are enough queues, but they are shared out evenly only within each topic, among its subscribers. "
    if SYSTEMS[outcome.system].members_vote:
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
    """Return the finding ``events_late``; it closes when no late event came for ten minutes of event time.

    Its number is rounded down to a power of two, so the finding changes each time the number doubles, not with each
    event.
    """
    return Found(
        severity="warning",
        message=phrase(
            number and 1 << number.bit_length() - 1,
            "An event arrived after later events had been applied; it is the first late one of this group.",
            "Events arrived after later events had been applied; at least {} of this group so far.",
        ),
        advice="Raise time.allowed_lateness_ms, or check why the source is slow; the table rejected_events lists"
        " the events.",
        evidence=(event_id,),
        closes_at=at + LATE_CLOSES_AFTER_MS,
    )


def stuck_found(since: int, state: str, waits: str | None, members: Sequence[NamedMember] = ()) -> Found:
    """Return the finding ``rebalance_stuck``, which closes when the group no longer rebalances.

    Args:
        since: When the rebalance began, or the first of several without a break between them; epoch ms.
        members: The members that it waits for, with their states, if the source shows them.
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
        **of_members(members),
    )


def differing_found(queues: Sequence[NamedQueue], number: int, shown: Mapping[str, str]) -> Found:
    """Return the finding ``expected_differs`` for members that report their own queues.

    Args:
        queues: The first of the differing queues. number: Their total number. shown: The members' names in sentences.
    """
    return Found(
        severity="warning",
        message=f"{differing_sentence(queues, number, shown)}.",
        advice="Check for members with another strategy or a different member list, and for a member that hangs.",
        **of_queues(queues, number),
    )


def reported_late(happened_at: int, applied_at: int) -> str:
    """Return the detail of a cause that was reported late; times in epoch ms."""
    return f"reported late: happened at {write_timestamp(happened_at)}, applied at {write_timestamp(applied_at)}"


def _colon(names: str) -> str:
    """End a sentence with the names that it refers to, if they are known."""
    return f": {names}." if names else "."


def _subscription_text(subscription: NamedSubscription, shown: Mapping[str, str]) -> str:
    members = named(
        [shown.get(each, each) for each in subscription.members],
        len(subscription.members) + subscription.members_left_out,
    )
    return f"{members} to {named(subscription.topics) or 'nothing'}"


def _strategies_text(outcome: Outcome, sentence: str) -> str:
    """Return which members use which strategy."""
    by_strategy: dict[str, list[str]] = {}
    for member in outcome.by_strategy:
        by_strategy.setdefault(member.detail or "none", []).append(
            outcome.shown.get(member.member_id, member.member_id)
        )
    if not by_strategy:
        return ""
    return sentence.format("; ".join(f"{strategy} ({named(ids)})" for strategy, ids in sorted(by_strategy.items())))
