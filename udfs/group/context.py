"""Core: one group in one batch: its input, its state, its output. No I/O."""

from __future__ import annotations

import bisect

import msgspec

from udfs.group.assignment_diff import Changed, changed_queues
from udfs.group.findings import Found
from udfs.group.state import MAX_EVIDENCE, Departed, Evidence, Group, Member, OpenFinding, Owners, Pending, Queue
from udfs.model.config import CoreConfig
from udfs.model.events import Mode, QueueInfo, System
from udfs.model.group_api import DueEvent, GroupInput, GroupOutput, TopicsView
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
    Trigger,
    TriggerKind,
)
from udfs.strategies.registry import DEFAULTS, qualified_name
from udfs.strategies.rocketmq.all_members import RETRY_TOPIC_PREFIX


class GroupContext:
    """One group through one batch.

    Attributes:
        seen: Members that live by heartbeats, with the last heartbeat that was applied one by one; those of
            ``facts.heartbeats`` are added by ``last_heartbeat``.
        touched: Members that joined, or whose timeout changed: their deadline is to be recomputed.
        departed_now: Members that departed: their next heartbeat is a join, or takes the departure back.
        before: State of the members that events of this event time touched, before it; None: no member then.
            before_itself: the member objects. settings_before: The same for the group's settings.
        exempt: Members that were replaced by another id, which both report: their changes never cancel out.
        triggers_before, changed_before, changes_before: What was pending and written before this event time.
        first_change: How many changes were written before it, even if the group is deleted at that time.
        outdated: The event being applied carries a field older than the stored one, which stays.
        work: How many members and queues were processed: this bounds a batch.
        pulled: When the reporting member last pulled each queue.
        reports: What members report at this event time without a generation.
    """

    def __init__(self, group: Group, facts: GroupInput, topics: TopicsView, rules: CoreConfig) -> None:
        self.group = group
        self.facts = facts
        self.topics = topics
        self.rules = rules
        self.seen: dict[str, int] = dict(facts.last_heartbeat)
        self.answer = GroupOutput()
        self.touched: list[str] = []
        self.departed_now: list[tuple[str, int]] = []
        self.heeded = False
        self.outdated = False
        self.work = 0
        self._compared: list[tuple[Owners, Owners, list[Changed]]] = []
        self.pulled: dict[Queue, int] = {}
        self.reports: list[DueEvent] = []
        self.first_change = 0
        self.begin_event_time()
        self._caused: set[tuple[str, str | None, str | None]] = set()  # what is pending names already

    def begin_event_time(self) -> None:
        """Record the state before the first event of one event time."""
        pending = self.group.pending
        self.before: dict[str, Member | None] = {}
        self.before_itself: dict[str, Member] = {}
        self.settings_before: object = None
        self.exempt: set[str] = set()
        self.triggers_before = 0 if pending is None else len(pending.triggers)
        self.changed_before = 0 if pending is None else pending.changed_at
        self.changes_before = len(self.answer.changes)

    def note_member(self, member_id: str) -> None:
        """Keep a member's state before the first event of this event time that touches it."""
        if member_id in self.before:
            return
        member = self.group.members.get(member_id)
        self.before[member_id] = None if member is None else msgspec.structs.replace(member)
        if member is not None:
            self.before_itself[member_id] = member

    def note_settings(self) -> None:
        """Keep the group's settings before the first event of this event time that changes them."""
        if self.settings_before is None:
            self.settings_before = self.settings_now()

    def settings_now(self) -> object:
        """Return the settings of the group."""
        group = self.group
        return (self.strategy_now(), self.mode, group.strategy_settings or {})

    def strategy_now(self) -> str | None:
        """Return the group's own strategy, else the one last used; None: its members' vote failed."""
        group = self.group
        name = group.strategy or group.last_strategy
        if name is None and group.row is not None and group.row.state == "failed":
            return None
        return qualified_name(name or DEFAULTS[self.system], self.system)

    @property
    def system(self) -> System:
        """Return the group's system."""
        return self.facts.system

    @property
    def mode(self) -> Mode:
        """Return how queues are shared."""
        return self.group.mode or "clustering"

    def is_quiet(self, topic: str) -> bool:
        """Return whether a topic is assigned like others, but not evaluated in figures and findings."""
        return self.system == "rocketmq" and topic.startswith(RETRY_TOPIC_PREFIX)

    def changed_queues(self, before: Owners, after: Owners) -> list[Changed]:
        """Return what changed between two assignments; the result for the last two is cached."""
        for former, latter, changed in self._compared:
            if former is before and latter is after:
                return changed
        changed = changed_queues(before, after)
        self._compared = [*self._compared[-1:], (before, after, changed)]
        return changed

    # ---- writing

    def write(self, at: int, body: Body) -> None:
        """Write one change of the group's history."""
        self.group.number += 1
        self.answer.changes.append(
            Change(
                cluster=self.facts.cluster,
                group_id=self.facts.group_id,
                subject=None,
                number=self.group.number,
                event_time=at,
                body=body,
            )
        )

    def write_row(self, at: int, row: GroupChanged) -> None:
        """Write the group's current row, if it changed."""
        if row != self.group.row:
            self.group.row = row
            self.write(at, row)

    def applied(self, at: int) -> None:
        """Record that something was applied: a change, an expiry or a snapshot."""
        self.heeded = True
        self.group.last_applied = max(at, self.group.last_applied or at)
        self.group.touched_at = max(at, self.group.touched_at or at)

    # ---- time

    def timeout_of(self, member: Member) -> int:
        """Return a member's session timeout."""
        told = member.session_timeout_ms
        return self.rules.session_timeouts_ms[self.system] if told is None else told

    def deadline_of(self, member: Member) -> int:
        """Return when a member's session ends, by the heartbeats applied so far.

        Up to a change of its timeout the old one counted: where the new one would have passed already, the session
        ends at the change.
        """
        deadline = self.seen[member.member_id] + self.timeout_of(member)
        changed_at = member.told_at.get("session_timeout_ms", deadline)
        return max(deadline, changed_at, member.timeout_since or deadline)

    def last_heartbeat(self, member_id: str, until: int) -> int:
        """Return the last heartbeat, at or before ``until``, of a member that lives by heartbeats."""
        last = self.seen[member_id]
        times = self.facts.heartbeats.get(member_id)
        if times:
            place = bisect.bisect_right(times, until)
            if place:
                last = max(last, times[place - 1])
        return last

    def last_heartbeat_or_none(self, member_id: str, until: int) -> int | None:
        """Return the last heartbeat of any member; None: it never sent one."""
        if member_id in self.seen:
            return self.last_heartbeat(member_id, until)
        return self.group.last_heartbeats.get(member_id)

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
        if group.generation is not None:
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
        self.before.setdefault(member_id, None)
        pending = self.group.pending
        if pending is None:
            return
        for place, trigger in enumerate(pending.triggers):
            if place >= self.triggers_before and (trigger.kind, trigger.member_id) == ("member_joined", former_id):
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

    # ---- sessions

    def open_session(self, member: Member, at: int, former: str | None = None) -> None:
        """Begin a member's session; ``former`` is the id that a static member had before."""
        group = self.group
        self.note_member(member.member_id)
        member.joined_at = at
        member.holds_since = at
        group.members[member.member_id] = member
        group.departed.pop(member.member_id, None)
        if member.by_heartbeats:
            self.touched.append(member.member_id)
        self.write(at, MemberOpened(**self.session_of(member), former_member_id=former))  # type: ignore[arg-type]

    def change_session(self, member: Member, at: int) -> None:
        """Write the changed description of an open session."""
        self.write(at, MemberChanged(**self.session_of(member)))  # type: ignore[arg-type]

    def close_session(self, member_id: str, at: int, left_at: int, reason: LeftReason) -> None:
        """End a member's session."""
        group = self.group
        self.note_member(member_id)
        member = group.members.pop(member_id)
        last = self.last_heartbeat_or_none(member_id, at)
        self.seen.pop(member_id, None)
        group.last_heartbeats.pop(member_id, None)
        left_at = max(left_at, member.joined_at)
        self.write(at, closed(member, left_at, reason, last))
        self.remember(Departed(member=member, left_at=left_at, left_reason=reason, last_heartbeat_at=last))
        self.departed_now.append((member_id, at))

    def reopen_session(self, departed: Departed, at: int) -> None:
        """Resume a session that had ended by mistake."""
        member = departed.member
        self.group.departed.pop(member.member_id, None)
        self.group.members[member.member_id] = member
        self.touched.append(member.member_id)
        self.write(at, MemberReopened(member_id=member.member_id, joined_at=member.joined_at))

    def remember(self, departed: Departed) -> None:
        """Keep the description of a departed member; beyond the limit the oldest one is dropped."""
        gone = self.group.departed
        gone.pop(departed.member.member_id, None)
        gone[departed.member.member_id] = departed
        while len(gone) > self.rules.max_departed_members:
            del gone[next(iter(gone))]

    def session_of(self, member: Member) -> dict[str, object]:
        """Return a session as the journal writes it."""
        return {
            "member_id": member.member_id,
            "joined_at": member.joined_at,
            "client_id": member.client_id,
            "host": member.host,
            "instance_id": member.instance_id,
            "rack": member.rack,
            "client_version": member.client_version,
            "language": member.language,
            "subscriptions": None if member.subscriptions is None else list(member.subscriptions),
            "strategies": None if member.strategies is None else list(member.strategies),
            "lives_by": "heartbeats" if member.by_heartbeats else "snapshots",
            "session_timeout_ms": self.timeout_of(member) if member.by_heartbeats else member.session_timeout_ms,
        }

    # ---- topics

    def queues_at(self, topic: str, at: int) -> tuple[QueueInfo, ...] | None:
        """Return a topic's queues as known then; a partition of Kafka has no broker."""
        return self._as_named(self.topics.at(topic, at))

    def first_queues(self, topic: str, at: int) -> tuple[QueueInfo, ...] | None:
        """Return the first known queues of a topic if it was known by then; else None."""
        known = self.queues_at(topic, at)
        if known is None or self.topics.at(topic, at - 1) is None:
            return known
        return self._as_named(self.topics.first_description(topic))

    def _as_named(self, queues: tuple[QueueInfo, ...] | None) -> tuple[QueueInfo, ...] | None:
        if queues is None or self.system != "kafka" or all(queue.broker is None for queue in queues):
            return queues
        # Only states of older versions contain a partition under two brokers.
        partitions = {queue.queue_id: queue for queue in reversed(queues)}
        return tuple(
            QueueInfo(number, None, partitions[number].rack, partitions[number].racks) for number in sorted(partitions)
        )

    # ---- findings

    def set_finding(self, key: str, found: Found | None, at: int, kind: str | None = None) -> None:
        """Open or close the finding under one key; its kind is the key unless ``kind`` is given."""
        group = self.group
        standing = group.findings.get(key)
        if found is None:
            if standing is not None:
                del group.findings[key]
                self.write(at, FindingClosed(finding_id=standing.finding_id, closed_at=at))
            return
        if standing is not None:
            if found.closes_at is not None:
                standing.closes_at = found.closes_at
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
