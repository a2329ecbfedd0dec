"""Core: a group restored from the readable part of an export. No I/O."""

from __future__ import annotations

from udfs.group.assignment.target_assignment import compute_target_assignment, topics_with_metadata
from udfs.group.batch.context import GroupContext
from udfs.group.events.topic_changes import queues_shown
from udfs.group.members.descriptions import set_description
from udfs.group.state.assignment_diff import owners_of
from udfs.group.state.group import Member, Owners, key_of
from udfs.group.state.writing import assign, entries
from udfs.model.events import GroupSnapshot, MemberInfo


def restore(context: GroupContext, snapshot: GroupSnapshot, at: int) -> None:
    """Restore a group from the readable part of an export; nothing is written to the tables.

    A shard restores the encoded state itself where the export has it; this is for exports by other tools and versions.
    """
    group = context.group
    reported = snapshot.generation_source == "reported"
    if snapshot.generation is not None:
        if reported:
            assign(group, generation=snapshot.generation)
        else:
            assign(group, counted=max(group.counted, snapshot.generation))
    # Older exports lack these; then no queue waits.
    revoked = {key_of(queue, context.system): queue.revoked_at for queue in snapshot.revoked or ()}
    assign(
        group,
        exists=bool(snapshot.generation),
        followed=snapshot.state != "not_followed",
        leader=snapshot.leader,
        last_rebalance_id=snapshot.last_rebalance_id,
        revoked_pending=list(revoked),
        waiting_since=revoked,
        logical_id=snapshot.logical_id,
    )
    if not reported and not context.profile.members_vote:
        assign(group, strategy=snapshot.strategy)
    names = {info.member_id for info in snapshot.members}
    for info in snapshot.members:
        member = _restored_member(info, names, snapshot.event_time)
        entries(group.members)[member.member_id] = member
        if member.by_heartbeats:
            last = info.last_heartbeat_at
            context.applied_heartbeats[member.member_id] = member.joined_at if last is None else last
            context.schedule_expiry(member.member_id)
        elif info.last_heartbeat_at is not None:
            entries(group.last_heartbeats)[member.member_id] = info.last_heartbeat_at
    owned = snapshot.assignments
    owners: Owners | None = None
    if owned is not None:
        owners = owners_of({name: [key_of(queue, context.system) for queue in owned[name]] for name in owned})
    topic_queues = topics_with_metadata(context, at)
    if reported:
        topic_queues, unknown = queues_shown(context, group.subscribed_topics(), owners, at)
        assign(group, topics_without_metadata=unknown)
    generation = group.current_generation
    target = compute_target_assignment(context, topic_queues, snapshot.strategy if reported else None, at, generation)
    assign(group, computed=target.owners, last_strategy=target.strategy)
    if owners is not None and reported:
        assign(group, reported=owners, has_reported=True)
    elif owners is not None and context.mode == "clustering":
        assign(group, computed=owners)
    counts = {topic: len(infos) for topic, infos in topic_queues.items()}
    applied = max(at, group.last_applied or at)
    assign(group, members_decided=len(group.members), counts=counts, last_applied=applied, touched_at=applied)


def _restored_member(info: MemberInfo, names: set[str], event_time: int) -> Member:
    client, _, number = info.member_id.rpartition("#")
    member = Member(
        member_id=info.member_id,
        name=client if number.isdigit() and client in names else info.member_id,
        joined_at=event_time if info.joined_at is None else info.joined_at,
        by_heartbeats=info.lives_by == "heartbeats",
    )
    set_description(member, info, member.joined_at)
    return member
