"""Core: the net effect of the events of one event time: what cancels out within it never becomes a cause. No I/O."""

from __future__ import annotations

from udfs.group.batch.context import GroupContext
from udfs.group.batch.event_time import DESCRIBED, BeforeEventTime
from udfs.group.decision.commit_spans import settle_replaced
from udfs.group.events.reported_assignment import take_reported_assignment
from udfs.group.members.descriptions import uses_default_strategy
from udfs.group.state.group import Member
from udfs.group.state.view import GroupView
from udfs.model.journal import Trigger, TriggerKind

_DEPARTURES: tuple[TriggerKind, ...] = ("member_left", "member_gone", "session_expired")


def end_event_time(context: GroupContext, at: int) -> None:
    """Take in what the events of one event time have changed, all of them together."""
    group, pending = context.group, context.group.pending
    if pending is None and not context.before.members:
        context.before.folds = False
        return
    causes = net_causes(context, context.before)
    context.write_sessions(at)
    if pending is None:
        return
    if not pending.triggers:  # nothing was pending before, so replaced members are split now
        settle_replaced(context)
    context.take_causes(causes, at)
    if not pending.triggers:  # all of them cancelled out
        context.cancel_pending()
        if pending.reported is not None and group.last_rebalance_id is not None:
            take_reported_assignment(context, dict(pending.reported), at)


def net_causes(view: GroupView, before: BeforeEventTime) -> list[Trigger]:
    """Return the causes of this event time that its events leave, and what members describe otherwise after it."""
    noted = before.causes
    departed = {cause.member_id: cause for cause in noted if cause.kind in _DEPARTURES}
    causes = [cause for cause in noted if _is_left(view, before, cause, departed.get(cause.member_id))]
    if not departed:  # nobody left and rejoined
        return causes
    joined = {cause.member_id: cause.event_id for cause in noted if cause.kind == "member_joined"}
    named = {(cause.kind, cause.member_id) for cause in causes}
    for member_id, event_id in joined.items():
        was, now = before.described(member_id or ""), view.group.members.get(member_id or "")
        is_another = member_id in before.exempt and member_id not in before.renamed
        if was is not None and now is not None and not is_another:
            causes += [
                Trigger(kind=kind, member_id=member_id, event_id=event_id)
                for kind in DESCRIBED
                if (kind, member_id) not in named and _is_change(view, was, now, kind)
            ]
    return causes


def _is_left(view: GroupView, before: BeforeEventTime, cause: Trigger, departure: Trigger | None) -> bool:
    """Return whether a cause still holds after all events; ``departure``: the member's last one."""
    kind, member_id = cause.kind, cause.member_id
    if member_id is None:
        if before.settings is None or kind not in ("strategy_changed", "settings_changed"):
            return True
        (strategy, *others), (strategy_now, *others_now) = before.settings, view.settings_now()
        return strategy != strategy_now if kind == "strategy_changed" else others != others_now
    if member_id not in before.members:
        return True
    was, now = before.members[member_id], view.group.members.get(member_id)
    if kind in DESCRIBED:
        was = before.described(member_id)
        return was is not None and now is not None and _is_change(view, was, now, kind)
    if kind == "member_joined":
        return member_id not in before.renamed and (member_id in before.exempt or (was is None and now is not None))
    if kind not in _DEPARTURES:
        return True
    if (was is None and member_id in before.renamed) if now is not None else member_id in before.renamed.values():
        return False  # another id replaced it, and continues
    return member_id in before.exempt or (was is not None and now is None and cause is departure)


def _is_change(view: GroupView, was: Member, now: Member, kind: TriggerKind) -> bool:
    """Return whether a description changed in a way that is a cause of its own."""
    if getattr(was, DESCRIBED[kind]) == getattr(now, DESCRIBED[kind]):
        return False
    is_first = was.subscriptions is None and was.strategies is None and now.subscriptions is not None
    if kind != "subscription_changed" and is_first:
        return False  # a first description counts as one change of subscription
    return kind != "strategy_changed" or was.strategies is not None or not uses_default_strategy(view, now)
