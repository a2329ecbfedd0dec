"""Shell: the sessions of a group whose generations the monitor counts, as events: joins, changes, departures. No I/O.

A departure that an event or a deadline showed is an event. What only a poll can show is a snapshot: members that it
lacks, and departures that it found later than they were. A session that late evidence continued ends and begins again,
because the group was decided without the member in between.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from streaming.history.group_rows import GroupRows
from streaming.history.named_causes import DEPARTURES, DESCRIBED, NamedCause, NamedCauses
from streaming.tables.schema import Row
from streaming.views.member_descriptions import description
from udfs.model.events import (
    Departure,
    EventFields,
    GroupDeleted,
    GroupSnapshot,
    MemberInfo,
    MemberJoined,
    MemberLeft,
    event_fields,
)
from udfs.model.group_api import DueEvent
from udfs.model.systems import System

# A second live connection with the id of another one has this after it.
_NUMBERED: Final = re.compile(r"#\d+$")
_INFERRED: Final = "inferred"
_KINDS: Final = {"left": "member_left", "expired": "session_expired"}


class Presence(NamedTuple):
    """A member in the group: its session, or a part of it between two decisions.

    Attributes:
        until: When it departed, or None. joined: The cause that names its arrival; None for a static member that took
            the place of a former id. departed: The cause that names its departure.
    """

    session: Row
    since: int
    until: int | None
    joined: NamedCause | None
    departed: NamedCause | None

    @property
    def member_id(self) -> str:
        """Return the member's id."""
        return str(self.session["member_id"])

    @property
    def is_polled(self) -> bool:
        """Return whether only polls showed it."""
        return is_polled(self.session)

    def was_at(self, time_ms: int) -> bool:
        """Return whether it was in the group before a time, and not only from then on."""
        return self.since < time_ms and (self.until is None or time_ms <= self.until)


def is_polled(session: Row) -> bool:
    """Return whether only polls showed a session; a successor of a static member shows itself."""
    return bool(session["lives_by"] == "snapshots" and session.get("former_member_id") is None)


