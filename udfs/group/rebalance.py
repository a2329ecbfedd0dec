"""Core: one rebalance: its plan, its spans, its row, its findings. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import msgspec

from udfs.group.assignment_diff import (
    Balance,
    changed_queues,
    count_moves,
    held_only_by,
    owners_of,
)
from udfs.group.balance import balance_of, distinct_subscriptions
from udfs.group.client_ids import reporting_member
from udfs.group.client_timings import settled_after_ms
from udfs.group.context import GroupContext
from udfs.group.findings import FLAPPING_REBALANCES, RULES, Outcome
from udfs.group.queue_handover import (
    estimates,
    expect,
    expected_waits,
    first_pulls,
    is_timed,
    measured_pauses,
    moved_queues,
)
from udfs.group.spans import note_holdings, write_spans
from udfs.group.state import Awaited, Group, Owners, Pending, Queue, key_of, keys_of
from udfs.group.static_members import split_spans
from udfs.group.target_assignment import (
    NOT_RECOMPUTABLE,
    QueuesByTopic,
    TargetAssignment,
    compute_target_assignment,
    previous_owners,
    topics_with_metadata,
)
from udfs.model.ids import rebalance_id
from udfs.model.journal import (
    TRIGGER_ORDER,
    GroupChanged,
    Rebalance,
    Rebalanced,
    Trigger,
)

COOPERATIVE = "kafka.cooperative-sticky"
_RANKS = {kind: rank for rank, kind in enumerate(TRIGGER_ORDER)}


class RebalancePlan(msgspec.Struct, kw_only=True):
    """One rebalance, decided but not yet written.

    Attributes:
        known: The queues of subscribed topics. guessed: Topics without metadata. awaited: The input for computing the
            generation once their metadata arrives.
        reported: The whole reported assignment, if there is one. compared: What all members reported themselves at this
            event time: the queues that they held at its start.
    """

    at: int
    triggers: list[Trigger]
    known: QueuesByTopic
    dealt: TargetAssignment
    guessed: Sequence[str] = ()
    awaited: Awaited | None = None
    reported: Owners | None = None
    compared: Owners | None = None
    generations_missed: int | None = None
    pause_ms: int | None = None
    queue_pause_ms: int | None = None
    pause_estimated_ms: int | None = None
    queue_pause_estimated_ms: int | None = None
    revoked_pending: list[Queue] = msgspec.field(default_factory=list)


# ---- counted generations


def decide_counted(turn: GroupContext) -> None:
    """Decide and write the pending rebalance."""
    group = turn.group
    pending = group.pending or Pending(opened_at=0, changed_at=0)
    group.pending = None
    at = pending.changed_at
    group.counted += 1
    triggers = list(pending.triggers)
    if not group.exists:
        triggers.append(Trigger(kind="group_created"))
    known = topics_with_metadata(turn, at)
    dealt = compute_target_assignment(turn, known, None, at)
    reported = None if pending.told is None else held_only_by(dict(pending.told), group.members)
    decision = RebalancePlan(at=at, triggers=triggers, known=known, dealt=dealt, reported=reported)
    if dealt.strategy == COOPERATIVE and not dealt.failed and reported is None:
        standing = {queue for topic, infos in known.items() for queue in keys_of(infos, turn.system, topic)}
        decision.revoked_pending = [
            queue for queue in previous_owners(group) if queue in standing and queue not in dealt.owners
        ]
    _attach_reports_and_pauses(turn, decision)
    apply_rebalance(turn, decision)


def _attach_reports_and_pauses(turn: GroupContext, decision: RebalancePlan) -> None:
    """Attach the members' own reports of this event time, and the pauses of their queues."""
    group, at = turn.group, decision.at
    held: dict[str, list[Queue]] = {}
    pulls: dict[Queue, tuple[str, int]] = {}
    for report in group.waiting_reports:
        member = reporting_member(group, report.member_id, report.host)
        if report.generation == group.counted and report.time >= at and member is not None:
            held[member.member_id] = [key_of(queue, turn.system) for queue in report.queues]
            pulled = first_pulls(turn, report.queues)
            pulls.update({queue: (member.member_id, time) for queue, time in pulled.items()})
    if decision.reported is None and held.keys() >= group.members.keys() and turn.mode == "clustering":
        decision.compared = owners_of(held)
    if not is_timed(turn):
        return
    before, after = group.computed, decision.dealt.owners
    moved = moved_queues(turn.changed_queues(before, after))
    if decision.reported is not None and turn.system == "metaq":  # an owner's node is the owning itself
        pulls = {queue: (holders[0], at) for queue, holders in decision.reported.items()}
    kinds = {trigger.kind for trigger in decision.triggers}
    waits = expected_waits(turn, moved, kinds)
    told = {**estimates(turn, before, after, waits, kinds), **measured_pauses(turn, moved, pulls, at)}
    for name, seen in (("pause_estimated_ms", "pause_ms"), ("queue_pause_estimated_ms", "queue_pause_ms")):
        setattr(decision, seen, told.get(seen))
        setattr(decision, name, told.get(name) if seen not in told else None)
    if group.standing or group.pulls:
        queues = {queue for topic, infos in decision.known.items() for queue in keys_of(infos, turn.system, topic)}
        group.standing = {queue: one for queue, one in group.standing.items() if queue in queues}
        group.pulls = {queue: pulled_at for queue, pulled_at in group.pulls.items() if queue in queues}
    expect(turn, waits)


