"""Core: changes of topics, and topics of a reported generation whose metadata comes later. No I/O.

The first queues known of a topic hold for all earlier times. A generation with topics without metadata is computed once
all have it, from its own event time on and from the owners that it started from: the result does not depend on when or
in which order metadata came. Until then the reported assignment replaces the missing metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from udfs.group.assignment.metadata_age import COUNTED, known_queues, metadata_age_ms, unshown_growth
from udfs.group.assignment.rebalance_plan import COOPERATIVE
from udfs.group.assignment.target_assignment import QueuesByTopic, TargetAssignment, compute_target_assignment
from udfs.group.audit.audit import audit_of_awaited
from udfs.group.batch.context import GroupContext
from udfs.group.batch.findings import reported_late
from udfs.group.decision.commit import commit_audit, commit_awaited, commit_topic
from udfs.group.events.current_balance import with_balance
from udfs.group.events.reported_assignment import compare_with_reports
from udfs.group.events.topic_growth import show_growth
from udfs.group.state.assignment_diff import held_only_by, resized
from udfs.group.state.group import Awaited, Evidence, Owners, Queue, key_of, keys_of, queue_order
from udfs.group.state.state_machine import GroupKind
from udfs.group.state.view import GroupView
from udfs.model.comparability import OF_LIBRARIES, TOPICS_UNKNOWN
from udfs.model.events import QueueInfo, TopicQueues
from udfs.model.group_api import DueEvent
from udfs.model.queues import shortened, spelled
from udfs.strategies.problem import Problem

# Evidence that metadata is newer than the current generation: the next generation has no queues missing from the
# metadata.
FIRST_METADATA: Final = "first metadata"


def change_topic(context: GroupContext, due: DueEvent, event: TopicQueues, at: int) -> None:
    """Apply a change of a topic's queues, if a member subscribes to it."""
    group, topic = context.group, event.topic
    is_of_group, recorded = topic in group.current_topics(), group.recorded
    is_of_records = recorded is not None and recorded.protocol == "consumer" and topic in recorded.topics()
    if not is_of_group and not is_of_records:
        return
    if context.kind is GroupKind.REPORTED and topic in group.topics_without_metadata:
        if group.recorded is None:
            context.learn(Evidence("queue_count_changed", at, None, topic, due.event_id, FIRST_METADATA))
        learn_topic(context, topic, at, due.event_id)
        return
    before, after = context.queues_at(topic, event.event_time - 1), context.queues_at(topic, at)
    if (before or ()) == (after or ()):
        return
    if not is_of_group:  # it is of an epoch that is not decided yet
        context.learn(Evidence("queue_count_changed", at, None, topic, due.event_id))
        return
    change = resized(before, after or ())
    if due.late:
        change += f", {reported_late(event.event_time, at)}"
        context.cause(at, "late_evidence", None, topic, due.event_id, change)
    if context.kind is not GroupKind.REPORTED:
        context.cause(at, "queue_count_changed", None, topic, due.event_id, change)
        return
    detail = COUNTED if len(after or ()) == group.counts.get(topic) else None
    context.learn(Evidence("queue_count_changed", at, None, topic, due.event_id, detail))
    show_growth(context, at)


# ---- the queues of one generation


