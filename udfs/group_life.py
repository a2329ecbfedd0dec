"""Core: a group as a whole: its settings, its end, its restoring; groups that are not followed. No I/O."""

from __future__ import annotations

import msgspec

from udfs.asking import ask_strategy, known_topics
from udfs.diff import owners_of
from udfs.events import GroupSettings, GroupSnapshot, MemberInfo
from udfs.facts import Due
from udfs.findings import MAX_OBSERVATIONS, observed
from udfs.goings import INFERRED
from udfs.group_state import Group, Member, Owners, key_of
from udfs.journal import GroupChanged, GroupRemoved
from udfs.membership import describe, late_cause
from udfs.rebalancing import decide_counted, write_spans
from udfs.reported import queues_shown
from udfs.strategies import DEFAULTS, qualified_name
from udfs.turn import Turn

# What a source saw stands apart from what the rules found, whatever it is called.
_OBSERVED = "observed:"


def change_settings(turn: Turn, due: Due, event: GroupSettings, at: int) -> None:
    """Take in how the group shares its queues; without members it makes no rebalance."""
    group = turn.group
    group.touched_at = max(at, group.touched_at or at)
    strategy = False
    settings: list[str] = []
    # What was told is not overruled by what was concluded.
    overruled = event.inferred and group.strategy is not None and not group.strategy_inferred
    if event.strategy is not None and not overruled:
        group.strategy_inferred = event.inferred
    if event.strategy is not None and event.strategy != group.strategy and not overruled:
        before = group.strategy or group.dealt_strategy or DEFAULTS[turn.system]
        strategy = qualified_name(event.strategy, turn.system) != qualified_name(before, turn.system)
        group.strategy = event.strategy
    if event.mode is not None and event.mode != turn.mode:
        settings.append(f"mode {turn.mode} -> {event.mode}")
        group.mode = event.mode
    if event.strategy_settings is not None and event.strategy_settings != (group.strategy_settings or {}):
        settings.append("settings of the strategy")
        group.strategy_settings = event.strategy_settings
    if not group.members or group.generation is not None or not (strategy or settings):
        return
    late_cause(turn, due, at)
    inferred = f"{INFERRED}: " if event.inferred else ""
    if strategy:
        turn.cause(at, "strategy_changed", event_id=due.event_id, detail=f"{inferred}{group.strategy}")
    if settings:
        turn.cause(at, "settings_changed", event_id=due.event_id, detail=inferred + ", ".join(settings))


def delete(turn: Turn, due: Due, at: int) -> None:
    """End members and spans: what comes next under this name is a new group, but for its counter."""
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


def forget(turn: Turn, at: int) -> None:
    """Forget a group that has been empty for long."""
    _end(turn, at)
    turn.group.touched_at = None


def stop_following(turn: Turn, snapshot: GroupSnapshot, at: int) -> None:
    """List a group of a kind that is not recomputed; what was followed of it ends."""
    group = turn.group
    for member_id in sorted(group.members):
        turn.close_session(member_id, at, at, "absent_from_snapshot")
    write_spans(turn, "computed", {}, at)
    write_spans(turn, "reported", {}, at)
    for kind in sorted(group.findings):
        turn.set_finding(kind, None, at)
    group.followed, group.pending, group.generation = False, None, None
    group.compare_at, group.standing, group.pulls = None, {}, {}
    group.members_decided, group.counts, group.guessed_topics, group.handed_over = 0, {}, [], []
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


def take_observations(turn: Turn, due: Due, snapshot: GroupSnapshot, at: int) -> None:
    """Open what the source sees wrong with the group now, and close what it sees no more."""
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


def told_empty(turn: Turn, at: int) -> None:
    """List a group that a poll showed without members and that nothing else is known of."""
    if not turn.group.members and turn.group.pending is None and turn.group.row is None:
        turn.write_row(at, GroupChanged(system=turn.system, state="empty", mode=turn.mode))


def restore(turn: Turn, snapshot: GroupSnapshot, at: int) -> None:
    """Put a group in by what can be read of it in an export: nothing is written, everything goes on.

    A shard takes in the state itself where it came along; this is for exports of other hands and versions.
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
    told = snapshot.assignments
    owners: Owners | None = None
    if told is not None:
        owners = owners_of({name: [key_of(queue, turn.system) for queue in told[name]] for name in told})
    known = known_topics(turn, at)
    if reported:
        known, group.guessed_topics = queues_shown(turn, group.subscribed_topics(), owners, at)
    dealt = ask_strategy(turn, known, snapshot.strategy if reported else None, at)
    group.computed, group.dealt_strategy = dealt.owners, dealt.strategy
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
    describe(member, info)
    return member


def _end(turn: Turn, at: int) -> None:
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
