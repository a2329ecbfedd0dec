"""Core: a group as it is known at one time, and the assignment that its own strategy gives it then. No I/O.

There is no second engine: a known group becomes the state of a group, and the function that decides live decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from udfs.group.assignment.balance import balance_of, idle_members
from udfs.group.assignment.library_choice import COOPERATIVE
from udfs.group.assignment.target_assignment import TargetAssignment, compute_target_assignment, topics_with_metadata
from udfs.group.state.assignment_diff import Balance, held_only_by
from udfs.group.state.group import Group, Member, Owners, Pending, Queue, keys_of
from udfs.group.state.view import GroupView
from udfs.model.config import CoreConfig
from udfs.model.errors import StrategyError
from udfs.model.events import Mode, QueueInfo
from udfs.model.group_api import GroupInput
from udfs.model.journal import Trigger
from udfs.model.systems import SYSTEMS, System, is_server_side
from udfs.strategies.kafka.server import coordinator_orders
from udfs.strategies.problem import Problem

# The group is known at one time only, so any time serves.
_NOW: Final = 0
# A cooperative rebalance has two steps; more than a few show that its strategy does not settle.
_MOST_STEPS: Final = 8


class KnownGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group at one time.

    Attributes:
        strategy: The qualified name of the strategy that is set for it; None if its members decide: they vote, or each
            uses its own.
        settings: The settings of the strategy, as far as they are known.
        generation: Its last generation. leader: The member that assigned it, if known.
        members: In the order in which they joined. topics: The queues of the topics that are known.
        owners: The owners of each queue.
        topic_ids: Kafka's UUIDs of topics; an unknown one is ordered by its topic's name.
    """

    cluster: str
    group_id: str
    system: System
    mode: Mode | None
    strategy: str | None
    settings: Mapping[str, object]
    leader: str | None
    generation: int
    members: tuple[Member, ...]
    topics: Mapping[str, tuple[QueueInfo, ...]]
    owners: Owners
    topic_ids: Mapping[str, str] = msgspec.field(default_factory=dict)

    def with_members(self, members: Sequence[Member]) -> KnownGroup:
        """Return the group with other members; the leader stays if it is one of them."""
        ids = {member.member_id for member in members}
        leader = self.leader if self.leader in ids else None
        return msgspec.structs.replace(self, members=tuple(members), leader=leader)

    @property
    def member_ids(self) -> list[str]:
        """Return the ids of its members, in the order in which they joined."""
        return [member.member_id for member in self.members]


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """A group after its rebalance.

    Attributes:
        strategy: The qualified name of the strategy that assigned. rebalances: How many generations it took.
    """

    group: KnownGroup
    strategy: str | None
    rebalances: int


def settled(known: KnownGroup, config: CoreConfig, newest: Sequence[str] = ()) -> Settled:
    """Return the group once it has rebalanced, with its owners; a cooperative rebalance takes several generations.

    Args:
        known: Its members are those of now, its owners those of before. newest: The members that joined since.

    Raises:
        StrategyError: The strategy fails, or it cannot be recomputed: ``not_recomputable``.
    """
    found = one_generation(known, config, newest)
    while found.strategy == COOPERATIVE and known.members and found.rebalances < _MOST_STEPS:
        following = one_generation(found.group, config)
        if following.group.owners == found.group.owners:
            break
        found = msgspec.structs.replace(following, rebalances=found.rebalances + 1)
    return found


def one_generation(known: KnownGroup, config: CoreConfig, newest: Sequence[str] = ()) -> Settled:
    """Return the group after one generation, which may be only a step of a cooperative rebalance.

    Args, Raises: See ``settled``.
    """
    target = _target(known, config, newest)
    group = msgspec.structs.replace(known, owners=target.owners, generation=known.generation + 1)
    return Settled(group=group, strategy=target.strategy, rebalances=1)


def _target(known: KnownGroup, config: CoreConfig, newest: Sequence[str]) -> TargetAssignment:
    view = view_of(known, config, newest)
    altered = partial(_as_in_coordinator, known, newest) if is_server_side(known.strategy) else None
    target = compute_target_assignment(
        view,
        topics_with_metadata(view, _NOW),
        known.strategy,
        _NOW,
        known.generation + 1,
        previous=held_only_by(known.owners, known.member_ids),
        altered=altered,
    )
    if target.failed:
        code, _, message = (target.error or "").partition(": ")
        raise StrategyError(code, message)
    if not target.recomputed:
        raise StrategyError(target.error or "", f"{target.strategy}: {target.incomparable}")
    return target


