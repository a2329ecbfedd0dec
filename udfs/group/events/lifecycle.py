"""Core: a group's settings and deletion, rebalances in progress, and groups that are empty or not followed. No I/O."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from udfs.group.batch.context import GroupContext
from udfs.group.batch.observed_findings import MAX_OBSERVATIONS, observed
from udfs.group.batch.phases import is_over
from udfs.group.decision.commit import end_followed, show_owners, stop_deciding
from udfs.group.events.membership import is_alive_after, late_cause
from udfs.group.events.polls import arrive_by_snapshot
from udfs.group.members.departure_causes import INFERRED
from udfs.group.members.descriptions import HIDDEN_FIELDS, update_description
from udfs.group.state.assignment_diff import owners_of
from udfs.group.state.group import Queue
from udfs.group.state.recorded_group import RecordedGroup
from udfs.group.state.state_machine import GroupKind
from udfs.group.state.view import GroupView
from udfs.model.clients import client_of
from udfs.model.events import GroupSettings, GroupSnapshot, MemberInfo, TopicPartitions
from udfs.model.finding_names import NamedMember
from udfs.model.group_api import DueEvent
from udfs.model.journal import CLASSIC_UNDER_WAY, GroupChanged
from udfs.model.snapshot_meaning import has_joined
from udfs.strategies.registry import qualified_name

# Observations have keys of their own, so that they never share a key with a rule's finding of the same kind.
_OBSERVED = "observed:"


def change_settings(context: GroupContext, due: DueEvent, event: GroupSettings, at: int) -> bool:
    """Apply the group's settings; without members this does not cause a rebalance.

    Each setting takes the value with the newest event time. The row of an empty group shows the settings.

    Returns: whether some of them are older than the values that stay.
    """
    group = context.group
    (in_use, *_), *_ = context.note_settings(at)
    if due.late:  # settings that came late before this event count, too
        in_use = context.strategy_now()
    strategy = False
    settings: list[str] = []
    named = event.strategy_settings
    differs = named is not None and named != (group.strategy_settings or {})
    # The settings in this event, each with whether it differs.
    carried = {
        "strategy": event.strategy is not None and event.strategy != group.strategy,
        "mode": event.mode is not None and event.mode != context.mode,
        "strategy_settings": differs,
    }
    outdated = any(other and _is_outdated(context, event, name) for name, other in carried.items())
    if event.strategy is not None and _may_name_strategy(context, event):
        if event.strategy != group.strategy:
            strategy = qualified_name(event.strategy, context.system) != in_use
        context.set_strategy(event.strategy, event.inferred, event.event_time)
    if event.mode is not None and not _is_older(context, event, "mode"):
        if event.mode != context.mode:
            settings.append(f"mode {context.mode} -> {event.mode}")
        context.set_mode(event.mode, event.event_time)
    if named is not None and not _is_older(context, event, "strategy_settings"):
        if differs:
            settings.append("settings of the strategy")
        context.set_strategy_settings(named, event.event_time)
    if not group.members and group.row is not None and group.row.state == "empty":
        row = msgspec.structs.replace(group.row, mode=context.mode, strategy=context.named_strategy)
        context.write_row(at, row)
    if not group.members or context.kind is GroupKind.REPORTED or not (strategy or settings):
        return outdated
    late_cause(context, due, at)
    inferred = f"{INFERRED}: " if event.inferred else ""
    if strategy:
        context.cause(at, "strategy_changed", event_id=due.event_id, detail=f"{inferred}{group.strategy}")
    if settings:
        context.cause(at, "settings_changed", event_id=due.event_id, detail=inferred + ", ".join(settings))
    return outdated


def correct_system(context: GroupContext, due: DueEvent, at: int) -> None:
    """Apply the system that an event of the group names; results computed for another system are recomputed."""
    before, system = context.system, due.event.system
    if system == before or due.late:
        return
    context.note_settings(at)
    context.set_system(system)
    if context.group.members and context.kind is not GroupKind.REPORTED:
        context.cause(at, "strategy_changed", event_id=due.event_id, detail=f"system {before} -> {system}")


def _may_name_strategy(view: GroupView, event: GroupSettings) -> bool:
    """Return whether a strategy replaces the current one; an inferred strategy never replaces a reported one."""
    return not event.inferred if _is_of_other_origin(view, event) else not _is_older(view, event, "strategy")


def _is_of_other_origin(view: GroupView, event: GroupSettings) -> bool:
    """Return whether, of the event's and the current strategy, one is inferred and the other is reported."""
    return view.group.strategy is not None and event.inferred != view.group.strategy_inferred


