"""Core: topics re-created under their names, as a coordinator's target shows. No I/O.

The coordinator sees a deletion at once, while metadata shows it only with the next poll: a target names the topics that
existed when it was computed, with all of their queues. Queues of a deleted topic do not count as a member's former
ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from udfs.group.kafka.topic_names import ids_by_name
from udfs.group.state.assignment_diff import by_owner, owners_of
from udfs.group.state.epoch_outcome import EpochOutcome, Held, Partitions
from udfs.group.state.group import Owners, Queue
from udfs.group.state.recorded_group import RecordedGroup


class TopicLives(NamedTuple):
    """The topics of a target.

    Attributes:
        names: Topic names by id. ids: Topic ids by name, as the target names them; None if there is no target.
        made_again: Topics with another id than in the previous target.
    """

    names: Mapping[str, str]
    ids: Mapping[str, str] | None
    made_again: frozenset[str]

    def without_queues(self, topics: Iterable[str]) -> set[str]:
        """Return the subscribed topics of which the coordinator knew no queue."""
        # An id without a name may belong to any of them.
        if self.ids is None or any(self.names.get(topic_id, topic_id) == topic_id for topic_id in self.ids.values()):
            return set()
        return set(topics) - self.ids.keys()

    def is_current(self, topic_id: str) -> bool:
        """Return whether an id belongs to a topic that exists, as far as the target shows."""
        ids = self.ids or {}
        return ids.get(self.names.get(topic_id, topic_id), topic_id) == topic_id

    def current(self, held: Held) -> Held:
        """Return the members' partitions of topics that exist."""
        return {
            member: tuple(
                topic_partitions for topic_partitions in partitions if self.is_current(topic_partitions.topic)
            )
            for member, partitions in held.items()
        }

    def owners(self, held: Held) -> Owners:
        """Return the owners of each queue by name."""
        return owners_of({member: self.queues(partitions) for member, partitions in held.items()})

    def queues(self, held: Partitions) -> list[Queue]:
        """Return queues by name."""
        return [
            (self.names.get(topic_partitions.topic, topic_partitions.topic), None, number)
            for topic_partitions in held
            for number in topic_partitions.partitions
        ]


def lives_in(recorded: RecordedGroup | None, outcome: EpochOutcome, names: Mapping[str, str]) -> TopicLives:
    """Return the topics that an outcome's target shows."""
    if recorded is None or outcome.target is None or not outcome.members:
        return TopicLives(names, None, frozenset())
    ids = ids_by_name(outcome.target, names)
    made_again = frozenset(name for name, topic_id in ids.items() if recorded.ids.get(name, topic_id) != topic_id)
    return TopicLives(names, ids, made_again)


def ownership_steps(before: Owners, outcome: EpochOutcome, lives: TopicLives) -> list[tuple[int, Owners]]:
    """Return the owners from each time on.

    If a member gives up a queue and gets the queue of a re-created topic of that name, it stays the owner throughout.
    """
    held = by_owner(before)
    former: dict[str, Partitions] = {}
    steps: list[tuple[int, Owners]] = []
    for at, changed in outcome.steps:
        lost = {member: _replaced(lives, former.get(member, ()), now) for member, now in changed.items()}
        if any(lost.values()):
            kept = {member: _without(held.get(member, []), lost[member]) for member in changed}
            steps.append((at, owners_of(held | kept)))
        held |= {member: lives.queues(partitions) for member, partitions in changed.items()}
        former |= changed
        steps.append((at, owners_of(held)))
    return steps


def _replaced(lives: TopicLives, before: Partitions, now: Partitions) -> set[Queue]:
    """Return a member's queues that belong to another topic than before."""
    was, is_now = (
        {(topic_partitions.topic, number) for topic_partitions in held for number in topic_partitions.partitions}
        for held in (before, now)
    )
    names = lives.names
    lost, gained = (
        {(names.get(topic, topic), number) for topic, number in some} for some in (was - is_now, is_now - was)
    )
    return {(name, None, number) for name, number in lost & gained}


def _without(queues: Iterable[Queue], lost: Collection[Queue]) -> list[Queue]:
    return [queue for queue in queues if queue not in lost]
