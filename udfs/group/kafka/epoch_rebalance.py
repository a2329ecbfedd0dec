"""Core: the rebalance of a group epoch of the new protocols. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from udfs.group.assignment.rebalance_plan import Pauses, RebalancePlan
from udfs.group.assignment.span_runs import Pauses as QueuePauses
from udfs.group.batch.context import GroupContext
from udfs.group.batch.phases import Phases
from udfs.group.decision.commit import begin_generation, commit, note_epoch, overtake_awaited
from udfs.group.decision.commit_spans import settle_replaced
from udfs.group.decision.rebalance import rebalance
from udfs.group.kafka.epoch_target import EpochTarget, target_of_epoch
from udfs.group.kafka.epoch_topics import EpochTopics, topics_of_epoch
from udfs.group.kafka.generation_causes import add_causes_of_number, subscribed_after
from udfs.group.kafka.reported_generations import move_members, rename
from udfs.group.kafka.topic_lives import TopicLives, lives_in, ownership_steps
from udfs.group.kafka.triggers import Causes, ShownGeneration, compare
from udfs.group.members.departure_causes import INFERRED
from udfs.group.members.descriptions import HIDDEN_FIELDS, update_description
from udfs.group.state.assignment_diff import held_only_by
from udfs.group.state.epoch_outcome import EpochOutcome
from udfs.group.state.group import Evidence, Owners, Queue
from udfs.group.state.view import GroupView
from udfs.model.events import MemberInfo
from udfs.model.journal import Trigger
from udfs.strategies.registry import qualified_name

# What the assignor decides of an epoch's causes, which its target may be the first to show.
_OF_ASSIGNORS = ("strategy_changed", "unexplained")


class _Epoch(NamedTuple):
    """One epoch with its topics by name.

    Attributes:
        reported: The owners at its end. published: Its target; None if it has none.
    """

    outcome: EpochOutcome
    lives: TopicLives
    reported: Owners
    published: Owners | None


def take_epoch(context: GroupContext, outcome: EpochOutcome, names: Mapping[str, str], hidden: Collection[str]) -> None:
    """Decide one epoch: its rebalance, or none if nothing differs from before.

    Args:
        names: Topic names by id; a topic without a name keeps its id. hidden: Topics of its target without metadata:
            they were waited for in vain, so nothing is compared, and computed owners stay.
    """
    group, at = context.group, outcome.at
    epoch = _named(context, _with_likely_assignor(context, outcome), names)
    context.follow()
    context.begin_spans(at)
    if outcome.epoch == group.generation:
        _rename(context, epoch)
        settle_replaced(context)
        describe(context, outcome.members, at)
        return
    overtake_awaited(context, at)
    subscribed = subscribed_after(context, outcome.members)
    topics = topics_of_epoch(context, epoch.outcome, epoch.lives, subscribed, epoch.published)
    came = _under_first_ids(context, outcome)
    for arrival in _arrivals(context, outcome, came):
        context.learn(arrival)
    causes = compare(context, _shown(epoch, came, topics))
    move_members(context, came, {info.member_id: info.member_id for info in came}, causes, at, at)
    _rename(context, epoch)
    if group.exists and not causes.triggers and epoch.reported == group.reported:
        settle_replaced(context)
        note_epoch(context, outcome.epoch if outcome.until is None else outcome.until, at)
        return
    context.use_up_evidence(causes.evidence_left)
    current = group.generation
    begin_generation(context, outcome.epoch, None, [info.member_id for info in outcome.members], polled=False)
    _add_causes_of_epoch(context, epoch, current, causes)
    if group.recorded is not None and epoch.lives.ids is not None:
        group.recorded.note_ids(epoch.lives.ids)
    target = target_of_epoch(context, epoch.outcome, epoch.lives, topics, epoch.reported, epoch.published, hidden)
    triggers = causes.triggers
    if target.assignor is not None:
        triggers = _with_assignor(context, triggers, target.target.strategy, outcome.event_id)
    if group.recorded is not None:
        group.recorded.note_target(target.release, None if outcome.names_assignor else target.assignor)
    commit(context, rebalance(context, _plan(context, epoch, topics, target, triggers, current)))
    if outcome.until is not None:
        note_epoch(context, outcome.until, at)
    if group.recorded is not None:
        group.recorded.note_decided()


def _named(view: GroupView, outcome: EpochOutcome, names: Mapping[str, str]) -> _Epoch:
    """Return an epoch with its topics by name."""
    lives = lives_in(view.group.recorded, outcome, names)
    published = None if outcome.target is None else lives.owners(outcome.target)
    return _Epoch(outcome, lives, lives.owners(outcome.owned), published)


def _shown(epoch: _Epoch, came: Sequence[MemberInfo], topics: EpochTopics) -> ShownGeneration:
    """Return what is compared with the epoch before."""
    return ShownGeneration(
        came,
        epoch.reported,
        epoch.outcome.strategy,
        epoch.outcome.departures,
        epoch.outcome.event_id,
        epoch.outcome.at,
        topics.resized,
        epoch.lives.made_again,
        infers=False,
        members_at=epoch.outcome.began_at,
        patterns=epoch.outcome.patterns,
        counts={topic: len(queues) for topic, queues in topics.topic_queues.items()},
    )


def _plan(
    view: GroupView,
    epoch: _Epoch,
    topics: EpochTopics,
    target: EpochTarget,
    triggers: Sequence[Trigger],
    current: int | None,
) -> RebalancePlan:
    """Return the input of an epoch's rebalance.

    Args:
        current: The epoch before.
    """
    outcome, group, at = epoch.outcome, view.group, epoch.outcome.at
    steps = ownership_steps(group.reported, outcome, epoch.lives)
    pauses = _pauses(group.reported, steps)
    return RebalancePlan(
        at=at,
        generation=outcome.epoch,
        triggers=triggers,
        topic_queues=topics.topic_queues,
        target=target.target,
        guessed=topics.guessed,
        awaited=target.awaited,
        reported=held_only_by(epoch.reported, group.members),
        compared=epoch.published,
        generations_missed=outcome.epoch - current - 1 if current is not None and outcome.epoch > current + 1 else None,
        pauses=Pauses(pause_ms=at - outcome.began_at, queue_pause_ms=sum(pause or 0 for pause, _ in pauses.values())),
        phases=Phases(
            began_at=outcome.began_at,
            joined_at=outcome.assigned_at,
            completed_at=at if outcome.overtaken is None else None,
        ),
        steps=steps,
        step_pauses=pauses,
        overtaken=outcome.overtaken,
        made_again=epoch.lives.made_again,
    )


def describe(context: GroupContext, infos: Iterable[MemberInfo], at: int) -> None:
    """Show how members are described now, which may begin no epoch; what they subscribe to is shown with an epoch."""
    for info in infos:
        member = context.group.members.get(info.member_id)
        if member is not None:
            changed, _ = update_description(context, member, msgspec.structs.replace(info, subscriptions=None), at, at)
            if changed - set(HIDDEN_FIELDS):
                context.change_session(member, at)


def _rename(context: GroupContext, epoch: _Epoch) -> None:
    """Give static members their new ids from when they came back; their spans are split among the steps then."""
    infos, members = {info.member_id: info for info in epoch.outcome.members}, context.group.members
    for back_at, former_id, member_id in epoch.outcome.renamed:
        if former_id in members and member_id not in members:
            renamed = {former_id: member_id}
            rename(context, renamed, infos, back_at, back_at, splits=False, decided_at=epoch.outcome.at)
            describe(context, [infos[member_id]] if member_id in infos else [], epoch.outcome.at)
            members = context.group.members


def _under_first_ids(view: GroupView, outcome: EpochOutcome) -> Sequence[MemberInfo]:
    """Return the members under the ids they came with; some have returned under others within the epoch.

    How a member that was there before is described under its later id is no part of its session under the first one.
    """
    first: dict[str, str] = {}
    for _, former_id, member_id in outcome.renamed:
        first[member_id] = first.pop(former_id, former_id)
    for member_id in first.keys() & view.group.members.keys():
        del first[member_id]

    def as_first(info: MemberInfo) -> MemberInfo:
        first_id = first.get(info.member_id)
        if first_id is None:
            return info
        if first_id in view.group.members:
            return MemberInfo(member_id=first_id, subscriptions=info.subscriptions)
        then = outcome.described_as.get(first_id, info)
        described = {"subscriptions": info.subscriptions, "joined_at": info.joined_at}
        return msgspec.structs.replace(then, member_id=first_id, **described)

    return tuple(map(as_first, outcome.members)) if first else outcome.members


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


def _arrivals(view: GroupView, outcome: EpochOutcome, came: Sequence[MemberInfo]) -> Iterator[Evidence]:
    """Yield the events that described members, which causes name."""
    for info, now in zip(came, outcome.members, strict=True):
        event_id = outcome.event_ids.get(now.member_id)
        if event_id is None:
            continue
        member = view.group.members.get(info.member_id)
        if member is None:
            yield Evidence("member_joined", outcome.began_at, info.member_id, None, event_id)
        elif member.subscriptions != info.subscriptions:
            yield Evidence("subscription_changed", outcome.began_at, info.member_id, None, event_id)


def _add_causes_of_epoch(view: GroupView, epoch: _Epoch, current: int | None, causes: Causes) -> None:
    """Add the causes that the epoch itself shows; epochs of another protocol may restart."""
    recorded, outcome = view.group.recorded, epoch.outcome
    is_first = recorded is not None and recorded.is_first
    before = None if is_first and view.group.exists else current
    add_causes_of_number(view, outcome.epoch, before, causes, outcome.event_id)
    if not causes.triggers:
        causes.add("unexplained", event_id=outcome.event_id)
    causes.explain(view.group.preparing_reason)
    causes.add_notes()


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


def _with_assignor(view: GroupView, triggers: Iterable[Trigger], strategy: str | None, event_id: str) -> list[Trigger]:
    """Return causes as they are with the strategy that only the target shows."""
    before = view.group.last_strategy
    shown = [trigger for trigger in triggers if trigger.kind not in _OF_ASSIGNORS]
    if before not in (None, strategy):
        detail = f"{INFERRED}: {before} -> {strategy}"
        return [*shown, Trigger(kind="strategy_changed", detail=detail, event_id=event_id)]
    return shown or [Trigger(kind="unexplained", event_id=event_id)]