class MemberEvents:
    """Makes the events of a group's members."""

    def __init__(self, rows: GroupRows, system: System, causes: NamedCauses, settle_ms: int) -> None:
        self._settle_ms = settle_ms
        self._decided_at = [row["event_time"] for row in rows.rebalances]
        self._rows = rows
        self._system = system
        self._causes = causes
        self._ids = {session["member_id"] for session in rows.sessions}
        self._presences: list[Presence] = []
        self.undecided: list[Row] = []  # sessions that no rebalance names: they are no part of the history
        self._find_presences()

    def events(self) -> Iterator[DueEvent]:
        """Yield the events, in no order."""
        shown: dict[int, list[NamedCause | None]] = {}  # the causes that a snapshot of that time shows
        for presence in self._presences:
            self._note_shown(presence, shown)
            if not presence.is_polled:
                yield self._joined(presence, presence.since, presence.joined)
            for until in self._changes(presence):
                cause = self._causes.take(DESCRIBED, until, member_id=presence.member_id)
                if presence.is_polled:
                    shown.setdefault(until, []).append(cause)
                else:
                    yield self._joined(presence, until, cause)
            if presence.until is not None and not self._is_shown_gone(presence) and presence.departed is not None:
                yield self._left(presence, presence.until, presence.departed)
        yield from self._deletions()
        for time_ms, causes in sorted(shown.items()):
            yield self._snapshot(time_ms, causes)

    # ---- who was in the group

    def _find_presences(self) -> None:
        by_member: dict[str, list[Row]] = {}
        for session in self._rows.sessions:
            by_member.setdefault(session["member_id"], []).append(session)
        for member_id, sessions in by_member.items():
            nexts = [*(session["joined_at"] for session in sessions[1:]), None]
            for session, following in zip(sessions, nexts, strict=True):
                self._find_presences_in(member_id, session, following)
        self._presences.sort(key=lambda presence: (presence.since, presence.member_id))

    def _find_presences_in(self, member_id: str, session: Row, following: int | None) -> None:
        take, joined_at, left_at = self._causes.take, session["joined_at"], session.get("left_at")
        # A rebalance names causes of its settling time together, when the next session may have begun already.
        end = None if following is None else following + (self._settle_ms and self._settle_ms + 1)
        joined = take(("member_joined",), joined_at, end, member_id=member_id)
        if joined is None and not self._is_decided(joined_at) and session.get("former_member_id") is None:
            self.undecided.append(session)
            return
        departed = self._departure_of(member_id, session, end)
        since = joined_at
        # Departures within the session were mistaken: late evidence brought the member back.
        until = end if departed is None else departed.at
        while (mistaken := take(DEPARTURES, since, until, member_id=member_id)) is not None:
            self._presences.append(Presence(session, since, mistaken.at, joined, mistaken))
            joined = take(("member_joined",), mistaken.at, until, member_id=member_id)
            if joined is None:
                return
            since = joined.at
        ended = left_at if departed is None else self._left_at(session, departed)
        self._presences.append(Presence(session, since, ended, joined, departed))

    def _departure_of(self, member_id: str, session: Row, end: int | None) -> NamedCause | None:
        """Return the cause that names the end of a session, or one that follows from how it ended."""
        take, left_at, reason = self._causes.take, session.get("left_at"), session.get("left_reason")
        if left_at is None or reason == "replaced":
            return None
        cause = take(DEPARTURES, left_at, end, member_id=member_id)
        # Late heartbeats may have moved the end beyond the rebalance that knew of it.
        cause = cause or take(DEPARTURES, session["joined_at"], left_at, member_id=member_id, is_last=True)
        return cause or NamedCause(left_at, _KINDS.get(str(reason), "member_gone"), member_id, None, None, None)

    def _left_at(self, session: Row, cause: NamedCause) -> int:
        """Return when the event of a departure applied: when the session ended, if a settling time followed."""
        is_by_poll = is_polled(session) and session["left_reason"] != "absent_from_snapshot"
        has_settled = 0 <= cause.at - session["left_at"] <= self._settle_ms
        return session["left_at"] if has_settled and not is_by_poll else cause.at

    def _is_decided(self, time_ms: int) -> bool:
        """Return whether a rebalance covers what happened at a time, or the history begins later."""
        if self._rows.begins_at is not None and time_ms <= self._rows.begins_at:
            return True
        place = bisect.bisect_left(self._decided_at, time_ms)
        return place < len(self._decided_at) and self._decided_at[place] <= time_ms + self._settle_ms

    def _changes(self, presence: Presence) -> list[int]:
        """Return when the description changed while the member was in the group."""
        times = [former["until_ms"] for former in presence.session.get("earlier") or ()]
        return [at for at in times if presence.since < at and (presence.until is None or at < presence.until)]

    # ---- events

    def _fields(self, time_ms: int) -> EventFields:
        return event_fields(self._system, self._rows.cluster, time_ms)

    def _joined(self, presence: Presence, time_ms: int, cause: NamedCause | None) -> DueEvent:
        described = description(presence.session, time_ms)
        event = MemberJoined(
            **self._fields(time_ms), group=self._rows.group_id, member_id=self._name(presence), **described
        )
        return due(event, cause, presence.member_id)

    def _left(self, presence: Presence, time_ms: int, cause: NamedCause) -> DueEvent:
        event = MemberLeft(
            **self._fields(time_ms),
            group=self._rows.group_id,
            member_id=presence.member_id,
            how="expired" if cause.kind == "session_expired" else "left",
            reason=cause.detail,
        )
        return due(event, cause, presence.member_id)

    def _name(self, presence: Presence) -> str:
        """Return the id that a client reports: of a second connection without its number."""
        plain = _NUMBERED.sub("", presence.member_id)
        return plain if plain in self._ids else presence.member_id

    # ---- snapshots

    def _note_shown(self, presence: Presence, shown: dict[int, list[NamedCause | None]]) -> None:
        if presence.is_polled:
            shown.setdefault(presence.since, []).append(presence.joined)
        if presence.until is not None and self._is_shown_gone(presence):
            shown.setdefault(presence.until, []).append(presence.departed)

    def _is_shown_gone(self, presence: Presence) -> bool:
        """Return whether a snapshot shows the departure: nobody knows how, or it was earlier than found."""
        cause, session = presence.departed, presence.session
        if cause is None or session["left_reason"] == "gone":
            return False
        return cause.kind == "member_gone" or (cause.at != session.get("left_at") and presence.is_polled)

    def _snapshot(self, time_ms: int, causes: list[NamedCause | None]) -> DueEvent:
        members: list[MemberInfo] = []
        departures: list[Departure] = []
        for presence in self._presences:
            is_new = presence.is_polled and presence.since == time_ms
            if not is_new and not presence.was_at(time_ms):
                continue
            if presence.until == time_ms and self._is_shown_gone(presence):
                departures.append(self._departure(presence))
            else:
                # What an event of its last time described came after its end.
                described: dict[str, Any] = description(presence.session, time_ms - (presence.until == time_ms))
                members.append(MemberInfo(member_id=self._name(presence), **described))
        event = GroupSnapshot(
            **self._fields(time_ms),
            group=self._rows.group_id,
            members=tuple(members),
            departures=tuple(departures),
        )
        return due(event, next((cause for cause in causes if cause is not None), None))

    def _departure(self, presence: Presence) -> Departure:
        cause, session = presence.departed, presence.session
        detail = None if cause is None else cause.detail
        is_inferred = detail is not None and detail.startswith(_INFERRED)
        if detail is not None and is_inferred:
            detail = detail.removeprefix(_INFERRED).removeprefix(": ") or None
        return Departure(
            member_id=self._name(presence),
            host=session["host"],
            kind=DEPARTURES[cause.kind if cause is not None else "member_gone"],  # type: ignore[arg-type]
            at=session.get("left_at"),
            evidence=detail,
            inferred=is_inferred,
        )

    # ---- deletions

    def _deletions(self) -> Iterator[DueEvent]:
        """Yield when the group was deleted: with its members, or empty, at some time before it was created again."""
        deleted: dict[int, NamedCause] = {}
        for presence in self._presences:
            if presence.session.get("left_reason") == "gone" and presence.departed is not None:
                deleted[presence.departed.at] = presence.departed
        rebalances = self._rows.rebalances
        for before, row in itertools.pairwise(rebalances):
            is_created = any(cause["kind"] == "group_created" for cause in row["triggers"])
            if is_created and before["event_time"] not in deleted:
                # Nobody knows when; just before it came again, at the latest.
                time_ms = max(row["event_time"] - 1, before["event_time"] + 1)
                yield due(GroupDeleted(**self._fields(time_ms), group=self._rows.group_id), None)
        for time_ms, cause in sorted(deleted.items()):
            yield due(GroupDeleted(**self._fields(time_ms), group=self._rows.group_id), cause)


def due(event: Any, cause: NamedCause | None, about: str = "") -> DueEvent:
    """Return an event with the id of the recorded cause, or with one that says what it is about."""
    own = None if cause is None else cause.event_id
    return DueEvent(event, own or f"{type(event).__name__} {event.event_time} {about}".rstrip())
