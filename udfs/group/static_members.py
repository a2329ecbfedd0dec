"""Core: static members of Kafka, which rejoin under another member id and keep their assignment. No I/O.

Source: kafka ``GroupMetadata#replaceStaticMember``, KIP-345: the coordinator replaces the old member id by the new
one and keeps the assignment. History is not rewritten: sessions and spans of the old id end.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from udfs.group.context import GroupContext, closed
from udfs.group.state import MAX_REPLACEMENTS, Departed, Group, Member, Owners, Replacement
from udfs.model.events import GroupSnapshot, MemberInfo
from udfs.model.journal import MemberReplaced


def place_of(turn: GroupContext, member_id: str, instance_id: str | None) -> Member | None:
    """Return the static member that is replaced by a member with an unknown id."""
    if turn.system != "kafka" or not instance_id:
        return None
    members = turn.group.members.values()
    return next((one for one in members if one.instance_id == instance_id and one.member_id != member_id), None)


def returned(group: Group, infos: Sequence[MemberInfo]) -> dict[str, str]:
    """Return the new id of each static member whose old id is missing in a snapshot."""
    shown = {info.member_id for info in infos}
    gone = {m.instance_id: m.member_id for m in group.members.values() if m.instance_id and m.member_id not in shown}
    renamed: dict[str, str] = {}
    for info in infos:
        if info.member_id not in group.members and info.instance_id in gone:
            renamed[gone.pop(info.instance_id)] = info.member_id
    return renamed


def under_present_ids(group: Group, snapshot: GroupSnapshot) -> GroupSnapshot:
    """Return a snapshot with the new ids of static members that were replaced at its time or later."""
    successors: dict[str, str] = {}
    for member_id, departed in group.departed.items():
        if departed.left_reason == "replaced" and snapshot.event_time <= departed.left_at:
            instance = departed.member.instance_id
            present = next((one.member_id for one in group.members.values() if one.instance_id == instance), None)
            if present is not None:
                successors[member_id] = present
    if not any(info.member_id in successors for info in snapshot.members):
        return snapshot
    shown = {info.member_id for info in snapshot.members}
    members: list[MemberInfo] = []
    for info in snapshot.members:
        present = successors.get(info.member_id)
        if present is None:
            members.append(info)
        elif present not in shown:
            shown.add(present)
            members.append(msgspec.structs.replace(info, member_id=present))
    told = snapshot.assignments
    if told is not None:
        # If both ids are present, the assignment of the new one counts.
        told = {successors.get(one, one): queues for one, queues in told.items() if successors.get(one) not in told}
    return msgspec.structs.replace(snapshot, members=tuple(members), assignments=told)


def replace_members(turn: GroupContext, renamed: dict[str, str], at: int) -> None:
    """End the sessions of old ids and replace them by the new ids; the caller opens the new sessions."""
    group = turn.group
    names = {member_id: renamed.get(member_id, member_id) for member_id in group.members}
    group.members = {names[member_id]: member for member_id, member in group.members.items()}
    for former_id, member_id in sorted(renamed.items()):
        if former_id in turn.before and turn.before[former_id] is None and former_id not in turn.exempt:
            turn.rename_joiner(former_id, member_id)
        else:
            turn.exempt |= {former_id, member_id}
        member = group.members[member_id]
        last = turn.last_heartbeat_or_none(former_id, at)
        turn.seen.pop(former_id, None)
        group.last_heartbeats.pop(former_id, None)
        left_at = max(at, member.joined_at)
        turn.write(at, closed(member, left_at, "replaced", last))
        former = msgspec.structs.replace(member, told_at=dict(member.told_at))
        turn.remember(Departed(member=former, left_at=left_at, left_reason="replaced", last_heartbeat_at=last))
        turn.departed_now.append((former_id, at))
        member.member_id = member.name = member_id
        group.replaced = [
            *group.replaced,
            Replacement(former_id, member_id, member.instance_id, left_at, written=False),
        ][-MAX_REPLACEMENTS:]
    group.computed = _renamed(group.computed, renamed)
    group.reported = _renamed(group.reported, renamed)
    group.reporters = sorted(renamed.get(one, one) for one in group.reporters)
    if group.leader is not None:
        group.leader = renamed.get(group.leader, group.leader)
    if group.pending is None:
        split_spans(turn, None)
    elif group.pending.told is not None:
        group.pending.told = list(_renamed(dict(group.pending.told), renamed).items())
    if group.pending is None and group.awaited is None:
        group.replaced = []


def split_spans(turn: GroupContext, until: int | None) -> None:
    """Split the open spans of static members that were replaced up to a time; None: of all."""
    for one in turn.group.replaced:
        if not one.written and (until is None or one.at <= until):
            one.written = True
            split_span_of(turn, one)


def overtake_awaited(turn: GroupContext) -> None:
    """Forget what the current generation still needs: another one takes its place, under the present ids."""
    split_spans(turn, None)
    turn.group.awaited, turn.group.replaced = None, []


def split_span_of(turn: GroupContext, one: Replacement) -> None:
    """Split the open spans of one static member that was replaced."""
    body = MemberReplaced(
        former_member_id=one.former_id, member_id=one.member_id, instance_id=one.instance_id, replaced_at=one.at
    )
    turn.write(one.at, body)


def ids_at(group: Group, at: int) -> dict[str, str]:
    """Return the former ids of members that were replaced since then.

    For a generation that is not computed yet, including those replaced at its own time: they were its members.
    """
    names: dict[str, str] = {}
    is_awaited = group.awaited is not None and group.awaited.since == at
    for one in group.replaced:
        if one.at > at or (is_awaited and one.at == at):
            names[one.member_id] = names.get(one.former_id, one.former_id)
    return names


def _renamed(owners: Owners, renamed: dict[str, str]) -> Owners:
    return {queue: tuple(sorted(renamed.get(one, one) for one in holders)) for queue, holders in owners.items()}
