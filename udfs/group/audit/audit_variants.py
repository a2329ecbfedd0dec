"""Core: one generation recomputed with other assumptions about its leader or members. No I/O.

A variant that gives exactly the reported assignment is evidence of why it differs from the expected one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final, NamedTuple

import msgspec

from udfs.group.assignment.target_assignment import (
    QueuesByTopic,
    compute_target_assignment,
    participant,
)
from udfs.group.state.group import Owners, Queue
from udfs.group.state.view import GroupView
from udfs.model import audit_reasons as reasons
from udfs.model.events import QueueInfo, QueueRef
from udfs.model.systems import is_server_side
from udfs.strategies.problem import Participant, Problem
from udfs.strategies.registry import built_in, ignores_owned

# Client libraries of Kafka whose assignors differ, as the setting ``library`` names them.
LIBRARIES: Final = (
    *("java-4.1", "java-3.7", "java-3.4", "java-3.2", "java-2.8", "java-2.4", "java-2.3"),
    *("librdkafka", "kafka-python", "aiokafka", "franz-go", "sarama"),
)
# Only groups with at most this many members are recomputed with one of them left out.
MAX_MEMBERS_LEFT_OUT: Final = 20


class Basis(msgspec.Struct, frozen=True, kw_only=True):
    """The input from which a generation was computed.

    Attributes:
        since: The generation's event time. strategy: None for each member's own. previous, reported: See
            ``compute_target_assignment``.
    """

    topic_queues: QueuesByTopic
    strategy: str | None
    since: int
    generation: int
    previous: Owners | None = None
    reported: Owners | None = None


class Variant(NamedTuple):
    """One way to recompute the generation, with its description and the reason that a match would prove."""

    reason: str
    text: str
    compute: Callable[[], Owners | None]


def recomputed(
    view: GroupView, basis: Basis, altered: Callable[[Problem], Problem] | None = None, strategy: str | None = None
) -> Owners | None:
    """Return the recomputed owners of the generation; None if they cannot be recomputed."""
    target = compute_target_assignment(
        view,
        basis.topic_queues,
        strategy or basis.strategy,
        basis.since,
        basis.generation,
        basis.previous,
        basis.reported,
        altered,
    )
    return target.owners if target.recomputed else None


def leader_variants(view: GroupView, basis: Basis, used: str | None, reported: Owners) -> Iterator[Variant]:
    """Return the variants for a group in which one member, or the coordinator, assigns for all.

    Args:
        used: The qualified name of the strategy.
    """
    name = used or ""

    def variant(reason: str, text: str, altered: Callable[[Problem], Problem], other: str | None = None) -> Variant:
        return Variant(reason, text, lambda: recomputed(view, basis, altered, other))

    if any(member.rack for member in view.group.members.values()):
        yield variant(reasons.RACKS_IGNORED, "without the racks of members and queues", _without_racks)
    if not is_server_side(used):
        # The report is left out so that no older version is searched for: with two members some hash order would fit.
        of_today = msgspec.structs.replace(basis, reported=None)
        for library in LIBRARIES:
            compute = partial(recomputed, view, of_today, _as_library(library))
            yield Variant(reasons.ANOTHER_LIBRARY, f"as {library} assigns", compute)
    short = _named_only(basis.topic_queues, reported)
    if short:
        text = "with the queues that the assignment names (" + _sizes(basis.topic_queues, short) + ")"
        yield Variant(reasons.STALE_METADATA, text, lambda: recomputed(view, _with_topics(basis, short)))
    if not ignores_owned(name, view.system):
        yield variant(reasons.OWNERSHIP_IGNORED, "as if no member had owned anything before", _without_owned)
        yield variant(
            reasons.OTHER_OWNERSHIP, "from the assignment before, not from what members claim", _without_claims
        )
    for other in built_in(view.system):
        if other != name and is_server_side(other) == is_server_side(used):
            yield variant(reasons.ANOTHER_STRATEGY, f"by {other}", _unchanged, other)


def member_variants(view: GroupView, basis: Basis, used: str | None) -> Iterator[Variant]:
    """Return the variants for a group whose members assign for themselves: outdated views that some may still have."""
    at = basis.since
    before = _topics_before(view, basis)
    is_resized = before != dict(basis.topic_queues)
    by_members = _with_former_members(view, at)
    if is_resized:
        text = "with the queues before this generation"
        yield Variant(reasons.STALE_METADATA, text, lambda: recomputed(view, _with_topics(basis, before)))
    if by_members is not None:
        text = "with the members before this generation"
        yield Variant(reasons.NOT_FOLLOWED, text, lambda: recomputed(view, basis, by_members))
        if is_resized:
            text = "with the members and the queues before this generation"
            yield Variant(reasons.NOT_FOLLOWED, text, lambda: recomputed(view, _with_topics(basis, before), by_members))
    for other in built_in(view.system):
        if other != used:
            yield Variant(reasons.ANOTHER_STRATEGY, f"by {other}", _by_other(view, basis, other))
    if 1 < len(view.group.members) <= MAX_MEMBERS_LEFT_OUT:
        for member_id in sorted(view.group.members):
            text = f"as if {member_id} were no member"
            yield Variant(reasons.MEMBER_UNKNOWN, text, _left_out(view, basis, member_id))


def _by_other(view: GroupView, basis: Basis, strategy: str) -> Callable[[], Owners | None]:
    return lambda: recomputed(view, basis, strategy=strategy)


def _left_out(view: GroupView, basis: Basis, member_id: str) -> Callable[[], Owners | None]:
    return lambda: recomputed(view, basis, lambda problem: _with_members(problem, lambda other: other != member_id))


# ---- queues that members claim to have owned


def false_claims(view: GroupView, generation: int, previous: Owners) -> list[str]:
    """Return the members that claim a queue which the previous generation gave to others; sorted.

    Args:
        generation: The generation being decided. previous: The reported assignment of the previous generation.

    Only a claim that names the previous generation can be checked: an older claim may be true.
    """
    return sorted(
        member.member_id
        for member in view.group.members.values()
        if member.owned_generation == generation - 1
        and any(_is_owned_by_others(previous, queue, member.member_id) for queue in member.owned or ())
    )


def _is_owned_by_others(owners: Owners, queue: QueueRef, member_id: str) -> bool:
    holders = owners.get((queue.topic, None, queue.queue_id), ())
    return bool(holders) and member_id not in holders


def as_owned_before(view: GroupView, basis: Basis, members: Iterable[str]) -> Owners | None:
    """Return the owners if these members had claimed the queues that the previous assignment gave them."""
    wrong = frozenset(members)

    def altered(problem: Problem) -> Problem:
        held = problem.previous or {}
        return _each(
            problem,
            lambda member: (
                msgspec.structs.replace(member, owned=held.get(member.member_id, ()))
                if member.member_id in wrong
                else member
            ),
        )

    return recomputed(view, basis, altered)


# ---- altered problems


def _unchanged(problem: Problem) -> Problem:
    return problem


def _each(problem: Problem, change: Callable[[Participant], Participant]) -> Problem:
    return msgspec.structs.replace(problem, members=tuple(map(change, problem.members)))


def _with_members(problem: Problem, keeps: Callable[[str], bool]) -> Problem:
    return msgspec.structs.replace(
        problem, members=tuple(member for member in problem.members if keeps(member.member_id))
    )


def _as_library(library: str) -> Callable[[Problem], Problem]:
    return lambda problem: msgspec.structs.replace(problem, settings={**problem.settings, "library": library})


def _without_racks(problem: Problem) -> Problem:
    return _each(problem, lambda member: msgspec.structs.replace(member, rack=None))


def _without_owned(problem: Problem) -> Problem:
    problem = msgspec.structs.replace(problem, previous=None)
    return _each(problem, lambda member: msgspec.structs.replace(member, owned=None, generation=None))


def _without_claims(problem: Problem) -> Problem:
    held = problem.previous or {}
    return _each(problem, lambda member: msgspec.structs.replace(member, owned=held.get(member.member_id, ())))


def _with_former_members(view: GroupView, since: int) -> Callable[[Problem], Problem] | None:
    """Return a change that replaces today's members by those before a generation; None if they are the same."""
    group = view.group
    joined = {member.member_id for member in group.members.values() if member.joined_at >= since}
    departed = [
        departed_member.member
        for departed_member in group.departed.values()
        if departed_member.left_at == since and departed_member.left_reason != "replaced"
    ]
    if not joined and not departed:
        return None

    def altered(problem: Problem) -> Problem:
        problem = _with_members(problem, lambda member_id: member_id not in joined)
        former = tuple(
            participant(view.system, member, None, {}, 0) for member in departed if member.member_id not in joined
        )
        return msgspec.structs.replace(problem, members=problem.members + former)

    return altered


