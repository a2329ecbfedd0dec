"""Core: the assignment that a group's own strategy computes from topics with metadata and described members. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias

import msgspec

from udfs.group.assignment.library_choice import DEPENDS_ON_LIBRARY, choose
from udfs.group.members.static_members import ids_at
from udfs.group.state.assignment_diff import by_owner, held_only_by, owners_of
from udfs.group.state.group import Group, Member, Owners, Queue, keys_of
from udfs.group.state.state_machine import GroupKind
from udfs.group.state.view import GroupView
from udfs.model.comparability import (
    CUSTOM_STRATEGY,
    NOT_RECOMPUTABLE,
    STRATEGY_FAILED,
    SUBSCRIPTIONS_UNKNOWN,
    UNKNOWN_RESULTS,
)
from udfs.model.errors import StrategyError
from udfs.model.events import QueueInfo, QueueRef
from udfs.model.systems import SYSTEMS, System
from udfs.strategies.allocate import allocate, select_protocol
from udfs.strategies.kafka.coordinator_release import COORDINATOR
from udfs.strategies.kafka.vote import Voter
from udfs.strategies.problem import Assignment, Participant, Problem, Topic
from udfs.strategies.registry import ignores_owned, qualified_name
from udfs.strategies.registry import strategy as strategy_named

QueuesByTopic: TypeAlias = Mapping[str, tuple[QueueInfo, ...]]
# The queues that each member owned.
Previous: TypeAlias = dict[str, tuple[QueueRef, ...]]


class TargetAssignment(msgspec.Struct, kw_only=True):
    """The result of the group's own strategy.

    Attributes:
        owners: The new assignment, or the current one if the strategy failed.
        error: Why it failed. incomparable: Why the result cannot be compared with the reported assignment, a reason of
            ``comparability``; None if it can. library: The Kafka client library, or the coordinator's release, that
            computed it, if that matters.
    """

    owners: Owners
    strategy: str | None
    error: str | None = None
    failed: bool = False
    incomparable: str | None = None
    library: str | None = None

    @property
    def recomputed(self) -> bool:
        """Return whether the result can be compared with the reported assignment."""
        return self.incomparable is None


def topics_with_metadata(view: GroupView, at: int) -> dict[str, tuple[QueueInfo, ...]]:
    """Return the queues of subscribed topics that have metadata at that time; deleted topics have none."""
    found: dict[str, tuple[QueueInfo, ...]] = {}
    for topic in view.group.subscribed_topics():
        queues = view.queues_at(topic, at)
        if queues:
            found[topic] = queues
    return found


def compute_target_assignment(
    view: GroupView,
    topic_queues: QueuesByTopic,
    strategy: str | None,
    at: int,
    generation: int,
    previous: Owners | None = None,
    reported: Owners | None = None,
    altered: Callable[[Problem], Problem] | None = None,
    former: Mapping[str, str] | None = None,
) -> TargetAssignment:
    """Compute the assignment by the group's strategy.

    Args:
        strategy: The reported strategy; None for that of the group's settings and members.
        generation: The generation to compute.
        previous: The members' queues before, by the ids that they had then; None for their current queues.
        reported: The assignment that this generation reports; it shows which client library assigned.
        altered: Changes the strategy's input, to see the result of a different input.
        former: The ids that members had then; None for those of static members that were replaced since.
    Returns: an assignment by the ids that members have now.
    """
    group = view.group
    named = strategy or group.reported_strategy or group.strategy
    if not group.members:
        return TargetAssignment(owners={}, strategy=_named(view, named))
    names, tie_order = ids_at(group, at) if former is None else former, view.config.vote_tie_order
    voters = _voters(group, names)
    chosen, may_use_owned = named, False
    try:
        if view.profile.members_vote and view.mode == "clustering":
            chosen = named or select_protocol(voters, tie_order)
            may_use_owned = not ignores_owned(chosen, view.system)
        before = _by_former_ids(previous_owners(group), names) if previous is None else previous
        problem = _problem(view, topic_queues, at, _by_member(before) if may_use_owned else {}, names, generation)
        problem = problem if altered is None else altered(problem)
        in_use = _existing_queues(view, topic_queues) if may_use_owned else None
        if view.profile.members_vote and view.mode == "clustering" and _depends_on_library(view, chosen):
            return _by_library(view, qualified_name(chosen or "", view.system), problem, names, in_use, reported)
        allocation = allocate(system=view.system, mode=view.mode, strategy=chosen, problem=problem, tie_order=tie_order)
    except StrategyError as error:
        if error.code == "unknown_strategy" and (strategy or group.reported_strategy):
            return _not_recomputable(_named(view, named))
        if error.code == "unknown_strategy" and named is None and view.kind is GroupKind.REPORTED:
            chosen = select_protocol(voters, tie_order)  # members know the strategy, and the coordinator selected it
            return _not_recomputable(chosen)
        return TargetAssignment(
            owners=current_owners(view, topic_queues, at),
            strategy=_named(view, named),
            error=f"{error.code}: {error.message}",
            failed=True,
            incomparable=STRATEGY_FAILED,
        )
    return TargetAssignment(
        owners=_owners(view, allocation.assignment, names, in_use),
        strategy=allocation.strategy,
        error=None if allocation.recomputable else NOT_RECOMPUTABLE,
        incomparable=None if allocation.recomputable else CUSTOM_STRATEGY,
    )


def _depends_on_library(view: GroupView, chosen: str | None) -> bool:
    return chosen is not None and qualified_name(chosen, view.system) in DEPENDS_ON_LIBRARY


def _by_library(
    view: GroupView,
    strategy: str,
    problem: Problem,
    names: Mapping[str, str],
    in_use: set[Queue] | None,
    reported: Owners | None,
) -> TargetAssignment:
    """Return the assignment that the client library of the group's leader computes."""
    function = strategy_named(strategy, view.system)
    choice = choose(strategy, problem, function, lambda found: _owners(view, found, names, in_use), reported)
    is_unknown = choice.incomparable in UNKNOWN_RESULTS
    return TargetAssignment(
        owners={} if is_unknown else _owners(view, choice.assignment, names, in_use),
        strategy=strategy,
        error=NOT_RECOMPUTABLE if is_unknown else None,
        incomparable=choice.incomparable,
        library=choice.library,
    )


