"""Shell: what `check --plan` writes: one line with the state, then each change with its objectives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dashboard.reading.objectives import State, worst_of
from dashboard.reading.planned_objectives import PAUSE, JudgedChange, PlannedObjective
from streaming.commands.check import EXIT_CODES, plain
from streaming.terminal.escape import printable
from streaming.terminal.format import count, span_of_time

_NAMED = 5
_LONGEST = 1_000


def state_of(judged: Sequence[JudgedChange]) -> State:
    """Return the worst state of the changes."""
    return worst_of({change.state for change in judged})


def plan_lines(judged: Sequence[JudgedChange]) -> Iterator[str]:
    """Yield the line with the state, then the lines of each change."""
    yield _sentence(judged)
    for change in judged:
        yield printable(change.text)
        for each in change.objectives:
            yield printable(f"  {each.state:<8}  {each.name:<11}  {_foreseen(each)}; {_allowed(each)}{_why(each)}")
        yield from (printable(f"  In doubt: {text}") for text in change.doubts)
        yield from (printable(f"  Assumed: {text}") for text in change.assumes)


def plan_row(judged: Sequence[JudgedChange]) -> dict[str, Any]:
    """Return the same as one object; spans are in ms."""
    state = state_of(judged)
    return {
        "state": state,
        "exit_code": EXIT_CODES[state],
        "message": _sentence(judged),
        "changes": [_row(change) for change in judged],
    }


def _row(change: JudgedChange) -> dict[str, Any]:
    return {
        "cluster": change.cluster or None,
        "group_id": change.group_id,
        "change": change.text,
        "state": change.state,
        "objectives": [
            {
                "name": each.name,
                "state": each.state,
                "foreseen": each.value,
                "most": each.most,
                "warn": each.limit.warn,
                "value": each.limit.value,
                "why": each.why or None,
            }
            for each in change.objectives
        ],
        "doubts": list(change.doubts),
        "assumes": list(change.assumes),
    }


def _sentence(judged: Sequence[JudgedChange]) -> str:
    texts = [
        f"{plain(change.group_id)}: {each.name} {_foreseen(each)}, {_allowed(each)}"
        for change in judged
        for each in change.objectives
        if each.state != "ok"
    ]
    kept = f"{count(len(judged), 'change')} within all objectives"
    text = "; ".join(texts[:_NAMED]) + (f"; {len(texts) - _NAMED} more" if len(texts) > _NAMED else "")
    return plain(f"PLAN {state_of(judged).upper()} - {text or kept}", _LONGEST)


def _amount(objective: PlannedObjective, value: float) -> str:
    return span_of_time(round(value)) if objective.name == PAUSE else str(round(value))


def _foreseen(objective: PlannedObjective) -> str:
    if objective.value is None:
        return "unknown"
    value = _amount(objective, objective.value)
    if objective.most is None:
        return f"{value} or more"
    return value if objective.most == objective.value else f"{value}, up to {_amount(objective, objective.most)}"


def _allowed(objective: PlannedObjective) -> str:
    limit = objective.limit
    warn = "" if limit.warn is None else f", warning above {_amount(objective, limit.warn)}"
    return f"at most {_amount(objective, limit.value)}{warn}"


def _why(objective: PlannedObjective) -> str:
    return f" ({objective.why})" if objective.why else ""
