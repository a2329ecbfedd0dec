"""Core: the sessions of a group's members in one batch: how they begin, continue, expire and end. No I/O."""

from __future__ import annotations

import bisect

import msgspec

from udfs.group.batch.event_queue import EventQueue
from udfs.group.batch.history import GroupHistory
from udfs.group.state.group import Departed, Group, Member
from udfs.group.state.state_machine import GroupKind
from udfs.group.state.writing import assign, entries
from udfs.model.config import CoreConfig
from udfs.model.errors import InvariantError
from udfs.model.group_api import GroupInput, TopicsView
from udfs.model.journal import LeftReason, MemberChanged, MemberClosed, MemberOpened, MemberReopened


class GroupSessions(GroupHistory):
    """One group during one batch, with its members' sessions.

    Attributes:
        queue: The due items of this batch, including ends of sessions.
    """

    def __init__(self, group: Group, facts: GroupInput, topics: TopicsView, config: CoreConfig) -> None:
        super().__init__(group, facts, topics, config)
        self.queue = EventQueue()
        self._ends_not_before: dict[str, int] = {}  # member -> the earliest end of its session

    # ---- items that become due later in this batch

    def not_before_applied(self, at: int) -> int:
        """Return when something with that timestamp applies: not before what was applied already."""
        return max(at, self.group.last_applied or at)

    def schedule_expiry(self, member_id: str) -> None:
        """Let a member's session end at its current deadline, if that is past."""
        last = self.applied_heartbeats.get(member_id)
        if last is None:
            return
        member = self.group.members.get(member_id)
        if member is None:
            raise InvariantError(f"group {self.facts.group_id}", "a member", member_id)
        if last + self.timeout_of(member) >= self.facts.clock:
            return
        deadline = self.deadline_of(member)
        if deadline < self.facts.clock:
            self.queue.push_expiry(self.end_of_session(member_id, deadline), deadline, member_id)

    def end_of_session(self, member_id: str, deadline: int) -> int:
        """Return when a session with this deadline ends: not before what was applied already."""
        return max(self.not_before_applied(deadline), self._ends_not_before.get(member_id, deadline))

    def end_not_before(self, member_id: str, at: int) -> None:
        """Let a member's session end at this time at the earliest, because what was applied then continued it."""
        self._ends_not_before[member_id] = at

    def await_heartbeat(self, member_id: str, after: int) -> None:
        """Make the next heartbeat of a departed member apply: it is a join, or it takes the departure back."""
        times = self.facts.heartbeats.get(member_id, ())
        place = bisect.bisect_right(times, after)
        if place < len(times):
            self.queue.push_heartbeat(self.not_before_applied(times[place]), times[place], member_id)

    # ---- heartbeats

    def begin_heartbeats(self, member: Member, at: int, timeout_ms: int) -> None:
        """Track a member by its heartbeats from now on; a heartbeat of a former session changes nothing.

        A heartbeat also changes nothing if its timeout was over when a poll showed a member tracked by polls.
        """
        if at < self._begins_at(member, timeout_ms) or at <= self.group.last_heartbeats.get(member.member_id, at - 1):
            return
        if self._lives_by_polls(member) and at + timeout_ms < (self.group.last_snapshot_at or 0):
            return
        was_heartbeats = member.by_heartbeats
        assign(member, by_heartbeats=True)
        self.note_heartbeat(member.member_id, at)
        if not was_heartbeats:
            self.schedule_expiry(member.member_id)

    def _begins_at(self, member: Member, timeout_ms: int) -> int:
        """Return the time from which heartbeats belong to a member's session; snapshots may show the member later."""
        if not self._lives_by_polls(member):
            return member.begins_at
        return max(member.begins_at - timeout_ms, self.group.returned_after.get(member.member_id, -1) + 1)

    def _lives_by_polls(self, member: Member) -> bool:
        return not member.by_heartbeats and self.kind is not GroupKind.REPORTED

    def end_heartbeats(self, member_id: str) -> None:
        """Track a member of a reported generation by snapshots: it is silent, and no generation has shown that."""
        assign(self.group.members[member_id], by_heartbeats=False)
        entries(self.group.last_heartbeats)[member_id] = self.applied_heartbeats.pop(member_id)

    def show_alive(self, member: Member, own: int) -> None:
        """Track a member by snapshots from the poll on that shows it, when its heartbeats had ended its session.

        The event that ended it came late; otherwise it had expired before the poll.
        """
        if not member.by_heartbeats:
            return
        last = self.last_heartbeat(member.member_id, own)
        if self.own_deadline_of(member, last) < own:
            self.note_heartbeat(member.member_id, last)
            self.end_heartbeats(member.member_id)
            entries(self.group.returned_after)[member.member_id] = member.begins_at - 1
            assign(member, own_joined_at=own)
            self.await_heartbeat(member.member_id, own)

    def note_heartbeat(self, member_id: str, at: int) -> None:
        """Record a heartbeat of a member that is tracked by heartbeats."""
        if member_id in self.group.last_heartbeats:
            del entries(self.group.last_heartbeats)[member_id]
        last = self.applied_heartbeats.get(member_id)
        if last is None or at > last:
            self.applied_heartbeats[member_id] = at

    # ---- sessions

    def open_session(
        self,
        member: Member,
        at: int,
        *,
        former: str | None = None,
        heartbeat_at: int | None = None,
        own: int | None = None,
    ) -> None:
        """Begin a member's session.

        Args:
            former: The id that a static member had before.
            heartbeat_at: Its first heartbeat; None keeps the way it is tracked, and records no heartbeat.
            own: The time of the event that begins the session, if it is not a heartbeat.
        """
        group, own = self.group, heartbeat_at if own is None else own
        if heartbeat_at is not None:
            assign(member, by_heartbeats=True)
            self.applied_heartbeats[member.member_id] = heartbeat_at
        self.before.note_member(member.member_id)
        assign(member, joined_at=at, own_joined_at=own if own is not None and own < at else None, holds_since=at)
        entries(group.members)[member.member_id] = member
        departed = entries(group.departed).pop(member.member_id) if member.member_id in group.departed else None
        if departed is not None and not member.by_heartbeats:
            # A late heartbeat may show that it had not expired, unless it left since.
            is_expired = departed.left_reason == "expired" and departed.over_at <= departed.left_at
            returned_after = departed.member.begins_at - 1 if is_expired else departed.over_at
            entries(group.returned_after)[member.member_id] = returned_after
        self.schedule_expiry(member.member_id)
        if self.before.folds:
            self.before.began.setdefault(member.member_id, former)
        else:
            self.begin_session(member, at, former)

    def begin_session(self, member: Member, at: int, former: str | None) -> None:
        """Write the beginning of a session, with the member's current description."""
        self.write(at, MemberOpened(**self.session_of(member), former_member_id=former))  # type: ignore[arg-type]

    def change_session(self, member: Member, at: int) -> None:
        """Write the changed description of a member with an open session."""
        if self.before.folds:
            self.before.changed.add(member.member_id)
        else:
            self.write(at, MemberChanged(**self.session_of(member)))  # type: ignore[arg-type]

    def _end(self, at: int, end: MemberClosed) -> None:
        if self.before.folds:
            self.before.ends.setdefault(end.member_id, []).append(end)
        else:
            self.write(at, end)

    def close_session(
        self, member_id: str, at: int, left_at: int, reason: LeftReason, own_at: int | None = None
    ) -> None:
        """End a member's session.

        Args:
            own_at: The time of the event that ends it, if that event or its report came late.
        """
        group = self.group
        self.before.note_member(member_id)
        member = entries(group.members).pop(member_id)
        last = self.last_heartbeat_or_none(member_id, at)
        self.applied_heartbeats.pop(member_id, None)
        for times in (group.last_heartbeats, group.returned_after):
            if member_id in times:
                del entries(times)[member_id]
        left_at = max(left_at, member.joined_at)
        self._end(at, closed(member, left_at, reason, last))
        self.forget_owned(member)  # a departed member owns nothing
        self.remember(
            Departed(member=member, left_at=left_at, left_reason=reason, last_heartbeat_at=last, own_at=own_at)
        )
        self.await_heartbeat(member_id, (at if own_at is None else own_at) - 1)

    def replace_session(self, former_id: str, member_id: str, at: int) -> int:
        """End the session of a static member under its former id; return when it ended.

        The new id already has its place.

        The new id is tracked by snapshots until it sends a heartbeat. Causes name it by its new id after
        ``rename_causes``.
        """
        group, member = self.group, self.group.members[member_id]
        self.before.rename(former_id, member_id)
        last = self.last_heartbeat_or_none(former_id, at)
        self.applied_heartbeats.pop(former_id, None)
        entries(group.last_heartbeats).pop(former_id, None)
        left_at = max(at, member.joined_at)
        self._end(at, closed(member, left_at, "replaced", last))
        former = member.copied(by_heartbeats=member.by_heartbeats)
        self.remember(Departed(member=former, left_at=left_at, left_reason="replaced", last_heartbeat_at=last))
        self.await_heartbeat(former_id, at - 1)
        assign(member, member_id=member_id, name=member_id, by_heartbeats=False)
        return left_at

    def write_sessions(self, at: int) -> None:
        """Write what this event time has changed in sessions, all in all; what else it changes is written at once."""
        before, members = self.before, self.group.members
        if not before.folds:
            return
        before.folds = False
        for member_id, was in before.members.items():
            ends, began = before.ends.get(member_id, ()), member_id in before.began
            stays = member_id in members and (not ends or member_id not in before.exempt)
            departed = None if member_id in members else self.group.departed.get(member_id)
            member = members.get(member_id) if departed is None else departed.member
            if was is not None and member is not None and (stays or departed is not None):
                if began:  # it left and rejoined in between
                    joined_at, own_joined_at, holds_since = was.begun
                    assign(member, joined_at=joined_at, own_joined_at=own_joined_at, holds_since=holds_since)
                if (began or member_id in before.changed) and self.session_of(was) != self.session_of(member):
                    self.change_session(member, at)
            if was is not None and ends and not stays:
                last = next(
                    (end.last_heartbeat_at for end in reversed(ends) if end.last_heartbeat_at is not None), None
                )
                end = ends[0] if member_id in members else ends[-1]
                self.write(at, msgspec.structs.replace(end, joined_at=was.joined_at, last_heartbeat_at=last))
                if departed is not None:
                    assign(departed, last_heartbeat_at=last)
            if began and member_id in members and (was is None or not stays):
                self.begin_session(members[member_id], at, before.began[member_id])

    def extend_session(self, departed: Departed, at: int, *, left_at: int, heartbeat_at: int) -> None:
        """Move the end of an expired session, because a late heartbeat was sent within it."""
        assign(departed, left_at=left_at, last_heartbeat_at=heartbeat_at)
        self.write(at, closed(departed.member, left_at, "expired", heartbeat_at))

    def note_end(self, departed: Departed, own: int) -> None:
        """Record when an expired session ended by its heartbeats; a late heartbeat may prove to precede that end."""
        assign(departed, own_at=own if own < departed.left_at else None)

    def drop_member(self, member_id: str) -> None:
        """Drop a member whose session is over."""
        del entries(self.group.members)[member_id]

    def reopen_session(self, departed: Departed, at: int, *, heartbeat_at: int) -> None:
        """Resume a session that was ended by mistake: there is a later heartbeat."""
        member = departed.member
        self.applied_heartbeats[member.member_id] = heartbeat_at
        entries(self.group.departed).pop(member.member_id, None)
        entries(self.group.members)[member.member_id] = member
        self.schedule_expiry(member.member_id)
        self.write(at, MemberReopened(member_id=member.member_id, joined_at=member.joined_at))

    def note_absence(self, member_id: str, left_at: int) -> None:
        """Record that a member left that was never there: its earlier events then come late and are not a join."""
        departed = self.group.departed.get(member_id)
        if departed is not None:
            assign(departed, own_at=max(left_at, departed.over_at))
        else:
            absent = Member(member_id=member_id, name=member_id, joined_at=left_at)
            self.remember(Departed(member=absent, left_at=left_at, left_reason="left"))

    @staticmethod
    def forget_owned(member: Member) -> None:
        """Drop the owned queues that a member reported."""
        if "owned" in member.field_times or "owned_generation" in member.field_times:
            times = {name: at for name, at in member.field_times.items() if name not in ("owned", "owned_generation")}
            assign(member, owned=None, owned_generation=None, field_times=times)

    def remember(self, departed: Departed) -> None:
        """Keep the description of a departed member; beyond the limit the oldest description is dropped."""
        departed_members = entries(self.group.departed)
        departed_members.pop(departed.member.member_id, None)
        departed_members[departed.member.member_id] = departed
        while len(departed_members) > self.config.max_departed_members:
            del departed_members[next(iter(departed_members))]


def closed(member: Member, left_at: int, reason: LeftReason, last: int | None) -> MemberClosed:
    """Return the end of a session as the journal writes it."""
    return MemberClosed(
        member_id=member.member_id,
        joined_at=member.joined_at,
        left_at=left_at,
        left_reason=reason,
        last_heartbeat_at=last,
    )
