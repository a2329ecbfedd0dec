"""Core: what members say they hold, beside what they should hold. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from udfs.connections import speaker
from udfs.diff import by_owner, owners_of
from udfs.events import AssignmentReported, HeldQueue
from udfs.findings import differing_found
from udfs.group_state import MAX_WAITING_REPORTS, Owners, WaitingReport, key_of
from udfs.rebalancing import differing_from, settled_at, write_spans
from udfs.takeovers import first_pulls, is_timed, keep_pulls, resume
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
    _hold(turn, event.member_id, event.host, event.queues, at)


def take_waiting_reports(turn: Turn, at: int) -> None:
    """Take in the reports that waited for the generation that stands now; older ones are of no use any more."""
    group = turn.group
    waiting, group.waiting_reports = group.waiting_reports, []
    for report in waiting:
        if report.generation > group.current_generation:
            group.waiting_reports.append(report)
        elif report.generation == group.current_generation:
            since = max(at, report.time) if group.generation is None else at
            _hold(turn, report.member_id, report.host, report.queues, since)
    if is_timed(turn):
        compare_with_reports(turn, at)  # what members hold already may be what they should hold now


def take_told_assignment(turn: Turn, told: Owners, at: int) -> None:
    """Take in the whole assignment as a poll saw it, where nothing else changed."""
    group = turn.group
    write_spans(turn, "reported", told, at)
    _begin_to_compare(turn)
    group.reporters = sorted(group.members)
    if is_timed(turn):
        compare_with_reports(turn, at)


def compare_with_reports(turn: Turn, at: int) -> None:
    """Compare what members say that they hold with what they should, once all have said it and had time to follow."""
    group = turn.group
    if not awaits_comparison(turn):
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


def awaits_comparison(turn: Turn) -> bool:
    """Judge whether every member has said what it holds."""
    group = turn.group
    return bool(group.members) and turn.mode == "clustering" and set(group.reporters) >= group.members.keys()


def _begin_to_compare(turn: Turn) -> None:
    """Note that somebody says what he holds; the rebalance before the first such word is judged like any other."""
    group = turn.group
    if not group.has_reported and is_timed(turn) and group.last_rebalance_at is not None:
        group.compare_at = settled_at(turn, group.last_rebalance_at, ())
    group.has_reported = True


def _hold(turn: Turn, client: str, host: str | None, told: Sequence[HeldQueue], at: int) -> None:
    group = turn.group
    member = speaker(group, client, None if turn.system == "kafka" else host)
    if member is None:
        return
    member_id, queues = member.member_id, [key_of(queue, turn.system) for queue in told]
    turn.heeded = True
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
