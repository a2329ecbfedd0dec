"""Core: the commit of decisions: how rebalances, generations and reports change a group. No I/O."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from udfs.group.assignment.queue_handover import latest_pulls, resumed
from udfs.group.audit.audit import audit_of_late, audit_of_overtaken, brief
from udfs.group.batch.context import GroupContext
from udfs.group.batch.findings import STUCK
from udfs.group.decision.commit_spans import (
    commit_spans,
    end_spans,
    note_holdings,
    provisional_spans,
    settle_replaced,
    split_by,
)
from udfs.group.decision.rebalance import RebalanceResult
from udfs.group.decision.stalled_queues import end_with_owners
from udfs.group.decision.unread import note_unread
from udfs.group.members.static_members import ids_at
from udfs.group.state.assignment_diff import by_owner, owners_of, without_topics
from udfs.group.state.group import (
    MAX_WAITING_REPORTS,
    Awaited,
    Group,
    Member,
    Owners,
    Queue,
    WaitingReport,
)
from udfs.group.state.state_machine import GroupKind
from udfs.group.state.strategy_verdict import verdict_of
from udfs.group.state.writing import assign, elements, entries
from udfs.model.audits import Audited
from udfs.model.comparability import NOT_RECOMPUTABLE, OF_LIBRARIES
from udfs.model.events import HeldQueue, QueueInfo
from udfs.model.journal import GroupChanged, GroupRemoved, Rebalance
from udfs.model.queues import shortened
from udfs.model.spans import SpansWithdrawn

# ---- a rebalance


def commit(context: GroupContext, result: RebalanceResult) -> None:
    """Apply a rebalance: write its row and the spans that change, update the group and its findings."""
    group, plan, row = context.group, result.plan, result.row
    at, awaited = row.event_time, plan.awaited
    if awaited is not None:
        awaited = msgspec.structs.replace(awaited, again=context.computed_spans_of_now(awaited.since))
    end_audits(context, at)
    context.work += row.members_after + row.queues_after
    context.output.rebalances.append(row)
    context.applied(at)
    if context.kind is not GroupKind.REPORTED:
        assign(group, pending=None, counted=row.generation)
    else:
        assign(group, pending=None, preparing_since=None, preparing_reason=None, join_ended_at=None)
    note_holdings(context, result.moves, at)
    assign(
        group,
        last_rebalance_at=at,
        last_rebalance_id=row.rebalance_id,
        rebalance_ordinals=result.ordinals,
        idle_queues=plan.idle_queues,
        pulls=plan.pulls,
    )
    _commit_owners(context, result)
    overtake_awaited(context, at)
    if awaited is None:
        forget_owned(context)
    is_comparable = plan.target.incomparable not in OF_LIBRARIES and plan.overtaken is None
    frequency = result.frequency
    assign(
        group,
        exists=True,
        members_decided=row.members_after,
        counts={topic: len(infos) for topic, infos in plan.topic_queues.items()},
        topics_without_metadata=list(plan.guessed),
        awaited=awaited,
        revoked_pending=list(plan.revoked_pending),
        waiting_since=dict(plan.waiting_since),
        converging=plan.converging,
        logical_id=row.logical_id if plan.revoked_pending or plan.converging else None,
        last_strategy=row.strategy,
        last_library=row.library,
        recomputable=row.error != NOT_RECOMPUTABLE and is_comparable,
        reporters=result.reporters,
        compare_at=result.compare_at,
        recent=frequency.recent,
        usual=frequency.usual,
        recent_clients=frequency.clients,
    )
    context.note_episodes(at, frequency.step.roots, frequency.step.episodes, frequency.step.changes)
    commit_audit(context, result.audit)
    context.write_row(at, result.group_row)
    context.write(at, result.rebalanced)
    context.set_findings(result.findings, at)
    end_with_owners(context, row)
    note_unread(context, at)


def _commit_owners(context: GroupContext, result: RebalanceResult) -> None:
    """End and begin the spans of a rebalance, those of its steps first."""
    group, plan, at = context.group, result.plan, result.row.event_time
    stopped = {queue: (outage.at_least, outage.at_most) for queue, outage in result.outages.items()}
    for time, owners in plan.steps:
        commit_spans(context, "reported", owners, time, costs=result.costs, paused=plan.step_pauses, outages=stopped)
    if plan.made_again:
        commit_spans(context, "computed", without_topics(group.computed, plan.made_again), at)
    commit_spans(context, "computed", plan.target.owners, at, guessed=plan.guessed, costs=result.costs, outages=stopped)
    if result.reported is not None:
        if plan.made_again and not plan.steps:
            commit_spans(context, "reported", without_topics(group.reported, plan.made_again), at)
        commit_spans(
            context, "reported", result.reported, at, costs=result.costs, paused=plan.step_pauses, outages=stopped
        )
        assign(group, has_reported=True)


def forget_owned(context: GroupContext) -> None:
    """Drop the owned queues that members reported before a rebalance or generation, which are out of date."""
    for member in context.group.members.values():
        context.forget_owned(member)


# ---- reported generations


def overtake_awaited(context: GroupContext, at: int) -> None:
    """Forget what the current generation still needs, because another one replaces it, under the present ids."""
    awaited = context.group.awaited
    is_of_now = awaited is not None and awaited is context.awaited_before and awaited.since == at
    if awaited is not None and is_of_now and awaited.again is not None:
        context.note_earlier_spans([*awaited.again, *provisional_spans(context, awaited)])
    assign(context.group, awaited=None)
    settle_replaced(context)


def begin_generation(
    context: GroupContext, generation: int, leader: str | None, member_ids: Iterable[str], *, polled: bool
) -> None:
    """Record the generation that a coordinator reports or polls show; its members are already set, in this order."""
    members = {member_id: context.group.members[member_id] for member_id in member_ids}
    assign(context.group, members=members, generation=generation, leader=leader, polled=polled)


def note_epoch(context: GroupContext, epoch: int, at: int) -> None:
    """Record a group epoch that changed nothing and is therefore not a rebalance."""
    group = context.group
    assign(group, generation=epoch)
    if group.row is not None:
        context.write_row(at, msgspec.structs.replace(group.row, generation=epoch))


def commit_generation_zero(context: GroupContext, at: int, *, polled: bool) -> None:
    """Apply generation 0, a new group without members, which is not a rebalance."""
    group = context.group
    for member_id in sorted(group.members):
        context.close_session(member_id, at, at, "absent_from_snapshot")
    end_spans(context, at)
    assign(group, generation=0, polled=polled, preparing_since=None, preparing_reason=None, join_ended_at=None)
    _forget_decided(group)
    row = GroupChanged(
        system=context.system,
        state="empty",
        generation=0,
        generation_source="counted" if polled else "reported",
        mode=context.mode,
    )
    row.last_rebalance_at, row.last_rebalance_id = group.last_rebalance_at, group.last_rebalance_id
    context.write_row(at, row)


def note_converged(context: GroupContext) -> None:
    """Record that a poll shows the current generation again, and that all its members have reached their target."""
    assign(context.group, converging=False)


def commit_topic(context: GroupContext, topic: str, queues: Sequence[QueueInfo]) -> None:
    """Record the queues of a topic of the current generation that got metadata only now."""
    group = context.group
    assign(group, topics_without_metadata=[other for other in group.topics_without_metadata if other != topic])
    if not queues:
        return
    entries(group.counts)[topic] = len(queues)
    if group.awaited is not None:
        entries(group.awaited.topic_queues)[topic] = shortened(tuple(queues))


def commit_awaited(context: GroupContext, awaited: Awaited, owners: Owners | None, *, comparable: bool) -> None:
    """Write the current generation's spans as computed from all its topics; None leaves them unchanged.

    Args:
        comparable: Whether reports can be compared with them.
    """
    group = context.group
    assign(group, recomputable=comparable)
    forget_owned(context)
    if owners is not None and owners != group.computed:
        _correct_spans(context, awaited, owners)
    assign(group, awaited=None, replaced=[])


def _correct_spans(context: GroupContext, awaited: Awaited, owners: Owners) -> None:
    group, since = context.group, awaited.since
    before = group.computed
    if awaited.before or before:
        now = {then: member for member, then in ids_at(group, since).items()}
        before = {
            queue: tuple(sorted(now.get(holder, holder) for holder in holders))
            for queue, holders in awaited.before.items()
        }
        if awaited.again is None and not group.replaced:
            # Spans that an earlier batch ended at that time stay ended; only spans that began with this generation are
            # withdrawn.
            held = by_owner(group.computed)
            kept = {
                member_id: [queue for queue in held[member_id] if member_id in before.get(queue, ())]
                for member_id in held
            }
            commit_spans(context, "computed", owners_of(kept), since, costs={})
        else:
            context.write(since, SpansWithdrawn(since=since))
            for body in awaited.again or ():
                context.write(since, body)
            assign(group, computed=before)
    # Offsets of that time may be forgotten, so costs would depend on when the topic got metadata.
    commit_spans(context, "computed", owners, since, inferred=True, costs={})
    if not group.has_reported:
        note_holdings(context, context.changed_queues(before, owners), since)
    for replacement in group.replaced:
        context.write(replacement.at, split_by(replacement))


# ---- audits


def commit_audit(context: GroupContext, audit: Audited | None, at: int | None = None) -> None:
    """Write the current generation's audit at that generation's time; ``at``: also write the group's row then."""
    if audit is None:
        return
    assign(context.group, audit=brief(audit))
    context.write(audit.rebalanced_at, audit)
    if at is not None and context.group.row is not None:
        context.write_row(at, context.group.row)


