"""Core: what a change does to a group, rebalance by rebalance, and what depends on what nobody knows. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from udfs.group.state.assignment_diff import Changed, Moves, changed_queues, count_moves
from udfs.group.state.group import Member, Queue
from udfs.group.what_if.known_group import KnownGroup, Settled, is_eager, settled
from udfs.group.what_if.planned_change import (
    Place,
    PlannedChange,
    batches,
    is_new,
    new_members,
    some_topic_ids,
    with_queues,
)
from udfs.model.config import CoreConfig
from udfs.model.systems import is_server_side
from udfs.strategies.registry import ignores_owned

# These put members on a ring by a hash of their ids, so no place of an id among the others is special.
HASHED: Final = frozenset({"rocketmq.CONSISTENT_HASH", "metaq.consistent-hash"})
UNIFORM: Final = "kafka.server.uniform"
# Ids of new members, and of topics, that are tried besides the assumed ones; fewer in a group with many queues, because
# an answer takes less than a second.
_TRIED, _TRIED_IN_LARGE = 4, 1
_LARGE: Final = 2_000


class ForeseenRebalance(msgspec.Struct, frozen=True, kw_only=True):
    """One rebalance of a change.

    Attributes:
        step: ``strategy``, ``change``, ``leave`` or ``return``. moved: The queues with other owners, in order.
        stopped: The queues with an owner that nobody reads meanwhile. generations: How many it takes.
    """

    step: str
    moved: list[Changed]
    stopped: list[Queue]
    generations: int


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """What a change does.

    Attributes:
        before, after: The group before and after. strategy: The strategy that assigns after it.
        rebalances: What happens in between, in order.
        moved: The queues that have other owners after the change than before, in order.
    """

    before: KnownGroup
    after: KnownGroup
    strategy: str | None
    rebalances: list[ForeseenRebalance]
    moved: list[Changed]

    @property
    def moves(self) -> Moves:
        """Return how many queues moved between before and after."""
        return count_moves(self.before.owners, self.moved)


class _Run:
    """A change as it happens."""

    def __init__(self, known: KnownGroup, config: CoreConfig) -> None:
        self._config = config
        self.known, self.strategy, self.rebalances = known, known.strategy, list[ForeseenRebalance]()

    def rebalance(self, step: str, changed: KnownGroup, newest: Sequence[str] = ()) -> None:
        """Let the group rebalance after a change; where nothing changes, there is no rebalance."""
        before = self.known
        found = settled(changed, self._config, newest)
        moved = changed_queues(before.owners, found.group.owners)
        stopped = _stopped(before, found, moved)
        self.rebalances.append(ForeseenRebalance(step=step, moved=moved, stopped=stopped, generations=found.rebalances))
        self.known, self.strategy = found.group, found.strategy

    def members(self, step: str, gone: Sequence[str], joining: Sequence[Member]) -> None:
        """Let members leave and join: one rebalance, but one for each member where every change has its own epoch."""
        if is_server_side(self.known.strategy):
            for member_id in gone:
                self._change(step, [member_id], ())
            for member in joining:
                self._change(step, (), [member])
        else:
            self._change(step, gone, joining)

    def _change(self, step: str, gone: Sequence[str], joining: Sequence[Member]) -> None:
        left = set(gone)
        staying = [member for member in self.known.members if member.member_id not in left]
        self.rebalance(step, self.known.with_members([*staying, *joining]), [member.member_id for member in joining])


def _stopped(before: KnownGroup, found: Settled, moved: Sequence[Changed]) -> list[Queue]:
    if is_eager(before, found.strategy) or is_eager(before, before.strategy or found.strategy):
        return list(before.owners)
    return [queue for queue, old, new in moved if old and not set(old) & set(new)]


def predict(known: KnownGroup, change: PlannedChange, config: CoreConfig, place: Place = "last") -> Prediction:
    """Return what a change does to a group.

    Another strategy comes first, as a rebalance of its own; then members and queues change at once; then the members
    restart. A restarted member keeps its id, and has forgotten its queues.

    Args:
        place: Where the ids of new members are among those of the others.

    Raises:
        StrategyError: The strategy fails, or cannot be recomputed.
    """
    run = _Run(known, config)
    if change.strategy is not None:
        run.rebalance("strategy", msgspec.structs.replace(known, strategy=change.strategy))
    if change.is_resizing:
        if change.queues:
            topics = with_queues(known, change.queues)
            run.known = msgspec.structs.replace(run.known, topics=topics)
        if change.add or change.leaving or change.lost:
            run.members("change", (*change.leaving, *change.lost), new_members(known, change, place))
        else:
            run.rebalance("change", run.known)
    if change.at_once and not change.is_static:
        for batch in batches(run.known.members, change.at_once):
            run.members("leave", [member.member_id for member in batch], ())
            run.members("return", (), [_forgotten(member) for member in batch])
    steps = run.rebalances
    moved = steps[0].moved if len(steps) == 1 else changed_queues(known.owners, run.known.owners)
    return Prediction(before=known, after=run.known, strategy=run.strategy, rebalances=steps, moved=moved)


def _forgotten(member: Member) -> Member:
    return msgspec.structs.replace(member, owned=None, owned_generation=None)


def assumed_place(strategy: str | None) -> Place:
    """Return where the ids of new members are assumed to be."""
    return 0 if strategy in HASHED else "last"


class Alternative(msgspec.Struct, frozen=True, kw_only=True):
    """What the change does if something unknown is otherwise than assumed.

    Attributes:
        what: ``first``: the ids of new members sort before all others. ``ids``: they are others. ``topics``: the ids of
            topics are in another order.
        differs: Whether other queues move than predicted, or to other members; new members count as one.
    """

    what: str
    prediction: Prediction
    differs: bool


def alternatives(found: Prediction, change: PlannedChange, config: CoreConfig) -> list[Alternative]:
    """Return what the change does under other ids of what is new, or whose ids are not known."""
    expected = _moves_of(found)
    tried: list[Alternative] = []
    for what, known, place in _others(found, change):
        other = predict(known, change, config, place)
        tried.append(Alternative(what=what, prediction=other, differs=_moves_of(other) != expected))
    return tried


def _others(found: Prediction, change: PlannedChange) -> Iterator[tuple[str, KnownGroup, Place]]:
    known, assumed = found.before, assumed_place(found.strategy)
    tried = _TRIED_IN_LARGE if len(known.owners) > _LARGE else _TRIED
    if change.add:
        if assumed == "last":
            yield "first", known, "first"
        if found.strategy in HASHED or _is_in_map_order(found.strategy, known):
            yield from (("ids", known, number) for number in range(1, 1 + tried))
    if found.strategy == UNIFORM and len(known.topics) > 1 and not known.topic_ids.keys() >= known.topics.keys():
        for number in range(1, 1 + tried):
            ids = some_topic_ids(known, number)
            yield "topics", msgspec.structs.replace(known, topic_ids=ids), assumed


def _is_in_map_order(strategy: str | None, known: KnownGroup) -> bool:
    """Return whether a strategy takes members in the order of a Java map, which follows from hashes of their ids."""
    return strategy is not None and not ignores_owned(strategy, known.system)


def _moves_of(found: Prediction) -> set[tuple[Queue, tuple[str, ...], tuple[str, ...]]]:
    return {(queue, _as_one(old), _as_one(new)) for queue, old, new in found.moved}


def _as_one(holders: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({"" if is_new(holder) else holder for holder in holders}))
