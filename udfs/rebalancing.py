"""Core: a group dealt out again: the strategy asked, spans opened and closed, one row written. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from udfs.dealing import deal
from udfs.diff import (
    Balance,
    by_owner,
    count_differing,
    count_moves,
    held_only_by,
    judge_balance,
    owners_of,
    spans_between,
)
from udfs.errors import StrategyError
from udfs.events import QueueInfo, QueueRef
from udfs.findings import FLAPPING_REBALANCES, RULES, Outcome
from udfs.group_state import Group, Member, Owners, Pending, Queue, key_of
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
from udfs.strategies import Participant, Problem, Topic, qualified_name
from udfs.turn import Turn

NOT_RECOMPUTABLE = "not_recomputable"
COOPERATIVE = "kafka.cooperative-sticky"
Known = Mapping[str, tuple[QueueInfo, ...]]
_RANKS = {kind: rank for rank, kind in enumerate(TRIGGER_ORDER)}


class Dealt(msgspec.Struct, kw_only=True):
    """What the group's own strategy says.

    Attributes:
        owners: What shall hold from now on; where the strategy failed, what stands.
        error: Why it failed. recomputed: Its answer can be compared with what is reported.
    """

    owners: Owners
    strategy: str | None
    error: str | None = None
    failed: bool = False
    recomputed: bool = True


class Decision(msgspec.Struct, kw_only=True):
    """One rebalance, decided but not written.

    Attributes:
        known: The queues of subscribed topics. guessed: Topics whose queues are not known from metadata.
        reported: The whole assignment as it was reported, where it was.
    """

    at: int
    triggers: list[Trigger]
    known: Known
    dealt: Dealt
    guessed: Sequence[str] = ()
    reported: Owners | None = None
    generations_missed: int | None = None
    pause_ms: int | None = None
    queue_pause_ms: int | None = None
    pause_estimated_ms: int | None = None
    queue_pause_estimated_ms: int | None = None
    handed_over: list[Queue] = msgspec.field(default_factory=list)


# ---- asking the strategy


def known_topics(turn: Turn, at: int) -> dict[str, tuple[QueueInfo, ...]]:
    """Answer the queues of subscribed topics that are known then; a deleted one is not."""
    found: dict[str, tuple[QueueInfo, ...]] = {}
    for topic in turn.group.subscribed_topics():
        queues = turn.queues_at(topic, at)
        if queues:
            found[topic] = queues
    return found


def ask_strategy(turn: Turn, known: Known, strategy: str | None, at: int) -> Dealt:
    """Ask the group's strategy who shall hold what.

    Args:
        strategy: The one that was reported; None: as the group's settings and members say.
    """
    group = turn.group
    named = strategy or group.reported_strategy or group.strategy
    if not group.members:
        return Dealt(owners={}, strategy=_named(turn, named))
    problem = _problem(turn, known)
    try:
        dealt = deal(
            system=turn.system, mode=turn.mode, strategy=named, problem=problem, tie_order=turn.rules.vote_tie_order
        )
    except StrategyError as error:
        if error.code == "unknown_strategy" and (strategy or group.reported_strategy):
            return Dealt(owners={}, strategy=_named(turn, named), error=NOT_RECOMPUTABLE, recomputed=False)
        return Dealt(
            owners=_standing(turn, at),
            strategy=_named(turn, named),
            error=f"{error.code}: {error.message}",
            failed=True,
            recomputed=False,
        )
    held = {member: [key_of(queue, turn.system) for queue in queues] for member, queues in dealt.assignment.items()}
    unknown = None if dealt.recomputable else NOT_RECOMPUTABLE
    return Dealt(owners=owners_of(held), strategy=dealt.strategy, error=unknown, recomputed=dealt.recomputable)


def _named(turn: Turn, strategy: str | None) -> str | None:
    return qualified_name(strategy, turn.system) if strategy else None


def _problem(turn: Turn, known: Known) -> Problem:
    group = turn.group
    held = by_owner(_basis(group)) if turn.system == "kafka" else {}
    previous = {member: tuple(QueueRef(t, q, b) for t, b, q in queues) for member, queues in held.items()}
    standing = max(group.current_generation - 1, 0)  # the one in which they held it
    return Problem(
        group=turn.facts.group_id,
        members=tuple(
            _participant(member, previous.get(member.member_id), standing) for member in group.members.values()
        ),
        topics={
            name: Topic(name=name, queues=queues, topic_id=turn.topics.topic_id(name)) for name, queues in known.items()
        },
        settings=group.strategy_settings or {},
        leader=group.leader,
        previous=previous or None,
    )


def _participant(member: Member, previous: tuple[QueueRef, ...] | None, generation: int) -> Participant:
    owned: tuple[QueueRef, ...] | None = member.owned
    since: int | None = member.owned_generation
    if owned is None:
        owned, since = previous, generation
    return Participant(
        member_id=member.member_id,
        name=member.name,
        instance_id=member.instance_id,
        rack=member.rack,
        client_library=member.client_library,
        subscriptions=member.subscriptions or (),
        strategies=member.strategies or (),
        owned=owned,
        generation=since if owned is not None else None,
        settings=member.strategy_settings,
    )


def _basis(group: Group) -> Owners:
    """Answer what members held so far: as reported where that is known."""
    return group.reported if group.has_reported else group.computed


def _standing(turn: Turn, at: int) -> Owners:
    """Answer the computed assignment without members that are gone and queues that are no more."""
    group = turn.group
    staying = held_only_by(group.computed, group.members)
    queues: set[Queue] = set()
    for topic in {queue[0] for queue in staying}:
        queues |= {key_of(queue, turn.system, topic) for queue in turn.queues_at(topic, at) or ()}
    whole_brokers = {(topic, broker) for topic, broker, _ in queues}
    return {q: holders for q, holders in staying.items() if q in queues or (q[2] < 0 and q[:2] in whole_brokers)}


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
    carry_out(turn, Decision(at=at, triggers=triggers, known=known, dealt=dealt, reported=reported))


# ---- writing


def carry_out(turn: Turn, decision: Decision) -> Rebalance:
    """Write a decided rebalance: its row, the spans that change, the group as it is now, what is wrong with it."""
    group, at, dealt = turn.group, decision.at, decision.dealt
    generation, source = group.current_generation, group.source
    queues = [key_of(queue, turn.system, topic) for topic, infos in decision.known.items() for queue in infos]
    before, after = group.computed, dealt.owners
    if decision.reported is not None:
        before, after = _basis(group), decision.reported
    moves = count_moves(before, after)
    balance = _balance(turn, decision, after, queues)
    differing: int | None = None
    if decision.reported is not None and dealt.recomputed and group.members:
        differing = count_differing(dealt.owners, decision.reported)
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
    group.reporters = sorted(group.members) if decision.reported is not None else []
    if not all(one.topic is not None and turn.is_quiet(one.topic) for one in triggers):
        group.recent = [*group.recent, at][-FLAPPING_REBALANCES:]
    _tell_group(turn, row, balance)
    _judge(turn, row, decision)
    return row


def _balance(turn: Turn, decision: Decision, after: Owners, queues: Sequence[Queue]) -> Balance:
    """Judge how the new assignment lies, as far as it is known; topics for retries are left out."""
    group = turn.group
    if decision.dealt.error == NOT_RECOMPUTABLE and decision.reported is None:
        if not group.has_reported:
            return Balance()
        after = group.reported
    subscribers = [
        member.member_id
        for member in group.members.values()
        if any(not turn.is_quiet(topic) for topic in member.subscriptions or ())
    ]
    judged = {queue: holders for queue, holders in after.items() if not turn.is_quiet(queue[0])}
    return judge_balance(
        judged, subscribers, [queue for queue in queues if not turn.is_quiet(queue[0])], turn.mode == "message"
    )


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
    for (topic, broker, queue_id), member in ending:
        body = QueueReleased(
            topic=topic, broker=broker, queue_id=queue_id, member_id=member, origin=origin, valid_to=at
        )
        turn.write(at, body)
    for (topic, broker, queue_id), member in beginning:
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
            queue_pause_ms=row.queue_pause_ms,
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
        turn.set_finding(kind, rule(outcome), row.event_time)
