"""Core: spans that end and open between two assignments, packed as runs of neighbouring queues. No I/O.

One journal row holds all of them, so the journal grows with the members that changed and not with their queues. Under
``range`` and ``AVG`` a join shifts the queues of every later member; in that case member names alone would make up most
of the journal. If many members get queues, a member that held queues of the same topic and broker before is written as
the distance by which its queues moved. A reader that starts in the middle of the journal cannot resolve a distance, so
every sixteenth generation names all members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from udfs.group.assignment.move_costs import MoveCost
from udfs.group.state.assignment_diff import Changed
from udfs.group.state.group import Owners, Queue
from udfs.model.spans import (
    AssignedRun,
    Origin,
    QueueAssigned,
    QueueCost,
    QueueReleased,
    QueuesReassigned,
    ReassignedTopic,
    ReleasedRun,
)

NAMED_AT_MOST: Final = 256  # with up to this many members that get queues by one change, every generation names them
NAMED_EVERY: Final = 16  # generations

# (pause_ms, pause_estimated_ms) of a queue that a member gets
Pauses: TypeAlias = Mapping[tuple[Queue, str], tuple[int | None, int | None]]
# (outage_min_ms, outage_max_ms) of a queue
SpanOutages: TypeAlias = Mapping[Queue, tuple[int | None, int | None]]
# (topic, broker, queue id) -> its owners, each with its instance id
Holders: TypeAlias = Callable[[Queue], Sequence[tuple[str, str | None]]]


_NO_PAUSES: Final = (None, None)
_NO_COST: Final = QueueCost(-1)


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

    def assign(self, queue_id: int, how: tuple[int | None, int, *tuple[int | None, ...]]) -> None:
        """Add a queue; ``how`` holds the fields of ``AssignedRun`` from ``member`` on."""
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
    costs: Mapping[Queue, MoveCost],
    outages: SpanOutages | None = None,
) -> QueuesReassigned | None:
    """Return the spans that end and open between two assignments; None if nothing changes.

    Args:
        changed: The result of ``changed_queues``.
        names: Ids in the tables at that time, if they differ: static members that were replaced since. Runs without a
            name follow the tables anyway.
        instance_ids: Instance ids of the members that have one.
        inferred: Whether the spans of a topic are inferred.
        costs, outages: Values for queues that get an owner.
    """
    named = _Names(names, instance_ids)
    held_before = _first_queues(changed) if generation % NAMED_EVERY and _are_many(changed) else {}
    topics = _packed(before, changed, held_before, named, inferred, pauses, costs, outages)
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


def _packed(
    before: Owners,
    changed: Sequence[Changed],
    held_before: Mapping[tuple[str, str | None], Mapping[str, int]],
    named: _Names,
    inferred: Callable[[str], bool],
    pauses: Pauses,
    costs: Mapping[Queue, MoveCost],
    outages: SpanOutages | None,
) -> list[ReassignedTopic]:
    """Return the changes of each topic and broker as runs.

    Args:
        held_before: The result of ``_first_queues``; members that are not in it are named.
    """
    topics: list[ReassignedTopic] = []
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
        cost = costs.get(queue)
        if cost is not None:
            topics[-1].costs.append(QueueCost(queue_id, *cost))
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
            stopped = outages.get(queue, _NO_PAUSES) if outages else _NO_PAUSES
            times = (*paused, *stopped) if stopped != _NO_PAUSES else paused
            if member in first and len(new) == 1:
                if before.get((topic, broker, queue_id - shift)) != new:
                    shift = queue_id - first[member]
                runs.assign(queue_id, (None, shift, *times))
            else:
                runs.assign(queue_id, (named.place(member), 0, *times))
    return topics


def _are_many(changed: Iterable[Changed]) -> bool:
    """Return whether so many members get queues that their names would dominate the journal row."""
    takers: set[str] = set()
    for _, _, new in changed:
        takers.update(new)
        if len(takers) > NAMED_AT_MOST:
            return True
    return False


def _first_queues(changed: Iterable[Changed]) -> dict[tuple[str, str | None], dict[str, int]]:
    """Return, for each member, topic and broker, the first changed queue that the member alone owned."""
    found: dict[tuple[str, str | None], dict[str, int]] = {}
    for (topic, broker, queue_id), old, _ in changed:
        if len(old) == 1:
            found.setdefault((topic, broker), {}).setdefault(old[0], queue_id)
    return found


def unpack_reassignment(change: QueuesReassigned, holders: Holders) -> list[QueueReleased | QueueAssigned]:
    """Return the spans that a change ends and opens, one by one; per topic and broker, ends come first.

    Args:
        holders: The owners of a queue by this origin before the change. A queue whose new owner depends on an
            unknown owner, or on one of several, gets no span.
    """
    spans: list[QueueReleased | QueueAssigned] = []
    for topic in change.topics:
        opening = _opening(change, topic, holders)
        taken = {(span.queue_id, span.member_id) for span in opening}
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
    costs = {cost.queue_id: cost for cost in topic.costs}
    for run in topic.assigned:
        for queue_id in range(run.first, run.last + 1):
            if run.member is None:
                owners = holders((topic.topic, topic.broker, queue_id - run.shift))
                if len(owners) != 1:
                    continue
                member_id, instance_id = owners[0]
            else:
                member_id, instance_id = change.members[run.member]
            cost = costs.get(queue_id, _NO_COST)
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
                    repeated_messages=cost.repeated_messages,
                    repeated_estimated_messages=cost.repeated_estimated_messages,
                    waiting_messages=cost.waiting_messages,
                    waiting_estimated_messages=cost.waiting_estimated_messages,
                    outage_min_ms=run.outage_min_ms,
                    outage_max_ms=run.outage_max_ms,
                )
            )
    return opening
