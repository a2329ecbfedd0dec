"""Core: groups whose generations a coordinator reports, snapshot by snapshot. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from udfs.group.assignment_diff import held_only_by
from udfs.group.client_ids import match_connections
from udfs.group.commit import (
    begin_generation,
    commit,
    commit_generation_zero,
    commit_overtaken,
    commit_reports,
    commit_spans,
    newest_reports,
    overtake_awaited,
    replace_members,
)
from udfs.group.context import GroupContext
from udfs.group.descriptions import SILENT_FIELDS, update_description, update_session
from udfs.group.findings import counted
from udfs.group.membership import arrive_by_snapshot
from udfs.group.rebalance import in_order, next_identity, rebalance
from udfs.group.rebalance_pause import began_at, estimated_pause, queue_pause
from udfs.group.rebalance_plan import COOPERATIVE, Pauses, RebalancePlan
from udfs.group.reported_assignment import reported_owners, take_waiting_reports
from udfs.group.state import Owners, Queue
from udfs.group.static_members import returned
from udfs.group.topic_changes import compute_generation, queues_shown, sizes
from udfs.group.triggers import Causes, compare, released
from udfs.group.view import GroupView
from udfs.model.events import GroupSnapshot, MemberInfo
from udfs.model.group_api import DueEvent
from udfs.model.journal import Rebalance, Trigger
from udfs.strategies.registry import qualified_name

# The coordinator is in the middle of a rebalance: the members are not final (DescribeGroups, GroupState).
_UNDER_WAY = frozenset({"preparingrebalance", "completingrebalance"})


def is_under_way(snapshot: GroupSnapshot) -> bool:
    """Return whether the snapshot was taken during a rebalance."""
    return (snapshot.state or "").replace("_", "").lower() in _UNDER_WAY


def take_generation(context: GroupContext, due: DueEvent, snapshot: GroupSnapshot, at: int) -> bool:
    """Apply a snapshot with a generation reported by the coordinator.

    Returns: whether some of it is older than what stays in its place.
    """
    group, current = context.group, context.group.generation
    generation = snapshot.generation or 0
    snapshot, names = _with_resolved_ids(context, snapshot)
    if due.late and current is not None and generation < current:
        _write_overtaken_generation(context, due, snapshot, at)
        return False
    if generation == 0 and not snapshot.members:
        commit_generation_zero(context, at)
        return False
    outdated = False
    if current == generation and group.exists:
        if snapshot.event_time < (group.last_snapshot_at or 0):
            return update_existing(context, snapshot, at)  # newer snapshots cover the rest
        outdated = _rename_static_members(context, snapshot, at)
        if {info.member_id for info in snapshot.members} == set(group.members):
            return _take_same_generation(context, snapshot, at) or outdated
    return _take_new_generation(context, due, snapshot, names, at) or outdated


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
    group, current = context.group, context.group.generation
    generation = snapshot.generation or 0
    overtake_awaited(context)
    told = reported_owners(context, snapshot)
    subscribed_before = set(group.subscribed_topics())
    after = {topic for info in snapshot.members for topic in _subscriptions(context, info)}
    known, guessed = queues_shown(context, after, told, at)
    resized = {topic: sizes(context, topic, known, guessed, told) for topic in after & subscribed_before}
    grown = {topic: (was, now) for topic, (was, now) in resized.items() if was != now}
    causes = compare(context, snapshot, due.event_id, at, grown)
    context.use_up_evidence(causes.evidence_left)
    before = group.reported if group.has_reported else group.computed
    outdated = _move_members(context, snapshot, names, causes, at)
    begin_generation(context, generation, snapshot.leader, [info.member_id for info in snapshot.members])
    if told is not None:
        told = newest_reports(context, held_only_by(told, group.members), snapshot.event_time)
    handed = _add_generation_triggers(context, due, snapshot, current, told, causes, at)
    missed = generation - current - 1 if current is not None and generation > current + 1 else None
    target, awaited = compute_generation(
        context, known, guessed, told, snapshot.strategy or None, at, context.computed_spans_of_now()
    )
    began = began_at(context, snapshot, causes, at)
    pause = None if began is None else at - began
    cooperative = COOPERATIVE in (target.strategy, snapshot.strategy)
    handing_over = released(before, told) if cooperative and told is not None and group.members else []
    handing_over = [queue for queue in handing_over if queue[0] in known]
    measured = Pauses(
        pause_ms=pause,
        queue_pause_ms=queue_pause(context, before, told, pause, cooperative, handing_over, handed, at),
        **estimated_pause(context, before, told, pause, cooperative, at),
    )
    plan = RebalancePlan(
        at=at,
        generation=generation,
        triggers=causes.triggers,
        known=known,
        target=target,
        guessed=guessed,
        awaited=awaited,
        reported=told,
        generations_missed=missed,
        pauses=measured,
        revoked_pending=handing_over,
    )
    commit(context, rebalance(context, plan))
    take_waiting_reports(context, at)
    return outdated


# ---- evidence in the generation


def _subscriptions(view: GroupView, info: MemberInfo) -> tuple[str, ...]:
    if info.subscriptions is not None:
        return info.subscriptions
    known = view.group.members.get(info.member_id)
    return (known.subscriptions or ()) if known is not None else ()


def _add_generation_triggers(
    view: GroupView,
    due: DueEvent,
    snapshot: GroupSnapshot,
    current: int | None,
    told: Owners | None,
    causes: Causes,
    at: int,
) -> list[Queue]:
    """Add the causes that the generation itself shows; return the queues that a cooperative move released."""
    group, generation, event_id = view.group, snapshot.generation or 0, due.event_id
    handed = [queue for queue in group.revoked_pending if queue in (told or {})]
    if handed:
        causes.add("cooperative_follow_up", event_id=event_id, detail=counted(len(handed), "queue") + " released")
    if current is not None and group.exists and generation <= current:
        detail = f"generation {current} -> {generation}"
        causes.add("coordinator_changed", detail=detail, event_id=event_id)
    if not group.exists:
        first_seen = generation > 1 and current is None
        causes.add("group_created", event_id=event_id, detail="first seen" if first_seen else None)
    if due.late:
        detail = f"reported late: happened at {snapshot.event_time}, applied at {at}"
        causes.add("late_evidence", detail=detail, event_id=event_id)
    if not causes.triggers:
        causes.add("unexplained", event_id=event_id)
    return handed


# ---- members


def _move_members(
    context: GroupContext, snapshot: GroupSnapshot, names: Mapping[str, str], causes: Causes, at: int
) -> bool:
    """End the sessions of departed members, begin those of new ones, update the others; in the snapshot's order."""
    group, outdated = context.group, False
    for member_id, going in sorted(causes.goings.items()):
        context.close_session(member_id, at, going.at, going.reason)
    for info in snapshot.members:
        member = group.members.get(info.member_id)
        if member is not None:
            member.forget_owned()  # of another generation
        if member is None:
            outdated |= arrive_by_snapshot(context, info.member_id, info, snapshot.event_time, at)
            group.members[info.member_id].name = names[info.member_id]
            continue
        changed, is_outdated = update_description(context, member, info, snapshot.event_time, at)
        outdated |= is_outdated
        if changed - set(SILENT_FIELDS):
            context.change_session(member, at)
    return outdated


