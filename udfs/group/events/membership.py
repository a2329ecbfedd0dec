"""Core: joins, heartbeats and leaves of a group's members. No I/O.

In a group with counted generations each of these is a cause of the next rebalance; with reported generations they are
evidence, which a later generation may show.
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

import msgspec

from udfs.group.batch.context import GroupContext
from udfs.group.batch.finding_texts import counted
from udfs.group.batch.findings import reported_late
from udfs.group.batch.sessions import closed
from udfs.group.decision.commit_spans import replace_members
from udfs.group.members.client_ids import resolve_member_id
from udfs.group.members.descriptions import (
    HIDDEN_FIELDS,
    distinct,
    of_session,
    set_description,
    timeout_at,
    timeout_with,
    update_description,
    update_session,
    uses_default_strategy,
)
from udfs.group.members.duplicate_instances import DUPLICATE_INSTANCE, fenced_found
from udfs.group.members.static_members import place_of
from udfs.group.state.group import Departed, Evidence, Member
from udfs.group.state.state_machine import GroupKind
from udfs.group.state.view import GroupView
from udfs.model.events import Heartbeat, MemberFields, MemberJoined, MemberLeft
from udfs.model.group_api import DueEvent
from udfs.model.journal import LeftReason, TriggerKind


class Applied(NamedTuple):
    """The effect of an event on its group.

    Attributes:
        changed: Whether it changed something; only late heartbeats that changed nothing are ignored.
        outdated: Whether some of its content is older than the current state; that part changes nothing.
    """

    changed: bool = False
    outdated: bool = False


# ---- one event at a time


def on_join(context: GroupContext, due: DueEvent, event: MemberJoined | Heartbeat, at: int) -> Applied:
    """Apply a join, or a heartbeat that came as an event of its own."""
    group, own = context.group, event.event_time
    # Kafka's coordinator generates member ids, so no two connections share one.
    host = None if context.profile.makes_member_ids else event.host
    member_id, name = resolve_member_id(group, event.member_id, host)
    member = group.members.get(member_id)
    if context.kind is GroupKind.REPORTED:
        return _learn(context, due, event, member, at)
    if member is None:
        reopened = _reopen(context, due, event, member_id, at) if due.late else None
        if reopened is not None:
            return reopened
        departed = group.departed.get(member_id)
        if departed is not None and not _may_return(departed, event):
            context.note_former_member(at, own)
            took_place = _take_over_instance(context, departed.member, event.instance_id, at, due)
            changed, outdated = set_description(departed.member, event, own)  # it applies when the member comes back
            return Applied(took_place or bool(changed), outdated)
        former = place_of(context, member_id, event.instance_id or _instance_of(departed))
        if former is not None and not (due.late and is_alive_after(context, former, own)):
            _take_place(context, former, member_id, at, own)
            return Applied(True, apply_description(context, former, event, at, due).outdated)
        return Applied(True, _arrive(context, member_id, name, event, at, own, due))
    context.begin_heartbeats(member, own, timeout_at(context, member, event, own))
    _take_over_instance(context, member, event.instance_id, at, due)
    described = apply_description(context, member, event, at, due)
    if due.late and described.changed:
        context.end_not_before(member_id, at)
    if group.revoked_pending and isinstance(event, MemberJoined) and event.owned is not None and not due.late:
        # It released its queues, and rejoins for the second generation of a cooperative rebalance.
        detail = counted(len(group.revoked_pending), "queue") + " released"
        context.cause(at, "cooperative_follow_up", event_id=due.event_id, detail=detail)
    return described


def on_heartbeat(context: GroupContext, member_id: str, at: int, own: int) -> None:
    """Apply a heartbeat without a description, of a member that may be unknown."""
    group = context.group
    member = group.members.get(member_id)
    if context.kind is GroupKind.REPORTED:
        context.take_back_evidence(member_id, own)
        if member is None:
            return
    if member is None:
        former = place_of(context, member_id, _instance_of(group.departed.get(member_id)))
        if former is not None:
            _take_place(context, former, member_id, at, own)
        else:
            _arrive(context, member_id, member_id, None, at, own, None)
    elif not member.by_heartbeats:
        context.begin_heartbeats(member, own, context.timeout_of(member))


def on_leave(context: GroupContext, due: DueEvent, event: MemberLeft, at: int, described: Container[str] = ()) -> None:
    """Apply a leave, or a removal of a member by the coordinator.

    Args:
        described: Members of which the coordinator has a record of this event time, which applies after this event.
    """
    group, member_id = context.group, event.member_id
    if event.how == "fenced":
        fenced = fenced_found(context, member_id, event.reason, due.event_id, at)
        context.set_finding(DUPLICATE_INSTANCE, fenced, at)
        return
    kind: TriggerKind = "session_expired" if event.how == "expired" else "member_left"
    member = group.members.get(member_id)
    if member is None:
        recorded = None if group.recorded is None else group.recorded.present.get(member_id)
        # it belongs to an epoch that is not decided yet
        if member_id in described or (recorded is not None and recorded.joined_at <= event.event_time):
            context.learn(Evidence(kind, event.event_time, member_id, None, due.event_id, event.reason))
        if context.kind is not GroupKind.REPORTED:
            context.note_absence(member_id, event.event_time)
        return
    if context.kind is GroupKind.REPORTED:
        if member.joined_at > event.event_time:  # it came late, and belongs to an earlier session
            return
        if due.late and kind == "member_left":
            context.explain_silence(member_id, event.event_time)
        context.learn(Evidence(kind, event.event_time, member_id, None, due.event_id, event.reason))
        return
    if is_overtaken(context, due, member, event.event_time):
        return
    late_cause(context, due, at)
    context.cause(at, kind, member_id, event_id=due.event_id, detail=event.reason)
    reason: LeftReason = "expired" if event.how == "expired" else "left"
    context.close_session(member_id, at, at, reason, event.event_time if due.late else None)


def late_cause(context: GroupContext, due: DueEvent, at: int) -> None:
    """Add the trigger ``late_evidence`` to the actual cause, with the event's own time."""
    if due.late:
        detail = reported_late(due.event.event_time, at)
        context.cause(at, "late_evidence", getattr(due.event, "member_id", None), event_id=due.event_id, detail=detail)