# ---- writing


def apply_rebalance(turn: GroupContext, decision: RebalancePlan) -> Rebalance:
    """Write a decided rebalance: its row, the changed spans, the group's current row, its findings."""
    group, at, dealt = turn.group, decision.at, decision.dealt
    generation, source = group.current_generation, group.source
    queues = [queue for topic, infos in decision.known.items() for queue in keys_of(infos, turn.system, topic)]
    before, after = group.computed, dealt.owners
    if decision.reported is not None:
        before, after = previous_owners(group), decision.reported
    changed = turn.changed_queues(before, after)
    moves = count_moves(before, changed)
    balance = _balance(turn, decision, after, queues)
    differing: int | None = None
    awaited = decision.awaited
    told = decision.compared if decision.reported is None else decision.reported
    if told is not None and dealt.recomputed and group.members:
        differing = differing_from(turn, dealt.owners, told)
        if differing and any(topic in decision.known for topic in decision.guessed):
            differing = None  # metadata of an existing topic is still missing: evaluated when it arrives
    triggers = in_order(decision.triggers)
    row = Rebalance(
        rebalance_id=next_id(turn, at),
        cluster=turn.facts.cluster,
        system=turn.system,
        group_id=turn.facts.group_id,
        generation=generation,
        generation_source=source,
        event_time=at,
        detected_at=turn.facts.detected_at,
        trigger=triggers[0].kind,
        triggers=triggers,
        strategy=dealt.strategy,
        leader=group.leader if group.leader in group.members else None,
        mode=turn.mode,
        status="failed" if dealt.failed else "completed",
        error=dealt.error,
        members_before=group.members_decided,
        members_after=len(group.members),
        queues_before=sum(group.counts.values()),
        queues_after=len(queues),
        queues_kept=moves.kept,
        queues_assigned=moves.assigned,
        queues_revoked=moves.revoked,
        queues_moved=moves.moved,
        generations_missed=decision.generations_missed,
        idle_members=balance.idle,
        unassigned_queues=balance.unassigned,
        spread=balance.spread,
        agrees=None if differing is None else differing == 0,
        queues_differing=differing,
        pause_ms=decision.pause_ms,
        queue_pause_ms=decision.queue_pause_ms,
        pause_estimated_ms=decision.pause_estimated_ms,
        queue_pause_estimated_ms=decision.queue_pause_estimated_ms,
    )
    turn.work += len(group.members) + len(queues)
    turn.answer.rebalances.append(row)
    turn.applied(at)
    note_holdings(group, changed, at)
    group.last_rebalance_at, group.last_rebalance_id = at, row.rebalance_id
    write_spans(turn, "computed", dealt.owners, at, guessed=decision.guessed)
    if decision.reported is not None:
        write_spans(turn, "reported", decision.reported, at)
        group.has_reported = True
    elif group.has_reported:
        write_spans(turn, "reported", held_only_by(group.reported, group.members), at)
    split_spans(turn, None)
    group.replaced = []
    group.exists = True
    if awaited is None:
        forget_owned(group)
    group.members_decided = len(group.members)
    group.counts = {topic: len(infos) for topic, infos in decision.known.items()}
    group.topics_without_metadata, group.awaited = list(decision.guessed), awaited
    group.revoked_pending = decision.revoked_pending
    group.last_strategy = dealt.strategy
    group.recomputable = dealt.error != NOT_RECOMPUTABLE
    _expect_agreement(turn, decision)
    if not all(one.topic is not None and turn.is_quiet(one.topic) for one in triggers):
        group.recent = [*group.recent, at][-FLAPPING_REBALANCES:]
    _emit_group_changed(turn, row, balance)
    _evaluate_findings(turn, row, decision)
    return row


def forget_owned(group: Group) -> None:
    """Drop the owned queues that members reported before a rebalance: they are out of date."""
    for member in group.members.values():
        member.forget_owned()


def _balance(turn: GroupContext, decision: RebalancePlan, after: Owners, queues: Sequence[Queue]) -> Balance:
    """Return the figures of the new assignment, as far as it is known."""
    group = turn.group
    if decision.awaited is not None and decision.reported is None and decision.known:
        return Balance()  # existing queues are not computed yet
    if decision.dealt.error == NOT_RECOMPUTABLE and decision.reported is None:
        if not group.has_reported:
            return Balance()
        after = group.reported
    return balance_of(turn, after, queues)


