"""Shell: what a change would do to a group, from the tables alone: assignments, moves, balance, costs, doubts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from streaming.terminal.format import count, queue_name
from streaming.views.known_groups import FoundGroup, UnknowableError
from streaming.views.measured_rebalances import Costs, Measured, commit_rate, costs_of
from streaming.views.reader import Reader
from streaming.views.wished_changes import NEEDS_SETTINGS, Wish, change_of, strategy_named
from udfs.group.state.assignment_diff import Changed, changed_queues
from udfs.group.state.group import Queue
from udfs.group.what_if.known_group import Figures, figures_of, is_eager, settled
from udfs.group.what_if.planned_change import PlannedChange, kinds_of_members, shown_id, usual_member
from udfs.group.what_if.prediction import (
    HASHED,
    Alternative,
    Prediction,
    alternatives,
    assumed_place,
    predict,
)
from udfs.model.config import CoreConfig
from udfs.model.errors import StrategyError
from udfs.model.first_few import first_few
from udfs.model.systems import SYSTEMS, is_server_side
from udfs.strategies.registry import names

_FEW: Final = 5
_Result = TypeVar("_Result")


class Foresight(NamedTuple):
    """What a change would do.

    Attributes:
        before, after: How evenly queues are held. costs: What the group's own rebalances of this kind cost.
        pauses: For how long the stopped queues stand, in each rebalance; None if the group has shown none.
        repeated, waiting: Messages, over all rebalances. waiting_source: What ``waiting`` is from; empty if unknown.
        noticed_after_ms: For how long nobody notices lost members: their session timeouts; None if none are lost.
        is_notice_measured: Whether ``pauses`` has that time in it: it is from outages of queues, not from phases.
        alternatives: What it does under other ids. assumes: Sentences on what is assumed, and what differs if it is
            otherwise.
    """

    found: FoundGroup
    change: PlannedChange
    prediction: Prediction
    before: Figures
    after: Figures
    pauses: Measured | None
    repeated: Measured | None
    waiting: Measured | None
    waiting_rate: float | None
    noticed_after_ms: int | None
    is_notice_measured: bool
    alternatives: list[Alternative]
    assumes: list[str]


class Comparison(NamedTuple):
    """A change under one strategy.

    Attributes:
        switched: The queues that move as the strategy is taken into use. moved: Those that the change moves then.
        error: Why it cannot be foreseen; the others are None then.
    """

    strategy: str
    switched: int | None = None
    moved: int | None = None
    stopped: int | None = None
    spread: int | None = None
    idle: int | None = None
    unassigned: int | None = None
    error: str | None = None

    @property
    def row(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "strategy": self.strategy,
            "queues_switched": self.switched,
            "queues_moved": self.moved,
            "queues_stopped": self.stopped,
            "spread": self.spread,
            "idle_members": self.idle,
            "unassigned_queues": self.unassigned,
            "error": self.error,
        }


def answer(reader: Reader, found: FoundGroup, wish: Wish, config: CoreConfig, at_ms: int | None) -> Foresight:
    """Return what a change would do.

    Raises:
        NotFoundError, AmbiguousError, UnknowableError: See ``change_of``; or the strategy's result cannot be known.
    """
    change = change_of(found, wish)
    drift = _or_unknowable(lambda: _drift(found, config))
    prediction = _or_unknowable(
        lambda: predict(found.known, change, config, assumed_place(change.strategy or found.strategy))
    )
    others = alternatives(prediction, change, config)
    costs = costs_of(found.rebalances, with_expiries=bool(change.lost))
    moved = sum(len(rebalanced.moved) for rebalanced in prediction.rebalances)
    pauses = _pauses(found, prediction, costs)
    where = {"cluster": found.known.cluster, "group_id": found.known.group_id}
    rate = None
    if costs.waiting is None and pauses is not None and not SYSTEMS[found.known.system].offsets_count_bytes:
        rate = commit_rate(reader, where, at_ms)
    waiting = costs.waiting.times(moved) if costs.waiting is not None else _by_rate(prediction, pauses, rate)
    return Foresight(
        found=found,
        change=change,
        prediction=prediction,
        before=figures_of(found.known, config),
        after=figures_of(prediction.after, config),
        pauses=pauses,
        repeated=None if costs.repeated is None else costs.repeated.times(moved),
        waiting=waiting,
        waiting_rate=None if waiting is None or costs.waiting is not None else rate,
        noticed_after_ms=_noticed_after_ms(found, change, config),
        is_notice_measured=pauses is not None and pauses is costs.outage_ms,
        alternatives=others,
        assumes=[*drift, *_assumes(found, change, prediction), *_tried(prediction, others, config)],
    )


def compared(found: FoundGroup, wish: Wish, config: CoreConfig) -> list[Comparison]:
    """Return a change under each strategy of the group's system, in the order of their names."""
    of_system = [name for name in names() if name.startswith(f"{found.known.system}.")]
    return [_compared(found, wish._replace(strategy=name), config) for name in of_system]


