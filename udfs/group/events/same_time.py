"""Core: changes that cancel out within one event time, as only the state after all its events counts. No I/O.

The previous state is kept for each member that an event of this time touches, and for the group's settings. After the
last event, causes that cancel out are removed from the pending rebalance, and sessions that exist neither before nor
after it are removed from the output.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence

import msgspec

from udfs.group.batch.context import GroupContext
from udfs.group.batch.event_time import DESCRIBED, EventTimeView
from udfs.group.decision.commit_spans import settle_replaced
from udfs.group.events.reported_assignment import take_reported_assignment
from udfs.group.members.descriptions import uses_default_strategy
from udfs.group.state.group import Member
from udfs.group.state.state_machine import GroupKind
from udfs.model.journal import MemberChanged, MemberClosed, MemberOpened, Trigger, TriggerKind

_DEPARTURES: tuple[TriggerKind, ...] = ("member_left", "member_gone", "session_expired")


def end_event_time(context: GroupContext, at: int) -> None:
    """Remove what cancelled out within the event time that just ended."""
    group, before = context.group, context.before.members
    pending = group.pending
    if pending is None or context.kind is GroupKind.REPORTED:
        return
    first = context.before.triggers
    if not first:  # nothing was pending before, so replaced members are split now, whichever event came first
        settle_replaced(context)
    kept = [
        trigger for place, trigger in enumerate(pending.triggers) if place < first or not _cancels_out(context, trigger)
    ]
    again = {
        touched_id: was
        for touched_id, was in before.items()
        if was is not None and _departed_again(context, touched_id)
    }
    kept = _last_departures(kept, first, again)
    stayed = [touched_id for touched_id in before if _left_and_rejoined(context, touched_id)]
    joined_by = {trigger.member_id: trigger.event_id for trigger in pending.triggers if trigger.kind == "member_joined"}
    struck = len(kept) < len(pending.triggers)
    context.keep_causes(kept)
    fleeting = {
        touched_id
        for touched_id, was in before.items()
        if was is None and touched_id not in group.members and touched_id not in context.before.exempt
    }
    moved = _moved_anew(context)
    again |= dict(moved.values())
    anew = moved.keys() & context.before.new_ids
    opened = [body for body in context.changes_of_now() if isinstance(body, MemberOpened) and body.member_id in anew]
    ends = _session_ends(context, again)
    if stayed or fleeting or again:
        context.take_back_changes(_of_others(fleeting.union(stayed, again, anew)))
    for end in ends:
        context.rewrite_end(again[end.member_id], end, at)
    for member_id in stayed:
        was_member = before[member_id]
        if was_member is not None:
            context.continue_session(was_member, at)
    _begin_sessions(context, opened, at)
    described = {touched_id: before[touched_id] for touched_id in stayed} | {
        moved_id: was for moved_id, (_, was) in moved.items()
    }
    for member_id, was in described.items():
        _name_changes(context, member_id, was, joined_by.get(member_id), at)
    repeated = context.before.repeated
    if pending.triggers[first:] or not (struck or repeated):
        return
    if not all(_cancels_out(context, trigger) for trigger in repeated):
        return
    context.take_back_applied(at)
    if first:
        context.take_back_causes()  # only their time is left of them
        return
    context.cancel_pending()
    if pending.reported is not None and group.last_rebalance_id is not None:
        take_reported_assignment(context, dict(pending.reported), at)


def _left_and_rejoined(view: EventTimeView, member_id: str) -> bool:
    was, now = view.before.members[member_id], view.group.members.get(member_id)
    if member_id in view.before.exempt:
        return False
    return was is not None and now is not None and now is not view.before.objects.get(member_id)


def _cancels_out(view: EventTimeView, trigger: Trigger) -> bool:
    kind, member_id = trigger.kind, trigger.member_id
    if member_id is None:
        if view.before.settings is None or kind not in ("strategy_changed", "settings_changed"):
            return False
        (strategy, *others), (strategy_now, *others_now) = view.before.settings, view.settings_now()
        return strategy == strategy_now if kind == "strategy_changed" else others == others_now
    if _continues(view, member_id, kind):
        return True
    was, now = view.before.described(member_id), view.group.members.get(member_id)
    was_member = member_id in view.before.members
    if kind in DESCRIBED and was_member:
        return was is None or now is None or not _is_change(view, was, now, kind)
    if not was_member or member_id in view.before.exempt:
        return False
    if kind == "member_joined":
        return now is None or was is not None
    return kind in _DEPARTURES and (was is None or now is not None)


def _continues(view: EventTimeView, member_id: str, kind: TriggerKind) -> bool:
    """Return whether a member departed or joined only temporarily: another id replaced it, and continues."""
    before = view.before
    if kind == "member_joined":
        return member_id in before.renamed
    if kind not in _DEPARTURES:
        return False
    if member_id in view.group.members:
        return member_id in before.new_ids
    return member_id in before.renamed.values()


def _is_change(view: EventTimeView, was: Member, now: Member, kind: TriggerKind) -> bool:
    """Return whether a description changed in a way that is a cause of its own."""
    if not _differ(was, now, kind) or _is_first_description(was, now, kind):
        return False
    return kind != "strategy_changed" or was.strategies is not None or not uses_default_strategy(view, now)


def _is_first_description(was: Member, now: Member, kind: TriggerKind) -> bool:
    """Return whether a change belongs to a member's first description, which counts as one change of subscription."""
    if kind == "subscription_changed" or now.subscriptions is None:
        return False
    return was.subscriptions is None and was.strategies is None


