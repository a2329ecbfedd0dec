"""Core: one group in one batch, with everything that events may change in it: causes, evidence, settings. No I/O."""

from __future__ import annotations

import bisect
from collections.abc import Sequence

import msgspec

from udfs.group.batch.event_time import DESCRIBED
from udfs.group.batch.phases import under_way
from udfs.group.batch.sessions import GroupSessions
from udfs.group.state.group import MAX_EVIDENCE, Evidence, Group, Pending, Queue
from udfs.group.state.recorded_group import RecordedGroup
from udfs.group.state.state_machine import GroupKind
from udfs.group.state.view import Settings
from udfs.group.state.writing import assign, elements, entries
from udfs.model.config import CoreConfig
from udfs.model.events import GroupSnapshot, Mode
from udfs.model.group_api import GroupInput, TopicsView, observed_since
from udfs.model.journal import Trigger, TriggerKind
from udfs.model.systems import SYSTEMS, System

# Causes of these kinds name a static member by the id that it has after the event time.
_NAMED_BY_PRESENT_ID: frozenset[TriggerKind] = frozenset(("member_joined", *DESCRIBED))


class GroupContext(GroupSessions):
    """One group during one batch, as its events change it.

    Attributes:
        work: Number of members and queues processed; it bounds a batch.
        has_new_reports: Reports with this event time are still to be compared, once all of them have come.
        had_members: An event with this timestamp names a member that had departed: the group existed, even if without a
            row.
    """

    def __init__(self, group: Group, facts: GroupInput, topics: TopicsView, config: CoreConfig) -> None:
        super().__init__(group, facts, topics, config)
        self.work = 0
        self.has_new_reports = False
        self.had_members = False
        # the causes that the pending rebalance already names
        self._caused: set[tuple[str, str | None, str | None]] = set()

    # ---- the group's memory of its events

    def applied(self, at: int) -> None:
        """Record that something was applied: a change, an expiry or a snapshot."""
        assign(self.group, last_applied=max(at, self.group.last_applied or at))
        self.touch(at)

    def note_former_member(self, at: int, own: int) -> None:
        """Record that an event came after its member had departed; ``own``: when it was sent."""
        if own > (self.group.deleted_at or 0):
            self.had_members = True
            self.touch(at)

    def touch(self, at: int) -> None:
        """Record an observation that makes no later event late; an empty group is remembered from then on."""
        assign(self.group, touched_at=max(at, self.group.touched_at or at))

    def note_deletion(self, own: int) -> None:
        """Record that the group was deleted at a time; older events that come later belong to the former group."""
        assign(self.group, deleted_at=max(own, self.group.deleted_at or own))

    def forget_observations(self, at: int) -> None:
        """Forget observations of the group's queues from before a time, because they belong to a deleted group."""
        progress, offsets = observed_since(self.facts.progress, self.facts.offsets, at)
        falls = [fall for fall in self.facts.falls if fall.before_at >= at]
        self.facts = msgspec.structs.replace(self.facts, progress=progress, offsets=offsets, falls=falls)
        self.output.observed_since = at

    def set_system(self, system: System) -> None:
        """Set the group's system."""
        self.system, self.profile = system, SYSTEMS[system]
        self.output.system = system

    def note_settings(self, at: int) -> Settings:
        """Keep and return the group's settings before the first event of this event time that changes them."""
        self.touch(at)
        if self.before.settings is None:
            self.before.settings = self.settings_now()
        return self.before.settings

    def follow_records(self, recorded: RecordedGroup | None) -> None:
        """Start or stop following the group by the coordinator's records about it."""
        assign(self.group, recorded=recorded)

    def follow(self) -> None:
        """Record that the group is of a kind that is followed."""
        assign(self.group, followed=True)

    def note_preparing(self, snapshot: GroupSnapshot) -> None:
        """Record that a coordinator has begun a rebalance."""
        since, reason, joined = under_way(self.group, snapshot)
        assign(self.group, preparing_since=since, preparing_reason=reason, join_ended_at=joined)

    def note_not_preparing(self, own: int) -> None:
        """Record that no rebalance was in progress any more at a time, unless one began later."""
        group = self.group
        if group.preparing_since is None or group.preparing_since <= own:
            assign(group, preparing_since=None, preparing_reason=None, join_ended_at=None)

    def note_snapshot(self, at: int) -> None:
        """Record the time of an applied snapshot."""
        assign(self.group, last_snapshot_at=max(at, self.group.last_snapshot_at or at))

    def note_poll(self, leader: str | None, strategy: str | None) -> None:
        """Record the leader and the strategy that a poll reports."""
        group = self.group
        assign(
            group,
            leader=group.leader if leader is None else leader,
            reported_strategy=strategy or group.reported_strategy,
        )

    def set_strategy(self, strategy: str, inferred: bool, own: int) -> None:
        """Set the group's strategy, from an event with that time."""
        assign(self.group, strategy=strategy, strategy_inferred=inferred)
        entries(self.group.settings_at)["strategy"] = own

    def set_mode(self, mode: Mode, own: int) -> None:
        """Set how the group shares its queues; None is the default as long as no other was set."""
        if mode != self.mode:
            assign(self.group, mode=mode)
        entries(self.group.settings_at)["mode"] = own

    def set_strategy_settings(self, settings: dict[str, object], own: int) -> None:
        """Set the settings of the group's strategy."""
        if settings != (self.group.strategy_settings or {}):
            assign(self.group, strategy_settings=settings)
        entries(self.group.settings_at)["strategy_settings"] = own

    def note_late_event(self) -> None:
        """Count an event that came late."""
        assign(self.group, late_events=self.group.late_events + 1)

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
        """Record one cause of the next counted rebalance; with reported generations, evidence for one.

        A group that is not followed has no rebalances; its topics, settings and members change without one.
        """
        group = self.group
        if self.kind is GroupKind.NOT_FOLLOWED:
            return
        if self.kind is GroupKind.REPORTED:
            self.learn(Evidence(kind, at, member_id, topic, event_id))
            return
        self.touch(at)
        if group.pending is None:
            assign(group, pending=Pending(opened_at=at, changed_at=at))
            self.before.causes = []
        self.before.causes.append(
            Trigger(kind=kind, member_id=member_id, topic=topic, detail=detail, event_id=event_id)
        )

    def take_causes(self, causes: Sequence[Trigger], at: int) -> None:
        """Add causes of one time to the pending rebalance, each once."""
        pending, self.before.causes = self.group.pending, []
        if pending is None or not causes:
            return
        self.applied(at)
        assign(pending, changed_at=max(at, pending.changed_at))
        if len(self._caused) != len(pending.triggers):
            self._caused = {(known.kind, known.member_id, known.topic) for known in pending.triggers}
        for cause in causes:
            if (key := (cause.kind, cause.member_id, cause.topic)) not in self._caused:
                self._caused.add(key)
                elements(pending.triggers).append(cause)

    def learn(self, evidence: Evidence) -> bool:
        """Remember evidence that a later reported generation may show; beyond the limit the oldest is dropped.

        Returns: whether it is new.
        """
        remembered = elements(self.group.evidence)
        if evidence in remembered:
            return False
        bisect.insort(
            remembered, evidence, key=lambda item: (item.time, item.kind, item.member_id or "", item.topic or "")
        )
        del remembered[:-MAX_EVIDENCE]
        return True

    def note_pending_assignment(self, reported: list[tuple[Queue, tuple[str, ...]]]) -> None:
        """Record the whole assignment that was reported with the pending changes."""
        if self.group.pending is not None:
            assign(self.group.pending, reported=reported)

    def put_off_pending(self, at: int) -> None:
        """Raise the time of the pending rebalance, if there is one, to at least this time."""
        if self.group.pending is not None:
            assign(self.group.pending, changed_at=max(at, self.group.pending.changed_at))

    def rename_causes(self, former_id: str, member_id: str) -> None:
        """Let causes of this event time name a static member by its new id."""
        self.before.causes = [
            msgspec.structs.replace(cause, member_id=member_id)
            if cause.member_id == former_id and cause.kind in _NAMED_BY_PRESENT_ID
            else cause
            for cause in self.before.causes
        ]

    def cancel_pending(self) -> None:
        """Drop the pending rebalance, because its changes have cancelled out."""
        assign(self.group, pending=None)

    def learn_all(self, triggers: Sequence[Trigger], at: int) -> None:
        """Remember causes as evidence for the reported generation that is about to come."""
        for trigger in triggers:
            self.learn(Evidence(trigger.kind, at, trigger.member_id, trigger.topic, trigger.event_id))

    def take_back_evidence(self, member_id: str, at: int) -> None:
        """Forget departures of a member that has been alive since."""
        left = [
            evidence
            for evidence in self.group.evidence
            if evidence.member_id != member_id
            or evidence.kind not in ("member_left", "session_expired")
            or evidence.time > at
            or (evidence.time == at and evidence.kind == "member_left")
        ]
        assign(self.group, evidence=left)

    def explain_silence(self, member_id: str, left_at: int) -> None:
        """Forget an expiry that was inferred from the silence of a member that had left before."""
        if (self.last_heartbeat_or_none(member_id, left_at) or left_at) <= left_at:
            left = [
                evidence
                for evidence in self.group.evidence
                if (evidence.member_id, evidence.kind, evidence.event_id) != (member_id, "session_expired", None)
                or evidence.time < left_at
            ]
            assign(self.group, evidence=left)

    def use_up_evidence(self, left: list[Evidence]) -> None:
        """Keep only the evidence that a generation does not show."""
        assign(self.group, evidence=left)
