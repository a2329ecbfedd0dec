"""Core: an epoch's target in the new protocols, computed as its coordinator's release does, in its order. No I/O.

The release that assigned is known if a source reports it (``coordinator_release``). Otherwise every release is computed
before a target counts as different, starting with the one that the group's targets showed last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from udfs.group.assignment.target_assignment import (
    QueuesByTopic,
    TargetAssignment,
    compute_target_assignment,
    current_owners,
)
from udfs.group.events.topic_changes import compute_generation
from udfs.group.kafka.epoch_topics import EpochTopics
from udfs.group.kafka.topic_lives import TopicLives
from udfs.group.members.departure_causes import INFERRED
from udfs.group.state.epoch_outcome import EpochOutcome, Held
from udfs.group.state.group import Awaited, Owners
from udfs.group.state.recorded_group import SERVER_ASSIGNORS
from udfs.group.state.view import GroupView
from udfs.model.comparability import (
    ASSIGNOR_UNKNOWN,
    MEMBERS_UNKNOWN,
    NO_TARGET,
    NOT_RECOMPUTABLE,
    OWNERSHIP_UNKNOWN,
    TOPICS_UNKNOWN,
)
from udfs.model.events import QueueRef
from udfs.strategies.kafka.coordinator_release import COORDINATOR, TODAY, is_preview, possible_releases
from udfs.strategies.kafka.server import MembersPut, coordinator_orders
from udfs.strategies.problem import Problem
from udfs.strategies.registry import qualified_name

UNIFORM: Final = "kafka.server.uniform"


class EpochTarget(NamedTuple):
    """The target of an epoch.

    Attributes:
        target: As computed. awaited: The input for computing it again once its topics have metadata.
        release, assignor: The Kafka release, and the assignor, that only the published target shows.
    """

    target: TargetAssignment
    awaited: Awaited | None
    release: str | None = None
    assignor: str | None = None


def target_of_epoch(
    view: GroupView,
    outcome: EpochOutcome,
    lives: TopicLives,
    topics: EpochTopics,
    reported: Owners,
    published: Owners | None,
    hidden: Collection[str],
) -> EpochTarget:
    """Compute the target of an epoch whose members are set, in the way that gives the published one if any does.

    Args:
        reported: The owners at its end. published: Its target; None if it has none. hidden: See ``take_epoch``.
    """
    target, awaited = _computed(view, outcome, lives, topics, reported)
    release = assignor = None
    if hidden and target.recomputed:
        target, awaited = msgspec.structs.replace(target, incomparable=TOPICS_UNKNOWN), None
    elif published is not None and target.recomputed and target.owners != published:
        target, release = _as_published(view, outcome, lives, topics.topic_queues, published) or (target, None)
        why = _why_incomparable(view, outcome, lives.names)
        if target.owners != published and why is not None:
            target = msgspec.structs.replace(target, incomparable=why)
            awaited = None if why == TOPICS_UNKNOWN else awaited
        named = (name for name in outcome.assignors if qualified_name(name, view.system) == target.strategy)
        assignor = next(named, outcome.strategy)
    library = _library_of(view, target, release)
    target = target if library is None else msgspec.structs.replace(target, library=library)
    return EpochTarget(target, awaited, release, None if assignor == outcome.strategy else assignor)


def _computed(
    view: GroupView, outcome: EpochOutcome, lives: TopicLives, topics: EpochTopics, reported: Owners
) -> tuple[TargetAssignment, Awaited | None]:
    """Compute the target of an epoch from the previous one; return nothing if the coordinator computed none."""
    strategy = None if outcome.strategy is None else qualified_name(outcome.strategy, view.system)
    if not outcome.described:
        return TargetAssignment(
            owners={}, strategy=strategy, error=NOT_RECOMPUTABLE, incomparable=MEMBERS_UNKNOWN
        ), None
    if outcome.target is None and outcome.members:
        owners = current_owners(view, topics.topic_queues, outcome.at)
        return TargetAssignment(owners=owners, strategy=strategy, incomparable=NO_TARGET), None
    return compute_generation(
        view,
        topics.topic_queues,
        topics.guessed,
        reported,
        strategy,
        outcome.at,
        lives.owners(_held_before(outcome, lives)),
        former=outcome.former,
        altered=partial(_as_in_coordinator, outcome, lives, next(_orders(view, outcome))),
    )


def _held_before(outcome: EpochOutcome, lives: TopicLives) -> Held:
    """Return the target from which that of the epoch was computed, by the ids that members had then."""
    return lives.current(
        {outcome.former.get(member_id, member_id): partitions for member_id, partitions in outcome.previous.items()}
    )


def _as_published(
    view: GroupView, outcome: EpochOutcome, lives: TopicLives, topic_queues: QueuesByTopic, published: Owners
) -> tuple[TargetAssignment, str | None] | None:
    """Return the published target if some other order, release or assignor gives it, else None."""
    group = view.group
    last = None if group.recorded is None else group.recorded.release
    releases = possible_releases(group.strategy_settings or {}, last)
    previous, former = lives.owners(_held_before(outcome, lives)), outcome.former
    for name in dict.fromkeys((outcome.strategy, *outcome.assignors)):
        strategy = None if name is None else qualified_name(name, view.system)
        for release in releases if strategy == UNIFORM else releases[:1]:
            is_computed = name == outcome.strategy and release == releases[0]
            for put in islice(_orders(view, outcome), int(is_computed), None):
                altered = partial(_as_in_coordinator, outcome, lives, put, release=release)
                target = compute_target_assignment(
                    view, topic_queues, strategy, outcome.at, outcome.epoch, previous, altered=altered, former=former
                )
                if target.recomputed and target.owners == published:
                    return target, None if release == releases[0] else release
    return None


def _library_of(view: GroupView, target: TargetAssignment, release: str | None) -> str | None:
    """Return the Kafka release that computes a target, None if that is today's; ``inferred``: not reported.

    Args:
        release: The only release whose target is the published one; None for the likeliest release.
    """
    group = view.group
    settings = group.strategy_settings or {}
    last = None if group.recorded is None else group.recorded.release
    likeliest = possible_releases(settings, last)[0]
    computed = release or likeliest
    if target.strategy != UNIFORM or not target.recomputed or (computed == TODAY and release is None):
        return None
    is_reported = bool(settings.get(COORDINATOR)) and computed == likeliest
    text = f"kafka-{computed}" + ("+" if computed == TODAY else "")
    return text if is_reported else f"{INFERRED}: {text}"


def _why_incomparable(view: GroupView, outcome: EpochOutcome, names: Mapping[str, str]) -> str | None:
    """Return why a target that differs cannot be compared; None if it can."""
    if not names.keys() >= outcome.topic_ids():
        return TOPICS_UNKNOWN
    if outcome.follows_unrecorded:
        return OWNERSHIP_UNKNOWN
    is_of_preview = is_preview(view.group.strategy_settings or {})
    return None if _has_computed_assignors(outcome) and not is_of_preview else ASSIGNOR_UNKNOWN


def _has_computed_assignors(outcome: EpochOutcome) -> bool:
    """Return whether the assignor is certainly one of those computed: not a custom one, and not a broker's."""
    return outcome.names_assignor and SERVER_ASSIGNORS.issuperset(outcome.assignors)


