"""Core: static members of Kafka, who come back under another member id and go on where they were. No I/O.

Source: kafka ``GroupMetadata#replaceStaticMember``, KIP-345: the coordinator puts the new member id in the place of
the old one, and who holds what stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from udfs.events import MemberInfo
from udfs.group_state import Group, Member, Owners
from udfs.turn import Turn


def place_of(turn: Turn, member_id: str, instance_id: str | None) -> Member | None:
    """Answer the static member whose place somebody takes who is not known yet."""
    if turn.system != "kafka" or not instance_id:
        return None
    members = turn.group.members.values()
    return next((one for one in members if one.instance_id == instance_id and one.member_id != member_id), None)


def returned(group: Group, infos: Sequence[MemberInfo]) -> dict[str, str]:
    """Answer under which id each static member came back that a snapshot shows no more under its old one."""
    shown = {info.member_id for info in infos}
    gone = {m.instance_id: m.member_id for m in group.members.values() if m.instance_id and m.member_id not in shown}
    renamed: dict[str, str] = {}
    for info in infos:
        if info.member_id not in group.members and info.instance_id in gone:
            renamed[gone.pop(info.instance_id)] = info.member_id
    return renamed


def carry_over(turn: Turn, renamed: dict[str, str], at: int) -> None:
    """Let sessions and spans go on under new ids; what else is new of these members is for the caller to tell."""
    group = turn.group
    names = {member_id: renamed.get(member_id, member_id) for member_id in group.members}
    group.members = {names[member_id]: member for member_id, member in group.members.items()}
    for former_id, member_id in renamed.items():
        member = group.members[member_id]
        member.member_id = member.name = member_id
        turn.seen.pop(former_id, None)
        turn.departed_now.append((former_id, at))
        group.departed.pop(member_id, None)
    group.computed = _renamed(group.computed, renamed)
    group.reported = _renamed(group.reported, renamed)
    group.reporters = sorted(renamed.get(one, one) for one in group.reporters)


def _renamed(owners: Owners, renamed: dict[str, str]) -> Owners:
    return {queue: tuple(sorted(renamed.get(one, one) for one in holders)) for queue, holders in owners.items()}
