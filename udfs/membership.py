"""Core: who is a member: joins, heartbeats, goodbyes, expiries, polls. No I/O.

In a group of counted generations each of these is a cause of the next rebalance; in one whose generations are
reported they are evidence, which a later generation shows or does not.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from udfs.connections import connection, match_connections, match_departures, replaced
from udfs.events import Departure, GroupSnapshot, Heartbeat, MemberFields, MemberInfo, MemberJoined, MemberLeft
from udfs.facts import Due
from udfs.findings import counted
from udfs.goings import going_of
from udfs.group_state import Departed, Evidence, Member
from udfs.static_members import carry_over, place_of, returned
from udfs.strategies import DEFAULTS, qualified_name
from udfs.turn import Turn, closed

_SILENT_FIELDS = ("client_library", "ordered", "owned", "owned_generation", "strategy_settings")
_SESSION_FIELDS = (
    "client_id",
    "host",
    "instance_id",
    "rack",
    "client_version",
    "language",
    "session_timeout_ms",
    "rebalance_timeout_ms",
)

_FIELDS = (*_SESSION_FIELDS, *_SILENT_FIELDS, "strategies", "subscriptions")


def describe(member: Member, told: MemberFields) -> set[str]:
    """Change the fields that are told and leave the others; answer which of them changed."""
    changed: set[str] = set()
    for name in (*_SESSION_FIELDS, *_SILENT_FIELDS, "strategies"):
        value = getattr(told, name)
        if value is not None and value != getattr(member, name):
            setattr(member, name, value)
            changed.add(name)
    if told.subscriptions is not None:
        topics = distinct(told.subscriptions)
        if topics != member.subscriptions:
            member.subscriptions = topics
            changed.add("subscriptions")
    return changed


def describes(told: MemberFields) -> bool:
    """Answer whether anything is said about a member, but that it is there."""
    return any(getattr(told, name) is not None for name in _FIELDS)


def distinct(topics: Iterable[str]) -> tuple[str, ...]:
    """Answer topics sorted, each once: their order means nothing."""
    return tuple(sorted(set(topics)))


# ---- one event at a time


def meet(turn: Turn, due: Due, event: MemberJoined | Heartbeat, at: int) -> None:
    """Take in a join, or a heartbeat that came as an event of its own."""
    group, own = turn.group, event.event_time
    # Kafka's coordinator makes member ids itself: no two connections have the same.
    host = None if turn.system == "kafka" else event.host
    member_id, name = connection(group, event.member_id, host)
    member = group.members.get(member_id)
    if group.generation is not None:
        _learn(turn, due, event, member)
        return
    if member is None:
        if due.late and _reopen(turn, due, event, member_id, at):
            return
        departed = group.departed.get(member_id)
        if departed is not None and not _may_return(departed, event):
            return
        former = None if due.late else place_of(turn, member_id, event.instance_id)
        if former is not None:
            _take_place(turn, former, member_id, event, at, due)
            return
        _arrive(turn, member_id, name, event, at, own, due)
        return
    if not member.by_heartbeats:
        member.by_heartbeats = True
        turn.touched.append(member_id)
    turn.saw(member_id, own)
    if due.late and own < max(member.joined_at, group.last_snapshot_at or own):
        return
    _describe_anew(turn, member, event, at, due)
    if group.handed_over and isinstance(event, MemberJoined) and event.owned is not None and not due.late:
        # It gave its queues back, and joins again for the second generation of a cooperative move.
        detail = counted(len(group.handed_over), "queue") + " given on"
        turn.cause(at, "cooperative_follow_up", event_id=due.event_id, detail=detail)


def beat(turn: Turn, member_id: str, at: int, own: int) -> None:
    """Take in a heartbeat that says only "still here", of somebody who may not be known."""
    group = turn.group
    member = group.members.get(member_id)
    if group.generation is not None:
        return
    if member is None:
        _arrive(turn, member_id, member_id, None, at, own, None)
    elif not member.by_heartbeats:
        member.by_heartbeats = True
        turn.seen[member_id] = own
        turn.touched.append(member_id)


def leave(turn: Turn, due: Due, event: MemberLeft, at: int) -> None:
    """Take in a goodbye."""
    group, member_id = turn.group, event.member_id
    member = group.members.get(member_id)
    if member is None:
        return
    if group.generation is not None:
        turn.heeded = True
        turn.learn(Evidence("member_left", event.event_time, member_id, None, due.event_id))
        return
    if due.late and _is_outlived(turn, member, event.event_time):
        return
    late_cause(turn, due, at)
    turn.cause(at, "member_left", member_id, event_id=due.event_id, detail=event.reason)
    turn.close_session(member_id, at, at, "left")


def expire(turn: Turn, member_id: str, deadline: int) -> None:
    """End the session of a member that was silent for too long."""
    group = turn.group
    if group.generation is not None:
        turn.applied(deadline)
        turn.learn(Evidence("session_expired", deadline, member_id))
        group.members[member_id].by_heartbeats = False
        del turn.seen[member_id]
        return
    turn.cause(deadline, "session_expired", member_id)
    turn.close_session(member_id, deadline, deadline, "expired")


def poll(turn: Turn, due: Due, snapshot: GroupSnapshot, at: int) -> None:
    """Take in the whole group as a poll saw it: who is not in it is gone."""
    group, own, event_id = turn.group, snapshot.event_time, due.event_id
    if due.late and own < (group.last_snapshot_at or own):
        return
    late_told = False

    def end(member: Member, departure: Departure | None) -> None:
        nonlocal late_told
        if due.late and _is_outlived(turn, member, own):
            return
        if not late_told:
            late_cause(turn, due, at)
            late_told = True
        going = going_of(departure, at, event_id)
        turn.cause(at, going.kind, member.member_id, event_id=event_id, detail=going.detail)
        turn.close_session(member.member_id, at, going.at, going.reason)

    renamed = returned(group, snapshot.members) if turn.system == "kafka" else {}
    carry_over(turn, renamed, at)
    for former_id, member_id in sorted(renamed.items()):
        group.members[member_id].by_heartbeats = False
        turn.change_session(group.members[member_id], at, former=former_id)
    for member_id, departure in sorted(replaced(group, snapshot).items()):
        end(group.members[member_id], departure)
    matched = match_connections(group, snapshot.members)
    gone = [group.members[member_id] for member_id in sorted(group.members.keys() - matched.keys())]
    departures = match_departures(gone, snapshot.departures or ())
    for member in gone:
        end(member, departures.get(member.member_id))
    for member_id, info in matched.items():
        known = group.members.get(member_id)
        if known is not None:
            _describe_anew(turn, known, info, at, due)
            continue
        departed = group.departed.get(member_id)
        if due.late and departed is not None and departed.left_at > own:
            continue
        if not late_told:
            late_cause(turn, due, at)
            late_told = True
        arrive_by_snapshot(turn, member_id, info, at)
        turn.cause(at, "member_joined", member_id, event_id=event_id)
    if snapshot.leader is not None:
        group.leader = snapshot.leader
    if snapshot.strategy:
        named = qualified_name(snapshot.strategy, turn.system)
        before = group.reported_strategy or group.dealt_strategy
        group.reported_strategy = snapshot.strategy
        if group.members_decided and group.members and before and qualified_name(before, turn.system) != named:
            turn.cause(at, "strategy_changed", event_id=event_id, detail=named)


def late_cause(turn: Turn, due: Due, at: int) -> None:
    """Say beside the natural cause that its evidence came late, and when it was."""
    if due.late:
        own = due.event.event_time
        detail = f"told late: happened at {own}, applied at {at}"
        turn.cause(at, "late_evidence", getattr(due.event, "member_id", None), event_id=due.event_id, detail=detail)


def arrive_by_snapshot(turn: Turn, member_id: str, info: MemberInfo, at: int) -> Member:
    """Begin the session of a member that a snapshot shows."""
    departed = turn.group.departed.get(member_id)
    if departed is not None:
        member = msgspec.structs.replace(departed.member, by_heartbeats=False)
    else:
        member = Member(member_id=member_id, name=info.member_id, joined_at=at, by_heartbeats=False)
    describe(member, info)
    turn.open_session(member, at)
    return member


# ---- inside


def _take_place(turn: Turn, former: Member, member_id: str, event: MemberJoined | Heartbeat, at: int, due: Due) -> None:
    """Take in a static member that came back under a new id: no rebalance, unless it wants something else now."""
    former_id = former.member_id
    carry_over(turn, {former_id: member_id}, at)
    former.by_heartbeats = True
    turn.seen[member_id] = event.event_time
    turn.touched.append(member_id)
    turn.change_session(former, at, former=former_id)
    _describe_anew(turn, former, event, at, due)


def _arrive(
    turn: Turn, member_id: str, name: str, event: MemberFields | None, at: int, own: int, due: Due | None
) -> None:
    group = turn.group
    departed = group.departed.get(member_id)
    if departed is not None:
        member = msgspec.structs.replace(departed.member, by_heartbeats=True)
    else:
        member = Member(member_id=member_id, name=name, joined_at=at)
    if event is not None:
        describe(member, event)
    if due is not None and due.late and own + turn.timeout_of(member) < at:
        # It came and went before anything can be done about it: its session is all that is left to tell.
        if departed is None:
            member.joined_at = own
            turn.heeded = True
            _tell_past_session(turn, member, own, at)
        return
    if due is not None:
        late_cause(turn, due, at)
    turn.cause(at, "member_joined", member_id, event_id=due.event_id if due else None)
    turn.seen[member_id] = own
    turn.open_session(member, at)


def _tell_past_session(turn: Turn, member: Member, own: int, at: int) -> None:
    turn.open_session(member, own)
    del turn.group.members[member.member_id]
    turn.touched.remove(member.member_id)
    left_at = own + turn.timeout_of(member)
    turn.write(at, closed(member, left_at, "expired", own))
    turn.remember(Departed(member=member, left_at=left_at, left_reason="expired", last_heartbeat_at=own))


def _reopen(turn: Turn, due: Due, event: MemberJoined | Heartbeat, member_id: str, at: int) -> bool:
    """Take in a late sign of life of a member whose session had expired; answer whether it proves that wrong."""
    departed, own = turn.group.departed.get(member_id), event.event_time
    if (
        departed is None
        or departed.left_reason != "expired"
        or not departed.member.joined_at <= own <= departed.left_at
    ):
        return False
    if departed.last_heartbeat_at is not None and own <= departed.last_heartbeat_at:
        return True  # known when it expired: proves nothing
    member, timeout = departed.member, turn.timeout_of(departed.member)
    last = own
    for time in _signs_of_life(turn, event, member_id):
        if last < time <= last + timeout:
            last = time
    turn.heeded = True
    departed.last_heartbeat_at = last
    if last + timeout < at:
        departed.left_at = last + timeout
        turn.write(at, closed(member, departed.left_at, "expired", last))
        return True
    late_cause(turn, due, at)
    turn.cause(at, "member_joined", member_id, event_id=due.event_id, detail="its session had not expired")
    turn.seen[member_id] = last
    turn.reopen_session(departed, at)
    _describe_anew(turn, departed.member, event, at, due)
    return True


def _signs_of_life(turn: Turn, event: MemberJoined | Heartbeat, member_id: str) -> list[int]:
    """Answer when the member of this event showed itself in this batch, with words or without."""
    times = set(turn.facts.heartbeats.get(member_id, ()))
    for due in turn.facts.events:
        other = due.event
        if not isinstance(other, Heartbeat | MemberJoined) or other.member_id != event.member_id:
            continue
        if other.host in (None, event.host):
            times.add(other.event_time)
    return sorted(times)


def _may_return(departed: Departed, event: MemberJoined | Heartbeat) -> bool:
    """Judge whether an event of a member that went is younger than its going."""
    if isinstance(event, MemberJoined):
        return event.event_time >= departed.left_at
    return event.event_time > departed.left_at


def _is_outlived(turn: Turn, member: Member, own: int) -> bool:
    """Judge whether a member has shown itself after the time of some late evidence against it."""
    if member.joined_at > own:
        return True
    if member.by_heartbeats:
        return turn.last_seen(member.member_id, turn.facts.clock) > own
    return (turn.group.last_snapshot_at or own) > own


def _describe_anew(turn: Turn, member: Member, told: MemberFields, at: int, due: Due) -> None:
    event_id = due.event_id
    was_lists = (member.subscriptions, member.strategies)
    changed = describe(member, told)
    if not changed:
        return
    if "session_timeout_ms" in changed and member.by_heartbeats:
        turn.touched.append(member.member_id)
    if changed - set(_SILENT_FIELDS):
        turn.change_session(member, at)
    if was_lists[1] is None and _deals_by_default(turn, member):
        changed.discard("strategies")  # as was assumed
    if changed & {"subscriptions", "strategies", "strategy_settings"}:
        late_cause(turn, due, at)
    first_told = was_lists == (None, None) and "subscriptions" in changed
    if "subscriptions" in changed:
        turn.cause(at, "subscription_changed", member.member_id, event_id=event_id)
    if "strategies" in changed and not first_told:
        turn.cause(at, "strategy_changed", member.member_id, event_id=event_id)
    if "strategy_settings" in changed and not first_told:
        turn.cause(at, "settings_changed", member.member_id, event_id=event_id)


def _deals_by_default(turn: Turn, member: Member) -> bool:
    """Judge whether a member names the strategy by which it was taken to deal so far: Kafka's members vote instead."""
    if turn.system == "kafka" or not member.strategies:
        return False
    return qualified_name(member.strategies[0], turn.system) == DEFAULTS[turn.system]


def _learn(turn: Turn, due: Due, event: MemberJoined | Heartbeat, member: Member | None) -> None:
    """Take in what a member says of itself while a coordinator reports generations."""
    turn.heeded = True
    if member is None:
        turn.learn(Evidence("member_joined", event.event_time, event.member_id, None, due.event_id))
        return
    if not member.by_heartbeats:
        member.by_heartbeats = True
        turn.touched.append(member.member_id)
    turn.saw(member.member_id, event.event_time)
    turn.group.evidence = [one for one in turn.group.evidence if not _is_taken_back(one, event)]
    if event.subscriptions is not None and distinct(event.subscriptions) != member.subscriptions:
        turn.learn(Evidence("subscription_changed", event.event_time, member.member_id, None, due.event_id))


def _is_taken_back(evidence: Evidence, event: MemberJoined | Heartbeat) -> bool:
    """Judge whether a member that had gone has shown itself since."""
    gone = evidence.kind in ("member_left", "session_expired") and evidence.member_id == event.member_id
    return gone and evidence.time < event.event_time
