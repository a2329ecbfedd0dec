"""Effects of an event that is older than its group: it applies at the clock's time before its batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.model.member import TIMEOUTS, Member, is_bare
from tests.model.rows import BALANCE, REBALANCE
from tests.model.static_members import former_of, members_of, replace, replace_absent, under_present_ids
from tests.model.times import Event
from udfs.strategies.registry import qualified_name

if TYPE_CHECKING:
    from tests.model.group import Group, Trigger
    from tests.model.reported import ReportedGroup


def take_late(group: Group, at: int, event: Event, others: list[Event]) -> None:
    """Apply an event to a group of counted generations, and list it unless it only repeats another.

    Args:
        at: The clock before the batch. others: The other events of the group in the batch.
    """
    before, settings = group.fields(), group.shared()
    departures: dict[str, str] = {}
    name, own = event.get("member_id", ""), event["event_time"]
    members_before, is_described, is_over = len(before), False, False
    triggers: list[Trigger] = []
    group.beats, group.renamed = set(), {}
    match event["type"]:
        case "member_joined" | "heartbeat" if name in group.members:
            member = group.members[name]
            former = group.taken_over(member, event)
            if former is not None and not _is_alive_after(group, former, own, others):
                departures[former] = group.depart(former, at, "replaced", own)
            begins = member.lives_by != "heartbeats" and _is_of_session(group, name, event)
            member.last = own if begins else max(member.last, own)
            is_described = group.describe(
                member, event | {"owned": None}, own
            )  # its queues then prove nothing about now
            if begins:
                member.lives_by, member.not_before = "heartbeats", at if is_described else group.last_applied or 0
        case "member_joined" | "heartbeat":
            former = Member(own, "heartbeats", dict(group.departed.get(name, {}))).fields()
            is_described = _take_absent(group, at, name, event, others, departures)
            if name in group.members and group.members[name].joined_at < at:
                # The session goes on: a new description is a change within it, and another cause.
                triggers.append(("member_joined", name, None))
                before[name] = former
                group.members[name].described.pop("owned", None)
        case "member_left" if name in group.members:
            member = group.members[name]
            if not _is_alive_after(group, name, own, others):
                departures[name] = group.depart(name, at, "left", own)
        case "member_left":
            group.note_absence(event)
        case "assignment_reported":
            group.take_report(at, event, is_listed=True)
            group.compare_new(at)
        case "group_snapshot":
            departures = _take_poll(group, at, event, others)
        case "group_settings":
            group.set_settings(event)
        case "group_deleted":
            is_over = group.shown_at <= own  # otherwise later events belong to another group
            ended = [
                member_id
                for member_id in sorted(group.members)
                if is_over or not _is_alive_after(group, member_id, own, others)
            ]
            departures = {member_id: group.depart(member_id, at, "gone", own) for member_id in ended}
    if not is_over:
        group.note_sign(event)
    for member_id in before.keys() & group.members.keys():
        if group.fields()[member_id].get("session_timeout_ms") != before[member_id].get("session_timeout_ms"):
            group.members[member_id].not_before = at
    if event["type"] != "heartbeat" or is_described:
        group.tables.late[f"{group.cluster}/{group.name}"] += 1
    triggers += group.differences(before, settings, departures, set())
    group.end_sessions(departures)
    if triggers:
        _, members_before, causes = group.late or (at, members_before, [])
        group.late = at, members_before, [*causes, ("late_evidence", name or None, None), *triggers]
        group.last_applied = at
    if is_over:
        group.decide(at, {}, group.shared(), {}, set())
        group.end(at, own)
    group.list_if_empty()


def _is_of_session(group: Group, name: str, event: Event) -> bool:
    """Return whether a heartbeat belongs to the session in a snapshot, which may have begun before the snapshot."""
    member, own = group.members[name], event["event_time"]
    then = Member(own, "heartbeats", dict(member.described))
    group.describe(then, event, own)
    timeout, since = member.described.get("session_timeout_ms", (None, 0))
    if event.get("session_timeout_ms") is not None:
        at_its_time = event["session_timeout_ms"]
    else:  # a newer event changed it, so this state was never reported
        at_its_time = TIMEOUTS[group.system] if timeout is None or since > own else timeout
    return own > group.returned_after.get(name, -1) and own + at_its_time >= member.began_at


def _is_alive_after(group: Group, name: str, own: int, others: list[Event]) -> bool:
    """Return whether events show that a member joined, or was there, after a late event."""
    member = group.members[name]
    shown_at = member.last if member.lives_by == "heartbeats" else group.polled_at
    return (
        max([member.began_at, shown_at, *(shown["event_time"] for shown in others if shows_itself(shown, name))]) > own
    )


def _take_poll(group: Group, at: int, event: Event, others: list[Event]) -> dict[str, str]:
    """Apply a late poll: only the fields if newer polls overtook it; return who departed, and how."""
    event = under_present_ids(group, event)
    shown, own = members_of(event), event["event_time"]
    departures: dict[str, str] = {}
    is_newest = own >= group.polled_at
    if is_newest:
        replace_absent(group, at, shown, own=own)
        for name in sorted(group.members.keys() - shown.keys()):
            if not _is_alive_after(group, name, own, others):
                departures[name] = group.depart(name, at, "absent_from_snapshot", own)
        for name in shown.keys() - group.members.keys():
            if group.over_at.get(name, own) <= own:
                group.join_polled(at, name, own)
        group.is_polled, group.polled_at = True, own
        group.last_applied = at
    for name in shown.keys() & group.members.keys():
        if is_newest:
            group.show_alive(name, own)
        group.describe(group.members[name], shown[name], own)
    return departures


def with_late(group: Group, triggers: list[Trigger], members_before: int) -> tuple[list[Trigger], int]:
    """Return the causes of this time and the members before it, those of a late event included."""
    if group.late is None:
        return triggers, members_before
    (_, members_before, others), group.late = group.late, None
    return sorted({*triggers, *others}, key=repr), members_before


def _take_absent(
    group: Group, at: int, name: str, event: Event, others: list[Event], departures: dict[str, str]
) -> bool:
    """Take in a late heartbeat of an id that is not a member; return whether that changes anything."""
    own = event["event_time"]
    row = _last_session(group, name)
    then = Member(own, "heartbeats", dict(group.departed.get(name, {})))
    began_at = group.ended.get(name, ("", 0))[1]
    if row is not None and row["left_reason"] == "expired" and began_at <= own <= row["left_at"]:
        is_reported = group.describe(then, event, own)
        last = max(own, row["last_heartbeat_at"])
        left_at = max(last + group.timeout(then), row["left_at"])
        group.over_at[name] = min(last + group.timeout(then), left_at)
        group.departed[name] = then.described
        if (last, left_at) == (row["last_heartbeat_at"], row["left_at"]):
            return is_reported
        row["last_heartbeat_at"] = last
        if left_at < at:
            row["left_at"] = group.departed_at[name] = left_at
            return True
        group.tables.members.remove(row)
        member = group.join(at, name, "heartbeats")
        member.joined_at, member.began_at, member.last = row["joined_at"], began_at, last
        return True
    over_at = group.over_at.get(name)
    is_replaced = name in group.replaced
    if over_at is not None and own - (event["type"] == "heartbeat" or is_replaced) < over_at:
        former = group.taken_over(then, event)
        if former is not None and not _is_alive_after(group, former, own, others):
            departures[former] = group.depart(former, at, "replaced", own)
        is_reported = group.describe(then, event, own)
        group.departed[name], group.had_members = then.described, own > group.deleted_at
        return is_reported or former in departures
    instance_id = event.get("instance_id") or (then.fields().get("instance_id") if is_replaced else None)
    former = former_of(group, instance_id, group.members)
    if former is not None and not _is_alive_after(group, former, own, others):
        replace(group, at, former, name, "heartbeats", own)
        member = group.members[name]
        member.last, timeout = own, group.timeout(member)
        group.describe(member, event | {"owned": None}, own)
        if group.timeout(member) != timeout:
            member.not_before = at
        return True
    group.describe(then, event, own)
    if own + group.timeout(then) < at:
        left_at, before = own + group.timeout(then), group.departed_at.get(name, own)
        if left_at <= before:
            return True
        then.joined_at = max(own, before)
        ended = {"left_at": left_at, "left_reason": "expired", "last_heartbeat_at": own}
        group.tables.members.append(group.session(name, then) | ended)
        group.departed[name], group.departed_at[name], group.over_at[name] = then.described, left_at, left_at
        group.ended[name] = ("expired", then.joined_at)
        return True
    then.joined_at = at
    group.departed.pop(name, None)
    group.members[name] = then
    return True


def _last_session(group: Group, name: str) -> dict[str, Any] | None:
    mine = (group.cluster, group.name, name)
    rows = [
        session
        for session in group.tables.members
        if (session["cluster"], session["group_id"], session["member_id"]) == mine
    ]
    return rows[-1] if rows and rows[-1]["left_at"] == group.departed_at.get(name) else None


def shows_itself(event: Event, name: str | None) -> bool:
    """Return whether an event shows that a member is there."""
    return event["type"] in ("member_joined", "heartbeat") and event.get("member_id") == name and bool(name)


def take_late_of_reported(group: ReportedGroup, at: int, event: Event) -> None:
    """Apply events that are older than the group, at the clock's time; overtaken generations are only listed."""
    if event["type"] == "heartbeat" and is_bare(event) and not _is_evidence(group, at, event):
        return
    group.tables.late[f"{group.cluster}/{group.name}"] += 1
    name, own, group.beats = event.get("member_id"), event["event_time"], set()
    if event["type"] == "assignment_reported":
        group.take_report(at, event, is_listed=True)
        group.compare_new(at)
    elif event["type"] == "member_left" and name in group.members and own >= group.members[name].last:
        group.members[name].leave_event_at = max(
            own, group.members[name].leave_event_at or own
        )  # the newest one counts
    elif event["type"] == "group_deleted" and own >= max(group.since, group.last_snapshot_at):
        group.delete(at, own)
    elif event["type"] == "group_snapshot" and event["generation"] < (group.reported_generation or 0):
        group.last_applied = max(at, group.last_applied or 0)
        if event["generation"]:
            group.tables.rebalances.append(_overtaken(group, at, event))
    elif event["type"] == "group_snapshot":
        group.on_generation(at, event, [], is_late=True)


