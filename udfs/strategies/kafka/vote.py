"""Core: how a Kafka coordinator chooses a classic group's strategy from its members' lists. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeAlias

from udfs.jvm.collections import hash_map_order
from udfs.jvm.scala_maps import group_by_order, mutable_map_order
from udfs.model.errors import StrategyError

TieOrder: TypeAlias = Literal["1.0", "4.x"]

# The orders of the coordinator's map of votes, and of its map of members, which is the order of the votes.
_MAP_ORDERS: dict[str, Callable[[Sequence[str]], list[str]]] = {"4.x": hash_map_order, "1.0": group_by_order}
_MEMBER_ORDERS: dict[str, Callable[[Sequence[str]], list[str]]] = {"4.x": hash_map_order, "1.0": mutable_map_order}


class Voter(Protocol):
    """A member as a voter."""

    @property
    def member_id(self) -> str: ...
    @property
    def strategies(self) -> tuple[str, ...] | None: ...


def vote_of(members: Sequence[Voter], tie_order: str) -> str:
    """Return the protocol name that wins the members' vote; they vote in the order of the coordinator's map.

    That order matters only for ties between names that share a slot of the map of votes.

    Raises:
        StrategyError: See ``vote``.
    """
    lists = {member.member_id: member.strategies or () for member in members}
    if len(set(lists.values())) == 1:
        return vote([members[0].strategies or ()], tie_order)  # the order does not matter
    order = _MEMBER_ORDERS.get(tie_order, list)(list(lists))
    return vote([lists[member_id] for member_id in order], tie_order)


def vote(members_strategies: Sequence[Sequence[str]], tie_order: str) -> str:
    """Return the winning protocol name: each member votes for the first of its list that all members support.

    Args:
        members_strategies: Each member's list in its order of preference, members in the order in which they joined.
        tie_order: How equal counts are settled: by the order of the coordinator's map of votes, which is
            ``java.util.HashMap`` in the coordinator of 4.x and Scala's ``groupBy`` in 1.0.

    Raises:
        StrategyError: ``no_members``, ``no_common_strategy``, ``unknown_tie_order``.

    Source: kafka 4.1 ``ClassicGroup#selectProtocol``; kafka 1.0 ``GroupMetadata#selectProtocol``.

    Example:
        >>> vote([["range", "roundrobin", "custom"], ["range", "roundrobin", "sticky"], ["roundrobin", "range"]], "4.x")
        'range'
        >>> [vote([["range", "sticky"], ["sticky", "range"]], order) for order in ("4.x", "1.0")]
        ['sticky', 'range']
    """
    if tie_order not in _MAP_ORDERS:
        raise StrategyError("unknown_tie_order", f"the tie order is one of {', '.join(_MAP_ORDERS)}, not {tie_order!r}")
    if not members_strategies:
        raise StrategyError("no_members", "a group without members has no common strategy")
    lists = Counter(map(tuple, members_strategies))  # mostly all lists are equal
    common = set.intersection(*map(set, lists))
    if not common:
        raise StrategyError("no_common_strategy", "no strategy is listed by every member")
    votes: Counter[str] = Counter()
    for names, members in lists.items():
        votes[next(name for name in names if name in common)] += members
    most = max(votes.values())
    return next(name for name in _MAP_ORDERS[tie_order](list(votes)) if votes[name] == most)
