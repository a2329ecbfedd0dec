"""Core: one rebalance as input of the finding rules: its figures and the names they concern. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from udfs.group.assignment.balance import distinct_subscriptions, idle_members
from udfs.group.assignment.rebalance_plan import RebalancePlan
from udfs.group.assignment.target_assignment import QueuesByTopic
from udfs.group.assignment.would_be_owners import ownerless, with_would_be_owners
from udfs.group.batch.findings import Outcome
from udfs.group.state.assignment_diff import Changed
from udfs.group.state.flapping import Flapping, mark_of
from udfs.group.state.group import Member, Owners, Queue
from udfs.group.state.view import GroupView
from udfs.model.finding_names import (
    MAX_NAMED,
    MAX_SUBSCRIPTIONS,
    NamedClient,
    NamedMember,
    NamedQueue,
    NamedSubscription,
)
from udfs.model.journal import GroupChanged, Rebalance

_NO_COMMON_STRATEGY = "no_common_strategy"


def outcome_of(
    view: GroupView,
    plan: RebalancePlan,
    row: Rebalance,
    evaluated: Owners,
    queues: Sequence[Queue],
    differing: Sequence[Changed],
    much: Flapping | None,
    recent: Sequence[tuple[int, Sequence[int]]],
    *,
    unassigned: int,
    is_moving: bool,
) -> Outcome:
    """Return a rebalance as input of the rules.

    Args:
        evaluated: The owners counted in its figures. queues: Queues of subscribed topics with metadata. differing:
            Queues with reported owners other than computed. recent: When the group rebalanced, and which clients caused
            it.
        unassigned: How many queues have no owner, not counting those that the generation had not learned yet.
        is_moving: Queues have no owner only until the next generation of a cooperative rebalance.
    """
    members = view.group.members.values()
    names = Counter(member.name for member in members)
    strategies = (row.strategy or "").split(", ") if view.mode == "clustering" else ()
    subscription_sets = _subscription_sets(view)
    differ = view.profile.needs_equal_subscriptions and subscription_sets > 1
    is_mixed = len(strategies) > 1 and not view.profile.members_vote
    names_strategies = is_mixed or (row.error or "").startswith(_NO_COMMON_STRATEGY)
    after = row.event_time if much is None else row.event_time - much.within_ms
    blamed = [] if much is None else culprits(view, [clients for at, clients in recent if at > after])
    outcome = Outcome(
        system=view.system,
        at=row.event_time,
        generation=row.generation,
        members=row.members_after,
        queues=sum(len(infos) for topic, infos in plan.topic_queues.items() if not view.is_quiet(topic)),
        error=plan.target.error,
        agrees=row.agrees,
        queues_differing=row.queues_differing,
        generations_missed=row.generations_missed,
        names=sorted(name for name, connections in names.items() if connections > 1),
        strategies=strategies,
        subscription_sets=subscription_sets,
        subscriptions=_by_subscription(view) if differ else (),
        unassigned=unassigned,
        handing_over=is_moving,
        idle=row.idle_members,
        flapping=much,
        evidence=sorted({trigger.event_id for trigger in row.triggers if trigger.event_id}),
        strategy=row.strategy,
        duplicates=[view.named(twin, _address(twin)) for twin in _by_id(members) if names[twin.name] > 1][:MAX_NAMED],
        culprits=blamed,
        culprit_version=_version_of(view, blamed[:1]),
        by_strategy=_by_strategy(view) if names_strategies else (),
        differing=named_differing(differing) if row.queues_differing else (),
    )
    name_unread(view, outcome, evaluated, queues, plan.target.owners, plan.topic_queues)
    return outcome


def outcome_of_balance(
    view: GroupView,
    row: GroupChanged,
    at: int,
    evaluated: Owners,
    queues: Sequence[Queue],
    topic_queues: QueuesByTopic,
    event_id: str | None,
) -> Outcome:
    """Return the current generation as far as its figures depend on queues that became known later."""
    group = view.group
    outcome = Outcome(
        system=view.system,
        at=at,
        generation=group.current_generation,
        members=row.members or 0,
        queues=row.queues,
        unassigned=row.unassigned_queues,
        idle=row.idle_members,
        handing_over=bool(group.revoked_pending),
        evidence=[event_id] if event_id else [],
        strategy=group.last_strategy,
    )
    name_unread(view, outcome, evaluated, queues, group.computed, topic_queues)
    return outcome


def name_unread(
    view: GroupView,
    outcome: Outcome,
    evaluated: Owners,
    queues: Sequence[Queue],
    computed: Owners,
    topic_queues: QueuesByTopic,
) -> None:
    """Add queues without an owner, members without queues, and the members' names in sentences."""
    if outcome.unassigned and outcome.members and not outcome.handing_over:
        free = ownerless(view, queues, evaluated)
        outcome.ownerless = with_would_be_owners(view, free, computed, topic_queues, outcome.at, outcome.generation)
    if outcome.idle:
        ids = idle_members(view, evaluated)
        outcome.idlers = [view.named(view.group.members[member_id]) for member_id in sorted(ids)[:MAX_NAMED]]
    named = (outcome.ownerless, outcome.idlers, outcome.differing, outcome.subscriptions, outcome.by_strategy)
    if any(named):
        outcome.shown = view.shown_names()


