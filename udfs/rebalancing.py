"""Core: a group dealt out again: the strategy asked, spans opened and closed, one row written. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import msgspec

from udfs.asking import NOT_RECOMPUTABLE, Dealt, Known, ask_strategy, basis, known_topics
from udfs.client_timings import settled_after_ms
from udfs.connections import speaker
from udfs.diff import (
    Balance,
    count_differing,
    count_moves,
    held_only_by,
    judge_balance,
    owners_of,
    spans_between,
)
from udfs.findings import FLAPPING_REBALANCES, RULES, Outcome
from udfs.group_state import Group, Owners, Pending, Queue, key_of
from udfs.identity import rebalance_id
from udfs.journal import (
    TRIGGER_ORDER,
    GroupChanged,
    Origin,
    QueueAssigned,
    QueueReleased,
    Rebalance,
    Rebalanced,
    Trigger,
)
from udfs.takeovers import estimates, expect, expected_waits, first_pulls, is_timed, release, seen_pauses, take_over
from udfs.turn import Turn

COOPERATIVE = "kafka.cooperative-sticky"
_RANKS = {kind: rank for rank, kind in enumerate(TRIGGER_ORDER)}


class Decision(msgspec.Struct, kw_only=True):
    """One rebalance, decided but not written.

    Attributes:
        known: The queues of subscribed topics. guessed: Topics whose queues are not known from metadata.
        reported: The whole assignment as it was reported, where it was. compared: What all members said at that very
            moment each for itself: what they held as it began.
    """

    at: int
    triggers: list[Trigger]
    known: Known
    dealt: Dealt
    guessed: Sequence[str] = ()
    reported: Owners | None = None
    compared: Owners | None = None
    generations_missed: int | None = None
    pause_ms: int | None = None
    queue_pause_ms: int | None = None
    pause_estimated_ms: int | None = None
    queue_pause_estimated_ms: int | None = None
    handed_over: list[Queue] = msgspec.field(default_factory=list)


# ---- counted generations


def decide_counted(turn: Turn) -> None:
    """Write the rebalance for which changes are pending."""
    group = turn.group
    pending = group.pending or Pending(opened_at=0, changed_at=0)
    group.pending = None
    at = pending.changed_at
    group.counted += 1
    triggers = list(pending.triggers)
    if not group.exists:
        triggers.append(Trigger(kind="group_created"))
    known = known_topics(turn, at)
    dealt = ask_strategy(turn, known, None, at)
    reported = None if pending.told is None else held_only_by(dict(pending.told), group.members)
    decision = Decision(at=at, triggers=triggers, known=known, dealt=dealt, reported=reported)
    if dealt.strategy == COOPERATIVE and not dealt.failed and reported is None:
        standing = {key_of(queue, turn.system, topic) for topic, infos in known.items() for queue in infos}
        decision.handed_over = [queue for queue in basis(group) if queue in standing and queue not in dealt.owners]
    _hear_of_the_moment(turn, decision)
    carry_out(turn, decision)


def _hear_of_the_moment(turn: Turn, decision: Decision) -> None:
    """Take in what members say of themselves at the very moment, and how long their queues stand still."""
    group, at = turn.group, decision.at
    held: dict[str, list[Queue]] = {}
    pulls: dict[Queue, tuple[str, int]] = {}
    for report in group.waiting_reports:
        member = speaker(group, report.member_id, report.host)
        if report.generation == group.counted and report.time >= at and member is not None:
            held[member.member_id] = [key_of(queue, turn.system) for queue in report.queues]
            pulled = first_pulls(turn, report.queues)
            pulls.update({queue: (member.member_id, time) for queue, time in pulled.items()})
    if decision.reported is None and held.keys() >= group.members.keys() and turn.mode == "clustering":
        decision.compared = owners_of(held)
    if not is_timed(turn):
        return
    before, after = group.computed, decision.dealt.owners
    if decision.reported is not None and turn.system == "metaq":  # an owner's node is the owning itself
        pulls = {queue: (holders[0], at) for queue, holders in decision.reported.items()}
    kinds = {trigger.kind for trigger in decision.triggers}
    waits = expected_waits(turn, before, after, kinds)
    told = {**estimates(turn, before, after, waits, kinds), **seen_pauses(turn, before, after, pulls, at)}
    for name, seen in (("pause_estimated_ms", "pause_ms"), ("queue_pause_estimated_ms", "queue_pause_ms")):
        setattr(decision, seen, told.get(seen))
        setattr(decision, name, told.get(name) if seen not in told else None)
    queues = {key_of(queue, turn.system, topic) for topic, infos in decision.known.items() for queue in infos}
    group.standing = {queue: one for queue, one in group.standing.items() if queue in queues}
    group.pulls = {queue: pulled_at for queue, pulled_at in group.pulls.items() if queue in queues}
    expect(turn, waits)


# ---- writing


def carry_out(turn: Turn, decision: Decision) -> Rebalance:
    """Write a decided rebalance: its row, the spans that change, the group as it is now, what is wrong with it."""
    group, at, dealt = turn.group, decision.at, decision.dealt
    generation, source = group.current_generation, group.source
    queues = [key_of(queue, turn.system, topic) for topic, infos in decision.known.items() for queue in infos]
    before, after = group.computed, dealt.owners
    if decision.reported is not None:
        before, after = basis(group), decision.reported
    moves = count_moves(before, after)
    balance = _balance(turn, decision, after, queues)
    differing: int | None = None
    told = decision.compared if decision.reported is None else decision.reported
    if told is not None and dealt.recomputed and group.members:
        differing = differing_from(turn, dealt.owners, told)
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
    turn.answer.rebalances.append(row)
    turn.applied(at)
    _note_holdings(group, before, after, at)
    group.last_rebalance_at, group.last_rebalance_id = at, row.rebalance_id
    write_spans(turn, "computed", dealt.owners, at, guessed=decision.guessed)
    if decision.reported is not None:
        write_spans(turn, "reported", decision.reported, at)
        group.has_reported = True
    elif group.has_reported:
        write_spans(turn, "reported", held_only_by(group.reported, group.members), at)
    group.exists = True
    for member in group.members.values():
        member.owned = member.owned_generation = None  # it holds something else from now on
    group.members_decided = len(group.members)
    group.counts = {topic: len(infos) for topic, infos in decision.known.items()}
    group.guessed_topics = list(decision.guessed)
    group.handed_over = decision.handed_over
    group.dealt_strategy = dealt.strategy
    group.recomputable = dealt.error != NOT_RECOMPUTABLE
    _expect_agreement(turn, decision)
    if not all(one.topic is not None and turn.is_quiet(one.topic) for one in triggers):
        group.recent = [*group.recent, at][-FLAPPING_REBALANCES:]
    _tell_group(turn, row, balance)
    _judge(turn, row, decision)
    return row


def _balance(turn: Turn, decision: Decision, after: Owners, queues: Sequence[Queue]) -> Balance:
    """Judge how the new assignment lies, as far as it is known."""
    group = turn.group
    if decision.dealt.error == NOT_RECOMPUTABLE and decision.reported is None:
        if not group.has_reported:
            return Balance()
        after = group.reported
    return balance_of(turn, after, queues)


def balance_of(turn: Turn, owners: Owners, queues: Sequence[Queue]) -> Balance:
    """Judge how an assignment lies over these queues of subscribed topics; topics for retries are left out."""
    subscribers = [
        member.member_id
        for member in turn.group.members.values()
        if any(not turn.is_quiet(topic) for topic in member.subscriptions or ())
    ]
    judged = {queue: holders for queue, holders in owners.items() if not turn.is_quiet(queue[0])}
    return judge_balance(
        judged, subscribers, [queue for queue in queues if not turn.is_quiet(queue[0])], turn.mode == "message"
    )


def _expect_agreement(turn: Turn, decision: Decision) -> None:
    """Note who has said what he holds, and when it should be what the strategy gives him."""
    group = turn.group
    group.compare_at = None
    if not is_timed(turn):
        group.reporters = sorted(group.members) if decision.reported is not None else []
        group.standing, group.pulls = {}, {}
        return
    # Who says nothing holds what he said last: reports come when something changed.
    kept = group.members if decision.reported is not None else [one for one in group.reporters if one in group.members]
    group.reporters = sorted(kept)
    if group.has_reported:  # else there is nothing to remember until somebody says something
        group.compare_at = settled_at(turn, decision.at, {trigger.kind for trigger in decision.triggers})


def settled_at(turn: Turn, at: int, kinds: Collection[str]) -> int:
    """Answer by when members should hold what a rebalance gave them."""
    members = turn.group.members.values()
    timeout = max((turn.timeout_of(member) for member in members), default=0)
    return at + settled_after_ms(turn.system, kinds, any(member.ordered for member in members), timeout)


def differing_from(turn: Turn, computed: Owners, reported: Owners) -> int:
    """Count the queues on which members differ; topics for retries are left out."""

    def heard(owners: Owners) -> Owners:
        return {queue: holders for queue, holders in owners.items() if not turn.is_quiet(queue[0])}

    return count_differing(heard(computed), heard(reported))


def in_order(triggers: Sequence[Trigger]) -> list[Trigger]:
    """Answer causes, the main one first."""
    return sorted(
        triggers, key=lambda one: (_RANKS[one.kind], one.member_id or "", one.topic or "", one.event_id or "")
    )


def next_id(turn: Turn, at: int) -> str:
    """Answer the id of the next rebalance, which may be one of several at that moment."""
    group = turn.group
    generation, source = group.current_generation, group.source
    if group.last_rebalance_at != at:
        group.rebalance_ordinals = {}
    key = f"{source} {generation}"
    ordinal = group.rebalance_ordinals.get(key, 0)
    group.rebalance_ordinals[key] = ordinal + 1
    return rebalance_id(turn.facts.cluster, turn.facts.group_id, at, source, generation, ordinal)


def write_spans(
    turn: Turn, origin: Origin, owners: Owners, at: int, *, guessed: Sequence[str] = (), inferred: bool = False
) -> None:
    """End and begin the spans that make the standing assignment this one.

    Args:
        guessed: Topics whose new spans are inferred; ``inferred``: all are.
    """
    group = turn.group
    standing = group.computed if origin == "computed" else group.reported
    if origin == "reported" and owners != standing:
        at = group.reported_at = max(at, group.reported_at or at)
    ending, beginning = spans_between(standing, owners)
    timed = origin == "reported" and is_timed(turn)
    for (topic, broker, queue_id), member in ending:
        queue = (topic, broker, queue_id)
        # Of several owners that all lose it, the last one's going counts.
        if timed and member == standing[queue][-1] and not set(standing[queue]) & set(owners.get(queue, ())):
            release(turn, queue, member, at, seen_without=queue not in owners)
        body = QueueReleased(
            topic=topic, broker=broker, queue_id=queue_id, member_id=member, origin=origin, valid_to=at
        )
        turn.write(at, body)
    for (topic, broker, queue_id), member in beginning:
        pause, estimated = take_over(turn, (topic, broker, queue_id), member, at) if timed else (None, None)
        turn.write(
            at,
            QueueAssigned(
                topic=topic,
                broker=broker,
                queue_id=queue_id,
                member_id=member,
                origin=origin,
                generation=group.current_generation,
                rebalance_id=group.last_rebalance_id or "",
                valid_from=at,
                inferred=inferred or topic in guessed,
                pause_ms=pause,
                pause_estimated_ms=estimated,
            ),
        )
    if origin == "computed":
        group.computed = owners
    else:
        group.reported = owners


def _note_holdings(group: Group, before: Owners, after: Owners, at: int) -> None:
    """Remember of each member since when it holds exactly what it holds."""
    changed: set[str] = set()
    for queue in before.keys() | after.keys():
        old, new = before.get(queue, ()), after.get(queue, ())
        if old != new:
            changed |= set(old) ^ set(new)
    for member_id in changed & group.members.keys():
        group.members[member_id].holds_since = at


def _tell_group(turn: Turn, row: Rebalance, balance: Balance) -> None:
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
            # Where members take queues over by themselves, each span tells its own.
            queue_pause_ms=row.queue_pause_ms if row.generation_source == "reported" else None,
            idle_members=balance.idle,
            unassigned_queues=balance.unassigned,
            spread=balance.spread,
        ),
    )


def _judge(turn: Turn, row: Rebalance, decision: Decision) -> None:
    """Open and close findings as the rules say."""
    group = turn.group
    names = Counter(member.name for member in group.members.values())
    subscriptions = {
        frozenset(topic for topic in member.subscriptions or () if not turn.is_quiet(topic))
        for member in group.members.values()
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
        handing_over=bool(decision.handed_over),
        idle=row.idle_members,
        recent=group.recent,
        evidence=sorted({one.event_id for one in row.triggers if one.event_id}),
    )
    for kind, rule in RULES:
        if kind == "expected_differs" and is_timed(turn) and group.members and row.status == "completed":
            if row.agrees or not decision.dealt.recomputed:
                turn.set_finding(kind, None, row.event_time)
            continue  # else it is judged once members had time to follow
        if kind == "idle_members" and decision.handed_over:
            continue  # who takes part in a cooperative move has nothing yet: its second half tells
        turn.set_finding(kind, rule(outcome), row.event_time)