# ---- other queues


def _with_topics(basis: Basis, topic_queues: QueuesByTopic) -> Basis:
    return msgspec.structs.replace(basis, topic_queues=topic_queues)


def _named_only(topic_queues: QueuesByTopic, reported: Owners) -> QueuesByTopic:
    """Return the topics up to the highest queue that an assignment names; nothing if it names them all."""
    highest: dict[str, int] = {}
    for topic, _, queue_id in reported:
        highest[topic] = max(queue_id, highest.get(topic, 0))
    short = {
        name: tuple(queue for queue in queues if queue.queue_id <= highest[name])
        for name, queues in topic_queues.items()
        if name in highest
    }
    return {} if short == dict(topic_queues) else short


def _sizes(topic_queues: QueuesByTopic, short: QueuesByTopic) -> str:
    sizes = [
        f"{name}: {len(short.get(name, ()))} of {len(topic_queues[name])}"
        for name in sorted(topic_queues)
        if len(short.get(name, ())) < len(topic_queues[name])
    ]
    return ", ".join(sizes[:3]) + (", …" if len(sizes) > 3 else "")


def _topics_before(view: GroupView, basis: Basis) -> dict[str, tuple[QueueInfo, ...]]:
    before = {name: view.queues_before(name, basis.since) for name in basis.topic_queues}
    return {name: queues for name, queues in before.items() if queues}


def held_by(owners: Owners, members: Iterable[str]) -> dict[str, set[Queue]]:
    """Return the queues that each of these members owns."""
    held: dict[str, set[Queue]] = {member: set() for member in members}
    for queue, holders in owners.items():
        for member in holders:
            if member in held:
                held[member].add(queue)
    return held
