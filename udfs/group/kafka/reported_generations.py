"""Core: groups whose generations a coordinator reports, snapshot by snapshot. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from udfs.group.assignment.rebalance_plan import COOPERATIVE, RebalancePlan, queues_of
from udfs.group.assignment.target_assignment import without_subscriptions
from udfs.group.batch.context import GroupContext
from udfs.group.batch.findings import reported_late
from udfs.group.batch.phases import phases_of
from udfs.group.decision.commit import (
    begin_generation,
    commit,
    commit_generation_zero,
    commit_overtaken,
    forget_owned,
    newest_reports,
    note_converged,
    overtake_awaited,
)
from udfs.group.decision.commit_spans import replace_members
from udfs.group.decision.rebalance import in_order, next_identity, rebalance
from udfs.group.events.polls import arrive_by_snapshot
from udfs.group.events.reported_assignment import reported_owners, take_reported_assignment, take_waiting_reports
from udfs.group.events.topic_changes import compute_generation
from udfs.group.kafka.cooperative_steps import pending_queues, waiting_since
from udfs.group.kafka.deleted_topics import add_left_out, evidence_after
from udfs.group.kafka.generation_causes import (
    GenerationTopics,
    add_generation_triggers,
    causes_of_generation,
    topics_of_generation,
)
from udfs.group.kafka.polled_generations import (
    is_converging,
    is_counted,
    lacks_subscriptions,
)
from udfs.group.kafka.rebalance_pause import pauses_of, span_pauses
from udfs.group.kafka.triggers import Causes, returned_members
from udfs.group.members.client_ids import match_connections
from udfs.group.members.descriptions import HIDDEN_FIELDS, update_description, update_session
from udfs.group.members.duplicate_instances import DUPLICATE_INSTANCE, contended_found
from udfs.group.members.static_members import returned
from udfs.group.state.assignment_diff import held_only_by
from udfs.group.state.group import Owners, Queue
from udfs.group.state.view import GroupView
from udfs.model.events import GroupSnapshot, MemberInfo
from udfs.model.group_api import DueEvent
from udfs.model.journal import Rebalance, Trigger
from udfs.strategies.registry import qualified_name


def take_generation(context: GroupContext, due: DueEvent, snapshot: GroupSnapshot, at: int) -> bool:
    """Apply a snapshot with a generation of a coordinator, whose number polls may have counted.

    Returns: whether some of it is older than the current state.
    """
    group, current = context.group, context.group.generation
    generation = snapshot.generation or 0
    snapshot, names = _with_resolved_ids(context, snapshot)
    current = current if _counts_on(context, snapshot) else None
    if due.late and current is not None and generation < current:
        _write_overtaken_generation(context, due, snapshot, at)
        return False
    if generation == 0 and not snapshot.members:
        commit_generation_zero(context, at, polled=is_counted(snapshot))
        return False
    outdated = False
    if current == generation and group.exists:
        if snapshot.event_time < (group.last_snapshot_at or 0):
            return update_existing(context, snapshot, at)  # newer snapshots cover the rest
        outdated = rename_static_members(context, snapshot, at, decided_at=at)
        if {info.member_id for info in snapshot.members} == set(group.members):
            return _take_same_generation(context, snapshot, at) or outdated
    return _take_new_generation(context, due, snapshot, names, at) or outdated


def _counts_on(view: GroupView, snapshot: GroupSnapshot) -> bool:
    """Return whether a snapshot's number is comparable with the current one, which may be counted."""
    return is_counted(snapshot) or not view.group.polled


def _with_resolved_ids(view: GroupView, snapshot: GroupSnapshot) -> tuple[GroupSnapshot, dict[str, str]]:
    """Return the snapshot with one member id per connection, and the client id of each."""
    matched = match_connections(view.group, snapshot.members)
    names = {member_id: info.member_id for member_id, info in matched.items()}
    if all(member_id == name for member_id, name in names.items()):
        return snapshot, names
    members = tuple(msgspec.structs.replace(info, member_id=member_id) for member_id, info in matched.items())
    return msgspec.structs.replace(snapshot, members=members), names


