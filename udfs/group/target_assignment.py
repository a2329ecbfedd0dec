"""Core: the assignment that a group's own strategy computes from known topics and described members. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias

import msgspec

from udfs.group.assignment_diff import by_owner, held_only_by, owners_of
from udfs.group.state import Group, Member, Owners, Queue, keys_of
from udfs.group.state_machine import GroupKind
from udfs.group.static_members import ids_at
from udfs.group.view import GroupView
from udfs.model.errors import StrategyError
from udfs.model.events import QueueInfo, QueueRef
from udfs.model.systems import SYSTEMS, System
from udfs.strategies.allocate import allocate, select_protocol
from udfs.strategies.kafka.vote import Voter
from udfs.strategies.problem import Participant, Problem, Topic
from udfs.strategies.registry import ignores_owned, qualified_name

NOT_RECOMPUTABLE = "not_recomputable"
QueuesByTopic: TypeAlias = Mapping[str, tuple[QueueInfo, ...]]
# The queues that each member owned.
Previous: TypeAlias = dict[str, tuple[QueueRef, ...]]


class TargetAssignment(msgspec.Struct, kw_only=True):
    """The result of the group's own strategy.

    Attributes:
        owners: The new assignment; where the strategy failed, the current one.
        error: Why it failed. recomputed: The result can be compared with the reported assignment.
    """

    owners: Owners
    strategy: str | None
    error: str | None = None
    failed: bool = False
    recomputed: bool = True


def topics_with_metadata(view: GroupView, at: int) -> dict[str, tuple[QueueInfo, ...]]:
    """Return the queues of subscribed topics that are known then; deleted topics are not."""
    found: dict[str, tuple[QueueInfo, ...]] = {}
    for topic in view.group.subscribed_topics():
        queues = view.queues_at(topic, at)
        if queues:
            found[topic] = queues
    return found


def compute_target_assignment(
    view: GroupView,
    known: QueuesByTopic,
    strategy: str | None,
    at: int,
    generation: int,
    previous: Owners | None = None,
) -> TargetAssignment:
    """Compute the assignment by the group's strategy.

    Args:
        strategy: The reported one; None: that of the group's settings and members.
        generation: The one that is computed.
        previous: What members held before, by the ids that they had then; None: what they hold now.
    Returns: an assignment by the ids that members have now.
    """
    group = view.group
    named = strategy or group.reported_strategy or group.strategy
    if not group.members:
        return TargetAssignment(owners={}, strategy=_named(view, named))
    names, tie_order = ids_at(group, at), view.rules.vote_tie_order
    voters = _voters(group, names)
    chosen, may_use_owned = named, False
    try:
        if view.profile.members_vote and view.mode == "clustering":
            chosen = named or select_protocol(voters, tie_order)
            may_use_owned = not ignores_owned(chosen, view.system)
        before = previous_owners(group) if previous is None else previous
        problem = _problem(view, known, _by_member(before) if may_use_owned else {}, names, generation)
        dealt = allocate(system=view.system, mode=view.mode, strategy=chosen, problem=problem, tie_order=tie_order)
    except StrategyError as error:
        if error.code == "unknown_strategy" and (strategy or group.reported_strategy):
            return TargetAssignment(owners={}, strategy=_named(view, named), error=NOT_RECOMPUTABLE, recomputed=False)
        if error.code == "unknown_strategy" and named is None and view.kind is GroupKind.REPORTED:
            chosen = select_protocol(voters, tie_order)  # its members know it, the coordinator took it
            return TargetAssignment(owners={}, strategy=chosen, error=NOT_RECOMPUTABLE, recomputed=False)
        return TargetAssignment(
            owners=current_owners(view, at),
            strategy=_named(view, named),
            error=f"{error.code}: {error.message}",
            failed=True,
            recomputed=False,
        )
    now = {then: member for member, then in names.items()}
    held = {now.get(member, member): _keys(queues, view.system) for member, queues in dealt.assignment.items()}
    if may_use_owned:
        # Kafka's sticky assignors keep partitions that no longer exist after a topic was recreated with fewer.
        there = {queue for topic, infos in known.items() for queue in keys_of(infos, view.system, topic)}
        held = {member: [queue for queue in queues if queue in there] for member, queues in held.items()}
    unknown = None if dealt.recomputable else NOT_RECOMPUTABLE
    return TargetAssignment(
        owners=owners_of(held), strategy=dealt.strategy, error=unknown, recomputed=dealt.recomputable
    )


def _keys(queues: Iterable[QueueRef], system: System) -> list[Queue]:
    per_broker = SYSTEMS[system].counts_queues_per_broker
    return [(queue.topic, queue.broker if per_broker else None, queue.queue_id) for queue in queues]


def _named(view: GroupView, strategy: str | None) -> str | None:
    return qualified_name(strategy, view.system) if strategy else None


class _PastVoter(NamedTuple):
    """A member with the id under which it voted."""

    member_id: str
    strategies: tuple[str, ...] | None


def _voters(group: Group, names: Mapping[str, str]) -> Collection[Voter]:
    """Return the members with their ids of that time: ties between votes depend on them."""
    members = group.members.values()
    if not names:
        return members
    return [_PastVoter(names.get(one.member_id, one.member_id), one.strategies) for one in members]


def _problem(
    view: GroupView, known: QueuesByTopic, previous: Previous, names: Mapping[str, str], generation: int
) -> Problem:
    group = view.group
    former = max(generation - 1, 0)  # the one in which they held it
    return Problem(
        group=view.facts.group_id,
        members=tuple(
            _participant(view.system, member, names.get(member.member_id), previous, former)
            for member in group.members.values()
        ),
        topics={
            name: Topic(name=name, queues=queues, topic_id=view.topics.topic_id(name)) for name, queues in known.items()
        },
        settings=group.strategy_settings or {},
        leader=None if group.leader is None else names.get(group.leader, group.leader),
        previous=previous or None,
    )


def _participant(system: System, member: Member, then: str | None, before: Previous, generation: int) -> Participant:
    """Return a member as input of its strategy; ``then``: its former id, if it has another one now."""
    previous = before.get(then or member.member_id)
    owned, since = member.owned, member.owned_generation
    if owned is None:
        owned, since = previous, generation
    elif not SYSTEMS[system].counts_queues_per_broker and any(queue.broker is not None for queue in owned):
        owned = tuple(dict.fromkeys(QueueRef(queue.topic, queue.queue_id) for queue in owned))
    return Participant(
        member_id=then or member.member_id,
        name=then or member.name,
        instance_id=member.instance_id,
        rack=member.rack,
        client_library=member.client_library,
        subscriptions=member.subscriptions or (),
        strategies=member.strategies or (),
        owned=owned,
        generation=since if owned is not None else None,
        settings=member.strategy_settings,
    )


def _by_member(owners: Owners) -> Previous:
    """Return the queues that each member owned."""
    held = by_owner(owners)
    return {member: tuple(QueueRef(t, q, b) for t, b, q in queues) for member, queues in held.items()}


def previous_owners(group: Group) -> Owners:
    """Return the members' current queues: the reported ones where they are known."""
    return group.reported if group.has_reported else group.computed


def current_owners(view: GroupView, at: int) -> Owners:
    """Return the computed assignment without departed members and deleted queues."""
    group = view.group
    staying = held_only_by(group.computed, group.members)
    queues: set[Queue] = set()
    for topic in {queue[0] for queue in staying}:
        queues |= set(keys_of(view.queues_at(topic, at) or (), view.system, topic))
    whole_brokers = {(topic, broker) for topic, broker, _ in queues}
    return {q: holders for q, holders in staying.items() if q in queues or (q[2] < 0 and q[:2] in whole_brokers)}