def queues_shown(
    view: GroupView, topics: Iterable[str], reported: Owners | None, at: int, assigned_at: int | None = None
) -> tuple[dict[str, tuple[QueueInfo, ...]], list[str]]:
    """Return the queues of each topic in the metadata of this generation's leader.

    Queues in an assignment exist, even if metadata lacks them. Other queues count if they existed before, or for longer
    than the maximum metadata age of clients: until then the leader may have made a generation without them before its
    metadata showed them, which is not a violation.

    Args:
        assigned_at: When the assignment was computed, if known; later metadata does not count.

    Returns: the queues, and the topics without metadata so far.
    """
    counts = view.group.counts
    # Topics whose metadata changed without a generation showing it are not among them.
    kept = view.group.current_topics() - {evidence.topic for evidence in view.group.evidence if evidence.time <= at}
    named: dict[str, set[Queue]] = {}
    for queue in reported or ():
        named.setdefault(queue[0], set()).add(queue)
    topic_queues: dict[str, tuple[QueueInfo, ...]] = {}
    guessed: list[str] = []
    for topic in sorted(topics):
        infos = None if assigned_at is None else view.queues_at(topic, assigned_at)
        if infos is None:
            infos = view.queues_at(topic, at)
        used = named.get(topic, set())
        if infos is None:
            guessed.append(topic)
        # The topic had ended before the current generation: metadata or an assignment shows it, not its members.
        if topic in kept and (topic in counts or infos is None):
            # Queues of an earlier assignment still exist, even if a cooperative rebalance has not assigned them yet,
            # unless newer metadata lacks them.
            used = used | {queue for queue in view.group.reported if queue[0] == topic}
            if view.group.members:  # if no member was left, the topic may have been re-created
                used |= {queue for queue in view.group.revoked_pending if queue[0] == topic}
        listed = {key_of(info, view.system, topic): info for info in infos or ()}
        before = counts.get(topic)
        shown = named.get(topic)
        is_left_out = shown and before is not None and before < len(listed) and _highest(shown) < before
        if is_left_out and before is not None and not _outlasted_metadata(view, topic, at):
            listed = {queue: info for queue, info in listed.items() if queue[2] < before}
        for queue in _up_to(topic, used):
            if queue not in listed:
                listed[queue] = QueueInfo(queue[2], queue[1])
        if listed:
            topic_queues[topic] = tuple(listed[queue] for queue in sorted(listed, key=queue_order))
    return topic_queues, guessed


def _outlasted_metadata(view: GroupView, topic: str, at: int) -> bool:
    """Return whether a topic grew so long ago that the metadata of all clients must have shown it."""
    # Topics that an earlier batch changed may show more queues than existed, including by a later growth.
    grown_at = max((evidence.time for evidence in unshown_growth(view.group, topic)), default=None)
    return grown_at is None or grown_at <= at - metadata_age_ms(view.group.members.values())


def _highest(queues: Iterable[Queue]) -> int:
    return max(queue[2] for queue in queues)


def _up_to(topic: str, used: Iterable[Queue]) -> list[Queue]:
    """Return the queues implied by these: ids start at 0 on each broker."""
    highest: dict[str | None, int] = {}
    for _, broker, queue_id in used:
        highest[broker] = max(queue_id, highest.get(broker, 0))
    return [(topic, broker, number) for broker in sorted(highest, key=str) for number in range(highest[broker] + 1)]


def sizes(
    view: GroupView, topic: str, topic_queues: QueuesByTopic, guessed: Iterable[str], reported: Owners | None, at: int
) -> tuple[int | None, int]:
    """Return how many queues a topic had in the current generation and has in this one; None if unknown.

    Args:
        reported: The whole assignment that this generation reports.
    """
    group, now = view.group, len(topic_queues.get(topic, ()))
    before = group.counts.get(topic)
    if before is not None:
        known = _named([*group.reported, *group.revoked_pending], topic)
        growths = [growth for growth in unshown_growth(group, topic) if growth.time <= at and growth.detail != COUNTED]
        if growths and group.recorded is None and reported is not None and 0 < known < before:
            # Its queues count already, but the leader of the current generation did not know them.
            before = known
        is_left_out = 0 < _named(reported or {}, topic) <= before < now
        return before, before if is_left_out else now
    if topic in guessed:
        # Not reported before, and now in an assignment: the topic grew. A cooperative assignment may have left it out.
        is_reported = any(queue[0] == topic for queue in reported or ())
        is_new = is_reported and all(queue[0] != topic for queue in group.reported)
        return (None, now) if is_new and group.has_reported and group.last_strategy != COOPERATIVE else (now, now)
    # First metadata holds for all earlier times. A topic with former metadata that was not counted had been deleted.
    return (now if topic in group.topics_without_metadata else 0), now


def _named(owners: Iterable[Queue], topic: str) -> int:
    """Return how many queues a topic has, up to the last one in an assignment."""
    return max((queue[2] + 1 for queue in owners if queue[0] == topic), default=0)


