"""Core: one group's queues dealt out as its own clients would: mode, strategy, vote, mixed strategies. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from udfs.errors import StrategyError
from udfs.events import Mode, QueueRef, System
from udfs.strategies import DEFAULTS, qualified_name, registered
from udfs.strategies.kafka_vote import vote_of
from udfs.strategies.modes import broadcasting, message, message_shared
from udfs.strategies.problem import Assignment, Participant, Problem
from udfs.strategies.rocketmq_averagely import averagely, by_circle

# A running client names the class of its strategy, not what it was made with; without any of these settings its
# answers cannot be known.
_MADE_WITH = {
    "rocketmq.CONFIG": ("queues",),
    "rocketmq.MACHINE_ROOM": ("rooms",),
    "rocketmq.MACHINE_ROOM_NEARBY": ("inner", "broker_rooms", "member_rooms"),
}


class Dealt(msgspec.Struct, frozen=True, kw_only=True):
    """Who shall hold what.

    Attributes:
        strategy: Qualified name; where members use different ones, all names, sorted, joined by ``, ``. None in the
            modes that deal nothing out, unless the caller named one.
        assignment: Every member of the problem is a key. recomputable: False: what some members hold cannot be known,
            because their strategy is somebody's own, or was made with settings that nobody told.
    """

    strategy: str | None
    assignment: Assignment
    recomputable: bool = True


def deal(
    *,
    system: System,
    mode: Mode | None,
    strategy: str | None,
    problem: Problem,
    tie_order: str = "4.x",
) -> Dealt:
    """Deal a group's queues.

    Args:
        mode: None means clustering.
        strategy: Wire or qualified name of the strategy that the source reported or ``group_settings`` named; None:
            Kafka's members that list strategies vote, those of other systems each use their own first one.
        problem: ``Participant.strategies`` are what members listed; ``Participant.settings`` go before
            ``Problem.settings``.
        tie_order: For the vote: ``1.0`` or ``4.x``.

    Raises:
        StrategyError: The group's strategy cannot answer; code and message say why.
    """
    named = qualified_name(strategy, system) if strategy else None
    if mode == "broadcasting":
        return Dealt(strategy=named, assignment=broadcasting(problem))
    if mode == "message":
        return Dealt(strategy=named, assignment=_by_message(problem, named))
    if system == "kafka":
        chosen = named or voted(problem, tie_order)
        return Dealt(strategy=chosen, assignment=registered(chosen, system).answer(problem))
    return _each_by_its_own(system, named, problem)


def voted(problem: Problem, tie_order: str) -> str:
    """Answer the qualified name for which Kafka's members vote; it need not be one that is known here.

    Raises:
        StrategyError: ``no_common_strategy``.
    """
    # Who was seen, but never described, has not said what it supports: it stands in nobody's way.
    voters = [member for member in problem.members if member.strategies]
    if problem.members and not voters:
        return DEFAULTS["kafka"]
    return qualified_name(vote_of(voters, tie_order), "kafka")


def _by_message(problem: Problem, named: str | None) -> Assignment:
    share_number = problem.settings.get("share_number")
    if share_number is None:
        return message(problem)
    if not isinstance(share_number, int) or isinstance(share_number, bool):
        raise StrategyError("illegal_setting", f"share_number is a number, not {share_number!r}")
    return message_shared(problem, share_number, by_circle if named == "rocketmq.AVG_BY_CIRCLE" else averagely)


def _each_by_its_own(system: System, named: str | None, problem: Problem) -> Dealt:
    """Answer each member what its own strategy, with its own settings, gives it."""
    answers: dict[tuple[str, bytes], Assignment | None] = {}
    held: dict[str, list[QueueRef]] = {}
    for member in problem.members:
        settings = _settings(problem, member)
        name = named or _own_strategy(system, member)
        key = (name, msgspec.json.encode(settings, order="deterministic"))
        if key not in answers:
            asked = msgspec.structs.replace(problem, settings=settings)
            answers[key] = registered(name, system).answer(asked) if named else _own_answer(name, system, asked)
        held[member.member_id] = (answers[key] or {}).get(member.member_id, [])
    chosen = ", ".join(sorted({name for name, _ in answers})) or named or DEFAULTS[system]
    return Dealt(strategy=chosen, assignment=held, recomputable=None not in answers.values())


def _own_answer(name: str, system: System, asked: Problem) -> Assignment | None:
    """Answer what a strategy says that a member named itself; None where that cannot be known."""
    if name in _MADE_WITH and not any(setting in asked.settings for setting in _MADE_WITH[name]):
        return None
    try:
        return registered(name, system).answer(asked)
    except StrategyError as error:
        if error.code == "unknown_strategy":
            return None
        raise


def _own_strategy(system: System, member: Participant) -> str:
    return qualified_name(member.strategies[0], system) if member.strategies else DEFAULTS[system]


def _settings(problem: Problem, member: Participant) -> Mapping[str, object]:
    return {**problem.settings, **(member.settings or {})}
