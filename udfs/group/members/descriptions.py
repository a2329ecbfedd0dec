"""Core: descriptions of members, field by field: the newest event time that carried a field decides. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Any

import msgspec

from udfs.group.batch.context import GroupContext
from udfs.group.state.group import Member
from udfs.group.state.view import GroupView
from udfs.group.state.writing import assign, entries
from udfs.model.events import MemberFields, MemberInfo
from udfs.model.member_fields import FIELDS, SHOWN, TRAITS
from udfs.strategies.registry import qualified_name

_VALUES = attrgetter(*FIELDS)
# No table shows these fields.
HIDDEN_FIELDS = tuple(name for name in FIELDS if name not in SHOWN)
# With reported generations: the fields that a snapshot does not change, and those that a member's own event does not.
_OF_A_GENERATION = tuple(name for name in FIELDS if TRAITS[name].updated_by == "generation")
_NOT_FROM_MEMBERS = tuple(name for name in FIELDS if TRAITS[name].updated_by != "member")


def set_description(member: Member, reported: MemberFields, own: int) -> tuple[set[str], bool]:
    """Set the fields that an event of this time carries, except those that a newer event carried.

    Returns: the fields that changed; whether some were older than the stored ones and were ignored.
    """
    changed: dict[str, Any] = {}
    times, outdated = entries(member.field_times), False
    for name, value in zip(FIELDS, _VALUES(reported), strict=True):
        if value is None:
            continue
        if name == "subscriptions":
            value = distinct(value)
        differs = value != getattr(member, name)
        if own < times.get(name, own):
            outdated |= differs
            continue
        times[name] = own
        if differs:
            changed[name] = value
    if changed:
        assign(member, **changed)
    return set(changed), outdated


def update_description(
    context: GroupContext, member: Member, reported: MemberFields, own: int, at: int
) -> tuple[set[str], bool]:
    """Apply the description in the current event to a member; return as ``set_description`` does.

    A changed timeout counts from then on.
    """
    context.before.note_member(member.member_id)
    changed, outdated = set_description(member, reported, own)
    if "session_timeout_ms" in changed and member.by_heartbeats:
        assign(member, timeout_since=at if at > own else None)
        context.schedule_expiry(member.member_id)
    return changed, outdated


def of_session(reported: MemberFields) -> MemberFields:
    """Return a description without the fields of the next generation, if a coordinator reports generations."""
    left_out = _OF_A_GENERATION if isinstance(reported, MemberInfo) else _NOT_FROM_MEMBERS
    return msgspec.structs.replace(reported, **dict.fromkeys(left_out))


def update_session(
    context: GroupContext, member: Member, reported: MemberFields, own: int, at: int
) -> tuple[set[str], bool]:
    """Apply a description in a group with reported generations, except for the fields of the next generation."""
    changed, outdated = update_description(context, member, of_session(reported), own, at)
    if changed - set(HIDDEN_FIELDS):
        context.change_session(member, at)
    return changed, outdated


def timeout_with(view: GroupView, member: Member, reported: MemberFields, own: int) -> int:
    """Return a member's session timeout once this event's description is applied."""
    value = reported.session_timeout_ms
    if value is None or own < member.field_times.get("session_timeout_ms", own):
        return view.timeout_of(member)
    return value


def timeout_at(view: GroupView, member: Member, reported: MemberFields, own: int) -> int:
    """Return a member's session timeout as of the time of one of its own events.

    If a newer event has changed it, the value then is unknown: the default is assumed, or the new value if shorter.
    """
    if reported.session_timeout_ms is not None:
        return reported.session_timeout_ms
    timeout = view.timeout_of(member)
    if own < member.field_times.get("session_timeout_ms", own):
        return min(timeout, view.config.session_timeouts_ms[view.system])
    return timeout


def has_description(reported: MemberFields) -> bool:
    """Return whether an event carries a description, not only liveness."""
    return any(value is not None for value in _VALUES(reported))


def distinct(topics: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct topics, sorted, because their order means nothing."""
    return tuple(sorted(set(topics)))


def uses_default_strategy(view: GroupView, member: Member) -> bool:
    """Return whether a member reports the strategy that was assumed for it: Kafka's members vote instead."""
    if view.profile.members_vote or not member.strategies:
        return False
    return qualified_name(member.strategies[0], view.system) == view.profile.default_strategy
