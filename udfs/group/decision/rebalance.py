"""Core: a rebalance that follows from a group and its changes; computed here, applied by ``commit``. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from udfs.group.assignment.balance import balance_of
from udfs.group.assignment.client_timings import settled_after_ms
from udfs.group.assignment.metadata_age import unshown_queues
from udfs.group.assignment.move_costs import MoveCost, add_costs, move_costs
from udfs.group.assignment.outages import Outage, add_outages, outages
from udfs.group.assignment.rebalance_plan import RebalancePlan, queues_of
from udfs.group.assignment.target_assignment import (
    previous_owners,
)
from udfs.group.audit.audit import audit_of_plan
from udfs.group.batch.finding_causes import with_causes
from udfs.group.batch.findings import RULES, Found, Outcome
from udfs.group.decision.frequency import Frequency, frequency_after
from udfs.group.decision.outcome import outcome_of
from udfs.group.members.joint_departures import with_joint_departures
from udfs.group.state.assignment_diff import (
    Balance,
    Changed,
    changed_queues,
    count_moves,
    held_only_by,
    without_topics,
)
from udfs.group.state.group import Owners, Queue, observed_by
from udfs.group.state.state_machine import GroupKind
from udfs.group.state.view import GroupView
from udfs.model.audits import Audited
from udfs.model.clients import host_of
from udfs.model.comparability import GROWTH_NOT_DUE, NO_MEMBERS, NOT_RECOMPUTABLE, NOT_REPORTED, TOPICS_UNKNOWN
from udfs.model.ids import rebalance_id
from udfs.model.journal import (
    TRIGGER_ORDER,
    GenerationSource,
    GroupChanged,
    Rebalance,
    Rebalanced,
    Trigger,
)

# The error of an epoch that a newer one overtook begins with this word.
OVERTAKEN = "overtaken"
_OF_COMPLETED = ("expected_differs", "unassigned_queues", "idle_members")
_OF_OWNERS = ("unassigned_queues", "idle_members")
_RANKS = {kind: rank for rank, kind in enumerate(TRIGGER_ORDER)}


class RebalanceResult(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that follows from a plan.

    Attributes:
        row: The row for the table. group_row, rebalanced: The changes for the journal.
        moves: The differences between the previous assignment and this one, as reported if they are.
        reported: The queues that members report from now on; None if they have reported nothing so far.
        reporters: Members that have reported their queues. compare_at: When reports should equal the target; None if
            they are not compared, or only when more come.
        frequency: How often the group rebalances, and its episodes.
        ordinals: The number of rebalances of each generation with this timestamp.
        findings: Each rule's finding, by kind; None if the rule found nothing.
        costs: Costs of queues that get an owner, as far as offsets are known. outages: Outages of queues that changed
            or lost theirs.
        audit: The audit of this generation, if it can be compared already.
    """

    plan: RebalancePlan
    row: Rebalance
    group_row: GroupChanged
    rebalanced: Rebalanced
    moves: Sequence[Changed]
    reported: Owners | None
    reporters: list[str]
    compare_at: int | None
    frequency: Frequency
    ordinals: dict[str, int]
    findings: Sequence[tuple[str, Found | None]]
    costs: dict[Queue, MoveCost]
    outages: dict[Queue, Outage]
    audit: Audited | None


