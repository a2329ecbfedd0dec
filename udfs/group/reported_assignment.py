"""Core: the queues that members report, compared with the computed ones. No I/O."""

from __future__ import annotations

import bisect

from udfs.group.assignment_diff import by_owner, owners_of
from udfs.group.client_ids import reporting_member
from udfs.group.context import GroupContext
from udfs.group.findings import differing_found
from udfs.group.queue_handover import first_pulls, is_timed, keep_pulls, resume
from udfs.group.rebalance import differing_from, settled_at
from udfs.group.spans import write_spans
from udfs.group.state import MAX_WAITING_REPORTS, Group, Owners, WaitingReport, key_of
from udfs.model.events import AssignmentReported


def take_report(turn: GroupContext, event: AssignmentReported, at: int) -> None:
    """Apply a member's assignment as reported by itself or by a coordinator."""
    group = turn.group
    generation = event.generation
    if generation is None and group.pending is not None:
        generation = group.current_generation + 1  # the pending one
    if generation is not None and generation > group.current_generation:
        turn.heeded = True
        report = WaitingReport(generation, event.member_id, event.queues, event.event_time, event.host)
        if report not in group.waiting_reports:
            bisect.insort(group.waiting_reports, report, key=lambda one: one.time)
            del group.waiting_reports[:-MAX_WAITING_REPORTS]
        return
    if generation is not None and generation < group.current_generation:
        return
    report = WaitingReport(group.current_generation, event.member_id, event.queues, event.event_time, event.host)
    turn.outdated |= not _hold(turn, report, at)


def take_waiting_reports(turn: GroupContext, at: int) -> None:
    """Apply the reports that waited for the current generation; drop older ones."""
    group = turn.group
    waiting, group.waiting_reports = group.waiting_reports, []
    for report in waiting:
        if report.generation > group.current_generation:
            group.waiting_reports.append(report)
        elif report.generation == group.current_generation:
            since = max(at, report.time) if group.generation is None else at
            _hold(turn, report, since)
    if is_timed(turn):
        compare_with_reports(turn, at)  # the reported assignment may already equal the computed one


def take_reported_assignment(turn: GroupContext, told: Owners, at: int) -> None:
    """Apply the whole assignment of a poll in which nothing else changed."""
    group = turn.group
    write_spans(turn, "reported", told, at)
    _begin_to_compare(turn)
    group.reporters = sorted(group.members)
    if is_timed(turn):
        compare_with_reports(turn, at)


def compare_with_reports(turn: GroupContext, at: int) -> None:
    """Compare reported and computed assignment, once all members have reported and had time to follow."""
    group = turn.group
    if not awaits_comparison(turn) or _awaits_topics(group):
        return
    if group.compare_at is not None and at >= group.compare_at:
        group.compare_at = None
    failed = group.row is not None and group.row.state == "failed"
    if failed or not group.computed or not group.recomputable:
        return
    differing = differing_from(turn, group.computed, group.reported)
    if not differing:
        turn.set_finding("expected_differs", None, at)
    elif group.compare_at is None:
        turn.set_finding("expected_differs", differing_found(differing), at)


def awaits_comparison(turn: GroupContext) -> bool:
    """Return whether every member has reported its queues."""
    group = turn.group
    return bool(group.members) and turn.mode == "clustering" and set(group.reporters) >= group.members.keys()


def _awaits_topics(group: Group) -> bool:
    """Return whether the computed assignment is missing, or guessed because a topic has no metadata yet."""
    awaited = group.awaited
    return awaited is not None and (
        not awaited.guessed or any(one in group.counts for one in group.topics_without_metadata)
    )


def _begin_to_compare(turn: GroupContext) -> None:
    """Record that members report their queues; the rebalance before the first report is evaluated as well."""
    group = turn.group
    if not group.has_reported and is_timed(turn) and group.last_rebalance_at is not None:
        group.compare_at = settled_at(turn, group.last_rebalance_at, ())
    group.has_reported = True


def newest_reports(group: Group, told: Owners, own: int) -> Owners:
    """Return a whole assignment that was reported at a time, with what members have reported since in its place."""
    group.assigned_at = own
    newer: list[str] = []
    for member_id, member in group.members.items():
        if member.reported_at is not None and member.reported_at > own:
            newer.append(member_id)
        else:
            member.reported_at = None
    if not newer:
        return told
    held, standing = by_owner(told), by_owner(group.reported)
    return owners_of({**held, **{member_id: standing.get(member_id, []) for member_id in newer}})


def _hold(turn: GroupContext, report: WaitingReport, at: int) -> bool:
    """Apply what a member holds; return whether nothing newer is known of it."""
    group, told = turn.group, report.queues
    member = reporting_member(group, report.member_id, None if turn.system == "kafka" else report.host)
    if member is None:
        return True
    if report.time < max(member.reported_at or 0, group.assigned_at or 0):
        return False
    member.reported_at = report.time
    member_id, queues = member.member_id, [key_of(queue, turn.system) for queue in told]
    turn.heeded = True
    turn.work += len(group.reported)
    timed = is_timed(turn)
    turn.pulled = first_pulls(turn, told) if timed else {}
    if {queue for queue, holders in group.reported.items() if member_id in holders} != set(queues):
        held = by_owner(group.reported)
        held[member_id] = queues
        write_spans(turn, "reported", owners_of(held), at)
    if timed:
        resume(turn, member_id, at)
        keep_pulls(turn, told)
    turn.pulled = {}
    _begin_to_compare(turn)
    if member_id not in group.reporters:
        group.reporters = sorted([*group.reporters, member_id])
    compare_with_reports(turn, at)
    return True
