"""Core: which spans end and open between two assignments, packed as runs of neighbouring queues, and unpacked. No I/O.

One change tells all of it, so that the journal grows with the members that changed and not with their queues. Under
``range`` and ``AVG`` a join shifts the queues of every member behind it; there even the members' names would be most
of the journal. Where that many get queues, one that held queues of the same topic and broker before is written as how
far its queues have moved. Who reads a journal without knowing who held what before it cannot resolve that, so that
every sixteenth generation names all members again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from udfs.group.assignment_diff import Changed
from udfs.group.state import Owners, Queue
from udfs.model.journal import (
    AssignedRun,
    Origin,
    QueueAssigned,
    QueueReleased,
    QueuesReassigned,
    ReassignedTopic,
    ReleasedRun,
)

NAMED_AT_MOST: Final = 256  # members that get queues by one change and are all named, whatever the generation
NAMED_EVERY: Final = 16  # generations

# (pause_ms, pause_estimated_ms) of a queue that a member gets
Pauses: TypeAlias = Mapping[tuple[Queue, str], tuple[int | None, int | None]]
# (topic, broker, queue id) -> the members that hold it, each with its instance id
Holders: TypeAlias = Callable[[Queue], Sequence[tuple[str, str | None]]]


_NO_PAUSES: Final = (None, None)


class _Runs:
    """The runs of one topic and broker, while queues are added in ascending order."""

    def __init__(self) -> None:
        self.released: list[ReleasedRun] = []
        self.assigned: list[AssignedRun] = []
        self._last_released: dict[int | None, ReleasedRun] = {}
        self._last_assigned: dict[tuple[int | None, ...], AssignedRun] = {}

    def release(self, queue_id: int, member: int | None) -> None:
        run = self._last_released.get(member)
        if run is not None and run.last == queue_id - 1:
            run.last = queue_id
            return
        run = self._last_released[member] = ReleasedRun(queue_id, queue_id, member)
        self.released.append(run)

    def assign(self, queue_id: int, how: tuple[int | None, int, int | None, int | None]) -> None:
        """Add a queue; ``how``: the fields of ``AssignedRun`` from ``member`` on."""
        run = self._last_assigned.get(how)
        if run is not None and run.last == queue_id - 1:
            run.last = queue_id
            return
        run = self._last_assigned[how] = AssignedRun(queue_id, queue_id, *how)
        self.assigned.append(run)


class _Names:
    """The members that a change names."""

    def __init__(self, names: Mapping[str, str], instance_ids: Mapping[str, str | None]) -> None:
        self.members: list[tuple[str, str | None]] = []
        self._places: dict[str, int] = {}
        self._names = names
        self._instance_ids = instance_ids

    def place(self, member_id: str) -> int:
        place = self._places.get(member_id)
        if place is None:
            place = self._places[member_id] = len(self.members)
            self.members.append((self._names.get(member_id, member_id), self._instance_ids.get(member_id)))
        return place


def pack_reassignment(
    before: Owners,
    changed: Sequence[Changed],
    *,
    origin: Origin,
    at: int,
    generation: int,
    rebalance_id: str,
    names: Mapping[str, str],
    instance_ids: Mapping[str, str | None],
    inferred: Callable[[str], bool],
    pauses: Pauses,
) -> QueuesReassigned | None:
    """Return what ends and opens between two assignments; None if nothing does.

    Args:
        changed: What ``changed_queues`` returns.
        names: The ids under which the tables hold members at that time, where these differ: of static members that
            were replaced since. Runs without a name follow the tables by themselves.
        instance_ids: Of members that have one.
        inferred: Whether the spans of a topic are.
    """
    named = _Names(names, instance_ids)
    topics: list[ReassignedTopic] = []
    held_before = _first_queues(changed) if generation % NAMED_EVERY and _are_many(changed) else {}
    place: tuple[str, str | None] | None = None
    first: Mapping[str, int] = {}
    runs, shift = _Runs(), 0
    for queue, old, new in changed:
        topic, broker, queue_id = queue
        if (topic, broker) != place:
            place = (topic, broker)
            runs, shift = _Runs(), 0
            topics.append(ReassignedTopic(topic, broker, runs.released, runs.assigned, inferred(topic)))
            first = held_before.get(place, {})
        if (len(old) < 2 and len(new) < 2) or not set(old) & set(new):  # single owners differ
            runs.release(queue_id, None)
        else:
            for member in old:
                if member not in new:
                    runs.release(queue_id, named.place(member))
        for member in new:
            if member in old:
                continue
            paused = pauses.get((queue, member), _NO_PAUSES) if pauses else _NO_PAUSES
            if member in first and len(new) == 1:
                if before.get((topic, broker, queue_id - shift)) != new:
                    shift = queue_id - first[member]
                runs.assign(queue_id, (None, shift, *paused))
            else:
                runs.assign(queue_id, (named.place(member), 0, *paused))
    if not topics:
        return None
    return QueuesReassigned(
        origin=origin,
        at=at,
        generation=generation,
        rebalance_id=rebalance_id,
        members=named.members,
        topics=topics,
    )


def _are_many(changed: Iterable[Changed]) -> bool:
    """Return whether so many members get queues that their names would be most of the change."""
    takers: set[str] = set()
    for _, _, new in changed:
        takers.update(new)
        if len(takers) > NAMED_AT_MOST:
            return True
    return False


def _first_queues(changed: Iterable[Changed]) -> dict[tuple[str, str | None], dict[str, int]]:
    """Return the first queue of those that changed which each member held alone of each topic and broker."""
    found: dict[tuple[str, str | None], dict[str, int]] = {}
    for (topic, broker, queue_id), old, _ in changed:
        if len(old) == 1:
            found.setdefault((topic, broker), {}).setdefault(old[0], queue_id)
    return found


def unpack_reassignment(change: QueuesReassigned, holders: Holders) -> list[QueueReleased | QueueAssigned]:
    """Return the spans that a change ends and opens, one by one: of each topic and broker first those that end.

    Args:
        holders: Who holds a queue by this origin before the change. A queue whose new owner follows from one that is
            not known, or not alone, stays without a span.
    """
    spans: list[QueueReleased | QueueAssigned] = []
    for topic in change.topics:
        opening = _opening(change, topic, holders)
        taken = {(one.queue_id, one.member_id) for one in opening}
        for run in topic.released:
            named = None if run.member is None else change.members[run.member][0]
            for queue_id in range(run.first, run.last + 1):
                losing = (
                    [named]
                    if named is not None
                    else [
                        member
                        for member, _ in holders((topic.topic, topic.broker, queue_id))
                        if (queue_id, member) not in taken
                    ]
                )
                spans += [
                    QueueReleased(
                        topic=topic.topic,
                        broker=topic.broker,
                        queue_id=queue_id,
                        member_id=member,
                        origin=change.origin,
                        valid_to=change.at,
                    )
                    for member in losing
                ]
        spans += opening
    return spans


def _opening(change: QueuesReassigned, topic: ReassignedTopic, holders: Holders) -> list[QueueAssigned]:
    opening: list[QueueAssigned] = []
    for run in topic.assigned:
        for queue_id in range(run.first, run.last + 1):
            if run.member is None:
                known = holders((topic.topic, topic.broker, queue_id - run.shift))
                if len(known) != 1:
                    continue
                member_id, instance_id = known[0]
            else:
                member_id, instance_id = change.members[run.member]
            opening.append(
                QueueAssigned(
                    topic=topic.topic,
                    broker=topic.broker,
                    queue_id=queue_id,
                    member_id=member_id,
                    instance_id=instance_id,
                    origin=change.origin,
                    generation=change.generation,
                    rebalance_id=change.rebalance_id,
                    valid_from=change.at,
                    inferred=topic.inferred,
                    pause_ms=run.pause_ms,
                    pause_estimated_ms=run.pause_estimated_ms,
                )
            )
    return opening