def _existing_queues(view: GroupView, topic_queues: QueuesByTopic) -> set[Queue]:
    return {queue for topic, infos in topic_queues.items() for queue in keys_of(infos, view.system, topic)}


def _owners(view: GroupView, assignment: Assignment, names: Mapping[str, str], in_use: set[Queue] | None) -> Owners:
    """Convert owners in an assignment from the ids of that time to the ids that members have now.

    Args:
        in_use: Queues that exist, if others are to be left out: Kafka's sticky assignors keep partitions that no longer
            exist after a topic was re-created with fewer.
    """
    now = {then: member for member, then in names.items()}
    held = {now.get(member, member): _keys(queues, view.system) for member, queues in assignment.items()}
    if in_use is not None:
        held = {member: [queue for queue in queues if queue in in_use] for member, queues in held.items()}
    return owners_of(held)


def _not_recomputable(strategy: str | None) -> TargetAssignment:
    return TargetAssignment(owners={}, strategy=strategy, error=NOT_RECOMPUTABLE, incomparable=CUSTOM_STRATEGY)


def without_subscriptions(view: GroupView, strategy: str | None) -> TargetAssignment:
    """Return a result without an assignment: the members' subscriptions are not reported."""
    return TargetAssignment(
        owners={}, strategy=_named(view, strategy), error=NOT_RECOMPUTABLE, incomparable=SUBSCRIPTIONS_UNKNOWN
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
    """Return the members with the ids they had at the time: ties between votes depend on the ids."""
    members = group.members.values()
    if not names:
        return members
    return [_PastVoter(names.get(member.member_id, member.member_id), member.strategies) for member in members]


def _problem(
    view: GroupView,
    topic_queues: QueuesByTopic,
    at: int,
    previous: Previous,
    names: Mapping[str, str],
    generation: int,
) -> Problem:
    group = view.group
    former = max(generation - 1, 0)  # members held their queues in this generation
    stayed = _stayed(group, names)
    return Problem(
        group=view.facts.group_id,
        members=tuple(
            participant(view.system, member, names.get(member.member_id), previous, former, stayed)
            for member in group.members.values()
        ),
        topics={
            name: Topic(name=name, queues=queues, topic_id=view.topic_id(name, at))
            for name, queues in topic_queues.items()
        },
        settings=_settings(group),
        leader=None if group.leader is None else names.get(group.leader, group.leader),
        previous=previous or None,
    )


def _settings(group: Group) -> dict[str, object]:
    """Return the settings of the group's strategy; an unreported release is taken from the group's targets."""
    shown = None if group.recorded is None else group.recorded.release
    return {**({} if shown is None else {COORDINATOR: shown}), **(group.strategy_settings or {})}


def participant(
    system: System,
    member: Member,
    then: str | None,
    before: Previous,
    generation: int,
    stayed: Collection[str] = (),
) -> Participant:
    """Return a member as input of its strategy.

    Args:
        then: Its former id, if it has another one now. before: The queues it owned in this generation.
        stayed: The members that were in the generation, including those that owned nothing or do not report the
            generation of what they own.
    """
    is_former = (then or member.member_id) in stayed
    owned, since = member.owned, member.owned_generation
    if since is None and is_former:
        since = generation
    if owned is None:
        owned, since = before.get(then or member.member_id, () if is_former else None), generation
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


def _stayed(group: Group, names: Mapping[str, str]) -> set[str]:
    """Return the members that are in both the last counted and the pending generation, by the ids of that time."""
    if group.pending is None:
        return set()
    joined = {trigger.member_id for trigger in group.pending.triggers if trigger.kind == "member_joined"}
    # A member that joined and came back under another id before its first generation was never in a generation.
    joined |= {
        replacement.member_id
        for replacement in group.replaced
        if replacement.at >= group.pending.opened_at and replacement.former_id in joined
    }
    return {names.get(member_id, member_id) for member_id in group.members} - joined


def _by_former_ids(owners: Owners, names: Mapping[str, str]) -> Owners:
    """Return an assignment by the ids that members had then."""
    if not names:
        return owners
    return {queue: tuple(sorted(names.get(holder, holder) for holder in holders)) for queue, holders in owners.items()}


def _by_member(owners: Owners) -> Previous:
    """Return the queues that each member owned."""
    held = by_owner(owners)
    return {member: tuple(QueueRef(t, q, b) for t, b, q in queues) for member, queues in held.items()}


def previous_owners(group: Group) -> Owners:
    """Return the members' current queues, as reported if any are."""
    return group.reported if group.has_reported else group.computed


def current_owners(view: GroupView, topic_queues: QueuesByTopic, at: int) -> Owners:
    """Return the computed assignment without departed members and deleted queues.

    Args:
        topic_queues: All queues of the topics that members subscribe to, as a generation shows them.
    """
    group, subscribed = view.group, set(view.group.subscribed_topics())
    staying = held_only_by(group.computed, group.members)
    queues: set[Queue] = set()
    for topic in {queue[0] for queue in staying}:
        infos = topic_queues.get(topic) if topic in subscribed else view.queues_at(topic, at)
        queues |= set(keys_of(infos or (), view.system, topic))
    whole_brokers = {(topic, broker) for topic, broker, _ in queues}
    return {q: holders for q, holders in staying.items() if q in queues or (q[2] < 0 and q[:2] in whole_brokers)}