def _take_new_generation(
    context: GroupContext, due: DueEvent, snapshot: GroupSnapshot, names: Mapping[str, str], at: int
) -> bool:
    group = context.group
    current = group.generation if _counts_on(context, snapshot) else None
    generation = snapshot.generation or 0
    overtake_awaited(context, at)
    back = returned_members(context, snapshot, at, due.event_id)
    infos = {info.member_id: info for info in snapshot.members}
    outdated = rename(context, back, infos, snapshot.event_time, at)
    reported = reported_owners(context, snapshot)
    topics = topics_of_generation(context, snapshot, reported, at)
    causes = causes_of_generation(context, due, snapshot, topics, reported, current, at)
    causes.returned = sorted(back.values())
    left_out = add_left_out(context, causes, topics.now, reported, snapshot.strategy, topics.both, at, due.event_id)
    topics = topics._replace(now=left_out)
    context.use_up_evidence(evidence_after(context, causes.evidence_left, topics.now, topics.subscribed, reported, at))
    before = group.reported if group.has_reported else group.computed
    outdated |= move_members(context, snapshot.members, names, causes, snapshot.event_time, at)
    member_ids = [info.member_id for info in snapshot.members]
    begin_generation(context, generation, snapshot.leader, member_ids, polled=is_counted(snapshot))
    if reported is not None:
        reported = newest_reports(context, held_only_by(reported, group.members), snapshot.event_time)
    handed = add_generation_triggers(context, due, snapshot, current, reported, causes, at)
    plan = _plan(context, snapshot, topics, causes, current, before, reported, handed, at)
    commit(context, rebalance(context, plan))
    take_waiting_reports(context, at)
    return outdated


def _plan(
    view: GroupView,
    snapshot: GroupSnapshot,
    topics: GenerationTopics,
    causes: Causes,
    current: int | None,
    before: Owners,
    reported: Owners | None,
    handed: list[Queue],
    at: int,
) -> RebalancePlan:
    """Return the input of a generation's rebalance; its members are set.

    Args:
        current: The generation before, if comparable. before, reported: The assignments of both generations. handed:
            Queues that earlier cooperative generations revoked and this one assigns.
    """
    group, generation = view.group, view.group.current_generation
    if lacks_subscriptions(snapshot):
        target, awaited = without_subscriptions(view, snapshot.strategy), None
    else:
        target, awaited = compute_generation(
            view,
            topics.now.topic_queues,
            topics.guessed,
            reported,
            snapshot.strategy or None,
            at,
        )
    phases = phases_of(view, snapshot, causes.began_at, at)
    pause = None if phases.began_at is None else at - phases.began_at
    cooperative = COOPERATIVE in (target.strategy, snapshot.strategy)
    existing = queues_of(view, topics.now.topic_queues)
    handing_over = pending_queues(group, snapshot, target.strategy, before, reported, existing, causes)
    return RebalancePlan(
        at=at,
        generation=generation,
        triggers=causes.triggers,
        topic_queues=topics.now.topic_queues,
        target=target,
        guessed=topics.guessed,
        awaited=awaited,
        reported=reported,
        # A new group, which has generation 0, has missed none: members that join one after the other begin generations
        # that never complete, and those are not recorded.
        generations_missed=generation - current - 1 if current and generation > current + 1 else None,
        pauses=pauses_of(view, before, reported, pause, cooperative, handing_over, handed, at),
        phases=phases,
        step_pauses={} if group.polled else span_pauses(view, before, reported or {}, pause, handed, at),
        revoked_pending=handing_over,
        waiting_since=waiting_since(group, handing_over, before, reported),
        converging=is_converging(snapshot),
        made_again=topics.now.made_again,
    )


# ---- members


def move_members(
    context: GroupContext,
    members: Iterable[MemberInfo],
    names: Mapping[str, str],
    causes: Causes,
    own: int,
    at: int,
) -> bool:
    """End the sessions of departed members, begin those of new ones, update the others, in this order."""
    group, outdated = context.group, False
    for member_id, cause in sorted(causes.departures.items()):
        context.close_session(member_id, at, cause.at, cause.reason)
    forget_owned(context)  # the owned queues that members reported belong to another generation
    for info in members:
        member = group.members.get(info.member_id)
        if member is None:
            # Records show when a member joined; a snapshot that is not restored does not.
            joined_at = at if group.recorded is None or info.joined_at is None else info.joined_at
            name = names[info.member_id]
            outdated |= arrive_by_snapshot(context, info.member_id, info, own, joined_at, name=name)
            continue
        changed, is_outdated = update_description(context, member, info, own, at)
        outdated |= is_outdated
        if changed - set(HIDDEN_FIELDS):
            context.change_session(member, at)
    return outdated


