"""Core: descriptions of members, field by field: the newest event time that carried a field decides. No I/O."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from udfs.group.context import GroupContext
from udfs.group.state import Member
from udfs.group.view import GroupView
from udfs.model.events import MemberFields, MemberInfo

# No table shows these.
SILENT_FIELDS = ("client_library", "ordered", "owned", "owned_generation", "strategy_settings")
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
# Where a coordinator reports generations, only its snapshots show what a member owns and subscribes to.
_OF_A_GENERATION = ("subscriptions", "owned", "owned_generation")
# Also decides the assignment, but is reported by snapshots of the generation, not by the members.
_ALLOCATING = (*_OF_A_GENERATION, "strategies", "strategy_settings", "instance_id", "rack", "client_library", "ordered")
_FIELDS = (*_SESSION_FIELDS, *SILENT_FIELDS, "strategies", "subscriptions")


def describe(member: Member, told: MemberFields, own: int) -> tuple[set[str], bool]:
    """Set the fields that an event of this time carries, except those that a newer event carried.

    Returns: the fields that changed; whether some were older than the stored ones and were ignored.
    """
    changed: set[str] = set()
    outdated = False
    for name in _FIELDS:
        value = getattr(told, name)
        if value is None:
            continue
        if name == "subscriptions":
            value = distinct(value)
        differs = value != getattr(member, name)
        if own < member.told_at.get(name, own):
            outdated |= differs
            continue
        member.told_at[name] = own
        if differs:
            setattr(member, name, value)
            changed.add(name)
    return changed, outdated


def update_description(turn: GroupContext, member: Member, told: MemberFields, own: int, at: int) -> set[str]:
    """Apply the description in the current event to a member; return which fields changed.

    A changed timeout counts from then on.
    """
    turn.before.note_member(member.member_id)
    changed, outdated = describe(member, told, own)
    turn.outdated |= outdated
    if "session_timeout_ms" in changed and member.by_heartbeats:
        member.timeout_since = at if at > own else None
        turn.watch(member.member_id)
    return changed


def update_session(turn: GroupContext, member: Member, told: MemberFields, own: int, at: int) -> set[str]:
    """Apply a description in a group of reported generations, except for the fields of the next generation."""
    left_out = _OF_A_GENERATION if isinstance(told, MemberInfo) else _ALLOCATING
    others = msgspec.structs.replace(told, **dict.fromkeys(left_out))
    changed = update_description(turn, member, others, own, at)
    if changed - set(SILENT_FIELDS):
        turn.change_session(member, at)
    return changed


def timeout_with(turn: GroupView, member: Member, told: MemberFields, own: int) -> int:
    """Return a member's session timeout once this event's description is applied."""
    value = told.session_timeout_ms
    if value is None or own < member.told_at.get("session_timeout_ms", own):
        return turn.timeout_of(member)
    return value


def describes(told: MemberFields) -> bool:
    """Return whether an event carries a description, not only liveness."""
    return any(getattr(told, name) is not None for name in _FIELDS)


def distinct(topics: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct topics, sorted: their order means nothing."""
    return tuple(sorted(set(topics)))