def _expect_agreement(turn: GroupContext, decision: RebalancePlan) -> None:
    """Record which members have reported their queues, and when those must equal the computed ones."""
    group = turn.group
    group.compare_at = None
    if not is_timed(turn):
        group.reporters = sorted(group.members) if decision.reported is not None else []
        group.standing, group.pulls = {}, {}
        return
    # A member without a new report keeps its last one: reports come when something changed.
    kept = group.members if decision.reported is not None else [one for one in group.reporters if one in group.members]
    group.reporters = sorted(kept)
    if group.has_reported:  # else nothing to compare until a member reports its queues
        group.compare_at = settled_at(turn, decision.at, {trigger.kind for trigger in decision.triggers})


def settled_at(turn: GroupContext, at: int, kinds: Collection[str]) -> int:
    """Return by when members should own what a rebalance assigned to them."""
    members = turn.group.members.values()
    timeout = max((turn.timeout_of(member) for member in members), default=0)
    return at + settled_after_ms(turn.system, kinds, any(member.ordered for member in members), timeout)


def differing_from(turn: GroupContext, computed: Owners, reported: Owners) -> int:
    """Count the queues on which members differ; topics for retries are left out."""

    return sum(not turn.is_quiet(queue[0]) for queue, _, _ in changed_queues(computed, reported))


def in_order(triggers: Sequence[Trigger]) -> list[Trigger]:
    """Return causes, the main one first."""
    return sorted(
        triggers, key=lambda one: (_RANKS[one.kind], one.member_id or "", one.topic or "", one.event_id or "")
    )


def next_id(turn: GroupContext, at: int) -> str:
    """Return the id of the next rebalance; several may share one event time."""
    group = turn.group
    generation, source = group.current_generation, group.source
    if group.last_rebalance_at != at:
        group.rebalance_ordinals = {}
    key = f"{source} {generation}"
    ordinal = group.rebalance_ordinals.get(key, 0)
    group.rebalance_ordinals[key] = ordinal + 1
    return rebalance_id(turn.facts.cluster, turn.facts.group_id, at, source, generation, ordinal)


def _emit_group_changed(turn: GroupContext, row: Rebalance, balance: Balance) -> None:
    turn.write_row(
        row.event_time,
        GroupChanged(
            system=turn.system,
            state="failed" if row.status == "failed" else "stable" if row.members_after else "empty",
            mode=row.mode,
            strategy=row.strategy,
            generation=row.generation,
            generation_source=row.generation_source,
            members=row.members_after,
            queues=row.queues_after,
            idle_members=balance.idle,
            unassigned_queues=balance.unassigned,
            spread=balance.spread,
            last_rebalance_at=row.event_time,
            last_rebalance_id=row.rebalance_id,
        ),
    )
    turn.write(
        row.event_time,
        Rebalanced(
            rebalance_id=row.rebalance_id,
            members=row.members_after,
            queues_moved=row.queues_moved,
            # Where members take over queues by themselves, each span carries its own pause.
            queue_pause_ms=row.queue_pause_ms if row.generation_source == "reported" else None,
            idle_members=balance.idle,
            unassigned_queues=balance.unassigned,
            spread=balance.spread,
        ),
    )


def _evaluate_findings(turn: GroupContext, row: Rebalance, decision: RebalancePlan) -> None:
    """Apply the finding rules: open and close findings."""
    group = turn.group
    names = Counter(member.name for member in group.members.values())
    subscriptions = {
        frozenset(topic for topic in topics if not turn.is_quiet(topic))
        for topics in distinct_subscriptions(group.members.values())
    }
    outcome = Outcome(
        system=turn.system,
        at=row.event_time,
        generation=row.generation,
        members=row.members_after,
        queues=sum(len(infos) for topic, infos in decision.known.items() if not turn.is_quiet(topic)),
        error=row.error,
        agrees=row.agrees,
        queues_differing=row.queues_differing,
        generations_missed=row.generations_missed,
        names=sorted(name for name, connections in names.items() if connections > 1),
        strategies=(row.strategy or "").split(", ") if turn.mode == "clustering" else (),
        subscription_sets=len(subscriptions - {frozenset()}),
        unassigned=row.unassigned_queues,
        handing_over=bool(decision.revoked_pending),
        idle=row.idle_members,
        recent=group.recent,
        evidence=sorted({one.event_id for one in row.triggers if one.event_id}),
    )
    for kind, rule in RULES:
        if kind == "expected_differs" and is_timed(turn) and group.members and row.status == "completed":
            if row.agrees or not decision.dealt.recomputed:
                turn.set_finding(kind, None, row.event_time)
            continue  # else evaluated once members had time to follow
        if kind == "idle_members" and decision.revoked_pending:
            continue  # new members of a cooperative rebalance get queues in its second generation
        turn.set_finding(kind, rule(outcome), row.event_time)
