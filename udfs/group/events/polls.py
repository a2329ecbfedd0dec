"""Core: polls of a whole group whose generations the monitor counts: members present and departures. No I/O."""

from __future__ import annotations

from udfs.group.batch.context import GroupContext
from udfs.group.decision.commit_spans import replace_members
from udfs.group.events.membership import apply_description, is_overtaken, late_cause
from udfs.group.members.client_ids import match_connections, match_departures, replaced
from udfs.group.members.departure_causes import departure_cause
from udfs.group.members.descriptions import set_description
from udfs.group.members.static_members import returned
from udfs.group.state.group import Member
from udfs.model.events import Departure, GroupSnapshot, MemberInfo
from udfs.model.group_api import DueEvent
from udfs.strategies.registry import qualified_name


def on_snapshot(context: GroupContext, due: DueEvent, snapshot: GroupSnapshot, at: int) -> bool:
    """Apply a poll of the whole group; a member that is missing from it has departed.

    Returns: whether some of it is older than the current state.
    """
    group, own, event_id = context.group, snapshot.event_time, due.event_id
    if due.late and own < (group.last_snapshot_at or own):
        return _take_older_poll(context, due, snapshot, at)
    outdated = False

    def end(member: Member, departure: Departure | None) -> None:
        if is_overtaken(context, due, member, own):
            return
        late_cause(context, due, at)  # several are one
        if departure is not None:
            context.before.exempt.add(member.member_id)
        cause = departure_cause(departure, at, event_id)
        context.cause(at, cause.kind, member.member_id, event_id=event_id, detail=cause.detail)
        context.close_session(member.member_id, at, cause.at, cause.reason, own if due.late else None)

    renamed = returned(group, snapshot.members) if context.profile.has_static_members else {}
    replace_members(context, renamed, at, decided_at=at)
    for former_id, member_id in sorted(renamed.items()):
        context.open_session(group.members[member_id], at, former=former_id, own=own)
    for member_id, departure in sorted(replaced(group, snapshot).items()):
        end(group.members[member_id], departure)
    matched = match_connections(group, snapshot.members)
    departed_members = [group.members[member_id] for member_id in sorted(group.members.keys() - matched.keys())]
    departures = match_departures(departed_members, snapshot.departures or ())
    for member in departed_members:
        end(member, departures.get(member.member_id))
    for member_id, info in matched.items():
        present = group.members.get(member_id)
        if present is not None:
            context.show_alive(present, own)
            outdated |= apply_description(context, present, info, at, due).outdated
            continue
        departed = group.departed.get(member_id)
        if departed is not None and departed.over_at > own:
            continue
        late_cause(context, due, at)
        outdated |= arrive_by_snapshot(context, member_id, info, own, at)
        context.cause(at, "member_joined", member_id, event_id=event_id)
    if snapshot.strategy:
        context.note_settings(at)
    before = context.polled_strategy()
    context.note_poll(snapshot.leader, snapshot.strategy)
    if snapshot.strategy:
        named = qualified_name(snapshot.strategy, context.system)
        if group.members_decided and group.members and before and before != named:
            context.cause(at, "strategy_changed", event_id=event_id, detail=named)
    return outdated


def arrive_by_snapshot(
    context: GroupContext, member_id: str, info: MemberInfo, own: int, at: int, *, name: str | None = None
) -> bool:
    """Begin the session of a member that a snapshot shows; return whether part of its description is outdated.

    Args:
        name: The client's own id; None for the id that it had, or else the snapshot's.
    """
    departed = context.group.departed.get(member_id)
    if departed is not None:
        member = departed.member.copied(by_heartbeats=False, name=name)
    else:
        member = Member(
            member_id=member_id, name=info.member_id if name is None else name, joined_at=at, by_heartbeats=False
        )
    _, outdated = set_description(member, info, own)
    context.open_session(member, at, own=own)
    return outdated


def _take_older_poll(context: GroupContext, due: DueEvent, snapshot: GroupSnapshot, at: int) -> bool:
    """Apply an outdated poll: only fields of members that newer polls did not carry. Return as ``on_snapshot`` does."""
    outdated = False
    for member_id, info in match_connections(context.group, snapshot.members).items():
        member = context.group.members.get(member_id)
        if member is not None:
            outdated |= apply_description(context, member, info, at, due).outdated
    return outdated