def rebalance(view: GroupView, plan: RebalancePlan) -> RebalanceResult:
    """Compute the result of a plan: the row, the spans, the figures, the findings. Nothing is changed."""
    group, at, target = view.group, plan.at, plan.target
    queues = queues_of(view, plan.topic_queues)
    before, after = group.computed, target.owners
    if plan.reported is not None:
        before, after = previous_owners(group), plan.reported
    ended = sum(len(holders) for queue, holders in before.items() if queue[0] in plan.made_again)
    before = without_topics(before, plan.made_again)
    moves = view.changed_queues(before, after)
    evaluated = _evaluated_owners(view, plan, after)
    balance = Balance() if evaluated is None else balance_of(view, evaluated, queues)
    identity, ordinals = next_identity(view, at, plan.generation)
    began = None if plan.pauses.pause_ms is None else at - plan.pauses.pause_ms
    costs = move_costs(view, moves, at, began, _taken_at(before, plan))
    counts = {topic: len(infos) for topic, infos in plan.topic_queues.items()}
    unshown = unshown_queues(view, counts, at)
    shown = msgspec.structs.replace(balance, unassigned=balance.unassigned + unshown)
    row = _row(view, plan, identity, before, moves, shown, len(queues) + unshown, is_outgrown=bool(unshown))
    add_costs(row, costs)
    row.queues_revoked += ended
    stopped = outages(view, plan, before, after, moves, queues)
    add_outages(row, stopped)
    reported = plan.reported
    if reported is None and group.has_reported:
        reported = held_only_by(group.reported, group.members)
    reporters, compare_at = _expected_reports(view, plan, reported is not None)
    frequency = frequency_after(view, row, before)
    row.episode_id = frequency.step.episode_id
    outcome = outcome_of(
        view,
        plan,
        row,
        evaluated or {},
        queues,
        _differing(view, plan),
        frequency.flapping,
        frequency.unplanned,
        unassigned=balance.unassigned,
        is_moving=_is_moving(view, plan),
    )
    return RebalanceResult(
        plan=plan,
        row=row,
        group_row=_group_row(row, shown, unshown_queues(view, counts) - unshown),
        rebalanced=_rebalanced(row, plan, shown),
        moves=moves,
        reported=reported,
        reporters=reporters,
        compare_at=compare_at,
        frequency=frequency,
        ordinals=ordinals,
        findings=_findings(view, plan, row, outcome),
        costs=costs,
        outages=stopped,
        audit=audit_of_plan(view, plan, row),
    )


def _taken_at(before: Owners, plan: RebalancePlan) -> dict[Queue, int]:
    """Return when queues got their new owners within the rebalance."""
    taken: dict[Queue, int] = {}
    for time, owners in plan.steps:
        taken |= {queue: time for queue, holders in owners.items() if before.get(queue) != holders}
        before = owners
    return taken


def _row(
    view: GroupView,
    plan: RebalancePlan,
    identity: str,
    before: Owners,
    moves: Sequence[Changed],
    balance: Balance,
    queues: int,
    *,
    is_outgrown: bool,
) -> Rebalance:
    group, target = view.group, plan.target
    triggers = in_order(with_joint_departures(view, with_clients(view, plan.triggers)))
    counts = count_moves(before, moves)
    differing, reason = compared_with_reports(view, plan, is_outgrown=is_outgrown)
    return Rebalance(
        rebalance_id=identity,
        cluster=view.facts.cluster,
        system=view.system,
        group_id=view.facts.group_id,
        generation=plan.generation,
        generation_source=source_of(view),
        event_time=plan.at,
        detected_at=view.facts.detected_at,
        trigger=triggers[0].kind,
        triggers=triggers,
        strategy=target.strategy,
        leader=group.leader if group.leader in group.members else None,
        mode=view.mode,
        status="failed" if target.failed else "completed",
        error=target.error if plan.overtaken is None else f"{OVERTAKEN} by epoch {plan.overtaken}",
        members_before=group.members_decided,
        members_after=len(group.members),
        queues_before=sum(group.counts.values()),
        queues_after=queues,
        queues_kept=counts.kept,
        queues_assigned=counts.assigned,
        queues_revoked=counts.revoked,
        queues_moved=counts.moved,
        generations_missed=plan.generations_missed,
        idle_members=balance.idle,
        unassigned_queues=balance.unassigned,
        spread=balance.spread,
        agrees=None if differing is None else differing == 0,
        queues_differing=differing,
        library=target.library,
        agrees_reason=reason,
        logical_id=_logical_id(view, plan, triggers) or identity,
        **msgspec.structs.asdict(plan.pauses),
        observed_by=observed_by(group, source_of(view)),
        settings=view.settings_text(),
        **msgspec.structs.asdict(plan.phases),
    )