def _as_in_coordinator(known: KnownGroup, newest: Sequence[str], problem: Problem) -> Problem:
    """Put members into the order of the coordinator's own map, as far as it follows from the order of their joins."""
    put = next(coordinator_orders(known.member_ids, newest))
    members = {member.member_id: member for member in problem.members}
    ordered = tuple(members[member_id] for member_id in put.members)
    return msgspec.structs.replace(problem, members=ordered, member_slots=put.slots)


def view_of(known: KnownGroup, config: CoreConfig, newest: Sequence[str] = ()) -> GroupView:
    """Return the group as the functions of the core read it."""
    joins = [Trigger(kind="member_joined", member_id=member_id) for member_id in newest]
    group = Group(
        mode=known.mode,
        strategy=known.strategy,
        strategy_settings=dict(known.settings) or None,
        members={member.member_id: member for member in known.members},
        leader=known.leader,
        computed=known.owners,
        # Members that did not join with the change were in the generation before it, even with no queue.
        pending=Pending(_NOW, _NOW, joins),
    )
    facts = GroupInput(
        cluster=known.cluster,
        system=known.system,
        group_id=known.group_id,
        clock_before=None,
        clock=_NOW,
        detected_at=_NOW,
    )
    return GroupView(group, facts, _KnownTopics(known), config)


def is_eager(known: KnownGroup, strategy: str | None) -> bool:
    """Return whether a rebalance stops every queue of the group, and not only those that change their owner."""
    is_assigned = SYSTEMS[known.system].coordinator_assigns and (known.mode or "clustering") == "clustering"
    return is_assigned and strategy != COOPERATIVE and not is_server_side(strategy)


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """How evenly the members of a group hold its queues.

    Attributes:
        queues: The queues of its topics. idle: The members without a queue. spreads: Most minus fewest queues of a
            subscriber, by topic. unassigned: The queues without an owner.
    """

    queues: int
    balance: Balance
    idle: list[str]
    spreads: dict[str, int]
    unassigned: list[Queue]


def figures_of(known: KnownGroup, config: CoreConfig) -> Figures:
    """Return the figures of a group's assignment, without retry topics."""
    view = view_of(known, config)
    topic_queues = topics_with_metadata(view, _NOW)
    followed = {topic: infos for topic, infos in topic_queues.items() if not view.is_quiet(topic)}
    queues = [queue for topic, infos in followed.items() for queue in keys_of(infos, known.system, topic)]
    is_shared = view.mode == "message"
    return Figures(
        queues=len(queues),
        balance=balance_of(view, known.owners, queues),
        idle=[] if is_shared else idle_members(view, known.owners),
        spreads={topic: spread for topic, spread in _spreads(known).items() if not view.is_quiet(topic)},
        unassigned=[] if is_shared else [queue for queue in queues if queue not in known.owners],
    )


def _spreads(known: KnownGroup) -> dict[str, int]:
    """Return most minus fewest queues of a subscriber, by topic, in order."""
    held: dict[str, dict[str, int]] = {}
    for member in known.members:
        for topic in known.topics.keys() & set(member.subscriptions or ()):
            held.setdefault(topic, {})[member.member_id] = 0
    for (topic, _, _), holders in known.owners.items():
        of_topic = held.get(topic, {})
        for holder in holders:
            if holder in of_topic:
                of_topic[holder] += 1
    return {topic: max(held[topic].values()) - min(held[topic].values()) for topic in sorted(held)}


class _KnownTopics:
    """The topics of one time; when they changed is not known."""

    def __init__(self, known: KnownGroup) -> None:
        self._topics, self._ids = known.topics, known.topic_ids

    def at(self, topic: str, time_ms: int) -> tuple[QueueInfo, ...] | None:  # noqa: ARG002
        return self._topics.get(topic)

    def before(self, topic: str, time_ms: int) -> tuple[QueueInfo, ...] | None:  # noqa: ARG002
        return self._topics.get(topic)

    def first_description(self, topic: str) -> tuple[QueueInfo, ...] | None:
        return self._topics.get(topic)

    def has_any(self, time_ms: int) -> bool:  # noqa: ARG002
        return bool(self._topics)

    def topic_id(self, topic: str, time_ms: int) -> str | None:  # noqa: ARG002
        return self._ids.get(topic)

    def renewed_at(self, topic: str, time_ms: int) -> int | None:  # noqa: ARG002
        return None

    def appeared_at(self, topic: str, time_ms: int) -> int | None:  # noqa: ARG002
        return None