def _compared(found: FoundGroup, wish: Wish, config: CoreConfig) -> Comparison:
    name = strategy_named(found.known.system, wish.strategy or "") if wish.strategy not in NEEDS_SETTINGS else ""
    if not name:
        return Comparison(wish.strategy or "", error="needs settings, which no table has")
    change = change_of(found, wish)
    try:
        prediction = predict(found.known, change, config, assumed_place(name))
    except StrategyError as error:
        return Comparison(name, error=error.message)
    first, *others = prediction.rebalances
    figures = figures_of(prediction.after, config)
    return Comparison(
        strategy=name,
        switched=len(first.moved),
        moved=sum(len(rebalanced.moved) for rebalanced in others) if others else None,
        stopped=sum(len(rebalanced.stopped) for rebalanced in others or [first]),
        spread=figures.balance.spread,
        idle=len(figures.idle),
        unassigned=len(figures.unassigned),
    )


def _or_unknowable(compute: Callable[[], _Result]) -> _Result:
    try:
        return compute()
    except StrategyError as error:
        raise UnknowableError(f"its strategy cannot be computed from the tables: {error.message}") from error


def _drift(found: FoundGroup, config: CoreConfig) -> list[str]:
    """Compute the assignment without any change, which shows whether the tables have what the strategy needs."""
    known = found.known
    now = settled(known, config).group.owners
    needs_settings = found.strategy in NEEDS_SETTINGS | HASHED or known.mode == "message"
    if needs_settings and found.computed is not None and now != found.computed:
        raise UnknowableError(
            f"{found.strategy} does not give the assignment that the group has: its settings are not in the tables"
        )
    moved = changed_queues(known.owners, now)
    if not moved:
        return []
    return [f"without any change its next rebalance would move {count(len(moved), 'queue')}: {_queues(moved)}"]


def _queues(moved: list[Changed]) -> str:
    return first_few([queue_name(*queue) for queue, _, _ in moved], _FEW)


def _pauses(found: FoundGroup, prediction: Prediction, costs: Costs) -> Measured | None:
    eager = is_eager(found.known, found.strategy) or is_eager(found.known, prediction.strategy)
    return (costs.pause_ms or costs.outage_ms) if eager else costs.outage_ms


def _by_rate(prediction: Prediction, pauses: Measured | None, rate: float | None) -> Measured | None:
    """Return the messages that arrive in the stopped queues meanwhile, if they arrive as fast as they are committed."""
    owned = len(prediction.before.owners)
    if pauses is None or rate is None or not owned:
        return None
    stopped = sum(len(rebalanced.stopped) for rebalanced in prediction.rebalances)
    share = rate * stopped / owned / 1_000
    return pauses._replace(least=pauses.least * share, middle=pauses.middle * share, most=pauses.most * share)


def _noticed_after_ms(found: FoundGroup, change: PlannedChange, config: CoreConfig) -> int | None:
    usual = config.session_timeouts_ms[found.known.system]
    lost = [member for member in found.known.members if member.member_id in change.lost]
    spans = [usual if member.session_timeout_ms is None else member.session_timeout_ms for member in lost]
    return max(spans, default=None)


def _assumes(found: FoundGroup, change: PlannedChange, prediction: Prediction) -> list[str]:
    known, assumed = found.known, list[str]()
    if change.add:
        like = usual_member(known, change.like).member_id
        if kinds_of_members(known) > 1:
            assumed.append(f"members differ in topics or strategies: new ones are like {like}; --like names another")
        if any(member.rack for member in known.members):
            assumed.append("the racks of new members are not known: they are taken to have none")
        if prediction.strategy in HASHED:
            assumed.append("which queues new members get follows from hashes of their ids, which are not known")
        else:
            assumed.append("ids of new members are taken to sort after all others")
    if is_server_side(prediction.strategy) and (change.add or len(change.leaving) + len(change.lost) > 1):
        assumed.append("members join and leave one after the other, each in an epoch of its own")
    if change.strategy is not None and is_server_side(change.strategy) != is_server_side(found.strategy):
        protocol = "consumer" if is_server_side(change.strategy) else "classic"
        assumed.append(f"every member is started with group.protocol={protocol}; their own restarts are not counted")
    static = [m.member_id for m in known.members if m.member_id in change.leaving and m.instance_id]
    if static:
        assumed.append(
            f"static members leave without a word: {first_few(static, _FEW)} own queues until their sessions expire"
        )
    if change.at_once and change.is_static:
        assumed.append("every member is static and returns within its session timeout: there is no rebalance")
    elif change.at_once:
        assumed.append("a restarted member returns with an id in the same place among the others, and owns nothing")
    if SYSTEMS[known.system].members_vote and not known.settings and not is_server_side(prediction.strategy):
        assumed.append("no client library is known: the leader assigns as the newest Java client does")
    return assumed


_WHAT: Final = {
    "first": "if the ids of new members sort before all others",
    "ids": "with other ids of new members ({number} tried)",
    "topics": "with other ids of topics, which no table has ({number} tried)",
}


