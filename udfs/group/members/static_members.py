"""Core: static members of Kafka, which rejoin under another member id and keep their assignment. No I/O.

Source: kafka ``GroupMetadata#replaceStaticMember``, KIP-345: the coordinator replaces the old member id by the new one
and keeps the assignment. History is not rewritten: sessions and spans of the old id end.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from udfs.group.state.group import Group, Member
from udfs.group.state.view import GroupView
from udfs.model.events import GroupSnapshot, MemberInfo


def place_of(view: GroupView, member_id: str, instance_id: str | None) -> Member | None:
    """Return the static member that a member with an unknown id replaces."""
    if not view.profile.has_static_members or not instance_id:
        return None
    members = view.group.members.values()
    return next(
        (member for member in members if member.instance_id == instance_id and member.member_id != member_id), None
    )


def returned(group: Group, infos: Sequence[MemberInfo]) -> dict[str, str]:
    """Return the new id of each static member whose old id is missing from a snapshot."""
    shown = {info.member_id for info in infos}
    absent = {m.instance_id: m.member_id for m in group.members.values() if m.instance_id and m.member_id not in shown}
    renamed: dict[str, str] = {}
    for info in infos:
        if info.member_id not in group.members and info.instance_id in absent:
            renamed[absent.pop(info.instance_id)] = info.member_id
    return renamed


def under_present_ids(group: Group, snapshot: GroupSnapshot) -> GroupSnapshot:
    """Return a snapshot with the new ids of static members that were replaced at its time or later."""
    successors: dict[str, str] = {}
    for member_id, departed in group.departed.items():
        if departed.left_reason == "replaced" and snapshot.event_time <= departed.left_at:
            instance = departed.member.instance_id
            present = next(
                (member.member_id for member in group.members.values() if member.instance_id == instance), None
            )
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
    reported = snapshot.assignments
    if reported is not None:
        # If both ids are present, the assignment of the new one counts.
        reported = {
            successors.get(reported_id, reported_id): queues
            for reported_id, queues in reported.items()
            if successors.get(reported_id) not in reported
        }
    leader = snapshot.leader if snapshot.leader is None else successors.get(snapshot.leader, snapshot.leader)
    return msgspec.structs.replace(snapshot, members=tuple(members), assignments=reported, leader=leader)


def ids_at(group: Group, at: int) -> dict[str, str]:
    """Return the former ids of members that were replaced since then.

    For a generation that is not computed yet, members replaced at its own time count, too: they were its members.
    """
    names: dict[str, str] = {}
    is_awaited = group.awaited is not None and group.awaited.since == at
    for replacement in group.replaced:
        if replacement.at > at or (is_awaited and replacement.at == at):
            names[replacement.member_id] = names.get(replacement.former_id, replacement.former_id)
    return names
