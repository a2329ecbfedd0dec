"""Core: what a group's own strategy says of it now: topics known, members described, the answer. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from udfs.dealing import deal, voted
from udfs.diff import by_owner, held_only_by, owners_of
from udfs.errors import StrategyError
from udfs.events import QueueInfo, QueueRef
from udfs.group_state import Group, Member, Owners, Queue, key_of
from udfs.strategies import Participant, Problem, Topic, qualified_name
from udfs.turn import Turn

NOT_RECOMPUTABLE = "not_recomputable"
Known: TypeAlias = Mapping[str, tuple[QueueInfo, ...]]


class Dealt(msgspec.Struct, kw_only=True):
    """What the group's own strategy says.

    Attributes:
        owners: What shall hold from now on; where the strategy failed, what stands.
        error: Why it failed. recomputed: Its answer can be compared with what is reported.
    """

    owners: Owners
    strategy: str | None
    error: str | None = None
    failed: bool = False
    recomputed: bool = True


def known_topics(turn: Turn, at: int) -> dict[str, tuple[QueueInfo, ...]]:
    """Answer the queues of subscribed topics that are known then; a deleted one is not."""
    found: dict[str, tuple[QueueInfo, ...]] = {}
    for topic in turn.group.subscribed_topics():
        queues = turn.queues_at(topic, at)
        if queues:
            found[topic] = queues
    return found


def ask_strategy(turn: Turn, known: Known, strategy: str | None, at: int) -> Dealt:
    """Ask the group's strategy who shall hold what.

    Args:
        strategy: The one that was reported; None: as the group's settings and members say.
    """
    group = turn.group
    named = strategy or group.reported_strategy or group.strategy
    if not group.members:
        return Dealt(owners={}, strategy=_named(turn, named))
    problem = _problem(turn, known)
    try:
        dealt = deal(
            system=turn.system, mode=turn.mode, strategy=named, problem=problem, tie_order=turn.rules.vote_tie_order
        )
    except StrategyError as error:
        if error.code == "unknown_strategy" and (strategy or group.reported_strategy):
            return Dealt(owners={}, strategy=_named(turn, named), error=NOT_RECOMPUTABLE, recomputed=False)
        if error.code == "unknown_strategy" and named is None and group.generation is not None:
            chosen = voted(problem, turn.rules.vote_tie_order)  # its members know it, the coordinator took it
            return Dealt(owners={}, strategy=chosen, error=NOT_RECOMPUTABLE, recomputed=False)
        return Dealt(
            owners=_standing(turn, at),
            strategy=_named(turn, named),
            error=f"{error.code}: {error.message}",
            failed=True,
            recomputed=False,
        )
    held = {member: [key_of(queue, turn.system) for queue in queues] for member, queues in dealt.assignment.items()}
    unknown = None if dealt.recomputable else NOT_RECOMPUTABLE
    return Dealt(owners=owners_of(held), strategy=dealt.strategy, error=unknown, recomputed=dealt.recomputable)


def _named(turn: Turn, strategy: str | None) -> str | None:
    return qualified_name(strategy, turn.system) if strategy else None


def _problem(turn: Turn, known: Known) -> Problem:
    group = turn.group
    held = by_owner(basis(group)) if turn.system == "kafka" else {}
    previous = {member: tuple(QueueRef(t, q, b) for t, b, q in queues) for member, queues in held.items()}
    standing = max(group.current_generation - 1, 0)  # the one in which they held it
    return Problem(
        group=turn.facts.group_id,
        members=tuple(
            _participant(member, previous.get(member.member_id), standing) for member in group.members.values()
        ),
        topics={
            name: Topic(name=name, queues=queues, topic_id=turn.topics.topic_id(name)) for name, queues in known.items()
        },
        settings=group.strategy_settings or {},
        leader=group.leader,
        previous=previous or None,
    )


def _participant(member: Member, previous: tuple[QueueRef, ...] | None, generation: int) -> Participant:
    owned: tuple[QueueRef, ...] | None = member.owned
    since: int | None = member.owned_generation
    if owned is None:
        owned, since = previous, generation
    return Participant(
        member_id=member.member_id,
        name=member.name,
        instance_id=member.instance_id,
        rack=member.rack,
        client_library=member.client_library,
        subscriptions=member.subscriptions or (),
        strategies=member.strategies or (),
        owned=owned,
        generation=since if owned is not None else None,
        settings=member.strategy_settings,
    )


def basis(group: Group) -> Owners:
    """Answer what members held so far: as reported where that is known."""
    return group.reported if group.has_reported else group.computed


def _standing(turn: Turn, at: int) -> Owners:
    """Answer the computed assignment without members that are gone and queues that are no more."""
    group = turn.group
    staying = held_only_by(group.computed, group.members)
    queues: set[Queue] = set()
    for topic in {queue[0] for queue in staying}:
        queues |= {key_of(queue, turn.system, topic) for queue in turn.queues_at(topic, at) or ()}
    whole_brokers = {(topic, broker) for topic, broker, _ in queues}
    return {q: holders for q, holders in staying.items() if q in queues or (q[2] < 0 and q[:2] in whole_brokers)}
