"""Core: Kafka's two client-side sticky assignors. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from udfs.model.comparability import NOT_RECOMPUTABLE
from udfs.model.errors import StrategyError
from udfs.strategies.kafka.client_library import FRANZ_GO, KAFKA_PYTHON, SARAMA, leader_library
from udfs.strategies.kafka.sticky_constrained import assign_constrained
from udfs.strategies.kafka.sticky_general import assign_general
from udfs.strategies.kafka.sticky_group import StickyGroup
from udfs.strategies.problem import Assignment, Problem


def kafka_sticky(problem: Problem) -> Assignment:
    """Return an even assignment with as few moves as possible from the partitions that members report as owned.

    Equal subscriptions (the constrained path): the spread is at most one, and a member keeps its partitions up to its
    share. Different subscriptions (the general path): single moves until none improves the balance; known imbalance:
    members of few topics. Members' racks precede ownership.

    Claims: if two members claim a partition, the one with the later generation keeps it; in the same generation,
    neither.

    Rolling restart: the protocol is eager: all consumption stops twice, although nearly every member gets the same
    partitions back. A restarted member has forgotten what it owned, and its partitions go to others.

    Source: KIP-54, KIP-881; kafka-clients 4.1 ``StickyAssignor``, ``AbstractStickyAssignor``.

    Raises:
        StrategyError: ``illegal_state`` as in the real class; ``does_not_end`` if the real class moves a partition back
            and forth without end (general path only, about one in 10,000 random mixed groups).

    Example: C0–C2, t0–t3 of 2 partitions: C0 {t0-0, t1-1, t3-0}, C1 {t0-1, t2-0, t3-1}, C2 {t1-0, t2-1}; when C1
        leaves: C0 {t0-0, t1-1, t2-0, t3-0}, C2 {t0-1, t1-0, t2-1, t3-1}.
    """
    return _assigned(problem, cooperative=False)


def kafka_cooperative_sticky(problem: Problem) -> Assignment:
    """Return the assignment of ``kafka.sticky``, but leave a partition that changes its owner unassigned for now.

    Its new owner gets it in the next rebalance, after the old one has given it up. So this is one step of two: a queue
    on the move is unassigned in between. Known imbalance: that of ``kafka.sticky``, and between the two steps a
    newcomer holds less than its share.

    Rolling restart: only moving partitions are paused; each change costs one or two generations.

    Source: KIP-429; kafka-clients 4.1 ``CooperativeStickyAssignor``.

    Raises:
        StrategyError: See ``kafka.sticky``.

    Example: 4 partitions, a owns 0–3, b is new: first a 0, 1 and b nothing; then a 0, 1 and b 2, 3.
    """
    return _assigned(problem, cooperative=True)


def _assigned(problem: Problem, *, cooperative: bool) -> Assignment:
    if not problem.members:
        return {}
    library = leader_library(problem)
    if library.name in (FRANZ_GO, SARAMA):
        raise StrategyError(NOT_RECOMPUTABLE, f"{library.name}'s sticky assignors are algorithms of their own")
    group = StickyGroup(problem, library)
    if group.equal and library.has_constrained_path:
        held, transferred = assign_constrained(group)
    else:
        held = assign_general(group)
        still_held = _claimed_by_others if library.name == KAFKA_PYTHON else _transferred
        transferred = still_held(group, held) if cooperative else {}
    if cooperative:
        for number, member in transferred.items():
            held[member].remove(number)
    return group.assignment(held)


def _claimed_by_others(group: StickyGroup, held: Sequence[Sequence[int]]) -> dict[int, int]:
    """Return the partitions that another member claims (the last one read), with the member that gets them."""
    claimed = {number: member for member in group.reading_order for number in group.claims[member]}
    return {
        number: member
        for member, numbers in enumerate(held)
        for number in numbers
        if claimed.get(number, member) != member
    }


def _transferred(group: StickyGroup, held: Sequence[Sequence[int]]) -> dict[int, int]:
    """Return the partitions that one member gets and another gives up, with the member that gets them."""
    added: dict[int, int] = {}
    revoked = set()
    for member, numbers in enumerate(held):
        claimed, now = set(group.claims[member]), set(numbers)
        added.update((number, member) for number in numbers if number not in claimed)
        revoked |= claimed - now
    return {number: member for number, member in added.items() if number in revoked}
