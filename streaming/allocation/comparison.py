"""Shell: the allocation of a strategy for a group of a given size, as rows for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from streaming.settings.defaults import default
from udfs.model.errors import StrategyError
from udfs.model.events import QueueInfo, QueueRef
from udfs.model.systems import SYSTEMS, System, SystemProfile, system_of
from udfs.strategies.allocate import allocate
from udfs.strategies.problem import Assignment, Participant, Problem, Topic
from udfs.strategies.registry import names, qualified_name, registered

TOPIC = "topic"
# The rooms, machines and lists that some strategies need are made up, so that each can show its effect.
_ROOM = "room1"


class Size(NamedTuple):
    """The size of a group."""

    members: int
    queues: int
    topics: int = 1


class QueueMove(NamedTuple):
    """A queue with a new owner."""

    topic: str
    queue_id: int
    before: str
    after: str


class Compared(NamedTuple):
    """One strategy at one size.

    Attributes:
        moves: Queues that existed before and have another owner now; None without a previous size.
    """

    strategy: str
    assignment: Assignment
    spread: int
    idle_members: int
    unassigned_queues: int
    moves: Sequence[QueueMove] | None
    error: str | None

    @property
    def moved(self) -> int | None:
        """Return how many queues moved; None without a previous size."""
        return None if self.moves is None else len(self.moves)


def compare(strategy: str, size: Size, before: Size | None) -> Compared:
    """Assign a group of this size, starting from its assignment at the previous size."""
    owned: Assignment = {}
    # The previous members are the current ones without the last: ids of one width sort in the same order.
    width = len(str(max(size.members, before.members if before else 0)))
    try:
        if before is not None:
            owned = _settled(strategy, before, {}, width)
        held = _settled(strategy, size, owned, width)
    except StrategyError as error:
        return Compared(strategy, {}, 0, 0, 0, None, error.message)
    counts = [len(queues) for queues in held.values()] or [0]
    taken = {queue for queues in held.values() for queue in queues}
    return Compared(
        strategy=strategy,
        assignment=held,
        spread=max(counts) - min(counts),
        idle_members=sum(not queues for queues in held.values()),
        unassigned_queues=size.queues * size.topics - len(taken),
        moves=None if before is None else _moves(owned, held),
        error=None,
    )


def compare_all(size: Size, before: Size | None) -> list[Compared]:
    """Assign the group with every strategy, in the order of their names."""
    return [compare(name, size, before) for name in names()]


def _settled(strategy: str, size: Size, owned: Assignment, width: int) -> Assignment:
    """Return the final assignment of the group; a cooperative rebalance takes a second step."""
    held = _allocate(strategy, size, owned, width)
    if registered(strategy, _system(strategy)).complete or not owned:
        return held
    return _allocate(strategy, size, held, width)


def _allocate(strategy: str, size: Size, owned: Assignment, width: int) -> Assignment:
    topics = tuple(TOPIC if size.topics == 1 else f"{TOPIC}-{number}" for number in range(size.topics))
    system = _system(strategy)
    profile = SYSTEMS[system]
    broker = (f"{_ROOM}@broker-a" if profile.has_rooms_in_names else "0") if profile.counts_queues_per_broker else None
    ids = [_member(profile, f"{number:0{width}}") for number in range(1, size.members + 1)]
    members = tuple(
        Participant(
            member_id=member, name=member, subscriptions=topics, owned=tuple(owned[member]) if member in owned else None
        )
        for member in ids
    )
    queues = tuple(QueueInfo(queue_id=number, broker=broker) for number in range(size.queues))
    problem = Problem(
        group="group",
        members=members,
        topics={name: Topic(name=name, queues=queues) for name in topics},
        settings={"rooms": [_ROOM], "machines": [_ROOM], "queues": {}},
    )
    tie_order = default("strategies", "vote_tie_order")
    return allocate(system=system, mode=None, strategy=strategy, problem=problem, tie_order=tie_order).assignment


def _member(profile: SystemProfile, number: str) -> str:
    return f"{_ROOM}@{number}" if profile.has_rooms_in_names else f"consumer-{number}"


def _moves(before: Assignment, after: Assignment) -> list[QueueMove]:
    owner = {queue: member for member, queues in before.items() for queue in queues}
    return sorted(
        QueueMove(queue.topic, queue.queue_id, owner[queue], member)
        for member, queues in after.items()
        for queue in queues
        if owner.get(queue, member) != member
    )


def _system(strategy: str) -> System:
    system = system_of(strategy)
    if system is None:
        raise StrategyError("unknown_strategy", f"there is no strategy {strategy}")
    return system


def is_strategy(strategy: str) -> bool:
    """Return whether there is a strategy with this qualified name."""
    try:
        registered(qualified_name(strategy, _system(strategy)), _system(strategy))
    except StrategyError:
        return False
    return True


def queue_text(queues: Sequence[QueueRef], *, with_topic: bool) -> str:
    """Write queue numbers as ranges: ``0–2, 5``."""
    by_topic: dict[str, list[int]] = {}
    for queue in queues:
        by_topic.setdefault(queue.topic, []).append(queue.queue_id)
    texts = [
        f"{topic}: {_ranges(sorted(numbers))}" if with_topic else _ranges(sorted(numbers))
        for topic, numbers in sorted(by_topic.items())
    ]
    return "; ".join(texts) or "-"


def _ranges(numbers: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in runs)
