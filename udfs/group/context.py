"""Core: one group in one batch: its input, its state, its output. No I/O."""

from __future__ import annotations

import bisect
from collections.abc import Callable

import msgspec

from udfs.group.event_queue import EventQueue
from udfs.group.event_time import BeforeEventTime
from udfs.group.findings import Found
from udfs.group.state import MAX_EVIDENCE, Departed, Evidence, Group, Member, OpenFinding, Pending, Queue
from udfs.group.state_machine import GroupKind
from udfs.group.view import GroupView
from udfs.model.config import CoreConfig
from udfs.model.errors import InvariantError
from udfs.model.events import Mode
from udfs.model.group_api import GroupInput, GroupOutput, TopicsView
from udfs.model.ids import finding_id
from udfs.model.journal import (
    Body,
    Change,
    FindingClosed,
    FindingOpened,
    GroupChanged,
    LeftReason,
    MemberChanged,
    MemberClosed,
    MemberOpened,
    MemberReopened,
    MemberReplaced,
    QueuesReassigned,
    Trigger,
    TriggerKind,
)


class GroupContext(GroupView):
    """One group through one batch.

    Attributes:
        output: What is written. queue: What is due in this batch.
        before: The group before the events of this time. first_change: How many changes had been written then, even if
            the group is deleted at that time.
        work: How many members and queues were gone through: what a batch is bounded by.
    """

    def __init__(self, group: Group, facts: GroupInput, topics: TopicsView, rules: CoreConfig) -> None:
        super().__init__(group, facts, topics, rules)
        self.output = GroupOutput()
        self.queue = EventQueue()
        self.first_change = 0
        self.work = 0
        self.begin_event_time()
        self._caused: set[tuple[str, str | None, str | None]] = set()  # what is pending names already

    def begin_event_time(self) -> None:
        """Record the state before the first event of one event time."""
        self.before = BeforeEventTime(self.group, len(self.output.changes))

    def note_settings(self, at: int) -> None:
        """Keep the group's settings before the first event of this event time that changes them."""
        self.group.touched_at = max(at, self.group.touched_at or at)
        if self.before.settings is None:
            self.before.settings = self.settings_now()

    # ---- writing

    def write(self, at: int, body: Body) -> None:
        """Write one change of the group's history."""
        self.group.number += 1
        self.output.changes.append(
            Change(
                cluster=self.facts.cluster,
                group_id=self.facts.group_id,
                subject=None,
                number=self.group.number,
                event_time=at,
                body=body,
            )
        )

    def computed_spans_of_now(self) -> list[QueuesReassigned | MemberReplaced]:
        """Return what became of computed spans at this event time so far."""
        bodies = [change.body for change in self.output.changes[self.first_change :]]
        return [
            body
            for body in bodies
            if isinstance(body, MemberReplaced) or (isinstance(body, QueuesReassigned) and body.origin == "computed")
        ]

    def changes_of_now(self) -> list[Body]:
        """Return what was written at this event time so far."""
        return [change.body for change in self.output.changes[self.before.changes :]]

    def take_back_changes(self, counts: Callable[[Body], bool]) -> None:
        """Strike changes of this event time that do not count, and number the others anew."""
        written = self.output.changes[self.before.changes :]
        left = [change for change in written if counts(change.body)]
        number = self.group.number - len(written)
        self.output.changes[self.before.changes :] = [
            msgspec.structs.replace(one, number=number + place) for place, one in enumerate(left, start=1)
        ]
        self.group.number = number + len(left)

    def write_row(self, at: int, row: GroupChanged) -> None:
        """Write the group's current row, if it changed."""
        if row != self.group.row:
            self.group.row = row
            self.write(at, row)

    def applied(self, at: int) -> None:
        """Record that something was applied: a change, an expiry or a snapshot."""
        self.group.last_applied = max(at, self.group.last_applied or at)
        self.group.touched_at = max(at, self.group.touched_at or at)

    # ---- what the group remembers of its events

    def follow(self) -> None:
        """Note that the group is of a kind that is followed."""
        self.group.followed = True

    def note_preparing(self, at: int) -> None:
        """Note that a coordinator has begun a rebalance."""
        if self.group.preparing_since is None:
            self.group.preparing_since = at

    def note_snapshot(self, at: int) -> None:
        """Note the time of a snapshot that was applied."""
        self.group.last_snapshot_at = max(at, self.group.last_snapshot_at or at)

    def note_poll(self, leader: str | None, strategy: str | None) -> None:
        """Note the leader and the strategy that a poll reports."""
        if leader is not None:
            self.group.leader = leader
        if strategy:
            self.group.reported_strategy = strategy

    def set_strategy(self, strategy: str, inferred: bool, own: int) -> None:
        """Set the group's strategy, as an event of that time carries it."""
        self.group.strategy, self.group.strategy_inferred = strategy, inferred
        self.group.settings_at["strategy"] = own

    def set_mode(self, mode: Mode, own: int) -> None:
        """Set how the group shares its queues; None stands for the default as long as no other was set."""
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

    def watch(self, member_id: str) -> None:
        """Have a member's session end at its deadline, as it is known now, where that is past."""
        last = self.seen.get(member_id)
        if last is None:
            return
        member = self.group.members.get(member_id)
        if member is None:
            raise InvariantError(f"group {self.facts.group_id}", "a member", member_id)
        if last + self.timeout_of(member) >= self.facts.clock:
            return
        deadline = self.deadline_of(member)
        if deadline < self.facts.clock:
            self.queue.push_expiry(self.not_before_applied(deadline), deadline, member_id)

    def await_heartbeat(self, member_id: str, after: int) -> None:
        """Have the next heartbeat of a departed member apply: it is a join, or takes the departure back."""
        times = self.facts.heartbeats.get(member_id, ())
        place = bisect.bisect_right(times, after)
        if place < len(times):
            self.queue.push_heartbeat(self.not_before_applied(times[place]), times[place], member_id)

    # ---- heartbeats

    def begin_heartbeats(self, member: Member, at: int) -> None:
        """Have a member live by its heartbeats from now on, if it did not."""
        was_heartbeats, member.by_heartbeats = member.by_heartbeats, True
        self.saw(member.member_id, at)
        if not was_heartbeats:
            self.watch(member.member_id)

    def end_heartbeats(self, member_id: str) -> None:
        """Have a member of a reported generation live by snapshots: it is silent, and no generation has shown that."""
        self.group.members[member_id].by_heartbeats = False
        self.group.last_heartbeats[member_id] = self.seen.pop(member_id)

    def saw(self, member_id: str, at: int) -> None:
        """Record a heartbeat of a member that lives by heartbeats."""
        self.group.last_heartbeats.pop(member_id, None)
        last = self.seen.get(member_id)
        if last is None or at > last:
            self.seen[member_id] = at

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
        """Record one cause of the next counted rebalance; for reported generations, evidence for one."""
        group = self.group
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
            self._caused = {(known.kind, known.member_id, known.topic) for known in triggers}
        if (kind, member_id, topic) not in self._caused:
            self._caused.add((kind, member_id, topic))
            triggers.append(Trigger(kind=kind, member_id=member_id, topic=topic, detail=detail, event_id=event_id))

    def rename_joiner(self, former_id: str, member_id: str) -> None:
        """Replace the id of a member that joined and rejoined under another id at this event time."""
        self.before.members.setdefault(member_id, None)
        pending = self.group.pending
        if pending is None:
            return
        for place, trigger in enumerate(pending.triggers):
            if place >= self.before.triggers and (trigger.kind, trigger.member_id) == ("member_joined", former_id):
                pending.triggers[place] = msgspec.structs.replace(trigger, member_id=member_id)
                self._caused = set()

    def learn(self, evidence: Evidence) -> bool:
        """Remember evidence that a later reported generation may show; beyond the limit the oldest is dropped.

        Returns: whether it is new.
        """
        known = self.group.evidence
        if evidence in known:
            return False
        bisect.insort(known, evidence, key=lambda one: (one.time, one.kind, one.member_id or "", one.topic or ""))
        del known[:-MAX_EVIDENCE]
        return True

    def note_pending_assignment(self, told: list[tuple[Queue, tuple[str, ...]]]) -> None:
        """Note the whole assignment that was reported with the pending changes."""
        if self.group.pending is not None:
            self.group.pending.reported = told

    def put_off_pending(self, at: int) -> None:
        """Have the pending rebalance, where there is one, carry this time at least."""
        if self.group.pending is not None:
            self.group.pending.changed_at = max(at, self.group.pending.changed_at)

    def cancel_pending(self) -> None:
        """Drop the pending rebalance: its changes have cancelled out."""
        self.group.pending = None

    def make_pending_evidence(self, pending: Pending, at: int) -> None:
        """Drop the pending rebalance: its causes are evidence for the reported generation that is about to come."""
        self.group.pending = None
        for trigger in pending.triggers:
            self.learn(Evidence(trigger.kind, at, trigger.member_id, trigger.topic, trigger.event_id))

    def take_back_evidence(self, member_id: str, at: int) -> None:
        """Forget departures of a member that has been alive since."""
        self.group.evidence = [
            one
            for one in self.group.evidence
            if one.member_id != member_id or one.kind not in ("member_left", "session_expired") or one.time >= at
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
        self.watch(member.member_id)
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
        self.seen.pop(member_id, None)
        group.last_heartbeats.pop(member_id, None)
        left_at = max(left_at, member.joined_at)
        self.write(at, closed(member, left_at, reason, last))
        self.remember(Departed(member=member, left_at=left_at, left_reason=reason, last_heartbeat_at=last))
        self.await_heartbeat(member_id, at - 1)

    def replace_session(self, former_id: str, member_id: str, at: int) -> int:
        """End the session of a static member under its former id; return when. It is in its new place already."""
        group, member = self.group, self.group.members[member_id]
        if self.before.joined(former_id):
            self.rename_joiner(former_id, member_id)
        else:
            self.before.exempt |= {former_id, member_id}
        last = self.last_heartbeat_or_none(former_id, at)
        self.seen.pop(former_id, None)
        group.last_heartbeats.pop(former_id, None)
        left_at = max(at, member.joined_at)
        self.write(at, closed(member, left_at, "replaced", last))
        former = msgspec.structs.replace(member, told_at=dict(member.told_at))
        self.remember(Departed(member=former, left_at=left_at, left_reason="replaced", last_heartbeat_at=last))
        self.await_heartbeat(former_id, at - 1)
        member.member_id = member.name = member_id
        return left_at

    def drop_member(self, member_id: str) -> None:
        """Drop a member whose session lies in the past."""
        del self.group.members[member_id]

    def reopen_session(self, departed: Departed, at: int) -> None:
        """Resume a session that had ended by mistake."""
        member = departed.member
        self.group.departed.pop(member.member_id, None)
        self.group.members[member.member_id] = member
        self.watch(member.member_id)
        self.write(at, MemberReopened(member_id=member.member_id, joined_at=member.joined_at))

    def remember(self, departed: Departed) -> None:
        """Keep the description of a departed member; beyond the limit the oldest one is dropped."""
        gone = self.group.departed
        gone.pop(departed.member.member_id, None)
        gone[departed.member.member_id] = departed
        while len(gone) > self.rules.max_departed_members:
            del gone[next(iter(gone))]

    # ---- findings

    def set_finding(self, key: str, found: Found | None, at: int, kind: str | None = None) -> None:
        """Open or close the finding under one key; its kind is the key unless ``kind`` is given."""
        group = self.group
        current = group.findings.get(key)
        if found is None:
            if current is not None:
                del group.findings[key]
                self.write(at, FindingClosed(finding_id=current.finding_id, closed_at=at))
            return
        if current is not None:
            if found.closes_at is not None:
                current.closes_at = found.closes_at
            return
        name = finding_id(self.facts.cluster, self.facts.group_id, key, at)
        group.findings[key] = OpenFinding(name, at, found.closes_at)
        self.write(
            at,
            FindingOpened(
                finding_id=name,
                finding=kind or key,
                severity=found.severity,
                message=found.message,
                advice=found.advice,
                evidence=list(found.evidence),
                opened_at=at,
            ),
        )


def closed(member: Member, left_at: int, reason: LeftReason, last: int | None) -> MemberClosed:
    """Return the end of a session as the journal writes it."""
    return MemberClosed(
        member_id=member.member_id,
        joined_at=member.joined_at,
        left_at=left_at,
        left_reason=reason,
        last_heartbeat_at=last,
    )
