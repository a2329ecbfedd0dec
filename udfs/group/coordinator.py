"""Core: the coordinator of one group: an event, its changes, the rebalance and its commit. No I/O.

1. Scheduling: ``advance`` gets the input of a group from one batch. Late events apply first; then events, expiries of
   silent members, and timers, in the order of their times.
2. Changes: an event changes members, topics or settings. Each change is recorded as a cause of the pending rebalance
   or, with reported generations, as evidence for the next one. Of counted generations, only the net effect of all
   events with one timestamp counts.
3. Decision: when the pending changes have settled, or a reported generation comes, ``rebalance`` computes the result
   and changes nothing; ``commit`` applies it.
4. Output: the decisions, and when the group is due again.

The result depends on the events in the order of their times, not on how they were cut into batches.
"""

from __future__ import annotations

import msgspec

from udfs.group.assignment.rebalance_plan import plan_counted
from udfs.group.batch.context import GroupContext
from udfs.group.batch.findings import late_found
from udfs.group.decision.commit import commit, end_group
from udfs.group.decision.expiries import note_expired
from udfs.group.decision.rebalance import rebalance
from udfs.group.events.event_order import is_bare, order_of, snapshot_order_of
from udfs.group.events.heartbeats import apply_expiry, apply_heartbeat
from udfs.group.events.lifecycle import (
    change_settings,
    close_all_sessions,
    correct_system,
    end_under_way,
    mark_not_followed,
    note_deletion,
    register_empty_group,
    show_under_way,
    survives,
    take_observations,
)
from udfs.group.events.memberless_groups import end_without_commits
from udfs.group.events.membership import Applied, on_join, on_leave
from udfs.group.events.polls import on_snapshot
from udfs.group.events.reported_assignment import (
    compare_new_reports,
    take_report,
    take_snapshot_assignment,
    take_waiting_reports,
)
from udfs.group.events.restore import restore
from udfs.group.events.same_time import end_event_time
from udfs.group.events.timers import ON_TIMER, Timer, TimerKind, next_timer
from udfs.group.events.topic_changes import change_topic, learn_topic
from udfs.group.format.snapshot import snapshot_of
from udfs.group.format.state_format import decode_group, encode_group
from udfs.group.kafka.deleted_topics import note_deleted_commits
from udfs.group.kafka.group_epochs import apply_records, decide_waiting, described_in, has_record_of_group, to_classic
from udfs.group.kafka.polled_generations import counted_generation
from udfs.group.kafka.reported_generations import take_generation, update_existing
from udfs.group.members.static_members import under_present_ids
from udfs.group.state.group import Group
from udfs.group.state.record_fold import by_group
from udfs.group.state.state_machine import GroupKind
from udfs.model.config import CoreConfig
from udfs.model.errors import InvariantError
from udfs.model.events import (
    AssignmentReported,
    CommitsDeleted,
    GroupDeleted,
    GroupRecord,
    GroupSettings,
    GroupSnapshot,
    Heartbeat,
    MemberJoined,
    MemberLeft,
    TopicQueues,
)
from udfs.model.garbage_collection import makes_no_cycles
from udfs.model.group_api import DedupView, DueEvent, GroupInput, GroupOutput, TopicsView
from udfs.model.snapshot_meaning import Meaning, meaning_of, names_generation
from udfs.model.systems import System

__all__ = ["Group", "advance", "decode_group", "encode_group", "members_by_heartbeat", "new_group", "snapshot_of"]

# these have no effect in a group that is not followed
_OF_MEMBERS = (MemberLeft, MemberJoined, Heartbeat, AssignmentReported)
# A generation with the same timestamp may show these already.
_EVIDENCE = (TopicQueues, CommitsDeleted, MemberLeft, MemberJoined, Heartbeat)


def new_group(cluster: str, system: System, group_id: str) -> Group:  # noqa: ARG001
    """Make a new group; its name comes with its input."""
    return Group()


def members_by_heartbeat(group: Group) -> list[str]:
    """Return the members that ``GroupOutput.last_heartbeat`` named, in the order in which they joined."""
    return [member.member_id for member in group.members.values() if member.by_heartbeats]


