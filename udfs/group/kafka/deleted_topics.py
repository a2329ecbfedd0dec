"""Core: topics of a classic group that were deleted, and perhaps re-created under the same names. No I/O.

A coordinator deletes a group's commits of a topic as soon as the topic is deleted. This sign comes before the
generation that follows, whereas a poll of the metadata comes after it, or never shows that the topic was missing.
Members are assigned queues by name, so the next generation assigns the new topic's queues. If a group has no commits,
or they are unknown, the assignment itself is the sign: it has no other cause, and it leaves out queues that were
assigned before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from typing import Final, NamedTuple

from udfs.group.assignment.rebalance_plan import COOPERATIVE
from udfs.group.assignment.target_assignment import QueuesByTopic
from udfs.group.batch.context import GroupContext
from udfs.group.events.topic_changes import FIRST_METADATA
from udfs.group.kafka.triggers import MADE_AGAIN, Causes
from udfs.group.members.departure_causes import INFERRED
from udfs.group.state.group import Evidence, Owners, keys_of
from udfs.group.state.state_machine import GroupKind
from udfs.group.state.view import GroupView
from udfs.model.events import CommitsDeleted, QueueInfo
from udfs.model.queues import numbered
from udfs.strategies.registry import qualified_name

_DELETED = "deleted"
# These strategies assign each queue of each subscribed topic at once.
_EAGER: Final = frozenset({"kafka.range", "kafka.roundrobin", "kafka.sticky"})


class TopicsNow(NamedTuple):
    """The topics of a generation.

    Attributes:
        topic_queues: Their queues. made_again: Topics re-created since the previous generation.
        awaited: Evidence of deletions that metadata has not shown yet.
    """

    topic_queues: dict[str, tuple[QueueInfo, ...]]
    made_again: frozenset[str]
    awaited: Sequence[Evidence]


def note_deleted_commits(context: GroupContext, event: CommitsDeleted, at: int, event_id: str) -> None:
    """Record that topics were deleted; commits of a topic that members subscribe to do not expire."""
    group = context.group
    if context.kind is not GroupKind.REPORTED or group.recorded is not None:
        return
    wanted = set(group.subscribed_topics())
    for topic in sorted({queue.topic for queue in event.queues} & wanted):
        if not any(
            evidence.detail == _DELETED and (evidence.topic, evidence.time) == (topic, at)
            for evidence in group.evidence
        ):
            context.learn(Evidence("queue_count_changed", at, None, topic, event_id, _DELETED))


def topics_now(
    view: GroupView, topics: Collection[str], topic_queues: QueuesByTopic, reported: Owners | None, at: int
) -> TopicsNow:
    """Return the topics of a new generation, of which some were deleted since the previous one.

    Args:
        topics: Topics with metadata that members of both generations subscribe to. topic_queues: The queues that
            metadata shows.
        reported: The assignment that the generation reports.
    """
    found, made_again, awaited = dict(topic_queues), set[str](), list[Evidence]()
    since = view.group.last_rebalance_at or 0
    deleted = {
        evidence.topic: evidence
        for evidence in view.group.evidence
        if evidence.detail == _DELETED and evidence.time <= at
    }
    for topic in sorted(topics):
        deletion, renewed = deleted.get(topic), view.topics.renewed_at(topic, at)
        is_new = deletion is not None and deletion.time > since
        if deletion is not None and reported is not None and (renewed is None or renewed < deletion.time):
            awaited.append(deletion)
            numbers = [queue[2] for queue in reported if queue[0] == topic]
            if numbers:
                found[topic] = numbered(max(numbers) + 1)
            else:
                found.pop(topic, None)
        has_id = view.topics.topic_id(topic, at) is not None
        is_renewed = deletion is None and has_id and renewed is not None and renewed > since
        if found.get(topic) and (is_new or is_renewed):
            made_again.add(topic)
    return TopicsNow(found, frozenset(made_again), awaited)


def add_left_out(
    view: GroupView,
    causes: Causes,
    topics: TopicsNow,
    reported: Owners | None,
    strategy: str | None,
    with_metadata: Set[str],
    at: int,
    event_id: str,
) -> TopicsNow:
    """Add the deletions that explain a generation without any other cause; return its topics without these queues.

    A topic cannot lose queues; a topic with fewer queues is a new topic of that name.

    Args:
        reported: The assignment that the generation reports. strategy: The strategy that it reports.
        with_metadata: Topics with metadata that members of both generations subscribe to.
    """
    named = None if strategy is None else qualified_name(strategy, view.system)
    if causes.triggers or reported is None or not (named in _EAGER or named == COOPERATIVE):
        return topics
    topic_queues, made_again, awaited = dict(topics.topic_queues), set(topics.made_again), list(topics.awaited)
    moving = {queue[0] for queue in view.group.revoked_pending}
    left = {queue[0] for queue in view.group.reported.keys() - reported.keys()}
    for topic in sorted(left & topic_queues.keys() & with_metadata):
        was = view.group.counts.get(topic, 0)
        now = 1 + max((queue[2] for queue in reported if queue[0] == topic), default=-1)
        if now >= was or (named == COOPERATIVE and (now or topic in moving)):
            continue
        topic_queues.pop(topic)
        if now:
            topic_queues[topic] = numbered(now)
            made_again.add(topic)
        detail = f"{was} -> {now}{MADE_AGAIN if now else ''}, {INFERRED} from the assignment"
        causes.add("queue_count_changed", topic=topic, detail=detail, event_id=event_id)
        awaited.append(Evidence("queue_count_changed", at, None, topic, event_id, _DELETED))
    return TopicsNow(topic_queues, frozenset(made_again), awaited)


def evidence_after(
    view: GroupView, left: Sequence[Evidence], topics: TopicsNow, subscribed: Set[str], reported: Owners | None, at: int
) -> list[Evidence]:
    """Return the evidence left after a generation; of earlier deletions, only those that metadata has yet to show.

    Queues missing from newer metadata stay absent as long as members hold them only by an older report.

    Args:
        left: The evidence that it does not show. subscribed: Its topics. reported: The assignment that it reports.
    """
    others = [evidence for evidence in left if evidence.detail not in (_DELETED, FIRST_METADATA) or evidence.time > at]
    if reported is None:
        there = {queue for topic, infos in topics.topic_queues.items() for queue in keys_of(infos, view.system, topic)}
        held = {queue[0] for queue in (*view.group.reported, *view.group.revoked_pending) if queue not in there}
        past = [
            evidence for evidence in view.group.evidence if evidence.time <= at and evidence.topic in held & subscribed
        ]
        others += [evidence for evidence in past if evidence.detail != _DELETED and evidence not in others]
    return sorted([*others, *topics.awaited], key=lambda evidence: evidence.time)
