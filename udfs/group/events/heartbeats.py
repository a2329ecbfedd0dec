"""Core: bare heartbeats, and sessions that end at their deadline. No I/O."""

from __future__ import annotations

from udfs.group.batch.context import GroupContext
from udfs.group.batch.event_queue import MemberDue
from udfs.group.events.membership import on_heartbeat
from udfs.group.state.group import Evidence
from udfs.group.state.state_machine import GroupKind


def apply_heartbeat(context: GroupContext, due: MemberDue, at: int, own: int) -> None:
    """Apply a bare heartbeat of a member that is unknown, or tracked by snapshots."""
    member_id = due.member_id
    departed = context.group.departed.get(member_id)
    if departed is not None and own <= departed.over_at and member_id not in context.group.members:
        context.note_former_member(at, own)
        # It is not newer than the departure, and only a later heartbeat is a join.
        context.await_heartbeat(member_id, departed.over_at)
        return
    if context.kind is not GroupKind.NOT_FOLLOWED:
        on_heartbeat(context, member_id, at, own)
    if member_id not in context.applied_heartbeats:
        context.await_heartbeat(member_id, own)


def apply_expiry(context: GroupContext, due: MemberDue, deadline: int) -> None:
    """Apply the end of a session at its deadline, unless a heartbeat or another timeout has moved the deadline.

    An event that moved it to an earlier time has queued that time.
    """
    member_id = due.member_id
    if member_id not in context.applied_heartbeats or member_id not in context.group.members:
        return
    context.note_heartbeat(member_id, context.last_heartbeat(member_id, deadline))
    current = context.deadline_of(context.group.members[member_id])
    if current > deadline:
        context.schedule_expiry(member_id)
    elif current == deadline:
        _expire(context, member_id, context.end_of_session(member_id, deadline))


def _expire(context: GroupContext, member_id: str, ends_at: int) -> None:
    """End the session of a member without a heartbeat within its session timeout."""
    if context.kind is GroupKind.REPORTED:
        if not any(
            evidence.kind == "member_left" and evidence.member_id == member_id for evidence in context.group.evidence
        ):
            context.applied(ends_at)
            context.learn(Evidence("session_expired", ends_at, member_id))
        context.end_heartbeats(member_id)
        context.await_heartbeat(member_id, ends_at)  # a later heartbeat takes the expiry back
        return
    own_at = context.own_deadline_of(context.group.members[member_id], context.applied_heartbeats[member_id])
    context.cause(ends_at, "session_expired", member_id)
    context.close_session(member_id, ends_at, ends_at, "expired", own_at if own_at < ends_at else None)
