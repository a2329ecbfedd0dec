"""Core: the queues that members report, compared with the computed ones. No I/O."""

from __future__ import annotations

from udfs.group.assignment.queue_handover import first_pulls
from udfs.group.assignment.rebalance_plan import COOPERATIVE
from udfs.group.assignment.target_assignment import topics_with_metadata
from udfs.group.audit.audit import audit_of_reports
from udfs.group.batch.context import GroupContext
from udfs.group.batch.finding_causes import with_causes
from udfs.group.batch.findings import differing_found
from udfs.group.decision.commit import (
    commit_audit,
    commit_pulls,
    commit_reports,
    end_comparison,
    keep_waiting_report,
    newest_reports,
    note_report,
    take_out_waiting_reports,
)
from udfs.group.decision.commit_spans import commit_spans
from udfs.group.decision.outcome import named_differing
from udfs.group.decision.rebalance import differing_from, taken_over_by
from udfs.group.decision.unread import note_unread
from udfs.group.events.current_balance import with_balance
from udfs.group.members.client_ids import reporting_member
from udfs.group.state.assignment_diff import by_owner, held_only_by, owners_of
from udfs.group.state.group import Group, Owners, WaitingReport, key_of, queue_order
from udfs.group.state.state_machine import GroupKind
from udfs.group.state.view import GroupView
from udfs.model.events import AssignmentReported, GroupSnapshot


def take_report(context: GroupContext, event: AssignmentReported, at: int) -> bool:
    """Apply a member's assignment, reported by itself or by a coordinator; return whether there is a newer one."""
    group = context.group
    generation = event.generation
    if generation is None and group.pending is not None:
        generation = group.current_generation + 1  # the pending generation
    if generation is not None and generation > group.current_generation:
        report = WaitingReport(generation, event.member_id, event.queues, event.event_time, event.host)
        keep_waiting_report(context, report)
        return False
    if generation is not None and generation < group.current_generation:
        return False
    report = WaitingReport(group.current_generation, event.member_id, event.queues, event.event_time, event.host)
    return not _hold(context, report, at)


def take_waiting_reports(context: GroupContext, at: int) -> None:
    """Apply the reports that waited for the current generation; drop older ones."""
    for report in take_out_waiting_reports(context):
        _hold(context, report, max(at, report.time))
    if context.kind is GroupKind.CLIENT_ASSIGNED:
        compare_with_reports(context, at)  # the reported assignment may already equal the computed one
    elif context.kind is not GroupKind.REPORTED:
        compare_new_reports(context, at)


def compare_new_reports(context: GroupContext, at: int) -> None:
    """Compare the reports of a completed event time: reports with the same timestamp belong together."""
    if context.has_new_reports:
        compare_with_reports(context, at)
        note_unread(context, at)


def take_snapshot_assignment(context: GroupContext, snapshot: GroupSnapshot, at: int) -> bool:
    """Apply the assignment in a poll: with the pending rebalance, if there is one, else at once.

    Returns: whether it is older than the current one.
    """
    group = context.group
    if snapshot.assignments is None:
        return False
    reported = held_only_by(reported_owners(context, snapshot) or {}, group.members)
    if snapshot.event_time < (group.assigned_at or snapshot.event_time):
        return reported != group.reported
    reported = newest_reports(context, reported, snapshot.event_time)
    if group.pending is not None:
        context.note_pending_assignment(sorted(reported.items(), key=lambda item: queue_order(item[0])))
    elif group.last_rebalance_id is not None:
        take_reported_assignment(context, reported, at)
    return False


def reported_owners(view: GroupView, snapshot: GroupSnapshot) -> Owners | None:
    """Return the assignment in a snapshot, or None if it has none.

    Without members there are no owners; this is information only if assignments are reported at all.
    """
    if snapshot.assignments is None:
        return {} if view.group.has_reported and not snapshot.members else None
    return owners_of(
        {member: [key_of(queue, view.system) for queue in queues] for member, queues in snapshot.assignments.items()}
    )


def take_reported_assignment(context: GroupContext, reported: Owners, at: int) -> None:
    """Apply the whole assignment of a poll in which nothing else changed."""
    commit_spans(context, "reported", reported, at)
    commit_reports(context, context.group.members, _compare_at(context))
    context.has_new_reports = True


def compare_with_reports(context: GroupContext, at: int) -> None:
    """Compare the reported with the computed assignment, once all members have reported and had time to follow."""
    group, context.has_new_reports = context.group, False
    if not awaits_comparison(context) or _awaits_topics(group):
        return
    if group.compare_at is not None and at >= group.compare_at:
        end_comparison(context)
    commit_audit(context, audit_of_reports(context, at, is_over=group.compare_at is None), at)
    failed = group.row is not None and group.row.state == "failed"
    if failed or not group.computed or not group.recomputable:
        return
    differing = differing_from(context, group.computed, group.reported)
    if not differing:
        context.set_finding("expected_differs", None, at)
    elif group.compare_at is None:
        found = differing_found(named_differing(differing), len(differing), context.shown_names())
        context.set_finding("expected_differs", with_causes([("expected_differs", found)], group.findings)[0][1], at)
    # Members have had the time to take the queues over, so their reports show the balance.
    are_taken = context.kind is GroupKind.CLIENT_ASSIGNED and (group.compare_at is None or not differing)
    if are_taken and group.row is not None and group.pending is None:
        topic_queues = topics_with_metadata(context, at)
        row, findings = with_balance(context, group.row, group.reported, topic_queues, at, None)
        context.set_findings(findings, at)
        context.write_row(at, row)


def awaits_comparison(view: GroupView) -> bool:
    """Return whether every member has reported its queues."""
    group = view.group
    return bool(group.members) and view.mode == "clustering" and set(group.reporters) >= group.members.keys()


def _awaits_topics(group: Group) -> bool:
    """Return whether the computed assignment is missing, or guessed because a topic has no metadata yet."""
    awaited, missing = group.awaited, group.topics_without_metadata
    if awaited is None:
        return False
    unnamed = group.last_strategy == COOPERATIVE and any(topic not in awaited.topic_queues for topic in missing)
    return not awaited.guessed or unnamed or awaited.assumes_queues


def _compare_at(view: GroupView) -> int | None:
    """Return when reports are to be compared; the rebalance before the first report is evaluated like any other."""
    group = view.group
    if not group.has_reported and view.kind is GroupKind.CLIENT_ASSIGNED and group.last_rebalance_at is not None:
        return taken_over_by(view, group.last_rebalance_at, ())
    return group.compare_at


def _hold(context: GroupContext, report: WaitingReport, at: int) -> bool:
    """Apply the queues that a member holds; return whether nothing newer was reported."""
    group, reported = context.group, report.queues
    member = reporting_member(group, report.member_id, None if context.profile.makes_member_ids else report.host)
    if member is None:
        return True
    if report.time < max(member.reported_at or 0, group.assigned_at or 0):
        return False
    note_report(member, report.time)
    member_id, queues = member.member_id, [key_of(queue, context.system) for queue in reported]
    context.work += len(group.reported)
    takes_over = context.kind is GroupKind.CLIENT_ASSIGNED
    pulled = first_pulls(context, reported) if takes_over else {}
    if {queue for queue, holders in group.reported.items() if member_id in holders} != set(queues):
        held = by_owner(group.reported)
        held[member_id] = queues
        commit_spans(context, "reported", owners_of(held), at, pulled=pulled)
    if takes_over:
        commit_pulls(context, member_id, pulled, reported, at)
    commit_reports(context, {*group.reporters, member_id}, _compare_at(context))
    context.has_new_reports = True
    return True