def end_audits(context: GroupContext, at: int) -> None:
    """Write the audit of the current generation, if still pending, because another generation overtakes it."""
    commit_audit(context, audit_of_overtaken(context, at))
    assign(context.group, verdict=verdict_of(context.group), audit=None)


def commit_overtaken(context: GroupContext, row: Rebalance, ordinals: dict[str, int]) -> None:
    """Write the row of a generation that newer ones overtook; the current state stays unchanged."""
    group = context.group
    context.output.rebalances.append(row)
    last = max(row.event_time, group.last_rebalance_at or row.event_time)
    assign(group, rebalance_ordinals=ordinals, last_rebalance_at=last)
    if row.members_after:
        context.write(row.event_time, audit_of_late(row))


# ---- members' reports of their queues


def keep_waiting_report(context: GroupContext, report: WaitingReport) -> None:
    """Keep a report until its generation arrives; beyond the limit the oldest is forgotten."""
    waiting = elements(context.group.waiting_reports)
    if report not in waiting:
        bisect.insort(waiting, report, key=lambda waiting_report: waiting_report.time)
        del waiting[:-MAX_WAITING_REPORTS]


def take_out_waiting_reports(context: GroupContext) -> list[WaitingReport]:
    """Return the reports of the current generation; later reports keep waiting, older ones are dropped."""
    group, now = context.group, context.group.current_generation
    waiting = group.waiting_reports
    assign(group, waiting_reports=[report for report in waiting if report.generation > now])
    return [report for report in waiting if report.generation == now]