# ---- internals


def _take_place(context: GroupContext, former: Member, member_id: str, at: int, own: int) -> None:
    """Apply the return of a static member under a new id, which by itself is not a rebalance."""
    former_id = former.member_id
    replace_members(context, {former_id: member_id}, at, decided_at=at)
    context.open_session(former, at, former=former_id, heartbeat_at=own)


def _take_over_instance(context: GroupContext, member: Member, instance_id: str | None, at: int, due: DueEvent) -> bool:
    """End the session of a static member that another one replaced; its later-arriving events precede that join.

    Returns: whether there was such a member.
    """
    former = None if member.instance_id else place_of(context, member.member_id, instance_id)
    own = due.event.event_time
    if former is None or (due.late and is_alive_after(context, former, own)):
        return False
    late_cause(context, due, at)
    detail = f"replaced by {member.member_id}"
    context.cause(at, "member_gone", former.member_id, event_id=due.event_id, detail=detail)
    context.close_session(former.member_id, at, at, "replaced", own if due.late else None)
    return True


def _instance_of(departed: Departed | None) -> str | None:
    """Return the static instance of a member that was replaced by another id; None for other members."""
    if departed is None or departed.left_reason != "replaced":
        return None
    return departed.member.instance_id


def _arrive(
    context: GroupContext,
    member_id: str,
    name: str,
    event: MemberFields | None,
    at: int,
    own: int,
    due: DueEvent | None,
) -> bool:
    """Begin a member's session by its own event; return whether part of its description is outdated."""
    group, outdated = context.group, False
    departed = group.departed.get(member_id)
    if departed is not None:
        member = departed.member.copied(by_heartbeats=True)
    else:
        member = Member(member_id=member_id, name=name, joined_at=at)
    if event is not None:
        _, outdated = set_description(member, event, own)
    if due is not None and due.late and own + context.timeout_of(member) < at:
        # It joined and expired in the past, so only its session is written.
        _emit_expired_session(context, member, own, at)
        return outdated
    if due is not None:
        late_cause(context, due, at)
    context.cause(at, "member_joined", member_id, event_id=due.event_id if due else None)
    context.open_session(member, at, heartbeat_at=own)
    return outdated


def _emit_expired_session(context: GroupContext, member: Member, own: int, at: int) -> None:
    before = context.group.departed.get(member.member_id)
    left_at = own + context.timeout_of(member)
    if before is not None and left_at <= before.left_at:
        return  # the earlier session lasted longer, because its end came late
    context.open_session(member, own if before is None else max(own, before.left_at))
    context.drop_member(member.member_id)
    context.write(at, closed(member, left_at, "expired", own))
    context.remember(Departed(member=member, left_at=left_at, left_reason="expired", last_heartbeat_at=own))


def _reopen(
    context: GroupContext, due: DueEvent, event: MemberJoined | Heartbeat, member_id: str, at: int
) -> Applied | None:
    """Apply a late heartbeat of an expired member; return None if it does not belong to the expired session."""
    departed, own = context.group.departed.get(member_id), event.event_time
    if (
        departed is None
        or departed.left_reason != "expired"
        or not departed.member.begins_at <= own <= departed.left_at
    ):
        return None
    member, heartbeat_before = departed.member, departed.last_heartbeat_at
    timeout = timeout_with(context, member, event, own)
    last = own if heartbeat_before is None else max(own, heartbeat_before)
    is_news = (last, max(last + timeout, departed.left_at)) != (heartbeat_before, departed.left_at)
    for time in _liveness_times(context, event, member_id):
        if last + timeout >= at:
            break  # its session continues; later events apply in order, with the timeout of their time
        if last < time <= last + timeout:
            last = time
    left_at = max(last + timeout, departed.left_at)
    context.note_end(departed, last + timeout)
    if not is_news:
        changed, outdated = set_description(member, event, own)  # its expiry had been reported, so this is not evidence
        return Applied(bool(changed), outdated)
    if left_at < at:
        _, outdated = set_description(member, event, own)
        context.extend_session(departed, at, left_at=left_at, heartbeat_at=last)
        return Applied(True, outdated)
    late_cause(context, due, at)
    context.cause(at, "member_joined", member_id, event_id=due.event_id, detail="its session had not expired")
    context.reopen_session(departed, at, heartbeat_at=last)
    return Applied(True, apply_description(context, departed.member, event, at, due).outdated)