def _differ(was: Member, now: Member, kind: TriggerKind) -> bool:
    name = DESCRIBED[kind]
    return bool(getattr(was, name) != getattr(now, name))


def _name_changes(context: GroupContext, member_id: str, was: Member | None, event_id: str | None, at: int) -> None:
    """Add as causes the changed fields of a member that left and rejoined within one event time."""
    now = context.group.members.get(member_id)
    if was is None or now is None:
        return
    for kind in DESCRIBED:
        if _is_change(context, was, now, kind):
            context.cause(at, kind, member_id, event_id=event_id)


def _moved_anew(view: EventTimeView) -> dict[str, tuple[str, Member]]:
    """Return members that another id replaced and that, under either id, departed and returned within one event time.

    Returns: the previous id, with the member as it was then, by the last id.
    """
    ends = Counter(body.member_id for body in view.changes_of_now() if isinstance(body, MemberClosed))
    moved: dict[str, tuple[str, Member]] = {}
    for name, former in view.before.renamed.items():
        was = view.before.members[former]
        is_anew = ends[former] > 1 or (name in view.before.new_ids and ends[name] > 0)
        if was is not None and is_anew and former not in view.group.members:
            moved[name] = former, was
    return moved


def _begin_sessions(context: GroupContext, opened: Sequence[MemberOpened], at: int) -> None:
    """Write the beginnings of these members' sessions, as the members are described after the event time."""
    former = {body.member_id: body.former_member_id for body in reversed(opened)}
    for member_id in sorted(former.keys() & context.group.members.keys()):
        context.begin_session(context.group.members[member_id], at, former[member_id])


def _departed_again(view: EventTimeView, member_id: str) -> bool:
    """Return whether a member departed, returned, and departed again within one event time."""
    if member_id in view.group.members or member_id in view.before.exempt:
        return False
    ends = [body for body in view.changes_of_now() if isinstance(body, MemberClosed) and body.member_id == member_id]
    return len(ends) > 1


def _last_departures(triggers: list[Trigger], first: int, again: Container[str]) -> list[Trigger]:
    """Return the causes without departures that were followed by another departure in this event time."""
    last = {trigger.member_id: trigger for trigger in triggers[first:] if trigger.kind in _DEPARTURES}
    return [
        trigger
        for place, trigger in enumerate(triggers)
        if place < first
        or trigger.member_id not in again
        or trigger.kind not in _DEPARTURES
        or trigger is last[trigger.member_id]
    ]


def _session_ends(view: EventTimeView, again: Mapping[str, Member]) -> list[MemberClosed]:
    """Return the ends of these members' sessions from before this event time, by their last departures."""
    ends: dict[str, MemberClosed] = {}
    for body in view.changes_of_now():
        if isinstance(body, MemberClosed) and body.member_id in again:
            before = ends.get(body.member_id)
            last_heartbeat_at = body.last_heartbeat_at
            if last_heartbeat_at is None and before is not None:
                last_heartbeat_at = before.last_heartbeat_at
            joined_at = again[body.member_id].joined_at
            ends[body.member_id] = msgspec.structs.replace(
                body, joined_at=joined_at, last_heartbeat_at=last_heartbeat_at
            )
    return list(ends.values())


def _of_others(members: Container[str]) -> Callable[[object], bool]:
    """Return a function that says of a change whether it stays though these members' sessions are written anew.

    A change within a session that began again refers to that beginning, so ``_name_changes`` writes it under the old
    one.
    """

    def counts(body: object) -> bool:
        return not isinstance(body, MemberOpened | MemberChanged | MemberClosed) or body.member_id not in members

    return counts
