"""Core: the rebalance of a group epoch of the new protocols. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from udfs.group.assignment.rebalance_plan import Pauses, RebalancePlan
from udfs.group.assignment.span_runs import Pauses as QueuePauses
from udfs.group.assignment.target_assignment import (
    QueuesByTopic,
    TargetAssignment,
)
from udfs.group.batch.context import GroupContext
from udfs.group.batch.phases import Phases
from udfs.group.decision.commit import begin_generation, commit, note_epoch, overtake_awaited
from udfs.group.decision.commit_spans import settle_replaced
from udfs.group.decision.rebalance import rebalance
from udfs.group.events.topic_changes import queues_shown, sizes
from udfs.group.kafka.epoch_target import UNIFORM, as_published, target_of, why_incomparable, with_release
from udfs.group.kafka.reported_generations import (
    add_generation_triggers,
    move_members,
    rename,
    subscribed_after,
)
from udfs.group.kafka.topic_lives import TopicLives, lives_in, ownership_steps, queues_in_target
from udfs.group.kafka.triggers import Causes, compare
from udfs.group.members.departure_causes import INFERRED
from udfs.group.members.descriptions import HIDDEN_FIELDS, update_description
from udfs.group.state.assignment_diff import held_only_by
from udfs.group.state.epoch_outcome import EpochOutcome
from udfs.group.state.group import Evidence, Owners, Queue
from udfs.group.state.recorded_group import SERVER_ASSIGNORS
from udfs.group.state.view import GroupView
from udfs.model.comparability import (
    TOPICS_UNKNOWN,
)
from udfs.model.events import SCHEMA_VERSION, GroupSnapshot, MemberInfo, QueueInfo, QueueRef
from udfs.model.group_api import DueEvent
from udfs.model.queues import numbered
from udfs.strategies.registry import qualified_name

# What the assignor decides of an epoch's causes, which its target may be the first to show.
_OF_ASSIGNORS = ("strategy_changed", "unexplained")


def take_epoch(context: GroupContext, outcome: EpochOutcome, names: Mapping[str, str], hidden: Collection[str]) -> None:
    """Decide one epoch: its rebalance, or none if nothing differs from before.

    Args:
        names: Topic names by id; a topic without a name keeps its id. hidden: Topics of its target without metadata:
            they were waited for in vain, so nothing is compared, and computed owners stay.
    """
    group, at = context.group, outcome.at
    outcome = _with_likely_assignor(context, outcome)
    context.follow()
    context.begin_spans(at)
    lives = lives_in(group.recorded, outcome, names)
    snapshot = _snapshot(context, outcome, lives)
    due = DueEvent(snapshot, outcome.event_id)
    is_newer = outcome.epoch != group.generation
    if is_newer:
        overtake_awaited(context, at)
    if not is_newer:
        _rename(context, outcome, snapshot)
        settle_replaced(context)
        describe(context, outcome.members, at)
        return
    reported = lives.owners(outcome.owned)
    published = None if outcome.target is None else lives.owners(outcome.target)
    # A target names queues that its coordinator knew, whether or not any member has taken them.
    named = lives.owners(lives.current(outcome.owned)) | (published or {})
    before = set(group.subscribed_topics())
    topics = subscribed_after(context, snapshot)
    topic_queues, guessed = queues_shown(context, topics, named, at, outcome.assigned_at)
    empty = lives.without_queues(topics)
    topic_queues = {topic: queues for topic, queues in topic_queues.items() if topic not in empty}
    guessed = [topic for topic in guessed if topic not in empty]
    is_whole = outcome.strategy in SERVER_ASSIGNORS
    topic_queues = queues_in_target(
        context, lives, topic_queues, published or {}, outcome.assigned_at or at, is_whole=is_whole
    )
    resized = {topic: sizes(context, topic, topic_queues, guessed, named, at) for topic in topics & before}
    if published is None:
        topic_queues, resized = _as_in_last_target(context, topic_queues, resized, at)
    came = _under_first_ids(context, outcome, snapshot)
    _learn_arrivals(context, outcome, came)
    causes = compare(
        context,
        came,
        due.event_id,
        at,
        resized,
        made_again=lives.made_again,
        infers=False,
        members_at=outcome.began_at,
        patterns=outcome.patterns,
        counts={topic: len(queues) for topic, queues in topic_queues.items()},
    )
    move_members(context, came, {info.member_id: info.member_id for info in came.members}, causes, at)
    _rename(context, outcome, snapshot)
    if group.exists and not causes.triggers and reported == group.reported:
        settle_replaced(context)
        note_epoch(context, outcome.epoch if outcome.until is None else outcome.until, at)
        return
    context.use_up_evidence(causes.evidence_left)
    current = group.generation
    begin_generation(context, outcome.epoch, None, [info.member_id for info in snapshot.members], polled=False)
    _add_triggers(context, due, snapshot, current, causes, at)
    steps = ownership_steps(group.reported, outcome, lives)
    pauses = _pauses(group.reported, steps)
    if group.recorded is not None and lives.ids is not None:
        group.recorded.note_ids(lives.ids)
    release: str | None = None
    target, awaited = target_of(context, outcome, lives, topic_queues, guessed, reported)
    if hidden and target.recomputed:
        target, awaited = msgspec.structs.replace(target, incomparable=TOPICS_UNKNOWN), None
    elif published is not None and target.recomputed and target.owners != published:
        target, release = as_published(context, outcome, lives, topic_queues, published) or (target, None)
        why = why_incomparable(context, outcome, names)
        if target.owners != published and why is not None:
            target = msgspec.structs.replace(target, incomparable=why)
            awaited = None if why == TOPICS_UNKNOWN else awaited
        _learn_assignor(context, outcome, target, causes)
    target = with_release(context, target, release)
    if release is not None and target.strategy == UNIFORM and group.recorded is not None:
        group.recorded.note_release(release)
    measured = Pauses(pause_ms=at - outcome.began_at, queue_pause_ms=sum(pause or 0 for pause, _ in pauses.values()))
    plan = RebalancePlan(
        at=at,
        generation=outcome.epoch,
        triggers=causes.triggers,
        topic_queues=topic_queues,
        target=target,
        guessed=guessed,
        awaited=awaited,
        reported=held_only_by(reported, group.members),
        compared=published,
        generations_missed=_missed(current, outcome.epoch),
        pauses=measured,
        phases=Phases(
            began_at=outcome.began_at,
            joined_at=outcome.assigned_at,
            completed_at=at if outcome.overtaken is None else None,
        ),
        steps=steps,
        step_pauses=pauses,
        overtaken=outcome.overtaken,
        made_again=lives.made_again,
    )
    commit(context, rebalance(context, plan))
    if outcome.until is not None:
        note_epoch(context, outcome.until, at)
    if group.recorded is not None:
        group.recorded.note_decided()


def describe(context: GroupContext, infos: Iterable[MemberInfo], at: int) -> None:
    """Show how members are described now, which may begin no epoch; what they subscribe to is shown with an epoch."""
    for info in infos:
        member = context.group.members.get(info.member_id)
        if member is not None:
            changed, _ = update_description(context, member, msgspec.structs.replace(info, subscriptions=None), at, at)
            if changed - set(HIDDEN_FIELDS):
                context.change_session(member, at)


def _as_in_last_target(
    view: GroupView, topic_queues: QueuesByTopic, resized: Mapping[str, tuple[int | None, int]], at: int
) -> tuple[dict[str, tuple[QueueInfo, ...]], dict[str, tuple[int | None, int]]]:
    """Return the topics of an epoch without a target, and their sizes, as the last target showed them.

    Only a later epoch's target shows a growth: the coordinator bumps the epoch for a member that leaves even before it
    learns what metadata already shows. A target may also have named queues that metadata still lacks.
    """
    queues, sized = dict(topic_queues), dict(resized)
    for topic, (count, _) in resized.items():
        shown, renewed = view.queues_at(topic, at), view.topics.renewed_at(topic, at)
        is_gone = shown == () or (renewed is not None and renewed > (view.group.last_rebalance_at or 0))
        if count is None or is_gone:
            continue
        queues[topic] = (*queues.get(topic, ())[:count], *numbered(count)[len(queues.get(topic, ())) :])
        sized[topic] = (count, count)
    return {topic: infos for topic, infos in queues.items() if infos}, sized


def _rename(context: GroupContext, outcome: EpochOutcome, snapshot: GroupSnapshot) -> None:
    """Give static members their new ids from when they came back; their spans are split among the steps then."""
    infos, members = {info.member_id: info for info in snapshot.members}, context.group.members
    for back_at, former_id, member_id in outcome.renamed:
        if former_id in members and member_id not in members:
            renamed = {former_id: member_id}
            rename(context, renamed, infos, back_at, back_at, splits=False, decided_at=outcome.at)
            describe(context, [infos[member_id]] if member_id in infos else [], outcome.at)
            members = context.group.members


def _under_first_ids(view: GroupView, outcome: EpochOutcome, snapshot: GroupSnapshot) -> GroupSnapshot:
    """Return a snapshot with members under the ids they came with; some have returned under others within the epoch.

    How a member that was there before is described under its later id is no part of its session under the first one.
    """
    first: dict[str, str] = {}
    for _, former_id, member_id in outcome.renamed:
        first[member_id] = first.pop(former_id, former_id)
    for member_id in first.keys() & view.group.members.keys():
        del first[member_id]

    def as_first(info: MemberInfo) -> MemberInfo:
        first_id = first.get(info.member_id)
        if first_id in view.group.members:
            return MemberInfo(member_id=first_id, subscriptions=info.subscriptions)
        if first_id is None:
            return info
        then = outcome.described_as.get(first_id, info)
        described = {"subscriptions": info.subscriptions, "joined_at": info.joined_at}
        return msgspec.structs.replace(then, member_id=first_id, **described)

    return msgspec.structs.replace(snapshot, members=tuple(map(as_first, snapshot.members))) if first else snapshot


def _snapshot(view: GroupView, outcome: EpochOutcome, lives: TopicLives) -> GroupSnapshot:
    """Return an outcome as a snapshot of the group."""
    return GroupSnapshot(
        schema_version=SCHEMA_VERSION,
        event_time=outcome.at,
        system=view.system,
        cluster=view.facts.cluster,
        group=view.facts.group_id,
        generation=outcome.epoch,
        strategy=outcome.strategy,
        members=outcome.members,
        assignments={
            member_id: tuple(QueueRef(topic, number) for topic, _, number in lives.queues(held))
            for member_id, held in outcome.owned.items()
        },
        departures=outcome.departures,
    )


def _pauses(before: Owners, steps: list[tuple[int, Owners]]) -> QueuePauses:
    """Return how long each queue that moved had no owner, by its new owner."""
    pauses: dict[tuple[Queue, str], tuple[int | None, int | None]] = {}
    released: dict[Queue, int] = {}
    for at, owners in steps:
        for queue in before.keys() - owners.keys():
            released[queue] = at
        for queue, holders in owners.items():
            former = before.get(queue, ())
            if former != holders and (former or queue in released):
                since = released.pop(queue, at)
                pauses.update({(queue, holder): (at - since, None) for holder in holders if holder not in former})
        before = owners
    return pauses


def _learn_arrivals(context: GroupContext, outcome: EpochOutcome, came: GroupSnapshot) -> None:
    """Let causes name the events that described their members."""
    for info, now in zip(came.members, outcome.members, strict=True):
        event_id = outcome.event_ids.get(now.member_id)
        if event_id is None:
            continue
        member = context.group.members.get(info.member_id)
        if member is None:
            context.learn(Evidence("member_joined", outcome.began_at, info.member_id, None, event_id))
        elif member.subscriptions != info.subscriptions:
            context.learn(Evidence("subscription_changed", outcome.began_at, info.member_id, None, event_id))


def _add_triggers(
    view: GroupView, due: DueEvent, snapshot: GroupSnapshot, current: int | None, causes: Causes, at: int
) -> None:
    """Add the causes that the epoch itself shows; epochs of another protocol may restart."""
    recorded = view.group.recorded
    is_first = recorded is not None and recorded.is_first
    add_generation_triggers(view, due, snapshot, None if is_first and view.group.exists else current, None, causes, at)


def _missed(current: int | None, epoch: int) -> int | None:
    return epoch - current - 1 if current is not None and epoch > current + 1 else None


def _with_likely_assignor(view: GroupView, outcome: EpochOutcome) -> EpochOutcome:
    """Return an outcome with the previous epoch's assignor, if that is one of several that the group may use.

    If members name none, it is the assignor observed as the broker's default.
    """
    recorded, last = view.group.recorded, view.group.last_strategy
    name = outcome.strategy
    if not outcome.names_assignor:
        name = (None if recorded is None else recorded.default_assignor) or name
    else:
        name = next((assignor for assignor in outcome.assignors if qualified_name(assignor, view.system) == last), name)
    return outcome if name == outcome.strategy else msgspec.structs.replace(outcome, strategy=name)


def _learn_assignor(context: GroupContext, outcome: EpochOutcome, target: TargetAssignment, causes: Causes) -> None:
    """Take an assignor that the target shows as the group's, if members do not show which it is."""
    group, system = context.group, context.system
    name = next(
        (assignor for assignor in outcome.assignors if qualified_name(assignor, system) == target.strategy), None
    )
    if name is None or name == outcome.strategy:
        return
    if not outcome.names_assignor and group.recorded is not None:
        group.recorded.note_default_assignor(name)
    before = group.last_strategy
    causes.triggers = [trigger for trigger in causes.triggers if trigger.kind not in _OF_ASSIGNORS]
    if before not in (None, target.strategy):
        causes.add("strategy_changed", detail=f"{INFERRED}: {before} -> {target.strategy}", event_id=outcome.event_id)
    if not causes.triggers:
        causes.add("unexplained", event_id=outcome.event_id)