def rename_static_members(context: GroupContext, snapshot: GroupSnapshot, at: int, *, decided_at: int) -> bool:
    """Rename static members that came back under another id; they keep their queues.

    Args:
        decided_at: See ``replace_members``.
    """
    infos = {info.member_id: info for info in snapshot.members}
    back = returned(context.group, snapshot.members)
    return rename(context, back, infos, snapshot.event_time, at, decided_at=decided_at)


def rename(
    context: GroupContext,
    renamed: Mapping[str, str],
    infos: Mapping[str, MemberInfo],
    event_time: int,
    at: int,
    *,
    splits: bool = True,
    decided_at: int | None = None,
) -> bool:
    """Give static members their new ids; return whether any description was outdated.

    Args:
        infos: Descriptions by new id; a member without a description keeps its old one. event_time: Their time.
        splits, decided_at: See ``replace_members``.
    """
    if not renamed:
        return False
    outdated = False
    replace_members(context, renamed, at, splits=splits, decided_at=decided_at)
    for former_id, member_id in sorted(renamed.items()):
        member = context.group.members[member_id]
        if member_id in infos:
            # Fields that decide an assignment are compared first.
            reported = msgspec.structs.replace(
                infos[member_id], subscriptions=None, strategies=None, owned=None, owned_generation=None
            )
            outdated |= update_description(context, member, reported, event_time, at)[1]
        context.open_session(member, at, former=former_id)
    for contended in contended_found(context, sorted(renamed.values()), at):
        context.set_finding(DUPLICATE_INSTANCE, contended, at)
    return outdated


def _take_same_generation(context: GroupContext, snapshot: GroupSnapshot, at: int) -> bool:
    """Apply a repeated report of the current generation, which is not a rebalance but may add to it."""
    group = context.group
    outdated = update_existing(context, snapshot, at)
    if not is_converging(snapshot):
        note_converged(context)
    if snapshot.assignments is not None:
        reported = held_only_by(reported_owners(context, snapshot) or {}, group.members)
        reported = newest_reports(context, reported, snapshot.event_time)
        if reported != group.reported or not group.has_reported:
            take_reported_assignment(context, reported, at)
    return outdated


def update_existing(context: GroupContext, snapshot: GroupSnapshot, at: int) -> bool:
    """Update the descriptions of present members; fields that decide the assignment wait for the next generation."""
    outdated = False
    for info in snapshot.members:
        member = context.group.members.get(info.member_id)
        if member is not None:
            outdated |= update_session(context, member, info, snapshot.event_time, at)[1]
    return outdated


# ---- generations that newer ones overtook


def _write_overtaken_generation(context: GroupContext, due: DueEvent, snapshot: GroupSnapshot, at: int) -> None:
    """Write the row of a generation that arrived after newer ones; the current state is unchanged."""
    group, generation = context.group, snapshot.generation or 0
    if generation == 0:
        return
    current = group.generation
    identity, ordinals = next_identity(context, at, generation)
    detail = f"{reported_late(snapshot.event_time, at)}; generation {current} was already known"
    triggers = in_order([Trigger(kind="late_evidence", detail=detail, event_id=due.event_id)])
    owners = reported_owners(context, snapshot) or {}
    commit_overtaken(
        context,
        Rebalance(
            rebalance_id=identity,
            cluster=context.facts.cluster,
            system=context.system,
            group_id=context.facts.group_id,
            generation=generation,
            generation_source="reported",
            event_time=at,
            detected_at=context.facts.detected_at,
            trigger="late_evidence",
            triggers=triggers,
            strategy=qualified_name(snapshot.strategy, context.system) if snapshot.strategy else None,
            # The leader's id is the one of that time, even if the static member has another one by now.
            leader=due.event.leader if isinstance(due.event, GroupSnapshot) else None,
            mode=context.mode,
            members_before=len(snapshot.members),
            members_after=len(snapshot.members),
            queues_before=len(owners),
            queues_after=len(owners),
            queues_kept=len(owners),
            logical_id=identity,
            completed_at=snapshot.event_time,
        ),
        ordinals,
    )