def _rename_static_members(context: GroupContext, snapshot: GroupSnapshot, at: int) -> bool:
    """Rename static members that came back under another id; they keep their queues."""
    group = context.group
    renamed = returned(group, snapshot.members)
    if not renamed:
        return False
    outdated = False
    replace_members(context, renamed, at)
    infos = {info.member_id: info for info in snapshot.members}
    for former_id, member_id in sorted(renamed.items()):
        member = group.members[member_id]
        member.by_heartbeats = False
        told = msgspec.structs.replace(infos[member_id], subscriptions=None)
        outdated |= update_description(context, member, told, snapshot.event_time, at)[1]
        context.open_session(member, at, former=former_id)
    return outdated


def _take_same_generation(context: GroupContext, snapshot: GroupSnapshot, at: int) -> bool:
    """Apply a repeated report of the current generation: no rebalance, though it may add to it."""
    group = context.group
    outdated = update_existing(context, snapshot, at)
    if snapshot.assignments is not None:
        told = held_only_by(reported_owners(context, snapshot) or {}, group.members)
        told = newest_reports(context, told, snapshot.event_time)
        if told != group.reported or not group.has_reported:
            commit_spans(context, "reported", told, at)
            commit_reports(context, group.reporters, group.compare_at)
    return outdated


def update_existing(context: GroupContext, snapshot: GroupSnapshot, at: int) -> bool:
    """Update the descriptions of known members; what decides the assignment waits for the next generation."""
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
    detail = (
        f"reported late: happened at {snapshot.event_time}, applied at {at}; generation {current} was already known"
    )
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
            leader=snapshot.leader,
            mode=context.mode,
            members_before=len(snapshot.members),
            members_after=len(snapshot.members),
            queues_before=len(owners),
            queues_after=len(owners),
            queues_kept=len(owners),
        ),
        ordinals,
    )
