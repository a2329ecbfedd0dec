"""Core: one group through one batch: what it is told, what it remembers, what it writes. No I/O."""

from __future__ import annotations

import bisect

from udfs.events import Mode, QueueInfo, System
from udfs.facts import Advanced, GroupFacts, TopicsView
from udfs.findings import Found
from udfs.group_state import MAX_EVIDENCE, Departed, Evidence, Group, Member, OpenFinding, Pending, Queue
from udfs.identity import finding_id
from udfs.journal import (
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
from udfs.rules import Rules
from udfs.strategies.rocketmq_clients import RETRY_TOPIC_PREFIX


class Turn:
    """One group through one batch.

    Attributes:
        seen: Members that live by heartbeats, with the last heartbeat that was applied one by one; those of
            ``facts.heartbeats`` are added by ``last_seen``.
        touched: Members that came, or whose timeout changed: their deadline is to be watched anew.
        departed_now: Members that went: their next heartbeat is a join.
        pulled: When the member whose report is being taken in has read each queue.
    """

    def __init__(self, group: Group, facts: GroupFacts, topics: TopicsView, rules: Rules) -> None:
        self.group = group
        self.facts = facts
        self.topics = topics
        self.rules = rules
        self.seen: dict[str, int] = dict(facts.last_seen)
        self.answer = Advanced()
        self.touched: list[str] = []
        self.departed_now: list[tuple[str, int]] = []
        self.heeded = False
        self.pulled: dict[Queue, int] = {}
        self._caused: set[tuple[str, str | None, str | None]] = set()  # what is pending names already

    @property
    def system(self) -> System:
        """Answer the group's system."""
        return self.facts.system

    @property
    def mode(self) -> Mode:
        """Answer how queues are shared."""
        return self.group.mode or "clustering"

    def is_quiet(self, topic: str) -> bool:
        """Judge whether a topic is dealt like others, but says nothing about how the group fares."""
        return self.system == "rocketmq" and topic.startswith(RETRY_TOPIC_PREFIX)

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
        """Write what the group is now, when that is news."""
        if row != self.group.row:
            self.group.row = row
            self.write(at, row)

    def applied(self, at: int) -> None:
        """Note that something was applied: a change, an expiry or a snapshot."""
        self.heeded = True
        self.group.last_applied = max(at, self.group.last_applied or at)
        self.group.touched_at = max(at, self.group.touched_at or at)

    # ---- time

    def timeout_of(self, member: Member) -> int:
        """Answer a member's session timeout."""
        told = member.session_timeout_ms
        return self.rules.session_timeout_ms(self.system) if told is None else told

    def last_seen(self, member_id: str, until: int) -> int:
        """Answer the last heartbeat, at or before ``until``, of a member that lives by heartbeats."""
        last = self.seen[member_id]
        times = self.facts.heartbeats.get(member_id)
        if times:
            place = bisect.bisect_right(times, until)
            if place:
                last = max(last, times[place - 1])
        return last

    def saw(self, member_id: str, at: int) -> None:
        """Note a heartbeat of a member that lives by heartbeats."""
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
        """Note one cause of the next counted rebalance; in a group of reported generations, evidence for one."""
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

    def learn(self, evidence: Evidence) -> None:
        """Remember what a later reported generation may show; beyond the limit the oldest is forgotten."""
        known = self.group.evidence
        if evidence not in known:
            bisect.insort(known, evidence, key=lambda one: (one.time, one.kind, one.member_id or "", one.topic or ""))
            del known[:-MAX_EVIDENCE]

    # ---- sessions

    def open_session(self, member: Member, at: int) -> None:
        """Begin a member's session."""
        group = self.group
        member.joined_at = at
        member.holds_since = at
        group.members[member.member_id] = member
        group.departed.pop(member.member_id, None)
        if member.by_heartbeats:
            self.touched.append(member.member_id)
        self.write(at, MemberOpened(**self._session(member)))  # type: ignore[arg-type]

    def change_session(self, member: Member, at: int, former: str | None = None) -> None:
        """Describe an open session anew."""
        body = MemberChanged(**self._session(member), former_member_id=former)  # type: ignore[arg-type]
        self.write(at, body)

    def close_session(self, member_id: str, at: int, left_at: int, reason: LeftReason) -> None:
        """End a member's session."""
        group = self.group
        member = group.members.pop(member_id)
        last = self.last_seen(member_id, at) if member_id in self.seen else None
        self.seen.pop(member_id, None)
        left_at = max(left_at, member.joined_at)
        self.write(at, closed(member, left_at, reason, last))
        self.remember(Departed(member=member, left_at=left_at, left_reason=reason, last_heartbeat_at=last))
        self.departed_now.append((member_id, at))

    def reopen_session(self, departed: Departed, at: int) -> None:
        """Let a session go on that had ended by mistake."""
        member = departed.member
        self.group.departed.pop(member.member_id, None)
        self.group.members[member.member_id] = member
        self.touched.append(member.member_id)
        self.write(at, MemberReopened(member_id=member.member_id, joined_at=member.joined_at))

    def remember(self, departed: Departed) -> None:
        """Keep the description of a member that went; beyond the limit the longest gone is forgotten."""
        gone = self.group.departed
        gone.pop(departed.member.member_id, None)
        gone[departed.member.member_id] = departed
        while len(gone) > self.rules.max_departed_members:
            del gone[next(iter(gone))]

    def _session(self, member: Member) -> dict[str, object]:
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
        """Answer a topic's queues as known then; a partition of Kafka has no broker."""
        queues = self.topics.at(topic, at)
        if queues is None or self.system != "kafka" or all(queue.broker is None for queue in queues):
            return queues
        return tuple(
            QueueInfo(queue.queue_id, None, queue.rack, queue.racks)
            for queue in sorted(queues, key=lambda queue: queue.queue_id)
        )

    # ---- findings

    def set_finding(self, key: str, found: Found | None, at: int, kind: str | None = None) -> None:
        """Open or close the finding under one key; its kind is the key unless it says otherwise."""
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
    """Answer the end of a session as the journal tells it."""
    return MemberClosed(
        member_id=member.member_id,
        joined_at=member.joined_at,
        left_at=left_at,
        left_reason=reason,
        last_heartbeat_at=last,
    )
