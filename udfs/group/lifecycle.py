"""Core: a group's settings, deletion and restoring; groups that are not followed. No I/O."""

from __future__ import annotations

from udfs.group.commit import stop_following
from udfs.group.context import GroupContext
from udfs.group.departures import INFERRED
from udfs.group.findings import MAX_OBSERVATIONS, observed
from udfs.group.membership import late_cause
from udfs.group.state_machine import GroupKind
from udfs.group.view import GroupView
from udfs.model.events import GroupSettings, GroupSnapshot
from udfs.model.group_api import DueEvent
from udfs.model.journal import GroupChanged
from udfs.strategies.registry import qualified_name

# Observations have their own keys, apart from the rules' findings, whatever their kind.
_OBSERVED = "observed:"


def change_settings(turn: GroupContext, due: DueEvent, event: GroupSettings, at: int) -> None:
    """Apply the group's settings; without members that makes no rebalance.

    Each setting takes the value of the newest event time that carried it.
    """
    group = turn.group
    turn.note_settings(at)
    strategy = False
    settings: list[str] = []
    if event.strategy is not None and _may_name_strategy(turn, event):
        if event.strategy != group.strategy:
            strategy = qualified_name(event.strategy, turn.system) != turn.strategy_now()
        turn.set_strategy(event.strategy, event.inferred, event.event_time)
    if event.mode is not None and _is_newest(turn, event, "mode", event.mode != turn.mode):
        if event.mode != turn.mode:
            settings.append(f"mode {turn.mode} -> {event.mode}")
        turn.set_mode(event.mode, event.event_time)
    named = event.strategy_settings
    differs = named is not None and named != (group.strategy_settings or {})
    if named is not None and _is_newest(turn, event, "strategy_settings", differs):
        if differs:
            settings.append("settings of the strategy")
        turn.set_strategy_settings(named, event.event_time)
    if not group.members or turn.kind is GroupKind.REPORTED or not (strategy or settings):
        return
    late_cause(turn, due, at)
    inferred = f"{INFERRED}: " if event.inferred else ""
    if strategy:
        turn.cause(at, "strategy_changed", event_id=due.event_id, detail=f"{inferred}{group.strategy}")
    if settings:
        turn.cause(at, "settings_changed", event_id=due.event_id, detail=inferred + ", ".join(settings))


def _may_name_strategy(turn: GroupContext, event: GroupSettings) -> bool:
    """Return whether a strategy replaces the current one: an inferred one never replaces a reported one."""
    group = turn.group
    if group.strategy is not None and event.inferred != group.strategy_inferred:
        return not event.inferred
    if event.event_time >= group.settings_at.get("strategy", event.event_time):
        return True
    turn.outdated |= event.strategy != group.strategy
    return False


def _is_newest(turn: GroupContext, event: GroupSettings, name: str, differs: bool) -> bool:
    """Return whether no newer event carried a setting, and record when this one did."""
    if event.event_time < turn.group.settings_at.get(name, event.event_time):
        turn.outdated |= differs
        return False
    return True


def was_made_again(view: GroupView, due: DueEvent) -> bool:
    """Return whether a deletion comes so late that the group has had rebalances since."""
    return due.late and (view.group.last_rebalance_at or 0) > due.event.event_time


def close_all_sessions(context: GroupContext, due: DueEvent, at: int) -> None:
    """End the sessions of a group that was deleted."""
    members, is_reported = sorted(context.group.members), context.kind is GroupKind.REPORTED
    if members and not is_reported:
        late_cause(context, due, at)
    for member_id in members:
        if not is_reported:
            context.cause(at, "member_gone", member_id, event_id=due.event_id, detail="the group was deleted")
        context.close_session(member_id, at, at, "gone")
    context.put_off_pending(at)


def mark_not_followed(context: GroupContext, snapshot: GroupSnapshot, at: int) -> None:
    """List a group of a kind that is not recomputed; its open sessions and spans end."""
    group = context.group
    stop_following(context, at)
    context.write_row(
        at,
        GroupChanged(
            system=context.system,
            state="not_followed",
            generation=snapshot.generation,
            generation_source=None if snapshot.generation is None else "reported",
            members=len(snapshot.members),
            last_rebalance_at=group.last_rebalance_at,
            last_rebalance_id=group.last_rebalance_id,
        ),
    )


def take_observations(turn: GroupContext, due: DueEvent, snapshot: GroupSnapshot, at: int) -> None:
    """Open the findings that the source observes now, and close those that it no longer observes."""
    group, told = turn.group, snapshot.observations
    if told is None or (due.late and snapshot.event_time < (group.last_snapshot_at or snapshot.event_time)):
        return
    details: dict[str, set[str]] = {}
    for one in told:
        details.setdefault(one.kind, set()).update([one.detail] if one.detail else [])
    kinds = sorted(details)[:MAX_OBSERVATIONS]
    for key in sorted(group.findings):
        if key.startswith(_OBSERVED) and key.removeprefix(_OBSERVED) not in kinds:
            turn.set_finding(key, None, at)
    for kind in kinds:
        found = observed(kind, sorted(details[kind]), due.event_id)
        turn.set_finding(_OBSERVED + kind, found, at, kind)


def register_empty_group(turn: GroupContext, at: int) -> None:
    """Register a group that a poll showed without members and that was not known before."""
    if not turn.group.members and turn.group.pending is None and turn.group.row is None:
        turn.write_row(at, GroupChanged(system=turn.system, state="empty", mode=turn.mode))