def _tried(prediction: Prediction, found: Sequence[Alternative], config: CoreConfig) -> list[str]:
    """Return what differs if ids that nobody knows are otherwise than assumed."""
    sentences: list[str] = []
    for what, text in _WHAT.items():
        of_kind = [each for each in found if each.what == what]
        if not of_kind:
            continue
        differing = [each for each in of_kind if each.differs]
        result = _differing(prediction, differing, config) if differing else "the same queues move"
        sentences.append(f"{text.format(number=len(of_kind))}: {result}")
    return sentences


def _differing(prediction: Prediction, others: list[Alternative], config: CoreConfig) -> str:
    moves = [len(each.prediction.moved) for each in others]
    spreads = [figures_of(each.prediction.after, config).balance.spread for each in others]
    number = _range(moves)
    many = "as many" if number == str(len(prediction.moved)) else f"{number} instead of {len(prediction.moved)}"
    return f"other queues move, {many}, with a spread of {_range(spreads)}"


def _range(numbers: list[int]) -> str:
    least, most = min(numbers), max(numbers)
    return str(least) if least == most else f"{least} to {most}"


# ---- for programs


def answer_row(given: Foresight, at_ms: int | None) -> dict[str, Any]:
    """Return an answer as one object: every queue, member and topic by name."""
    known, prediction = given.found.known, given.prediction
    moves = prediction.moves
    return {
        "cluster": known.cluster,
        "group_id": known.group_id,
        "system": known.system,
        "at": at_ms,
        "strategy_before": given.found.strategy,
        "strategy_after": prediction.strategy,
        "members": member_rows(given),
        "queues_moved": moves.moved,
        "queues_assigned": moves.assigned,
        "queues_revoked": moves.revoked,
        "moves": [
            {**_queue(queue), "before": list(map(shown_id, old)), "after": list(map(shown_id, new))}
            for queue, old, new in prediction.moved
        ],
        "rebalances": [
            {
                "step": each.step,
                "generations": each.generations,
                "queues_moved": len(each.moved),
                "queues_stopped": len(each.stopped),
            }
            for each in prediction.rebalances
        ],
        **{f"idle_{when}": list(map(shown_id, each.idle)) for when, each in _figures(given)},
        **{f"unassigned_{when}": list(map(_queue, each.unassigned)) for when, each in _figures(given)},
        **{f"spread_{when}": each.balance.spread for when, each in _figures(given)},
        "topics": [
            {
                "topic": topic,
                "spread_before": given.before.spreads.get(topic),
                "spread_after": given.after.spreads.get(topic),
            }
            for topic in sorted({*given.before.spreads, *given.after.spreads})
        ],
        "stands_still_ms": None if given.pauses is None else given.pauses.row,
        "noticed_after_ms": given.noticed_after_ms,
        "repeated_messages": None if given.repeated is None else given.repeated.row,
        "waiting_messages": None if given.waiting is None else given.waiting.row,
        "committed_per_second": given.waiting_rate,
        "assumes": given.assumes,
        "doubts": given.found.doubts,
    }


def _figures(given: Foresight) -> tuple[tuple[str, Figures], ...]:
    return (("before", given.before), ("after", given.after))


def _queue(queue: Queue) -> dict[str, Any]:
    return {"topic": queue[0], "broker": queue[1], "queue_id": queue[2]}


def member_rows(given: Foresight) -> list[dict[str, Any]]:
    """Return every member before and after, with its queues; null where it is not one. First those that change."""
    before, after = given.prediction.before, given.prediction.after
    held = [_held(each.owners) for each in (before, after)]
    there = {member.member_id: member for member in (*after.members, *before.members)}
    ids = [set(before.member_ids), set(after.member_ids)]
    rows = [
        {
            "member_id": shown_id(member_id),
            "instance_id": None if member.instance_id is None else shown_id(member.instance_id),
            "client_id": member.client_id,
            "host": member.host,
            "change": _change_of(given.change, member_id, ids),
            "before": held[0].get(member_id, []) if member_id in ids[0] else None,
            "after": held[1].get(member_id, []) if member_id in ids[1] else None,
        }
        for member_id, member in sorted(there.items())
    ]
    return sorted(rows, key=lambda row: row["before"] == row["after"])


def _held(owners: Mapping[Queue, tuple[str, ...]]) -> dict[str, list[dict[str, Any]]]:
    held: dict[str, list[dict[str, Any]]] = {}
    for queue in sorted(owners, key=lambda queue: (queue[0], queue[1] or "", queue[2])):
        for holder in owners[queue]:
            held.setdefault(holder, []).append(_queue(queue))
    return held


def _change_of(change: PlannedChange, member_id: str, ids: list[set[str]]) -> str:
    if member_id not in ids[0]:
        return "new"
    if member_id in change.lost:
        return "lost"
    return "stays" if member_id in ids[1] else "leaves"
