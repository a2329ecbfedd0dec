"""Core: what members say they hold, beside what they should hold. No I/O."""

from __future__ import annotations

from udfs.connections import speaker
from udfs.diff import by_owner, count_differing, owners_of
from udfs.events import AssignmentReported
from udfs.findings import differing_found
from udfs.group_state import MAX_WAITING_REPORTS, Queue, WaitingReport, key_of
from udfs.rebalancing import write_spans
from udfs.turn import Turn


def take_report(turn: Turn, event: AssignmentReported, at: int) -> None:
    """Take in what a member, or a coordinator, says that the member holds."""
    group = turn.group
    generation = event.generation
    if generation is None and group.pending is not None:
        generation = group.current_generation + 1  # the one that is about to be
    if generation is not None and generation > group.current_generation:
        turn.heeded = True
        report = WaitingReport(generation, event.member_id, event.queues, event.event_time, event.host)
        if report not in group.waiting_reports:
            group.waiting_reports = [*group.waiting_reports, report][-MAX_WAITING_REPORTS:]
        return
    if generation is not None and generation < group.current_generation:
        return
    _hold(turn, event.member_id, event.host, [key_of(queue, turn.system) for queue in event.queues], at)


def take_waiting_reports(turn: Turn, at: int) -> None:
    """Take in the reports that waited for the generation that stands now; older ones are of no use any more."""
    group = turn.group
    waiting, group.waiting_reports = group.waiting_reports, []
    for report in waiting:
        if report.generation > group.current_generation:
            group.waiting_reports.append(report)
        elif report.generation == group.current_generation:
            held = [key_of(queue, turn.system) for queue in report.queues]
            since = max(at, report.time) if group.generation is None else at
            _hold(turn, report.member_id, report.host, held, since)


def _hold(turn: Turn, client: str, host: str | None, queues: list[Queue], at: int) -> None:
    group = turn.group
    member = speaker(group, client, None if turn.system == "kafka" else host)
    if member is None:
        return
    member_id = member.member_id
    turn.heeded = True
    if {queue for queue, holders in group.reported.items() if member_id in holders} != set(queues):
        held = by_owner(group.reported)
        held[member_id] = queues
        write_spans(turn, "reported", owners_of(held), at)
    group.has_reported = True
    if member_id not in group.reporters:
        group.reporters = sorted([*group.reporters, member_id])
    if set(group.reporters) >= group.members.keys() and turn.mode == "clustering":
        _compare_with_reports(turn, at)


def _compare_with_reports(turn: Turn, at: int) -> None:
    """Once every member has said what it holds since the last rebalance: compare with what it should."""
    group = turn.group
    failed = group.row is not None and group.row.state == "failed"
    if failed or not group.computed:
        return
    differing = count_differing(group.computed, group.reported)
    turn.set_finding("expected_differs", differing_found(differing) if differing else None, at)
