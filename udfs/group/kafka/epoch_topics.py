"""Core: the topics of an epoch of the new protocols, with the queues that its coordinator knew. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from udfs.group.assignment.target_assignment import QueuesByTopic
from udfs.group.events.topic_changes import queues_shown, sizes
from udfs.group.kafka.topic_lives import TopicLives
from udfs.group.kafka.topic_names import topic_id_at
from udfs.group.state.epoch_outcome import EpochOutcome
from udfs.group.state.group import Owners
from udfs.group.state.recorded_group import SERVER_ASSIGNORS
from udfs.group.state.view import GroupView
from udfs.model.events import QueueInfo
from udfs.model.queues import numbered


class EpochTopics(NamedTuple):
    """The topics of an epoch.

    Attributes:
        topic_queues: Their queues. guessed: Topics without metadata.
        resized: Queue counts of the topics subscribed before and now: before, now.
    """

    topic_queues: Mapping[str, tuple[QueueInfo, ...]]
    guessed: Sequence[str]
    resized: Mapping[str, tuple[int | None, int]]


def topics_of_epoch(
    view: GroupView, outcome: EpochOutcome, lives: TopicLives, subscribed: Set[str], published: Owners | None
) -> EpochTopics:
    """Return the topics of an epoch, whose members are not set yet.

    Args:
        subscribed: The topics that its members subscribe to. published: Its target; None if it has none.
    """
    at, before = outcome.at, set(view.group.subscribed_topics())
    # A target names queues that its coordinator knew, whether or not any member has taken them.
    named = {**lives.owners(lives.current(outcome.owned)), **(published or {})}
    shown, without_metadata = queues_shown(view, subscribed, named, at, outcome.assigned_at)
    empty = lives.without_queues(subscribed)
    guessed = [topic for topic in without_metadata if topic not in empty]
    topic_queues = _as_in_target(
        view,
        lives,
        {topic: queues for topic, queues in shown.items() if topic not in empty},
        published or {},
        outcome.assigned_at or at,
        is_whole=outcome.strategy in SERVER_ASSIGNORS,
    )
    resized = {topic: sizes(view, topic, topic_queues, guessed, named, at) for topic in subscribed & before}
    topics = EpochTopics(topic_queues, guessed, resized)
    return _as_in_last_target(view, topics, at) if published is None else topics


def _as_in_target(
    view: GroupView, lives: TopicLives, topic_queues: QueuesByTopic, published: Owners, at: int, *, is_whole: bool
) -> dict[str, tuple[QueueInfo, ...]]:
    """Return the queues of each topic as its coordinator knew them, if metadata of that time differs.

    Args:
        topic_queues: The queues in metadata. published: The target. is_whole: The assignor assigns every queue.
    """
    if lives.ids is None:
        return dict(topic_queues)
    named: dict[str, list[int]] = {}
    for topic, _, number in published:
        named.setdefault(topic, []).append(number)
    found: dict[str, tuple[QueueInfo, ...]] = {}
    for topic, queues in topic_queues.items():
        shown = topic_id_at(view, topic, at)
        is_same = shown is None or shown == lives.ids.get(topic)
        count = max(named[topic]) + 1 if topic in named else None
        if is_same and (count is None or not is_whole or count >= len(queues)):
            found[topic] = queues
        elif count is not None:
            found[topic] = queues[:count] if is_same else numbered(count)
    return found


def _as_in_last_target(view: GroupView, topics: EpochTopics, at: int) -> EpochTopics:
    """Return the topics of an epoch without a target as the last target showed them.

    Only a later epoch's target shows a growth: the coordinator bumps the epoch for a member that leaves even before it
    learns what metadata already shows. A target may also have named queues that metadata still lacks.
    """
    queues, sized = dict(topics.topic_queues), dict(topics.resized)
    for topic, (count, _) in topics.resized.items():
        shown, renewed = view.queues_at(topic, at), view.topics.renewed_at(topic, at)
        is_gone = shown == () or (renewed is not None and renewed > (view.group.last_rebalance_at or 0))
        if count is None or is_gone:
            continue
        queues[topic] = (*queues.get(topic, ())[:count], *numbered(count)[len(queues.get(topic, ())) :])
        sized[topic] = (count, count)
    return EpochTopics({topic: infos for topic, infos in queues.items() if infos}, topics.guessed, sized)
