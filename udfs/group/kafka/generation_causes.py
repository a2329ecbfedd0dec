"""Core: the topics and causes of a reported generation, as far as it shows them. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from udfs.group.batch.finding_texts import counted
from udfs.group.batch.findings import reported_late
from udfs.group.events.topic_changes import queues_shown, sizes
from udfs.group.kafka.cooperative_steps import add_causes_of_steps
from udfs.group.kafka.deleted_topics import TopicsNow, topics_now
from udfs.group.kafka.polled_generations import add_causes_of_assignment, is_converging, lacks_subscriptions
from udfs.group.kafka.topic_discovery import learned_topics
from udfs.group.kafka.triggers import Causes, ShownGeneration, compare
from udfs.group.members.departure_causes import INFERRED
from udfs.group.state.group import Owners, Queue
from udfs.group.state.view import GroupView
from udfs.model.events import GroupSnapshot, MemberInfo
from udfs.model.group_api import DueEvent


class GenerationTopics(NamedTuple):
    """The topics of a reported generation.

    Attributes:
        subscribed: All of them. both: Those with metadata that members of the generation before subscribe to, too.
        guessed: Topics without metadata. now: Their queues.
        resized: Queue counts of the topics subscribed before and now: before, now.
    """

    subscribed: set[str]
    both: set[str]
    guessed: Sequence[str]
    now: TopicsNow
    resized: dict[str, tuple[int | None, int]]


def topics_of_generation(
    view: GroupView, snapshot: GroupSnapshot, reported: Owners | None, at: int
) -> GenerationTopics:
    """Return the topics of a generation whose members are not set yet."""
    subscribed = _subscribed(view, snapshot, reported, at)
    topic_queues, guessed = queues_shown(view, subscribed, reported, at)
    before_and_now = subscribed & view.group.current_topics()
    both = before_and_now.difference(guessed)
    now = topics_now(view, both, topic_queues, reported, at)
    resized = {topic: sizes(view, topic, now.topic_queues, guessed, reported, at) for topic in before_and_now}
    return GenerationTopics(subscribed, both, guessed, now, resized)


def causes_of_generation(
    view: GroupView,
    due: DueEvent,
    snapshot: GroupSnapshot,
    topics: GenerationTopics,
    reported: Owners | None,
    current: int | None,
    at: int,
) -> Causes:
    """Return what differs from the generation before, whose members are still set."""
    shown = ShownGeneration(
        snapshot.members,
        reported,
        snapshot.strategy,
        snapshot.departures or (),
        due.event_id,
        at,
        topics.resized,
        topics.now.made_again,
        snapshot.joined_at,
    )
    causes = compare(view, shown)
    causes.learned = list(learned_topics(view, reported, at))
    if current is not None and snapshot.generation == current + 1 and snapshot.leader == view.group.leader:
        causes.leader = snapshot.leader
    return causes


def _subscribed(view: GroupView, snapshot: GroupSnapshot, reported: Owners | None, at: int) -> set[str]:
    """Return the topics of a snapshot's generation; if polls do not show subscriptions, the assigned topics.

    In that case a deleted topic stays, and so does a topic whose queues may all be moving to other members.
    """
    topics = subscribed_after(view, snapshot.members)
    if not lacks_subscriptions(snapshot) or not snapshot.members:
        return topics
    assigned = {queue[0] for queue in reported or ()}
    left = view.group.counts.keys() - assigned
    return topics | assigned | {topic for topic in left if is_converging(snapshot) or not view.queues_at(topic, at)}


def subscribed_after(view: GroupView, members: Iterable[MemberInfo]) -> set[str]:
    """Return the topics that the members of a new generation subscribe to."""
    return {topic for info in members for topic in _subscriptions(view, info)}


def _subscriptions(view: GroupView, info: MemberInfo) -> tuple[str, ...]:
    if info.subscriptions is not None:
        return info.subscriptions
    member = view.group.members.get(info.member_id)
    return (member.subscriptions or ()) if member is not None else ()


def add_generation_triggers(
    view: GroupView,
    due: DueEvent,
    snapshot: GroupSnapshot,
    current: int | None,
    reported: Owners | None,
    causes: Causes,
    at: int,
) -> list[Queue]:
    """Add the causes that the generation itself shows; return the queues that a cooperative rebalance released."""
    group, event_id = view.group, due.event_id
    handed = [queue for queue in group.revoked_pending if queue in (reported or {})]
    if handed and group.members_decided:
        causes.add("cooperative_follow_up", event_id=event_id, detail=counted(len(handed), "queue") + " released")
    add_causes_of_number(view, snapshot.generation or 0, current, causes, event_id)
    if due.late:
        causes.add("late_evidence", detail=reported_late(snapshot.event_time, at), event_id=event_id)
    add_causes_of_steps(group, snapshot, reported, causes, event_id)
    add_causes_of_assignment(view, snapshot, reported, causes, at, event_id)
    if not causes.triggers:
        for kind, topic, detail in causes.learned:
            causes.add(kind, topic=topic, detail=detail, event_id=event_id)
    if not causes.triggers:
        _add_returns(causes, event_id)
    if not causes.triggers:
        causes.add("unexplained", detail=_likely_reason(causes, group.preparing_reason), event_id=event_id)
    causes.explain(group.preparing_reason)
    causes.add_notes()
    return handed


def add_causes_of_number(view: GroupView, generation: int, current: int | None, causes: Causes, event_id: str) -> None:
    """Add that a coordinator counts anew, or that the group is new."""
    if current is not None and view.group.exists and generation <= current:
        causes.add("coordinator_changed", detail=f"generation {current} -> {generation}", event_id=event_id)
    if not view.group.exists:
        is_first = current is None and (generation > 1 or view.group.polled)
        causes.add("group_created", event_id=event_id, detail="first seen" if is_first else None)


def _add_returns(causes: Causes, event_id: str | None) -> None:
    """Add static members that came back with a generation without any other cause.

    Source: kafka ``GroupMetadataManager#updateStaticMemberThenRebalanceOrCompleteJoin``: in a stable group their return
    makes a generation only if it changes the selected protocol; otherwise only if it falls into a rebalance ("Updating
    metadata for static member").
    """
    for member_id in causes.returned:
        detail = f"{INFERRED}: the static member came back under another id"
        causes.add("subscription_changed", member_id=member_id, detail=detail, event_id=event_id)


def _likely_reason(causes: Causes, reason: str | None) -> str | None:
    """Return the likely origin of the next generation of an unchanged group, if its coordinator names no reason.

    Source: kafka-group-coordinator ``GroupMetadataManager#classicGroupJoinExistingMember``: "Leader re-joining group
    during Stable". The record is the same if a member joined and left before the join phase ended.
    """
    if causes.leader is None or reason is not None:
        return None
    return f"{INFERRED}: its leader {causes.leader} joined again, or a member came and left within the rebalance"