def newest_reports(context: GroupContext, reported: Owners, own: int) -> Owners:
    """Return a reported whole assignment, in which members' later own reports replace their entries."""
    group = context.group
    assign(group, assigned_at=own)
    newer: list[str] = []
    for member_id, member in group.members.items():
        if member.reported_at is not None and member.reported_at > own:
            newer.append(member_id)
        elif member.reported_at is not None:
            assign(member, reported_at=None)
    if not newer:
        return reported
    held, current = by_owner(reported), by_owner(group.reported)
    return owners_of({**held, **{member_id: current.get(member_id, []) for member_id in newer}})


def note_report(member: Member, at: int) -> None:
    """Record when a member reported its queues."""
    assign(member, reported_at=at)


def commit_reports(context: GroupContext, reporters: Iterable[str], compare_at: int | None) -> None:
    """Record which members have reported their queues, and when these should equal the target."""
    group = context.group
    assign(group, has_reported=True, compare_at=compare_at, reporters=sorted(reporters))


def commit_pulls(
    context: GroupContext, member_id: str, pulled: Mapping[Queue, int], queues: Iterable[HeldQueue], at: int
) -> None:
    """Write the pulls of queues that a member took over earlier and has now pulled, and remember its newest pulls."""
    for body in resumed(context, member_id, pulled):
        del entries(context.group.idle_queues)[body.topic, body.broker, body.queue_id]
        context.write(at, body)
    entries(context.group.pulls).update(latest_pulls(context, queues))


def end_comparison(context: GroupContext) -> None:
    """Record that the time in which members may still own queues other than the computed ones is over."""
    assign(context.group, compare_at=None)


# ---- the end of a group


def end_followed(context: GroupContext, at: int) -> None:
    """End what was followed in a group of a kind that is not recomputed."""
    for member_id in sorted(context.group.members):
        context.close_session(member_id, at, at, "absent_from_snapshot")
    end_spans(context, at)
    stop_deciding(context, at)


def stop_deciding(context: GroupContext, at: int) -> None:
    """Stop deciding for a group of a kind that is not recomputed.

    A streams group may still be stuck; its next row shows it.
    """
    group = context.group
    for kind in sorted(group.findings.keys() - {STUCK}):
        context.set_finding(kind, None, at)
    assign(group, followed=False, pending=None, generation=None, compare_at=None, idle_queues={}, pulls={})
    _forget_decided(group)


def _forget_decided(group: Group) -> None:
    """Forget what the last decision left to be done."""
    assign(
        group,
        members_decided=0,
        counts={},
        topics_without_metadata=[],
        awaited=None,
        revoked_pending=[],
        waiting_since={},
        converging=False,
    )


def show_owners(context: GroupContext, owners: Owners, at: int) -> None:
    """Show the owners in a group of a kind that is not recomputed."""
    commit_spans(context, "reported", owners, at)
    assign(context.group, has_reported=True)


def end_group(context: GroupContext, at: int) -> None:
    """End a group without members; a group of the same name that comes later is new, except for its counters."""
    group = context.group
    end_spans(context, at)
    for kind in sorted(group.findings):
        context.set_finding(kind, None, at)
    context.end_episodes(group.episodes, at)
    if group.row is not None:
        context.write(at, GroupRemoved())
    new = Group(
        number=group.number,
        counted=group.counted,
        last_rebalance_at=group.last_rebalance_at,
        rebalance_ordinals=group.rebalance_ordinals,
        last_applied=group.last_applied,
        deleted_at=group.deleted_at,
    )
    assign(group, **msgspec.structs.asdict(new))