def compute_generation(
    view: GroupView,
    topic_queues: QueuesByTopic,
    guessed: Sequence[str],
    reported: Owners | None,
    strategy: str | None,
    at: int,
    previous: Owners | None = None,
    former: Mapping[str, str] | None = None,
    altered: Callable[[Problem], Problem] | None = None,
) -> tuple[TargetAssignment, Awaited | None]:
    """Compute a reported generation whose members are set; return nothing if both topics and an assignment are missing.

    If an assignment names no queue of a topic, it replaces the metadata: the topic has none. A cooperative assignment
    does not name queues that its members are still to release, so nothing is computed until the topic has metadata.

    Args:
        previous: The owners that the strategy starts from; None for the current ones.
        former, altered: See ``compute_target_assignment``.
    Returns: the assignment, and the input for computing it again once its topics have metadata.
    """
    group = view.group
    generation = group.current_generation
    # Agreement with a guess proves nothing about the library.
    assumes_queues = any(topic in topic_queues for topic in guessed)
    compared = None if assumes_queues else reported
    target = compute_target_assignment(
        view, topic_queues, strategy, at, generation, previous, compared, altered, former
    )
    if not guessed or not group.members:
        return target, None
    if target.failed:  # it may have failed only because topics are missing
        without = compute_target_assignment(view, {}, strategy, at, generation, {})
        target = msgspec.structs.replace(without, owners=target.owners) if without.failed else without
    if not target.recomputed and target.incomparable not in OF_LIBRARIES:
        return target, None
    awaited = Awaited(
        since=at,
        topic_queues={topic: shortened(queues) for topic, queues in topic_queues.items()},
        guessed=reported is not None,
        assumes_queues=assumes_queues,
        before=group.computed,
        previous=(group.reported if group.has_reported else None) if previous is None else previous,
    )
    if reported is None or (target.strategy == COOPERATIVE and any(topic not in topic_queues for topic in guessed)):
        existing = {queue for topic, infos in topic_queues.items() for queue in keys_of(infos, view.system, topic)}
        held = held_only_by(group.computed, group.members)
        owners = {queue: holders for queue, holders in held.items() if queue in existing}
        target = msgspec.structs.replace(target, owners=owners, incomparable=TOPICS_UNKNOWN)
    return target, awaited


# ---- topics whose metadata comes later


def learn_topic(context: GroupContext, topic: str, at: int, event_id: str | None = None) -> None:
    """Apply the first queues of a topic of the current generation, which is computed once all topics have them."""
    group, awaited = context.group, context.group.awaited
    first = context.first_queues(topic, at)
    if first is None or not group.members:
        return
    # Queues in the assignment exist, even if metadata lacks them.
    named = () if awaited is None else spelled(awaited.topic_queues.get(topic)) or ()
    listed = {key_of(info, context.system, topic): info for info in (*named, *first)}
    commit_topic(context, topic, [listed[queue] for queue in sorted(listed, key=queue_order)])
    if awaited is not None and not group.topics_without_metadata:
        _compute_awaited(context, awaited, at, event_id)
    elif group.row is not None:
        context.write_row(at, msgspec.structs.replace(group.row, queues=known_queues(context, group.counts)))


def _compute_awaited(context: GroupContext, awaited: Awaited, at: int, event_id: str | None) -> None:
    """Write the computed spans of the current generation; all of its topics have metadata now."""
    group, since = context.group, awaited.since
    topic_queues = {topic: spelled(awaited.topic_queues[topic]) or () for topic in sorted(awaited.topic_queues)}
    previous = awaited.previous if awaited.previous is not None else awaited.before
    reported = group.reported if awaited.guessed else None
    target = compute_target_assignment(
        context, topic_queues, group.last_strategy, since, group.current_generation, previous, reported
    )
    owners = target.owners if target.recomputed or target.incomparable in OF_LIBRARIES else None
    commit_audit(context, audit_of_awaited(context, topic_queues, target, previous, at), at)
    commit_awaited(context, awaited, owners, comparable=target.incomparable not in OF_LIBRARIES)
    compare_with_reports(context, at)
    if group.row is None:
        return
    row = msgspec.structs.replace(group.row, queues=known_queues(context, group.counts))
    if target.recomputed:
        owners = group.reported if awaited.guessed else group.computed
        row, findings = with_balance(context, row, owners, topic_queues, at, event_id)
        context.set_findings(findings, at)
    context.write_row(at, row)