def _liveness_times(view: GroupView, event: MemberJoined | Heartbeat, member_id: str) -> list[int]:
    """Return the times at which this event's member was alive in this batch, by heartbeats and other events."""
    times = set(view.facts.heartbeats.get(member_id, ()))
    for due in view.facts.events:
        other = due.event
        if not isinstance(other, Heartbeat | MemberJoined) or other.member_id != event.member_id:
            continue
        if other.host in (None, event.host):
            times.add(other.event_time)
    return sorted(times)


def _may_return(departed: Departed, event: MemberJoined | Heartbeat) -> bool:
    """Return whether an event of a departed member is later than its departure."""
    if isinstance(event, MemberJoined) and departed.left_reason != "replaced":
        return event.event_time >= departed.over_at
    return event.event_time > departed.over_at


def is_alive_after(view: GroupView, member: Member, own: int) -> bool:
    """Return whether a member was alive after the time of a late departure."""
    if member.begins_at > own or _shows_itself_after(view, member, own):
        return True
    if member.by_heartbeats:
        return view.last_heartbeat(member.member_id, view.facts.clock) > own
    return (view.group.last_snapshot_at or own) > own


def is_overtaken(view: GroupView, due: DueEvent, member: Member, own: int) -> bool:
    """Return whether a member was alive after a late departure, including by events older than its newest heartbeat."""
    if due.late:
        return is_alive_after(view, member, own)
    return view.facts.last_heartbeat.get(member.member_id, own) > own


def _shows_itself_after(view: GroupView, member: Member, own: int) -> bool:
    """Return whether this batch has a heartbeat or another event of a member after a given time."""
    return any(time > own for time in view.facts.heartbeats.get(member.member_id, ())) or any(
        isinstance(due.event, Heartbeat | MemberJoined)
        and due.event.event_time > own
        and due.event.member_id == member.name
        and due.event.host in (None, member.host)
        for due in view.facts.events
    )


def apply_description(context: GroupContext, member: Member, reported: MemberFields, at: int, due: DueEvent) -> Applied:
    """Apply an event's or a poll's report of a present member: its fields, and the causes that they make."""
    event_id = due.event_id
    was_lists = (member.subscriptions, member.strategies)
    if due.late:  # what it owned then is not what it owns now
        reported = msgspec.structs.replace(reported, owned=None, owned_generation=None)
    changed, outdated = update_description(context, member, reported, due.event.event_time, at)
    if not changed:
        return Applied(False, outdated)
    if changed - set(HIDDEN_FIELDS):
        context.change_session(member, at)
    if was_lists[1] is None and uses_default_strategy(context, member):
        changed.discard("strategies")  # they equal what was assumed
    if changed & {"subscriptions", "strategies", "strategy_settings"}:
        late_cause(context, due, at)
    is_first_report = was_lists == (None, None) and "subscriptions" in changed
    if "subscriptions" in changed:
        context.cause(at, "subscription_changed", member.member_id, event_id=event_id)
    if "strategies" in changed and not is_first_report:
        context.cause(at, "strategy_changed", member.member_id, event_id=event_id)
    if "strategy_settings" in changed and not is_first_report:
        context.cause(at, "settings_changed", member.member_id, event_id=event_id)
    return Applied(True, outdated)


def _learn(
    context: GroupContext, due: DueEvent, event: MemberJoined | Heartbeat, member: Member | None, at: int
) -> Applied:
    """Apply an event from a member itself while a coordinator reports generations."""
    group, own = context.group, event.event_time
    if member is None:
        departed = group.departed.get(event.member_id)
        if departed is not None and not _may_return(departed, event):
            # It was sent before the departure, so it begins no session, but it describes the member when it comes back.
            if not due.late:
                return Applied()
            fields, outdated = set_description(departed.member, of_session(event), own)
            return Applied(bool(fields), outdated)
        return Applied(context.learn(Evidence("member_joined", own, event.member_id, None, due.event_id)))
    if group.returned_after.get(event.member_id, -1) < own < member.begins_at:
        return Applied()  # no generation had the member then, so a timely event would not have described it either
    before = (member.by_heartbeats, context.applied_heartbeats.get(member.member_id), len(group.evidence))
    context.begin_heartbeats(member, own, timeout_with(context, member, event, own))
    context.take_back_evidence(event.member_id, own)
    described, outdated = update_session(context, member, event, own, at)
    changed = before != (member.by_heartbeats, context.applied_heartbeats.get(member.member_id), len(group.evidence))
    if event.subscriptions is not None and distinct(event.subscriptions) != member.subscriptions:
        changed |= context.learn(Evidence("subscription_changed", own, member.member_id, None, due.event_id))
    return Applied(changed or bool(described), outdated)