def named_differing(differing: Iterable[Changed]) -> list[NamedQueue]:
    """Return the first queues whose owners differ from the computed ones."""
    named: list[NamedQueue] = []
    for queue, expected, owners in differing:
        if len(named) == MAX_NAMED:
            break
        named.append(NamedQueue(*queue, next(iter(expected), None), None, owners))
    return named


def _subscription_sets(view: GroupView) -> int:
    """Return the number of different subscriptions."""
    distinct = distinct_subscriptions(view.group.members.values())
    return len(
        {frozenset(topic for topic in topics if not view.is_quiet(topic)) for topics in distinct} - {frozenset()}
    )


def culprits(view: GroupView, caused: Iterable[Sequence[int]]) -> list[NamedClient]:
    """Return the clients that caused rebalances, with their counts, most first; long departed clients have no name."""
    numbers = Counter(mark for marks in caused for mark in marks)
    if not numbers:
        return []
    members = [*view.group.members.values(), *(departed.member for departed in view.group.departed.values())]
    named: Counter[str] = Counter()
    for client in {view.client_of(member) for member in members}:
        named[client] = numbers[mark_of(client)]
    ordered = sorted(named.items(), key=lambda item: (-item[1], item[0]))
    return [NamedClient(client, number) for client, number in ordered if number]


def _version_of(view: GroupView, clients: Sequence[NamedClient]) -> str | None:
    """Return the client version of a client's present member, if its source reports one."""
    names = {named.client for named in clients}
    versions = [member.client_version for member in view.group.members.values() if view.client_of(member) in names]
    return next((version for version in versions if version is not None), None)


def _by_strategy(view: GroupView) -> list[NamedMember]:
    """Return members with their strategies, those with the rarest strategy first."""
    names = {member.member_id: ", ".join(member.strategies or ()) for member in view.group.members.values()}
    numbers = Counter(names.values())
    ordered = sorted(names, key=lambda member_id: (numbers[names[member_id]], names[member_id], member_id))
    return [view.named(view.group.members[member_id], names[member_id] or None) for member_id in ordered[:MAX_NAMED]]


def _by_subscription(view: GroupView) -> list[NamedSubscription]:
    """Return each subscription with its members, rarest first."""
    found: dict[tuple[str, ...], list[str]] = {}
    for member in _by_id(view.group.members.values()):
        topics = tuple(topic for topic in member.subscriptions or () if not view.is_quiet(topic))
        if topics:
            found.setdefault(topics, []).append(member.member_id)
    ordered = sorted(found.items(), key=lambda item: (len(item[1]), item[0]))[:MAX_SUBSCRIPTIONS]
    return [
        NamedSubscription(topics[:MAX_NAMED], tuple(ids[:MAX_NAMED]), max(0, len(ids) - MAX_NAMED))
        for topics, ids in ordered
    ]


def _by_id(members: Iterable[Member]) -> list[Member]:
    return sorted(members, key=lambda member: member.member_id)


def _address(member: Member) -> str:
    return member.host or "unknown address"
