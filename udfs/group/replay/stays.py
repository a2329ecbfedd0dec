"""Core: what the members of a group did over a history: their stays, each from a join to a departure. No I/O.

The coordinator itself says it: a history is decided once as it was, and its sessions are the stays. Policies change
these, and what comes out becomes events of the contract again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from udfs.group.replay.replay import History
from udfs.model.clients import client_of
from udfs.model.events import GroupDeleted, GroupSnapshot, MemberInfo, MemberJoined, MemberLeft, event_fields
from udfs.model.group_api import DueEvent
from udfs.model.journal import Change, LeftReason, MemberChanged, MemberClosed, MemberOpened
from udfs.model.member_fields import SHOWN

# A second live connection with the id of another one has this after it.
_NUMBERED: Final = re.compile(r"#\d+$")


class Stay(msgspec.Struct, frozen=True, kw_only=True):
    """A member in a group.

    Attributes:
        client: What stays the same when it comes back under another id. since: When the group knew of it.
        described: Its descriptions, each from a time on; the first is from ``since``.
        until: When the group knew that it had departed; None if it never did. left_at: When it departed.
        is_first: Whether it was there when the history began. silences: The times in which it was in the group and did
            not answer, each from its last sign of life until it came back or departed, as far as a policy made them.
    """

    member_id: str
    client: str
    since: int
    described: tuple[tuple[int, dict[str, Any]], ...]
    until: int | None = None
    left_at: int | None = None
    how: LeftReason | None = None
    is_first: bool = False
    silences: tuple[tuple[int, int], ...] = ()

    @property
    def last(self) -> dict[str, Any]:
        """Return its newest description."""
        return self.described[-1][1]

    def describing(self, **fields: Any) -> Stay:
        """Return the stay with these fields in all its descriptions."""
        return msgspec.structs.replace(self, described=tuple((at, was | fields) for at, was in self.described))

    def is_there(self, time_ms: int) -> bool:
        """Return whether it is there once everything of a time has happened."""
        return self.since <= time_ms and (self.until is None or time_ms < self.until)

    def is_silent(self, time_ms: int) -> bool:
        """Return whether it does not answer, so that no rebalance completes."""
        return any(since < time_ms < until for since, until in self.silences)


def stays_of(history: History, changes: Iterable[Change]) -> list[Stay]:
    """Return the stays of a group's members, by the times of their joins.

    Args:
        changes: What the coordinator decided over this history.
    """
    found: list[Stay] = []
    places: dict[str, int] = {}  # of the stay that has not ended, by member
    for due in history.events:
        if isinstance(due.event, GroupSnapshot) and due.event.restored:
            for info in due.event.members:
                places[info.member_id] = len(found)
                found.append(_first(info, due.event.event_time))
    for change in changes:
        body, at = change.body, change.event_time
        if isinstance(body, MemberChanged):
            stay = found[places[body.member_id]]
            # Of several descriptions of one time the last counts.
            former = stay.described if stay.described[-1][0] < at else stay.described[:-1]
            found[places[body.member_id]] = msgspec.structs.replace(stay, described=(*former, (at, _fields(body))))
        elif isinstance(body, MemberOpened):
            places[body.member_id] = len(found)
            client = body.client or body.member_id
            described = ((at, _fields(body)),)
            found.append(Stay(member_id=body.member_id, client=client, since=at, described=described))
        elif isinstance(body, MemberClosed) and body.member_id in places:
            place = places.pop(body.member_id)
            found[place] = msgspec.structs.replace(found[place], until=at, left_at=body.left_at, how=body.left_reason)
    return sorted(
        (stay for stay in found if stay.until is None or stay.until > stay.since), key=lambda stay: stay.since
    )


def _fields(described: Any) -> dict[str, Any]:
    return {name: getattr(described, name) for name in SHOWN}


def _first(info: MemberInfo, time_ms: int) -> Stay:
    client = client_of(info.instance_id, info.client_id or info.member_id, info.host) or info.member_id
    described = ((time_ms, _fields(info)),)
    return Stay(member_id=info.member_id, client=client, since=time_ms, described=described, is_first=True)


def with_stays(history: History, stays: Sequence[Stay]) -> History:
    """Return a history in which the members did this; what was set, and the topics, are as they were."""
    first = tuple(stay for stay in stays if stay.is_first)
    deleted = {due.event.event_time for due in history.events if isinstance(due.event, GroupDeleted)}
    events = [*_kept(history, first), *_of_members(history, stays, deleted)]
    events.sort(key=lambda due: due.event.event_time)
    return msgspec.structs.replace(history, events=tuple(events))


def _kept(history: History, first: Sequence[Stay]) -> Iterator[DueEvent]:
    for due in history.events:
        event = due.event
        if isinstance(event, MemberJoined | MemberLeft):
            continue
        if isinstance(event, GroupSnapshot):
            if not event.restored:
                continue
            infos = {info.member_id: info for info in event.members}
            members = tuple(_restored(stay, infos.get(stay.member_id)) for stay in first)
            ids = {info.member_id for info in members}
            held = {member_id: queues for member_id, queues in (event.assignments or {}).items() if member_id in ids}
            event = msgspec.structs.replace(event, members=members, assignments=held)
        yield DueEvent(event, due.event_id)


def _restored(stay: Stay, was: MemberInfo | None) -> MemberInfo:
    described = stay.described[0][1]
    if was is not None:
        return msgspec.structs.replace(was, **described)
    return MemberInfo(member_id=stay.member_id, joined_at=stay.since, last_heartbeat_at=stay.since, **described)


def _of_members(history: History, stays: Sequence[Stay], deleted: set[int]) -> Iterator[DueEvent]:
    ids = {stay.member_id for stay in stays}
    for stay in stays:
        plain = _NUMBERED.sub("", stay.member_id)
        name = plain if plain in ids else stay.member_id
        for time_ms, described in stay.described[stay.is_first :]:
            fields = event_fields(history.system, history.cluster, time_ms)
            joined = MemberJoined(**fields, group=history.group_id, member_id=name, **described)
            yield DueEvent(joined, f"joined {time_ms} {stay.member_id}")
        if stay.until is not None and stay.how != "replaced" and not (stay.how == "gone" and stay.until in deleted):
            fields = event_fields(history.system, history.cluster, stay.until)
            how = "expired" if stay.how == "expired" else "left"
            left = MemberLeft(**fields, group=history.group_id, member_id=stay.member_id, how=how)  # type: ignore[arg-type]
            yield DueEvent(left, f"left {stay.until} {stay.member_id}")