def _is_older(view: GroupView, event: GroupSettings, name: str) -> bool:
    """Return whether a newer event has already set this setting."""
    return event.event_time < view.group.settings_at.get(name, event.event_time)


def _is_outdated(view: GroupView, event: GroupSettings, name: str) -> bool:
    """Return whether a setting is older than the current one; only strategies of the same origin are compared."""
    return _is_older(view, event, name) and not (name == "strategy" and _is_of_other_origin(view, event))


def _was_made_again(view: GroupView, due: DueEvent, at: int) -> bool:
    """Return whether a deletion is so late that there was a sign of the group since: it may be a new group.

    Args:
        at: The clock before the batch; late events applied at it are no sign of the group.
    """
    group, own = view.group, due.event.event_time
    shown_at = [group.last_snapshot_at, *group.settings_at.values(), *view.applied_heartbeats.values()]
    shown_at += [departed.last_heartbeat_at for departed in group.departed.values()]
    if view.kind is GroupKind.REPORTED:
        shown_at.append(group.last_rebalance_at)
    return any(own < heartbeat_at < at for heartbeat_at in shown_at if heartbeat_at is not None)


def survives(context: GroupContext, due: DueEvent, at: int) -> bool:
    """Return whether there was a sign of a group since a late deletion; if so, end its members silent since then."""
    if not _was_made_again(context, due, context.facts.clock_before or at):
        return False
    members = {} if context.kind is GroupKind.REPORTED else context.group.members
    for member_id, member in sorted(members.items()):
        if not is_alive_after(context, member, due.event.event_time):
            late_cause(context, due, at)
            _end_deleted(context, member_id, due, at)
    return True


def note_deletion(context: GroupContext, due: DueEvent, at: int) -> None:
    """Record that a group was deleted; if nothing ends, only events older than the deletion are too late."""
    ends = context.group.exists or context.group.row is not None
    context.applied(at if ends else due.event.event_time)
    context.note_deletion(due.event.event_time)


def _end_deleted(context: GroupContext, member_id: str, due: DueEvent, at: int) -> None:
    context.cause(at, "member_gone", member_id, event_id=due.event_id, detail="the group was deleted")
    context.close_session(member_id, at, at, "gone", due.event.event_time if due.late else None)


def close_all_sessions(context: GroupContext, due: DueEvent, at: int) -> None:
    """End the sessions of a deleted group, and forget the state of its queues."""
    members, is_reported = sorted(context.group.members), context.kind is GroupKind.REPORTED
    if members and not is_reported:
        late_cause(context, due, at)
    for member_id in members:
        if is_reported:
            context.close_session(member_id, at, at, "gone")
        else:
            _end_deleted(context, member_id, due, at)
    context.put_off_pending(at)
    context.forget_observations(at)


def mark_not_followed(context: GroupContext, snapshot: GroupSnapshot, at: int) -> None:
    """List a group of a kind that is not recomputed; its open sessions and spans end.

    A snapshot without a generation and without members shows only that the group exists.
    """
    group = context.group
    are_known = bool(snapshot.members) or snapshot.generation is not None
    end_followed(context, at)
    context.write_row(
        at,
        GroupChanged(
            system=context.system,
            state="not_followed",
            generation=snapshot.generation,
            generation_source=None if snapshot.generation is None else "reported",
            members=len(snapshot.members) if are_known else None,
            last_rebalance_at=group.last_rebalance_at,
            last_rebalance_id=group.last_rebalance_id,
            protocol=snapshot.protocol,
        ),
    )


def show_under_way(context: GroupContext, snapshot: GroupSnapshot, at: int) -> None:
    """Show that the coordinator of a classic group has begun a rebalance, which ends with its generation."""
    group = context.group
    context.note_preparing(snapshot)
    if group.row is None or group.recorded is not None or context.kind is GroupKind.NOT_FOLLOWED:
        return
    if not is_over(group, snapshot):
        joining, joined = CLASSIC_UNDER_WAY
        state = joined if has_joined(snapshot) else joining
        context.write_row(at, msgspec.structs.replace(group.row, state=state))


def note_stuck(context: GroupContext, at: int) -> None:
    """Open the finding that the group has been rebalancing for too long."""
    context.note_under_way(at)
    since = context.group.under_way_since
    if since is not None and context.group.row is not None:
        context.find_stuck(since, at)


