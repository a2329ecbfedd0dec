"""Core: a group's settings, deletion and restoring; groups that are not followed. No I/O."""

from __future__ import annotations

import msgspec

from udfs.group.assignment_diff import owners_of
from udfs.group.context import GroupContext
from udfs.group.departures import INFERRED
from udfs.group.descriptions import describe
from udfs.group.findings import MAX_OBSERVATIONS, observed
from udfs.group.membership import late_cause
from udfs.group.rebalance import decide_counted
from udfs.group.spans import write_spans
from udfs.group.state import Group, Member, Owners, key_of
from udfs.group.target_assignment import compute_target_assignment, topics_with_metadata
from udfs.group.topic_changes import queues_shown
from udfs.model.events import GroupSettings, GroupSnapshot, MemberInfo
from udfs.model.group_api import DueEvent
from udfs.model.journal import GroupChanged, GroupRemoved
from udfs.strategies.registry import qualified_name

# Observations have their own keys, apart from the rules' findings, whatever their kind.
_OBSERVED = "observed:"


def change_settings(turn: GroupContext, due: DueEvent, event: GroupSettings, at: int) -> None:
    """Apply the group's settings; without members that makes no rebalance.

    Each setting takes the value of the newest event time that carried it.
    """
    group = turn.group
    group.touched_at = max(at, group.touched_at or at)
    turn.note_settings()
    strategy = False
    settings: list[str] = []
    if event.strategy is not None and _may_name_strategy(turn, event):
        group.strategy_inferred = event.inferred
        group.settings_at["strategy"] = event.event_time
        if event.strategy != group.strategy:
            strategy = qualified_name(event.strategy, turn.system) != turn.strategy_now()
            group.strategy = event.strategy
    if event.mode is not None and _is_newest(turn, event, "mode", event.mode != turn.mode) and event.mode != turn.mode:
        settings.append(f"mode {turn.mode} -> {event.mode}")
        group.mode = event.mode
    told = event.strategy_settings
    differ = told is not None and told != (group.strategy_settings or {})
    if told is not None and _is_newest(turn, event, "strategy_settings", differ) and differ:
        settings.append("settings of the strategy")
        group.strategy_settings = told
    if not group.members or group.generation is not None or not (strategy or settings):
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
    turn.group.settings_at[name] = event.event_time
    return True


def delete(turn: GroupContext, due: DueEvent, at: int) -> None:
    """End members and spans: the next event under this name creates a new group; only its counter goes on."""
    group = turn.group
    if due.late and (group.last_rebalance_at or 0) > due.event.event_time:
        return
    reported = group.generation is not None
    members = sorted(group.members)
    if members and not reported:
        late_cause(turn, due, at)
    for member_id in members:
        if not reported:
            turn.cause(at, "member_gone", member_id, event_id=due.event_id, detail="the group was deleted")
        turn.close_session(member_id, at, at, "gone")
    if group.pending is not None:
        group.pending.changed_at = max(at, group.pending.changed_at)
        decide_counted(turn)
    write_spans(turn, "computed", {}, at)
    write_spans(turn, "reported", {}, at)
    _end(turn, at)
    turn.applied(at)
    group.touched_at = None


def forget(turn: GroupContext, at: int) -> None:
    """Forget a group that has been empty for long."""
    _end(turn, at)
    turn.group.touched_at = None


def mark_not_followed(turn: GroupContext, snapshot: GroupSnapshot, at: int) -> None:
    """List a group of a kind that is not recomputed; its open sessions and spans end."""
    group = turn.group
    for member_id in sorted(group.members):
        turn.close_session(member_id, at, at, "absent_from_snapshot")
    write_spans(turn, "computed", {}, at)
    write_spans(turn, "reported", {}, at)
    for kind in sorted(group.findings):
        turn.set_finding(kind, None, at)
    group.followed, group.pending, group.generation = False, None, None
    group.compare_at, group.standing, group.pulls = None, {}, {}
    group.members_decided, group.counts, group.revoked_pending = 0, {}, []
    group.topics_without_metadata, group.awaited = [], None
    turn.write_row(
        at,
        GroupChanged(
            system=turn.system,
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


def restore(turn: GroupContext, snapshot: GroupSnapshot, at: int) -> None:
    """Restore a group from the readable part of an export; nothing is written to the tables.

    A shard restores the encoded state itself where the export has it; this is for exports by other tools and versions.
    """
    group = turn.group
    reported = snapshot.generation_source == "reported"
    if snapshot.generation is not None:
        if reported:
            group.generation = snapshot.generation
        else:
            group.counted = max(group.counted, snapshot.generation)
    group.exists = bool(snapshot.generation)
    group.followed = snapshot.state != "not_followed"
    group.leader, group.last_rebalance_id = snapshot.leader, snapshot.last_rebalance_id
    if not reported and turn.system != "kafka":
        group.strategy = snapshot.strategy
    names = {info.member_id for info in snapshot.members}
    for info in snapshot.members:
        member = _restored_member(info, names, snapshot.event_time)
        group.members[member.member_id] = member
        if member.by_heartbeats:
            last = info.last_heartbeat_at
            turn.seen[member.member_id] = member.joined_at if last is None else last
            turn.touched.append(member.member_id)
        elif info.last_heartbeat_at is not None:
            group.last_heartbeats[member.member_id] = info.last_heartbeat_at
    told = snapshot.assignments
    owners: Owners | None = None
    if told is not None:
        owners = owners_of({name: [key_of(queue, turn.system) for queue in told[name]] for name in told})
    known = topics_with_metadata(turn, at)
    if reported:
        known, group.topics_without_metadata = queues_shown(turn, group.subscribed_topics(), owners, at)
    dealt = compute_target_assignment(turn, known, snapshot.strategy if reported else None, at)
    group.computed, group.last_strategy = dealt.owners, dealt.strategy
    if owners is not None and reported:
        group.reported, group.has_reported = owners, True
    elif owners is not None and turn.mode == "clustering":
        group.computed = owners
    group.members_decided = len(group.members)
    group.counts = {topic: len(infos) for topic, infos in known.items()}
    group.last_applied = max(at, group.last_applied or at)
    group.touched_at = group.last_applied


def _restored_member(info: MemberInfo, names: set[str], event_time: int) -> Member:
    client, _, number = info.member_id.rpartition("#")
    member = Member(
        member_id=info.member_id,
        name=client if number.isdigit() and client in names else info.member_id,
        joined_at=event_time if info.joined_at is None else info.joined_at,
        by_heartbeats=info.lives_by == "heartbeats",
    )
    describe(member, info, member.joined_at)
    return member


def _end(turn: GroupContext, at: int) -> None:
    group = turn.group
    for kind in sorted(group.findings):
        turn.set_finding(kind, None, at)
    if group.row is not None:
        turn.write(at, GroupRemoved())
    _become(
        group,
        Group(
            number=group.number,
            counted=group.counted,
            last_rebalance_at=group.last_rebalance_at,
            rebalance_ordinals=group.rebalance_ordinals,
            last_applied=group.last_applied,
        ),
    )


def _become(group: Group, other: Group) -> None:
    for name in msgspec.structs.fields(other):
        setattr(group, name.name, getattr(other, name.name))
