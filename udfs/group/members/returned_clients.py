"""Core: clients that departed and returned, under another member id or their own. No I/O.

A client is identified by its client id and host, a static member also by its instance id. Many processes may share all
of these, so there is no note if more than one member, or former member, matches.

============================  ======================================================================================
the client that is back       what that shows
============================  ======================================================================================
under its own member id       the same process: Kafka's newer protocols let a client make its id when it starts
remembers a generation        the same process: its assignor (sticky, cooperative-sticky) reports the last one it had
anything else                 it hung, or its process was started again: the coordinator gave it a new id either way
============================  ======================================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from udfs.group.members.departure_causes import DepartureCause
from udfs.group.state.group import Departed, Group
from udfs.group.state.view import GroupView
from udfs.model.events import MemberInfo
from udfs.model.journal import LeftReason
from udfs.model.member_fields import MemberFields

_Client = tuple[str, str | None, str | None]
_DEPARTED: dict[LeftReason, str] = {"left": "left", "expired": "expired"}


def return_notes(
    view: GroupView,
    infos: Mapping[str, MemberInfo],
    departures: Mapping[str, DepartureCause],
    at: int,
) -> dict[str, str]:
    """Return a sentence for each member whose client departed and returned with a generation.

    Args:
        infos: The generation's members. departures: How members of only the previous generation departed.
    """
    group = view.group
    joined = [member_id for member_id in infos if member_id not in group.members]
    if not joined:
        return {}
    clients = _unique(infos)
    lacking = _unique({member_id: group.members[member_id] for member_id in departures})
    notes = {
        former: _successor_note(departures[former], clients[client], group.preparing_since)
        for client, former in lacking.items()
        if clients.get(client) in joined
    }
    sessions = _former_sessions(group, {*infos, *departures})
    client_of = {member_id: client for client, member_id in clients.items() if client not in lacking}
    for member_id in joined:
        before = group.departed.get(member_id)
        is_own = before is not None
        if before is None and member_id in client_of:
            before = sessions.get(client_of[member_id])
        if before is not None:
            notes[member_id] = _back_note(before, infos[member_id], at, is_own=is_own)
    return notes


def _unique(members: Mapping[str, MemberFields]) -> dict[_Client, str]:
    """Return the member of each client, without shared clients and members without a client id."""
    found: dict[_Client, list[str]] = {}
    for member_id, member in members.items():
        client = _client(member)
        if client is not None:
            found.setdefault(client, []).append(member_id)
    return {client: ids[0] for client, ids in found.items() if len(ids) == 1}


def _client(member: MemberFields) -> _Client | None:
    return None if member.client_id is None else (member.client_id, member.host, member.instance_id)


def _former_sessions(group: Group, present: Iterable[str]) -> dict[_Client, Departed]:
    """Return the last session of each departed client, without clients that had two at the same time."""
    known, sessions = set(present), dict[_Client, list[Departed]]()
    for member_id, departed in group.departed.items():
        client = _client(departed.member)
        if client is not None and member_id not in known and departed.left_reason != "replaced":
            sessions.setdefault(client, []).append(departed)
    found: dict[_Client, Departed] = {}
    for client, former in sessions.items():
        last = max(former, key=lambda session: (session.left_at, session.member.member_id))
        if all(session is last or session.left_at <= last.member.joined_at for session in former):
            found[client] = last
    return found


def _successor_note(cause: DepartureCause, member_id: str, began_at: int | None) -> str:
    """Return what it means that a client joined the same generation from which its former member is missing."""
    note = f"its client was back as {member_id} in this rebalance"
    if cause.kind == "session_expired" and began_at is not None and began_at < cause.at:
        waited = _seconds(cause.at - began_at)
        return f"{note}, which waited {waited} for the dead one: a group.instance.id would have saved that"
    return note


def _back_note(before: Departed, info: MemberInfo, at: int, *, is_own: bool) -> str:
    how = _DEPARTED.get(before.left_reason, "was gone")
    note = f"its client was back {_seconds(at - before.left_at)} after it {how}"
    if is_own or info.owned_generation is not None:
        note += ", the same process" + (" under its own id" if is_own else "")
        return f"{note}: it hung" if before.left_reason == "expired" else note
    note += f" as {before.member.member_id}"
    return f"{note}: it hung, or its process was started again" if before.left_reason == "expired" else note


def _seconds(span_ms: int) -> str:
    return f"{span_ms / 1_000:.1f} s"