def _is_evidence(group: ReportedGroup, at: int, event: Event) -> bool:
    """Take in a late bare heartbeat; return whether it changes a member, or comes from an id that is not one."""
    name, own = event["member_id"], event["event_time"]
    member = group.members.get(name)
    if member is None:
        is_new = own > group.over_at.get(name, 0) and (name, own) not in group.strangers
        group.strangers.add((name, own))
        return is_new
    was_silent = member.lives_by != "heartbeats" or member.last + group.timeout(member) < at
    if own < member.joined_at or (member.lives_by == "heartbeats" and own <= member.last):
        return False
    member.last, member.lives_by = max(own, member.last), "heartbeats"
    return was_silent


def _overtaken(group: ReportedGroup, at: int, event: Event) -> dict[str, Any]:
    """Return the row of a generation that newer ones overtook: its changes are not known."""
    members, strategy = len(event["members"]), event.get("strategy")
    queues = len(
        {(queue["topic"], queue["queue_id"]) for held in (event.get("assignments") or {}).values() for queue in held}
    )
    return dict.fromkeys(REBALANCE) | {
        "cluster": group.cluster, "group_id": group.name, "event_time": at, "generation": event["generation"],
        "generation_source": "reported", "trigger": "late_evidence", "triggers": [("late_evidence", None, None)],
        "strategy": strategy and qualified_name(strategy, group.system), "leader": event.get("leader"),
        "mode": group.shared()["mode"], "status": "completed", "members_before": members, "members_after": members,
        "queues_before": queues, "queues_after": queues, "queues_kept": queues,
        **dict.fromkeys(("queues_assigned", "queues_revoked", "queues_moved", *BALANCE), 0),
    }  # fmt: skip
