"""Core: what each due event does to its group. No I/O."""

from __future__ import annotations

from udfs.group.assignment_diff import held_only_by
from udfs.group.context import GroupContext
from udfs.group.event_order import generation_of, is_bare, order_of
from udfs.group.findings import late_found
from udfs.group.lifecycle import (
    change_settings,
    delete,
    mark_not_followed,
    register_empty_group,
    restore,
    take_observations,
)
from udfs.group.membership import on_join, on_leave, on_snapshot
from udfs.group.rebalance import decide_counted
from udfs.group.reported_assignment import (
    newest_reports,
    take_report,
    take_reported_assignment,
    take_waiting_reports,
)
from udfs.group.reported_generations import is_under_way, owners_in_snapshot, take_generation, update_existing
from udfs.group.state import Evidence
from udfs.group.static_members import under_present_ids
from udfs.group.topic_changes import change_topic
from udfs.model.events import (
    AssignmentReported,
    GroupDeleted,
    GroupSettings,
    GroupSnapshot,
    Heartbeat,
    MemberJoined,
    MemberLeft,
    TopicQueues,
)
from udfs.model.group_api import DedupView, DueEvent

# Ignored in a group that is not followed.
_OF_MEMBERS = (MemberLeft, MemberJoined, Heartbeat, AssignmentReported)


def apply_late(turn: GroupContext, ledger: DedupView) -> None:
    """Apply late events at the clock before the batch, before all other events."""
    group, at = turn.group, turn.facts.clock_before
    late = [due for due in turn.facts.events if due.late]
    if not late or at is None:
        return
    late.sort(key=lambda due: (generation_of(due), due.event.event_time, order_of(due), due.event_id))
    for due in late:
        if not group.followed and isinstance(due.event, _OF_MEMBERS):
            turn.answer.ignored_event_ids.append(due.event_id)
            continue
        turn.heeded = False
        if not apply_event(turn, ledger, due, at):
            continue
        if isinstance(due.event, Heartbeat) and not turn.heeded and due.event_id not in turn.answer.outdated:
            turn.answer.ignored_event_ids.append(due.event_id)
            continue
        group.late_events += 1
        turn.set_finding("events_late", late_found(at, group.late_events, due.event_id), at)
    turn.departed_now.clear()
    turn.touched.clear()


def apply_event(turn: GroupContext, ledger: DedupView, due: DueEvent, at: int) -> bool:
    """Apply an event; return whether it was the first of its id."""
    event = due.event
    turn.work += len(event.members) + 1 if isinstance(event, GroupSnapshot) else 1
    if isinstance(event, TopicQueues):
        change_topic(turn, due, event, at)
        return True
    if not turn.group.followed and isinstance(event, _OF_MEMBERS):
        return True
    if not is_bare(event) and ledger.is_repeat(due.event_id, event.event_time):
        return False
    turn.outdated = False
    match event:
        case GroupSettings():
            change_settings(turn, due, event, at)
        case GroupDeleted():
            delete(turn, due, at)
            turn.begin_event_time()
        case GroupSnapshot():
            _apply_snapshot(turn, due, event, at)
        case MemberLeft():
            on_leave(turn, due, event, at)
        case MemberJoined() | Heartbeat():
            on_join(turn, due, event, at)
        case AssignmentReported() if not due.late and event.generation is None and turn.group.generation is None:
            turn.reports.append(due)  # it belongs to the generation that this event time makes, if it makes one
        case AssignmentReported():
            take_report(turn, event, at)
        case _:
            pass
    if turn.outdated:
        turn.answer.outdated.append(due.event_id)
    return True


def take_reports(turn: GroupContext, at: int) -> None:
    """Apply what members reported at an event time that is over: its generation is known now."""
    reports, turn.reports = turn.reports, []
    for due in reports:
        turn.outdated = False
        if isinstance(due.event, AssignmentReported):
            take_report(turn, due.event, at)
        if turn.outdated:
            turn.answer.outdated.append(due.event_id)


def _apply_snapshot(turn: GroupContext, due: DueEvent, snapshot: GroupSnapshot, at: int) -> None:
    group = turn.group
    if snapshot.restored:
        restore(turn, snapshot, at)
        return
    snapshot = under_present_ids(group, snapshot)
    turn.applied(at)
    if snapshot.state == "not_followed":
        mark_not_followed(turn, snapshot, at)
        return
    if is_under_way(snapshot):
        if group.preparing_since is None:
            group.preparing_since = snapshot.event_time
        return
    group.followed = True
    take_observations(turn, due, snapshot, at)
    if snapshot.generation is not None:
        _give_way(turn, at)
        take_generation(turn, due, snapshot, at)
    elif group.generation is None:
        on_snapshot(turn, due, snapshot, at)
        _take_reported_assignment(turn, snapshot, at)
        register_empty_group(turn, at)
    else:
        update_existing(turn, snapshot, at)
        _take_reported_assignment(turn, snapshot, at)
    group.last_snapshot_at = max(snapshot.event_time, group.last_snapshot_at or snapshot.event_time)


def _give_way(turn: GroupContext, at: int) -> None:
    """Decide the pending counted rebalance before a reported generation takes over."""
    pending = turn.group.pending
    if pending is None:
        return
    if pending.changed_at < at or turn.group.exists is False:
        decide_pending(turn)
        return
    turn.group.pending = None
    for trigger in pending.triggers:
        turn.learn(Evidence(trigger.kind, at, trigger.member_id, trigger.topic, trigger.event_id))


def _take_reported_assignment(turn: GroupContext, snapshot: GroupSnapshot, at: int) -> None:
    group = turn.group
    told = owners_in_snapshot(turn, snapshot)
    if told is None:
        return
    told = held_only_by(told, group.members)
    if snapshot.event_time < (group.assigned_at or snapshot.event_time):
        turn.outdated |= told != group.reported
        return
    told = newest_reports(group, told, snapshot.event_time)
    if group.pending is not None:
        group.pending.told = sorted(told.items(), key=lambda one: (one[0][0], one[0][1] or "", one[0][2]))
    elif group.last_rebalance_id is not None:
        take_reported_assignment(turn, told, at)


def decide_pending(turn: GroupContext) -> None:
    """Decide the pending rebalance, and apply the reports that arrived before it."""
    decide_counted(turn)
    take_waiting_reports(turn, turn.group.last_rebalance_at or 0)
