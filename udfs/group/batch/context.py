"""Core: one group in one batch: what it remembers of its events, and what becomes due. No I/O."""

from __future__ import annotations

import bisect
from collections.abc import Sequence

from udfs.group.batch.event_queue import EventQueue
from udfs.group.batch.history import GroupHistory
from udfs.group.batch.phases import under_way
from udfs.group.state.group import (
    MAX_EVIDENCE,
    Departed,
    Evidence,
    Group,
    Member,
    Pending,
    Queue,
)
from udfs.group.state.recorded_group import RecordedGroup
from udfs.group.state.state_machine import GroupKind
from udfs.group.state.view import Settings
from udfs.model.config import CoreConfig
from udfs.model.errors import InvariantError
from udfs.model.events import GroupSnapshot, Mode
from udfs.model.group_api import GroupInput, TopicsView
from udfs.model.journal import (
    LeftReason,
    MemberChanged,
    MemberClosed,
    MemberOpened,
    MemberReopened,
    Trigger,
    TriggerKind,
)


class GroupContext(GroupHistory):
    """One group through one batch, as its events change it.

    Attributes:
        queue: What is due in this batch.
        work: How many members and queues were processed: what a batch is bounded by.
    """

    def __init__(self, group: Group, facts: GroupInput, topics: TopicsView, rules: CoreConfig) -> None:
        super().__init__(group, facts, topics, rules)
        self.queue = EventQueue()
        self.work = 0
        self._ends_not_before: dict[str, int] = {}  # member -> when its session ends at the earliest
        self._caused: set[tuple[str, str | None, str | None]] = set()  # what is pending names already

    # ---- what the group remembers of its events

    def applied(self, at: int) -> None:
        """Record that something was applied: a change, an expiry or a snapshot."""
        self.group.last_applied = max(at, self.group.last_applied or at)
        self.touch(at)

    def take_back_applied(self, at: int) -> None:
        """Forget that something was applied at this event time, where all cancelled out: nothing older is late."""
        if self.group.last_snapshot_at != at:
            self.group.last_applied = self.before.last_applied

    def touch(self, at: int) -> None:
        """Record that something was observed that makes no later event late; an empty group is remembered from then."""
        self.group.touched_at = max(at, self.group.touched_at or at)

    def note_deletion(self, own: int) -> None:
        """Record that the group was deleted at a time: what is older and comes later is of the group before."""
        self.group.deleted_at = max(own, self.group.deleted_at or own)

    def note_settings(self, at: int) -> Settings:
        """Keep and return the group's settings before the first event of this event time that changes them."""
        self.touch(at)
        if self.before.settings is None:
            self.before.settings = self.settings_now()
        return self.before.settings

    def follow_records(self, recorded: RecordedGroup | None) -> None:
        """Begin or end to follow the group by the coordinator's records about it."""
        self.group.recorded = recorded

    def follow(self) -> None:
        """Note that the group is of a kind that is followed."""
        self.group.followed = True

    def note_preparing(self, snapshot: GroupSnapshot) -> None:
        """Note that a coordinator has begun a rebalance, or that none is under way any more."""
        group = self.group
        group.preparing_since, group.preparing_reason, group.join_ended_at = under_way(group, snapshot)

    def note_snapshot(self, at: int) -> None:
        """Note the time of a snapshot that was applied."""
        self.group.last_snapshot_at = max(at, self.group.last_snapshot_at or at)

    def note_poll(self, leader: str | None, strategy: str | None) -> None:
        """Note the leader and the strategy that a poll reports."""
        if leader is not None:
            self.group.leader = leader
        self.group.reported_strategy = strategy or self.group.reported_strategy

    def set_strategy(self, strategy: str, inferred: bool, own: int) -> None:
        """Set the group's strategy, as an event of that time carries it."""
        self.group.strategy, self.group.strategy_inferred = strategy, inferred
        self.group.settings_at["strategy"] = own

    def set_mode(self, mode: Mode, own: int) -> None:
        """Set how the group shares its queues; None is the default as long as no other was set."""
        if mode != self.mode:
            self.group.mode = mode
        self.group.settings_at["mode"] = own

    def set_strategy_settings(self, settings: dict[str, object], own: int) -> None:
        """Set the settings of the group's strategy."""
        if settings != (self.group.strategy_settings or {}):
            self.group.strategy_settings = settings
        self.group.settings_at["strategy_settings"] = own

    def note_late_event(self) -> None:
        """Count an event that came late."""
        self.group.late_events += 1

    # ---- what becomes due later in this batch

    def not_before_applied(self, at: int) -> int:
        """Return when something of that time applies: not before what was applied already."""
        return max(at, self.group.last_applied or at)

    def schedule_expiry(self, member_id: str) -> None:
        """Have a member's session end at its current deadline, where that is past."""
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
        """Return when a session of this deadline ends: not before what was applied already."""
        return max(self.not_before_applied(deadline), self._ends_not_before.get(member_id, deadline))

    def end_not_before(self, member_id: str, at: int) -> None:
        """Have a member's session end at this time at the earliest: what was applied then continued it."""
        self._ends_not_before[member_id] = at

    def await_heartbeat(self, member_id: str, after: int) -> None:
        """Have the next heartbeat of a departed member apply: it is a join, or takes the departure back."""
        times = self.facts.heartbeats.get(member_id, ())
        place = bisect.bisect_right(times, after)
        if place < len(times):
            self.queue.push_heartbeat(self.not_before_applied(times[place]), times[place], member_id)

    # ---- heartbeats

    def begin_heartbeats(self, member: Member, at: int) -> None:
        """Have a member live by its heartbeats from now on; one of a former session or an older one changes nothing."""
        if at < member.joined_at or at <= self.group.last_heartbeats.get(member.member_id, at - 1):
            return
        was_heartbeats, member.by_heartbeats = member.by_heartbeats, True
        self.note_heartbeat(member.member_id, at)
        if not was_heartbeats:
            self.schedule_expiry(member.member_id)

    def end_heartbeats(self, member_id: str) -> None:
        """Have a member of a reported generation live by snapshots: it is silent, and no generation has shown that."""
        self.group.members[member_id].by_heartbeats = False
        self.group.last_heartbeats[member_id] = self.applied_heartbeats.pop(member_id)

    def note_heartbeat(self, member_id: str, at: int) -> None:
        """Record a heartbeat of a member that lives by heartbeats."""
        self.group.last_heartbeats.pop(member_id, None)
        last = self.applied_heartbeats.get(member_id)
        if last is None or at > last:
            self.applied_heartbeats[member_id] = at

    # ---- changes that make a rebalance

    def cause(
        self,
        at: int,
        kind: TriggerKind,
        member_id: str | None = None,
        topic: str | None = None,
        event_id: str | None = None,
        detail: str | None = None,
    ) -> None:
        """Record one cause of the next counted rebalance; for reported generations, evidence for one.

        A group that is not followed has no rebalances: its topics, settings and members change without one.
        """
        group = self.group
        if self.kind is GroupKind.NOT_FOLLOWED:
            return
        if self.kind is GroupKind.REPORTED:
            self.learn(Evidence(kind, at, member_id, topic, event_id))
            return
        self.applied(at)
        if group.pending is None:
            group.pending = Pending(opened_at=at, changed_at=at)
            self._caused = set()
        group.pending.changed_at = max(at, group.pending.changed_at)
        triggers = group.pending.triggers
        if len(self._caused) != len(triggers):
            self._caused = {(one.kind, one.member_id, one.topic) for one in triggers}
        trigger = Trigger(kind=kind, member_id=member_id, topic=topic, detail=detail, event_id=event_id)
        if (kind, member_id, topic) in self._caused:
            self.before.repeated.append(trigger)
        else:
            self._caused.add((kind, member_id, topic))
            triggers.append(trigger)

    def learn(self, evidence: Evidence) -> bool:
        """Remember evidence that a later reported generation may show; beyond the limit the oldest is dropped.

        Returns: whether it is new.
        """
        remembered = self.group.evidence
        if evidence in remembered:
            return False
        bisect.insort(remembered, evidence, key=lambda one: (one.time, one.kind, one.member_id or "", one.topic or ""))
        del remembered[:-MAX_EVIDENCE]
        return True

    def note_pending_assignment(self, reported: list[tuple[Queue, tuple[str, ...]]]) -> None:
        """Note the whole assignment that was reported with the pending changes."""
        if self.group.pending is not None:
            self.group.pending.reported = reported

    def put_off_pending(self, at: int) -> None:
        """Have the pending rebalance, where there is one, carry this time at least."""
        if self.group.pending is not None:
            self.group.pending.changed_at = max(at, self.group.pending.changed_at)

    def keep_causes(self, kept: list[Trigger]) -> None:
        """Keep only these causes of the pending rebalance: the others have cancelled out."""
        if self.group.pending is not None:
            self.group.pending.triggers[:] = kept

    def take_back_causes(self) -> list[Trigger]:
        """Take the causes of this event time out of the pending rebalance, with its time, and return them."""
        pending = self.group.pending
        if pending is None:
            return []
        taken, pending.changed_at = pending.triggers[self.before.triggers :], self.before.changed_at
        del pending.triggers[self.before.triggers :]
        return taken

    def cancel_pending(self) -> None:
        """Drop the pending rebalance: its changes have cancelled out."""
        self.group.pending = None

    def learn_all(self, triggers: Sequence[Trigger], at: int) -> None:
        """Remember causes as evidence for the reported generation that is about to come."""
        for trigger in triggers:
            self.learn(Evidence(trigger.kind, at, trigger.member_id, trigger.topic, trigger.event_id))

    def take_back_evidence(self, member_id: str, at: int) -> None:
        """Forget departures of a member that has been alive since."""
        self.group.evidence = [
            one
            for one in self.group.evidence
            if one.member_id != member_id
            or one.kind not in ("member_left", "session_expired")
            or one.time > at
            or (one.time == at and one.kind == "member_left")
        ]

    def explain_silence(self, member_id: str, left_at: int) -> None:
        """Forget an expiry that was concluded from the silence of a member that had left before."""
        if (self.last_heartbeat_or_none(member_id, left_at) or left_at) <= left_at:
            self.group.evidence = [
                one
                for one in self.group.evidence
                if (one.member_id, one.kind, one.event_id) != (member_id, "session_expired", None) or one.time < left_at
            ]

    def use_up_evidence(self, left: list[Evidence]) -> None:
        """Keep the evidence that a generation does not show."""
        self.group.evidence = left

    # ---- sessions

    def open_session(self, member: Member, at: int, former: str | None = None) -> None:
        """Begin a member's session; ``former`` is the id that a static member had before."""
        group = self.group
        self.before.note_member(member.member_id)
        member.joined_at = at
        member.holds_since = at
        group.members[member.member_id] = member
        group.departed.pop(member.member_id, None)
        self.schedule_expiry(member.member_id)
        self.begin_session(member, at, former)

    def begin_session(self, member: Member, at: int, former: str | None) -> None:
        """Write that a session began, as its member is described now."""
        self.write(at, MemberOpened(**self.session_of(member), former_member_id=former))  # type: ignore[arg-type]

    def change_session(self, member: Member, at: int) -> None:
        """Write the changed description of an open session."""
        self.write(at, MemberChanged(**self.session_of(member)))  # type: ignore[arg-type]

    def close_session(self, member_id: str, at: int, left_at: int, reason: LeftReason) -> None:
        """End a member's session."""
        group = self.group
        self.before.note_member(member_id)
        member = group.members.pop(member_id)
        last = self.last_heartbeat_or_none(member_id, at)
        self.applied_heartbeats.pop(member_id, None)
        group.last_heartbeats.pop(member_id, None)
        left_at = max(left_at, member.joined_at)
        self.write(at, closed(member, left_at, reason, last))
        member.forget_owned()  # a departed member owns nothing
        self.remember(Departed(member=member, left_at=left_at, left_reason=reason, last_heartbeat_at=last))
        self.await_heartbeat(member_id, at - 1)

    def replace_session(self, former_id: str, member_id: str, at: int) -> int:
        """End the session of a static member under its former id; return when. It is in its new place already."""
        group, member = self.group, self.group.members[member_id]
        self.before.rename(former_id, member_id)
        self._caused = set()
        last = self.last_heartbeat_or_none(former_id, at)
        self.applied_heartbeats.pop(former_id, None)
        group.last_heartbeats.pop(former_id, None)
        left_at = max(at, member.joined_at)
        self.write(at, closed(member, left_at, "replaced", last))
        self.remember(Departed(member=member.copied(), left_at=left_at, left_reason="replaced", last_heartbeat_at=last))
        self.await_heartbeat(former_id, at - 1)
        member.member_id = member.name = member_id
        return left_at

    def drop_member(self, member_id: str) -> None:
        """Drop a member whose session is over."""
        del self.group.members[member_id]

    def reopen_session(self, departed: Departed, at: int) -> None:
        """Resume a session that had ended by mistake."""
        member = departed.member
        self.group.departed.pop(member.member_id, None)
        self.group.members[member.member_id] = member
        self.schedule_expiry(member.member_id)
        self.write(at, MemberReopened(member_id=member.member_id, joined_at=member.joined_at))

    def remember(self, departed: Departed) -> None:
        """Keep the description of a departed member; beyond the limit the oldest one is dropped."""
        departed_members = self.group.departed
        departed_members.pop(departed.member.member_id, None)
        departed_members[departed.member.member_id] = departed
        while len(departed_members) > self.rules.max_departed_members:
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
