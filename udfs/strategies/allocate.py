"""Core: assigns one group's queues as its own clients do: mode, strategy, vote, mixed strategies. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from udfs.model.errors import StrategyError
from udfs.model.events import Mode, QueueRef
from udfs.model.systems import KAFKA, SYSTEMS, System
from udfs.strategies.kafka.vote import Voter, vote_of
from udfs.strategies.modes import broadcasting, message, message_shared
from udfs.strategies.problem import Assignment, Participant, Problem
from udfs.strategies.registry import qualified_name, registered
from udfs.strategies.rocketmq.averagely import averagely, by_circle

# A running client names the class of its strategy but not its arguments; without any of these settings its results are
# unknown.
_MADE_WITH = {
    "rocketmq.CONFIG": ("queues",),
    "rocketmq.MACHINE_ROOM": ("rooms",),
    "rocketmq.MACHINE_ROOM_NEARBY": ("inner", "broker_rooms", "member_rooms"),
}


class Allocation(msgspec.Struct, frozen=True, kw_only=True):
    """The owner of each queue under one strategy.

    Attributes:
        strategy: Qualified name; if members use different ones, all names, sorted, joined by ``, ``. None in the modes
            without an allocation, unless the caller named one.
        assignment: Every member of the problem is a key. recomputable: False if some members' queues cannot be
            computed, because their strategy is a custom class, or its settings were not reported.
    """

    strategy: str | None
    assignment: Assignment
    recomputable: bool = True


def allocate(
    *,
    system: System,
    mode: Mode | None,
    strategy: str | None,
    problem: Problem,
    tie_order: str,
) -> Allocation:
    """Assign a group's queues.

    Args:
        mode: None means clustering.
        strategy: Wire or qualified name of the strategy that the source reported or ``group_settings`` named; with
            None, Kafka's members that list strategies vote, and members of other systems each use their own first one.
        problem: ``Participant.strategies`` are the members' lists; ``Participant.settings`` precede
            ``Problem.settings``.
        tie_order: For the vote: ``1.0`` or ``4.x``.

    Raises:
        StrategyError: The group's strategy failed; code and message give the reason.
    """
    named = qualified_name(strategy, system) if strategy else None
    if mode == "broadcasting":
        return Allocation(strategy=named, assignment=broadcasting(problem))
    if mode == "message":
        return Allocation(strategy=named, assignment=_by_message(problem, named))
    if SYSTEMS[system].members_vote:
        chosen = named or select_protocol(problem.members, tie_order)
        return Allocation(strategy=chosen, assignment=registered(chosen, system).answer(problem))
    return _each_by_its_own(system, named, problem)


def select_protocol(members: Collection[Voter], tie_order: str) -> str:
    """Return the qualified name for which Kafka's members vote; it may be one that is unsupported here.

    Raises:
        StrategyError: ``no_common_strategy``.
    """
    # A member without a description has not reported what it supports, so it excludes no strategy.
    voters = [member for member in members if member.strategies]
    if members and not voters:
        return KAFKA.default_strategy
    return qualified_name(vote_of(voters, tie_order), KAFKA.name)


def own_strategies(system: System, members: Collection[Voter], tie_order: str) -> str:
    """Return the strategy that members use by themselves, qualified; several are sorted and joined by ``, ``.

    Raises:
        StrategyError: ``no_common_strategy``.
    """
    if SYSTEMS[system].members_vote:
        return select_protocol(members, tie_order)
    return ", ".join(sorted({_own_strategy(system, member) for member in members})) or SYSTEMS[system].default_strategy


def _by_message(problem: Problem, named: str | None) -> Assignment:
    share_number = problem.settings.get("share_number")
    if share_number is None:
        return message(problem)
    if not isinstance(share_number, int) or isinstance(share_number, bool):
        raise StrategyError("illegal_setting", f"share_number is a number, not {share_number!r}")
    return message_shared(problem, share_number, by_circle if named == "rocketmq.AVG_BY_CIRCLE" else averagely)


def _each_by_its_own(system: System, named: str | None, problem: Problem) -> Allocation:
    """Return each member's queues under its own strategy, with its own settings."""
    assignments: dict[tuple[str, bytes], Assignment | None] = {}
    held: dict[str, list[QueueRef]] = {}
    # Members mostly share one list and have no settings, so results are computed once and shared.
    keys: dict[tuple[tuple[str, ...], int], tuple[str, bytes]] = {}
    for member in problem.members:
        same = (member.strategies, id(member.settings))
        key = keys.get(same)
        if key is None:
            name = named or _own_strategy(system, member)
            key = keys[same] = (name, msgspec.json.encode(_settings(problem, member), order="deterministic"))
        if key not in assignments:
            name, settings = key[0], _settings(problem, member)
            own_problem = msgspec.structs.replace(problem, settings=settings)
            assignments[key] = (
                registered(name, system).answer(own_problem) if named else _own_assignment(name, system, own_problem)
            )
        held[member.member_id] = (assignments[key] or {}).get(member.member_id, [])
    chosen = ", ".join(sorted({name for name, _ in assignments})) or named or SYSTEMS[system].default_strategy
    return Allocation(strategy=chosen, assignment=held, recomputable=None not in assignments.values())


def _own_assignment(name: str, system: System, own_problem: Problem) -> Assignment | None:
    """Return the queues that a member's own strategy computes; None if they cannot be computed."""
    if name in _MADE_WITH and not any(setting in own_problem.settings for setting in _MADE_WITH[name]):
        return None
    try:
        return registered(name, system).answer(own_problem)
    except StrategyError as error:
        if error.code == "unknown_strategy":
            return None
        raise


def _own_strategy(system: System, member: Voter) -> str:
    return qualified_name(member.strategies[0], system) if member.strategies else SYSTEMS[system].default_strategy


def _settings(problem: Problem, member: Participant) -> Mapping[str, object]:
    return {**problem.settings, **(member.settings or {})}