def _logical_id(view: GroupView, plan: RebalancePlan, triggers: Sequence[Trigger]) -> str | None:
    """Return the first generation of the cooperative rebalance that this one continues; None if it begins one.

    It continues one if it assigns some of the revoked queues, or if some of them are still waiting; not if the group
    became empty in between.
    """
    group = view.group
    owners = plan.target.owners if plan.reported is None else plan.reported
    continues = any(trigger.kind == "cooperative_follow_up" for trigger in triggers)
    continues |= bool(plan.waiting_since) or any(queue in owners for queue in group.revoked_pending)
    if not continues or not group.members or not group.members_decided:
        return None
    return group.logical_id


def _is_moving(view: GroupView, plan: RebalancePlan) -> bool:
    """Return whether queues have no owner only until the next generation of a cooperative rebalance."""
    return bool(plan.revoked_pending and view.group.members) and not plan.target.failed


def compared_with_reports(view: GroupView, plan: RebalancePlan, *, is_outgrown: bool) -> tuple[int | None, str | None]:
    """Return on how many queues the reported assignment differs from the computed one, or why that is unknown.

    Args:
        is_outgrown: Metadata shows queues that this generation had not learned yet.
    """
    reported = plan.reported if plan.compared is None else plan.compared
    if not view.group.members:
        return None, NO_MEMBERS
    if reported is None:
        return None, NOT_REPORTED
    if plan.target.incomparable is not None:
        return None, plan.target.incomparable
    if any(topic in plan.topic_queues for topic in plan.guessed):
        # The assignment itself shows the queues to assign, so it would agree with whatever it left out. Metadata of
        # these topics is still to come, with racks: then the assignment is evaluated.
        return None, TOPICS_UNKNOWN
    differing = len(differing_from(view, plan.target.owners, reported))
    return differing, GROWTH_NOT_DUE if is_outgrown and not differing else None


def _differing(view: GroupView, plan: RebalancePlan) -> Sequence[Changed]:
    """Return the queues whose reported owners differ from the computed ones."""
    reported = plan.reported if plan.compared is None else plan.compared
    return () if reported is None else differing_from(view, plan.target.owners, reported)


def _evaluated_owners(view: GroupView, plan: RebalancePlan, after: Owners) -> Owners | None:
    """Return the owners by which figures and findings are evaluated; None if unknown."""
    group = view.group
    if plan.awaited is not None and plan.reported is None and plan.topic_queues:
        return None  # queues exist, but nothing is computed for them yet
    if plan.target.error == NOT_RECOMPUTABLE and plan.reported is None:
        return group.reported if group.has_reported else None
    return after


def _expected_reports(view: GroupView, plan: RebalancePlan, has_reported: bool) -> tuple[list[str], int | None]:
    """Return the members that have reported their queues, and when the reports should equal the strategy's result."""
    group = view.group
    if view.kind is not GroupKind.CLIENT_ASSIGNED:
        return (sorted(group.members) if plan.reported is not None else []), None
    # A member that reports nothing holds what it reported last: members report only changes.
    kept = (
        group.members
        if plan.reported is not None
        else [member_id for member_id in group.reporters if member_id in group.members]
    )
    kinds = {trigger.kind for trigger in plan.triggers}
    return sorted(kept), taken_over_by(view, plan.at, kinds) if has_reported else None


def taken_over_by(view: GroupView, at: int, kinds: Collection[str]) -> int:
    """Return the time by which members should hold the queues that a rebalance gave them."""
    members = view.group.members.values()
    timeout = max((view.timeout_of(member) for member in members), default=0)
    return at + settled_after_ms(view.profile, kinds, any(member.ordered for member in members), timeout)


def differing_from(view: GroupView, computed: Owners, reported: Owners) -> list[Changed]:
    """Return the queues on which computed and reported owners differ, not counting retry topics."""
    return [change for change in changed_queues(computed, reported) if not view.is_quiet(change[0][0])]