def end_under_way(context: GroupContext, own: int, at: int) -> None:
    """Show that a classic group no longer rebalances, although no generation has shown it.

    A poll may be dated after the generation of the rebalance that it found, and a coordinator may die within a
    rebalance: in both cases a rebalance began that makes no generation.
    """
    group = context.group
    context.note_not_preparing(own)
    if group.preparing_since is None and group.row is not None and group.row.state in CLASSIC_UNDER_WAY:
        state = "failed" if "strategy_failed" in group.findings else "stable" if group.members else "empty"
        context.write_row(at, msgspec.structs.replace(group.row, state=state))


def show_unfollowed(context: GroupContext, at: int) -> None:
    """Show the members of a share or streams group and their recorded partitions; this makes no rebalance."""
    group, recorded = context.group, context.group.recorded
    if recorded is None:
        return
    present = recorded.present
    stop_deciding(context, at)
    for member_id in sorted(group.members.keys() - present.keys()):
        context.close_session(member_id, at, at, "absent_from_snapshot")
    for member_id, recorded_member in present.items():
        if recorded_member.info is None:
            continue
        info = msgspec.structs.replace(recorded_member.info, subscriptions=recorded.subscriptions_of(recorded_member))
        member = group.members.get(member_id)
        if member is None:
            arrive_by_snapshot(context, member_id, info, at, recorded_member.joined_at)
        elif update_description(context, member, info, at, at)[0] - set(HIDDEN_FIELDS):
            context.change_session(member, at)
    held = {member_id: _queues(recorded, partitions) for member_id, partitions in recorded.owned().items()}
    for member_id, recorded_member in present.items():
        for kind, tasks in (("standby", recorded_member.standby), ("warm-up", recorded_member.warmup)):
            held.setdefault(member_id, []).extend(_queues(recorded, tasks, f" ({kind})"))
    show_owners(context, owners_of(held), at)
    row = group.row or GroupChanged(system=context.system, state="not_followed")
    generation = recorded.assignment_epoch
    context.write_row(
        at, msgspec.structs.replace(row, generation=generation, generation_source="reported", strategy=None, mode=None)
    )


def _queues(group: RecordedGroup, held: Iterable[TopicPartitions], kind: str = "") -> list[Queue]:
    """Return the queues or tasks of a member; ``kind`` is the kind of task unless it is active."""
    return [
        (topic + kind, None, number)
        for topic_partitions in held
        for topic in _topics(group, topic_partitions)
        for number in topic_partitions.partitions
    ]


def _topics(group: RecordedGroup, held: TopicPartitions) -> list[str]:
    """Return the name of a topic if known, or the subtopology of a streams group's tasks."""
    if group.protocol == "streams":
        return [f"subtopology {held.topic}"]
    return [group.names[held.topic]] if held.topic in group.names else []


def take_observations(context: GroupContext, due: DueEvent, snapshot: GroupSnapshot, at: int) -> None:
    """Open the findings that the source observes now, and close those that it no longer observes."""
    group, observations = context.group, snapshot.observations
    if observations is None or (due.late and snapshot.event_time < (group.last_snapshot_at or snapshot.event_time)):
        return
    details: dict[str, set[str]] = {}
    member_ids: dict[str, set[str]] = {}
    for observation in observations:
        details.setdefault(observation.kind, set()).update([observation.detail] if observation.detail else [])
        member_ids.setdefault(observation.kind, set()).update(observation.members)
    clients = {info.member_id: _client(info) for info in snapshot.members} if any(member_ids.values()) else {}
    kinds = sorted(details)[:MAX_OBSERVATIONS]
    for key in sorted(group.findings):
        if key.startswith(_OBSERVED) and key.removeprefix(_OBSERVED) not in kinds:
            context.set_finding(key, None, at)
    for kind in kinds:
        members = [NamedMember(member_id, clients.get(member_id, member_id)) for member_id in sorted(member_ids[kind])]
        found = observed(kind, sorted(details[kind]), due.event_id, members)
        context.set_finding(_OBSERVED + kind, found, at, kind)


def _client(info: MemberInfo) -> str:
    """Return the client of an observed member, if its source uses the clients' own ids as member ids."""
    return client_of(info.instance_id, info.client_id or info.member_id, info.host) or info.member_id


def register_empty_group(context: GroupContext, at: int) -> None:
    """Register a group without members that did not exist before and that polls or former members showed."""
    group, had_members = context.group, context.had_members
    context.had_members = False
    is_shown = group.last_snapshot_at is not None or had_members
    if not is_shown or context.kind in (GroupKind.REPORTED, GroupKind.NOT_FOLLOWED):
        return
    if not group.members and group.pending is None and group.row is None:
        row = GroupChanged(system=context.system, state="empty", mode=context.mode, strategy=context.named_strategy)
        context.write_row(at, row)