@makes_no_cycles
def advance(group: Group, facts: GroupInput, topics: TopicsView, dedup: DedupView, config: CoreConfig) -> GroupOutput:
    """Apply everything that is due for a group, which is changed in place, and return the decisions."""
    return Coordinator(GroupContext(group, facts, topics, config), dedup).run()


class Coordinator:
    """One group during one batch."""

    def __init__(self, context: GroupContext, dedup: DedupView) -> None:
        self.context = context
        self.dedup = dedup
        self.clock = context.facts.clock
        self.event_time: int | None = None  # the time whose events are being applied
        self.done_at: int | None = None
        self.generation_times: set[int] = set()
        self.records: list[DueEvent] = []  # records of the coordinator with this event time (new protocols)
        self.reports: list[DueEvent] = []  # members' reports with this event time, without a generation

    def run(self) -> GroupOutput:
        """Apply late events, then all events, expiries and timers in the order of their times."""
        self._apply_late()
        self._schedule()
        while self._step():
            pass
        return self._output()

    # ---- 1. Scheduling

    def _apply_late(self) -> None:
        """Apply late events, at the clock's value before the batch."""
        context, at = self.context, self.context.facts.clock_before
        late = [due for due in context.facts.events if due.late]
        if not late or at is None:
            return
        context.begin_spans(at)
        for due in sorted(
            late, key=lambda due: (snapshot_order_of(due), due.event.event_time, order_of(due), due.event_id)
        ):
            if context.kind is GroupKind.NOT_FOLLOWED and isinstance(due.event, _OF_MEMBERS):
                context.output.ignored_event_ids.append(due.event_id)
                continue
            applied = self._apply_event(due, at)
            if isinstance(due.event, Heartbeat) and applied == Applied():
                context.output.ignored_event_ids.append(due.event_id)
            elif applied is not None:
                context.note_late_event()
                context.set_finding("events_late", late_found(at, context.group.late_events, due.event_id), at)
        self._take_records(at)
        context.take_causes(context.before.causes, at)
        register_empty_group(context, at)
        self._learn_topics(at)
        self._take_reports(at)
        context.queue.clear()

    def _schedule(self) -> None:
        """Queue the events that are not late, the heartbeats of unknown members, and the ends of sessions."""
        context = self.context
        for due in context.facts.events:
            if due.late:
                continue
            at, event = context.not_before_applied(due.event.event_time), due.event
            if isinstance(event, GroupSnapshot) and names_generation(event):
                self.generation_times.add(at)
            context.queue.push_event(at, order_of(due), snapshot_order_of(due), due)
        for member_id, times in context.facts.heartbeats.items():
            if member_id not in context.applied_heartbeats and times:
                context.queue.push_heartbeat(context.not_before_applied(times[0]), times[0], member_id)
        for member_id in context.applied_heartbeats:
            context.schedule_expiry(member_id)

    def _step(self) -> bool:
        """Apply the next item; return whether there was one."""
        context = self.context
        event_at = context.queue.next_at()
        if self.event_time is not None and self.event_time != event_at:
            self._take_records(self.event_time)
            end_event_time(context, self.event_time)
            register_empty_group(context, self.event_time)
            self._take_reports(self.event_time)
            self._learn_topics(self.event_time)
            self.event_time = None
        timer = next_timer(context)
        if timer is not None and timer.at >= (self.clock if event_at is None else event_at):
            timer = None  # it ends later, or at the same time as the next event, which comes first
        at = event_at if timer is None else timer.at
        if at is None:
            return False
        if self._must_stop(at):
            # The rest is due at this time or later: the next batch continues as if the clock had not advanced further.
            self.clock = context.output.stopped_at = at
            return False
        self.done_at = context.reached_at = at
        if timer is None:
            self._apply_next(at)
        else:
            self._on_timer(timer)
            self._learn_topics(at)
        return True

    def _learn_topics(self, at: int) -> None:
        """Apply topics that already had metadata when a generation with an earlier timestamp was decided."""
        for topic in list(self.context.group.topics_without_metadata):
            learn_topic(self.context, topic, at)

    def _must_stop(self, at: int) -> bool:
        """Return whether the limit of work is reached, and all earlier times are complete."""
        context = self.context
        limit = context.facts.work_limit
        if limit is None or context.work < limit or self.done_at is None:
            return False
        # Late events were applied at the former clock value, so what they made due then is part of that time.
        return all(at > time for time in (self.done_at, context.group.last_applied, context.facts.clock_before) if time)

    # ---- 2. Changes

    def _apply_next(self, at: int) -> None:
        context = self.context
        if self.event_time is None:
            self.event_time = at
            context.begin_event_time()
            context.begin_spans(at)
        if at in self.generation_times and context.kind is GroupKind.REPORTED:
            # A change learned with the same timestamp as a new generation may be its cause, so it comes first.
            self.generation_times.discard(at)
            events = context.queue.pop_events(at)
            for due in sorted(events, key=lambda due: not isinstance(due.event, _EVIDENCE)):
                self._apply_event(due, at)
            return
        entry = context.queue.pop()
        if isinstance(entry.what, DueEvent):
            self._apply_event(entry.what, at)
        elif entry.what.kind == "heartbeat":
            apply_heartbeat(context, entry.what, at, entry.own)
        else:
            apply_expiry(context, entry.what, entry.own)

    def _apply_event(self, due: DueEvent, at: int) -> Applied | None:
        """Apply an event; return None for a duplicate."""
        context, event = self.context, due.event
        context.work += len(event.members) + 1 if isinstance(event, GroupSnapshot) else 1
        if isinstance(event, TopicQueues):
            decide_waiting(context, at)
            change_topic(context, due, event, at)
            return Applied(changed=True)
        if context.kind is GroupKind.NOT_FOLLOWED and isinstance(event, _OF_MEMBERS):
            return Applied()
        if not is_bare(event) and self.dedup.is_repeat(due.event_id, event.event_time):
            return None
        applied = Applied(changed=True)
        if due.late and event.event_time < (context.group.deleted_at or 0):
            return Applied()  # it belongs to a group that was deleted since
        correct_system(context, due, at)
        match event:
            case GroupSettings():
                applied = Applied(True, change_settings(context, due, event, at))
            case GroupRecord():
                self.records.append(due)
            case GroupDeleted():
                self._delete(due, at)
            case CommitsDeleted():
                note_expired(context, event, at)
                note_deleted_commits(context, event, at, due.event_id)
                end_without_commits(context, at)
            case GroupSnapshot():
                applied = Applied(True, self._apply_snapshot(due, event, at))
            case MemberLeft():
                on_leave(context, due, event, at, described_in(self.records))
            case MemberJoined() | Heartbeat():
                applied = on_join(context, due, event, at)
            case AssignmentReported() if (
                not due.late and event.generation is None and context.kind is not GroupKind.REPORTED
            ):
                self.reports.append(due)  # it belongs to the generation of this event time, if there is one
            case AssignmentReported():
                applied = Applied(True, take_report(context, event, at))
        if applied.outdated:
            context.output.outdated.append(due.event_id)
        return applied

    def _take_records(self, at: int) -> None:
        """Apply everything that the coordinator recorded at an event time, all at once up to the group's deletion."""
        records, self.records = self.records, []
        if records:
            self.context.write_sessions(at)
        for of_one in by_group(records):
            if apply_records(self.context, of_one, at):
                self._delete(of_one[-1], at)

    def _take_reports(self, at: int) -> None:
        """Apply and compare members' reports of a completed event time, whose generation is decided now."""
        reports, self.reports = self.reports, []
        for due in reports:
            if isinstance(due.event, AssignmentReported) and take_report(self.context, due.event, at):
                self.context.output.outdated.append(due.event_id)
        compare_new_reports(self.context, at)

    def _apply_snapshot(self, due: DueEvent, snapshot: GroupSnapshot, at: int) -> bool:
        """Apply a coordinator's or a poll's report of the whole group; return whether some of it is outdated."""
        context, meaning = self.context, meaning_of(snapshot)
        if meaning is Meaning.RESTORED:
            restore(context, snapshot, at)
            return False
        snapshot = under_present_ids(context.group, snapshot)
        if meaning is Meaning.OVER:
            end_under_way(context, snapshot.event_time, at)
            return False
        context.applied(at)
        if has_record_of_group(self.records, deleted=True):
            records, self.records = self.records, []
            if to_classic(context, records, snapshot, at):
                return False
        if meaning is Meaning.LISTED:
            mark_not_followed(context, snapshot, at)
            return False
        if meaning is Meaning.UNDER_WAY:
            show_under_way(context, snapshot, at)
            return False
        context.follow()
        take_observations(context, due, snapshot, at)
        if meaning is not Meaning.POLLED:
            self._decide_before_generation(at)
            if meaning is Meaning.ASSIGNED:
                snapshot = msgspec.structs.replace(snapshot, generation=counted_generation(context, snapshot))
            outdated = take_generation(context, due, snapshot, at)
        elif context.kind is GroupKind.REPORTED:
            outdated = update_existing(context, snapshot, at)
            outdated |= take_snapshot_assignment(context, snapshot, at)
        else:
            outdated = on_snapshot(context, due, snapshot, at)
            outdated |= take_snapshot_assignment(context, snapshot, at)
        context.note_snapshot(snapshot.event_time)
        return outdated

    def _delete(self, due: DueEvent, at: int) -> None:
        """End members and spans; events that come next under this name belong to a new group."""
        context = self.context
        if has_record_of_group(self.records, deleted=False) or survives(context, due, at):
            return  # its protocol changed, or there was a sign of it since
        close_all_sessions(context, due, at)
        context.write_sessions(at)
        context.take_causes(context.before.causes, at)
        if context.group.pending is not None:
            commit(context, rebalance(context, plan_counted(context, context.group.pending)))
        note_deletion(context, due, at)
        end_group(context, at)
        context.begin_event_time(folds=not due.late)

    def _on_timer(self, timer: Timer) -> None:
        if timer.kind is TimerKind.SETTLE:
            self._decide()
        elif timer.kind is TimerKind.FINDING:
            self.context.set_finding(timer.finding, None, timer.at)
        elif timer.kind is TimerKind.NAMES:
            decide_waiting(self.context, timer.at)
        else:
            ON_TIMER[timer.kind](self.context, timer.at)

    # ---- 3. The rebalance and its commit; for reported generations see ``reported_generations.take_generation``

    def _decide(self) -> None:
        """Decide the pending rebalance, and apply assignments reported before it was decided."""
        context, pending = self.context, self.context.group.pending
        if pending is None:
            raise InvariantError(f"group {context.facts.group_id}", "a pending rebalance", None)
        result = rebalance(context, plan_counted(context, pending))
        commit(context, result)
        take_waiting_reports(context, result.row.event_time)

    def _decide_before_generation(self, at: int) -> None:
        """Decide pending changes of counted generations before a reported generation takes over.

        Changes with this timestamp are evidence for the reported one; a new group's first changes are decided.
        """
        context, pending = self.context, self.context.group.pending
        context.write_sessions(at)
        if pending is None:
            return
        of_now, context.before.causes = context.before.causes, []
        if not pending.triggers and not context.group.exists:
            context.take_causes(of_now, at)
            of_now = []
        if pending.triggers:
            self._decide()
        else:
            context.cancel_pending()
        context.learn_all(of_now, at)

    # ---- 4. The output

    def _output(self) -> GroupOutput:
        context, group, output = self.context, self.context.group, self.context.output
        context.note_number()
        for member in group.members.values():
            if member.by_heartbeats:
                output.last_heartbeat[member.member_id] = context.last_heartbeat(member.member_id, self.clock - 1)
                output.session_timeouts_ms[member.member_id] = context.timeout_of(member)
        timer = next_timer(context)
        output.topics, output.work = context.topics_of_interest(), context.work
        output.last_applied_ms = context.late_before()
        output.wake_at = None if timer is None else timer.at
        return output