def with_clients(view: GroupView, triggers: Sequence[Trigger]) -> list[Trigger]:
    """Return causes with the clients and hosts of their members, as far as these are remembered."""
    found: list[Trigger] = []
    for trigger in triggers:
        member = None if trigger.member_id is None else view.member_of_id(trigger.member_id)
        if member is not None:
            trigger = msgspec.structs.replace(trigger, client=view.client_of(member), host=host_of(member.host))
        found.append(trigger)
    return found


def in_order(triggers: Sequence[Trigger]) -> list[Trigger]:
    """Return causes, the main cause first."""
    return sorted(
        triggers, key=lambda item: (_RANKS[item.kind], item.member_id or "", item.topic or "", item.event_id or "")
    )


def source_of(view: GroupView) -> GenerationSource:
    """Return whether the coordinator or the monitor counts the generations."""
    return "reported" if view.kind is GroupKind.REPORTED and not view.group.polled else "counted"


def next_identity(view: GroupView, at: int, generation: int) -> tuple[str, dict[str, int]]:
    """Return the next rebalance's id, which may be one of several with that timestamp, and their new number."""
    group, source = view.group, source_of(view)
    ordinals = dict(group.rebalance_ordinals) if group.last_rebalance_at == at else {}
    key = f"{source} {generation}"
    ordinal = ordinals.get(key, 0)
    ordinals[key] = ordinal + 1
    return rebalance_id(view.facts.cluster, view.facts.group_id, at, source, generation, ordinal), ordinals


def _group_row(row: Rebalance, balance: Balance, since: int) -> GroupChanged:
    """Return the group's row, with the queues that metadata has shown since a generation that was reported late."""
    return GroupChanged(
        system=row.system,
        state="failed" if row.status == "failed" else "stable" if row.members_after else "empty",
        mode=row.mode,
        strategy=row.strategy,
        generation=row.generation,
        generation_source=row.generation_source,
        members=row.members_after,
        queues=row.queues_after + since,
        idle_members=balance.idle,
        unassigned_queues=balance.unassigned + since,
        spread=balance.spread,
        last_rebalance_at=row.event_time,
        last_rebalance_id=row.rebalance_id,
    )


def _rebalanced(row: Rebalance, plan: RebalancePlan, balance: Balance) -> Rebalanced:
    # The pauses of moved queues are in their spans; what remains are the pauses of queues that kept their owners.
    pause = row.queue_pause_ms if row.generation_source == "reported" else None
    if pause is not None:
        pause -= sum(waited or 0 for waited, _ in plan.step_pauses.values())
    return Rebalanced(
        rebalance_id=row.rebalance_id,
        members=row.members_after,
        queues_moved=row.queues_moved,
        queue_pause_ms=pause,
        idle_members=balance.idle,
        unassigned_queues=balance.unassigned,
        spread=balance.spread,
        outage_min_ms=row.outage_min_ms,
        outage_max_ms=row.outage_max_ms,
    )


def _findings(view: GroupView, plan: RebalancePlan, row: Rebalance, outcome: Outcome) -> list[tuple[str, Found | None]]:
    """Return the rules' findings, except for those that cannot be evaluated yet."""
    takes_time = view.kind is GroupKind.CLIENT_ASSIGNED and bool(view.group.members)
    is_followed_later = takes_time and row.status == "completed"
    is_shown_later = is_followed_later and view.group.has_reported and plan.target.recomputed
    found: list[tuple[str, Found | None]] = []
    for kind, rule in RULES:
        if kind == "expected_differs" and is_followed_later:
            if row.agrees or not plan.target.recomputed:
                found.append((kind, None))
            continue  # otherwise it is evaluated once members have had time to follow
        if plan.overtaken is not None and kind in _OF_COMPLETED:
            continue  # the epoch that overtook it shows it
        if kind == "idle_members" and _is_moving(view, plan):
            continue  # a member that takes part in a cooperative rebalance has nothing yet; the second half shows it
        finding = rule(outcome)
        if finding is None and kind in _OF_OWNERS and is_shown_later:
            continue  # members' reports, once they have had time to follow, show whether it is over
        found.append((kind, finding))
    return with_causes(found, view.group.findings)