def _orders(view: GroupView, outcome: EpochOutcome) -> Iterator[MembersPut]:
    """Return the orders in which the coordinator may have put the members into its assignor's map, likeliest first."""
    former = outcome.former
    newest = [info.member_id for info in outcome.members if info.joined_at == outcome.assigned_at]
    ids = [former.get(member_id, member_id) for member_id in outcome.added or view.group.members]
    return coordinator_orders(ids, [former.get(member_id, member_id) for member_id in newest])


def _with_patterns(outcome: EpochOutcome, problem: Problem) -> Problem:
    """Subscribe members by their patterns."""
    patterns = {outcome.former.get(member_id, member_id): pattern for member_id, pattern in outcome.patterns.items()}
    if not patterns:
        return problem
    members = (msgspec.structs.replace(member, pattern=patterns.get(member.member_id)) for member in problem.members)
    return msgspec.structs.replace(problem, members=tuple(members))


def _as_in_coordinator(
    outcome: EpochOutcome, lives: TopicLives, put: MembersPut, problem: Problem, release: str | None = None
) -> Problem:
    """Put members, and each member's queues in the previous target, into the coordinator's orders."""
    problem = _with_patterns(outcome, problem)
    settings = problem.settings if release is None else {**problem.settings, COORDINATOR: release}
    members = {member.member_id: member for member in problem.members}
    previous = {
        member: tuple(QueueRef(topic, number) for topic, _, number in lives.queues(partitions))
        for member, partitions in _held_before(outcome, lives).items()
    }
    return msgspec.structs.replace(
        problem,
        members=tuple(members[member_id] for member_id in put.members if member_id in members),
        member_slots=put.slots,
        settings=settings,
        previous=None if problem.previous is None else previous,
    )
