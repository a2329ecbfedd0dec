"""Core: the generations that a coordinator reported of a group: when, by which strategy, over which queues. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from udfs.group.assignment.library_choice import DEPENDS_ON_LIBRARY
from udfs.group.replay.known_topics import KnownTopics
from udfs.group.replay.replay import History, Replayed
from udfs.group.state.assignment_diff import held_only_by, owners_of
from udfs.group.state.group import Owners
from udfs.model.comparability import NO_MEMBERS
from udfs.model.events import GroupSnapshot, QueueInfo, TopicQueues
from udfs.model.journal import Rebalance
from udfs.model.queues import Queues, numbered

# The audit does not agree with the generation.
DIFFERS: Final = "differs_from_its_strategy"


class RecordedGeneration(msgspec.Struct, frozen=True, kw_only=True):
    """One generation as its coordinator reported it.

    Attributes:
        owners: Of each queue; None if no assignment was reported. last_owners: The last ones that were reported of it.
        topics: The queues of each known topic that its
            leader knew of. follows: Whether it is a later step of a cooperative rebalance.
        excluded: Why the core does not give its assignment: a reason of ``comparability``, or ``DIFFERS``; None if it
            does. made_again: Topics that were deleted since the generation before.
        topic_ids: Kafka's UUIDs of topics, as far as known.
    """

    time_ms: int
    generation: int
    strategy: str | None
    leader: str | None
    settings: Mapping[str, object]
    owners: Owners | None
    last_owners: Owners | None
    topics: Mapping[str, Queues]
    follows: bool
    excluded: str | None
    made_again: frozenset[str]
    topic_ids: Mapping[str, str]


def recorded_generations(history: History, replayed: Replayed) -> list[RecordedGeneration]:
    """Return the generations of a history, in the order of their times.

    Args:
        replayed: What the coordinator decides over the history.
    """
    known = KnownTopics(due.event for due in history.events if isinstance(due.event, TopicQueues))
    names = {due.event.topic for due in history.events if isinstance(due.event, TopicQueues)}
    reported: dict[tuple[int, int | None], Owners | None] = {}
    newest: dict[tuple[int, int | None], Owners] = {}  # by the time when the generation began, and its number
    begins = {(row.event_time, row.generation) for row in replayed.rebalances}
    began: tuple[int, int | None] = -1, None
    for due in history.events:
        if isinstance(due.event, GroupSnapshot):
            event = due.event
            owners = None if event.assignments is None else reported_owners(event)
            reported.setdefault((event.event_time, event.generation), owners)
            # A coordinator that lost a group counts anew, so a number may come again.
            shown = (event.event_time, event.generation)
            began = shown if shown in begins else began
            if owners is not None:
                newest[began] = owners
    found: list[RecordedGeneration] = []
    topics: dict[str, Queues] = {}
    before = -1
    for row in sorted(replayed.rebalances, key=lambda row: (row.event_time, row.generation)):
        owners = reported.get((row.event_time, row.generation))
        if found and found[-1].time_ms == row.event_time:
            found.pop()  # the later one of the same millisecond is what it came to
        topics = _topics(known, names, row.event_time, owners or {}, topics)
        found.append(
            RecordedGeneration(
                time_ms=row.event_time,
                generation=row.generation,
                strategy=row.strategy,
                leader=row.leader,
                settings=_settings(row),
                owners=owners,
                last_owners=newest.get((row.event_time, row.generation), owners),
                topics=topics,
                follows=row.logical_id not in (None, row.rebalance_id),
                excluded=None if row.agrees or row.agrees_reason == NO_MEMBERS else row.agrees_reason or DIFFERS,
                topic_ids={name: found_id for name in topics if (found_id := known.topic_id(name, row.event_time))},
                made_again=frozenset(name for name in names if (known.renewed_at(name, row.event_time) or -1) > before),
            )
        )
        before = row.event_time
    return found


def reported_owners(event: GroupSnapshot) -> Owners:
    """Return the owners of each queue in a snapshot; some coordinators name queues of members that are gone."""
    held = {
        member: [(queue.topic, None, queue.queue_id) for queue in queues]
        for member, queues in (event.assignments or {}).items()
    }
    return held_only_by(owners_of(held), {info.member_id for info in event.members})


def _settings(row: Rebalance) -> dict[str, object]:
    is_of_library = row.library is not None and row.strategy in DEPENDS_ON_LIBRARY
    return {"library": row.library} if is_of_library else {}


def _topics(
    known: KnownTopics, names: set[str], time_ms: int, owners: Owners, before: Mapping[str, Queues]
) -> dict[str, Queues]:
    """Return the queues that a generation assigned: a leader may know of a topic's growth later, or earlier."""
    named: dict[str, int] = {}
    for topic, _, queue_id in owners:
        named[topic] = max(named.get(topic, 0), queue_id + 1)
    found: dict[str, Queues] = {}
    for topic in sorted(names | named.keys()):
        shown: tuple[QueueInfo, ...] = known.at(topic, time_ms) or ()
        assigned = named.get(topic, 0)
        if assigned > len(shown):
            shown = (*shown, *numbered(assigned)[len(shown) :])
        elif assigned:
            # Queues that a cooperative rebalance has yet to assign were known before.
            shown = shown[: max(assigned, min(len(before.get(topic, ())), len(shown)))]
        if shown:
            found[topic] = shown
    return found
