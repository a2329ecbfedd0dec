"""Shell: what a change would do to a group, as lines for people below its tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from streaming.terminal.format import count, queue_name, queues_text, span_of_time
from streaming.views.foresight import Foresight
from udfs.group.what_if.known_group import is_eager
from udfs.group.what_if.planned_change import shown_id
from udfs.model.first_few import first_few

# Names in a sentence; --wide shows all.
_FEW: Final = 10
_EXACT: Final = 10  # messages a second: fewer have a decimal
_STEPS: Final = {
    "strategy": "the other strategy is taken into use",
    "change": "the change",
    "leave": "restarting members leave",
    "return": "restarted members return",
}


def headline(given: Foresight, when: str) -> str:
    """Return what is asked, of which group, and of when."""
    change, known = given.change, given.found.known
    parts = [f"{given.found.strategy} -> {change.strategy}"] if change.strategy else []
    parts += [f"{count(change.add, 'new member')}"] if change.add else []
    parts += [f"without {_ids(change.leaving)}"] if change.leaving else []
    parts += [f"{_ids(change.lost)} lost"] if change.lost else []
    parts += [f"{topic} with {count(number, 'queue')}" for topic, number in sorted(change.queues.items())]
    parts += [f"a rolling restart, {change.at_once} at a time{', static' * change.is_static}"] if change.at_once else []
    size = f"{count(len(known.members), 'member')}, {count(given.before.queues, 'queue')}"
    what = ", ".join(parts) or "nothing changes"
    return f"{known.group_id} in {known.cluster} {when} ({given.found.strategy}, {size}): {what}"


def move_rows(given: Foresight) -> list[dict[str, Any]]:
    """Return the moves from each member to each other, the largest first: its queues by name."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for (topic, broker, queue_id), old, new in given.prediction.moved:
        pair = (_ids(old) if old else "-", _ids(new) if new else "-")
        found.setdefault(pair, []).append({"topic": topic, "broker": broker, "queue_id": queue_id})
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return [
        {"from": former, "to": new, "number": len(queues), "queues": queues_text(queues)}
        for (former, new), queues in ordered
    ]


def _ids(ids: Iterable[str]) -> str:
    return first_few([shown_id(member_id) for member_id in ids], _FEW)


def lines(given: Foresight) -> list[str]:
    """Return balance, standstill, costs, assumptions and doubts, a line each."""
    return [
        *_moves(given),
        f"Idle: {_named(given.before.idle)} before, {_named(given.after.idle)} after",
        *_unowned(given),
        f"Spread: {given.before.balance.spread} before, {given.after.balance.spread} after{_topics(given)}",
        *_costs(given),
        *(f"Assumed: {sentence}" for sentence in given.assumes),
        *(f"In doubt: {sentence}" for sentence in given.found.doubts),
    ]


def cost_lines(given: Foresight) -> list[str]:
    """Return what moves, what loses its owner, and what that costs, a line each; the rest of ``lines`` left out."""
    return [*_moves(given), *_unowned(given), *_costs(given)]


def _costs(given: Foresight) -> list[str]:
    return [*_standstill(given), f"Read twice: {_repeated(given)}", f"Waiting: {_waiting(given)}"]


def _moves(given: Foresight) -> list[str]:
    prediction = given.prediction
    moves = prediction.moves
    parts = [f"{moves.moved} of {count(len(prediction.before.owners), 'queue')} move"]
    parts += [f"{moves.assigned} more get an owner"] if moves.assigned else []
    parts += [f"{moves.revoked} lose theirs"] if moves.revoked else []
    found = [f"Moves: {', '.join(parts)}"]
    if len(prediction.rebalances) > 1:
        total = sum(len(each.moved) for each in prediction.rebalances)
        steps = list(dict.fromkeys(each.step for each in prediction.rebalances))
        for step in steps:
            of_step = [each for each in prediction.rebalances if each.step == step]
            moved = sum(len(each.moved) for each in of_step)
            found.append(f"  {_STEPS[step]}: {count(len(of_step), 'rebalance')}, {count(moved, 'move')}")
        found.append(f"  in all {count(len(prediction.rebalances), 'rebalance')}, {count(total, 'move')}")
    return found


def _unowned(given: Foresight) -> list[str]:
    before, after = ([queue_name(*queue) for queue in each.unassigned] for each in (given.before, given.after))
    return [f"Without an owner: {_named(before)} before, {_named(after)} after"] if before or after else []


def _topics(given: Foresight) -> str:
    before, after = given.before.spreads, given.after.spreads
    topics = sorted({*before, *after}, key=lambda topic: (-after.get(topic, 0), topic))
    texts = [f"{topic} {before.get(topic, '-')} -> {after.get(topic, '-')}" for topic in topics]
    return f" ({first_few(texts, _FEW)})" if texts else ""


def _named(names: Sequence[str]) -> str:
    return f"{len(names)} ({_ids(names)})" if names else "none"


def _standstill(given: Foresight) -> list[str]:
    prediction, found = given.prediction, given.found
    if not prediction.rebalances:
        return ["Stands still: nothing by a rebalance; a restarting member's own queues until it is back"]
    most = max(len(each.stopped) for each in prediction.rebalances)
    eager = is_eager(found.known, found.strategy) or is_eager(found.known, prediction.strategy)
    what = f"all {count(most, 'queue')} of all members" if eager else f"{count(most, 'queue')}, those that move"
    number = sum(each.generations for each in prediction.rebalances)
    generations = f" in {count(number, 'generation')}" if number > 1 else ""
    if len(prediction.rebalances) > 1:
        what = f"up to {what}"
    how_long = "for how long is unknown: no such rebalance of this group was measured"
    if given.pauses is not None:
        each = "each time " if len(prediction.rebalances) > 1 else ""
        how_long = f"{each}{given.pauses.span_text()}"
    sentences = [f"Stands still: {what}{generations}: {how_long}" if most else "Stands still: no queue"]
    if given.noticed_after_ms is not None:
        lost = [queue for queue, old, _ in prediction.moved if set(old) & set(given.change.lost)]
        span = span_of_time(given.noticed_after_ms)
        when = "of it" if given.is_notice_measured else "before that"
        sentences.append(
            f"  {when}, the {count(len(lost), 'queue')} of lost members: up to {span}, until sessions expire"
        )
    return sentences


def _repeated(given: Foresight) -> str:
    if given.repeated is None:
        return "unknown: no rebalance of this group shows it"
    return given.repeated.messages_text()


def _waiting(given: Foresight) -> str:
    if given.waiting is None:
        return "unknown: no rebalance of this group shows it, and no rate of commits with an outage"
    if given.waiting_rate is None:
        return given.waiting.messages_text()
    rate = f"{round(given.waiting_rate):,}" if given.waiting_rate >= _EXACT else f"{given.waiting_rate:.1f}"
    return given.waiting.messages_text(f"if {rate} arrive each second, as are committed")
