"""Draws kinds, states and timers of groups into `docs/groups.md`: `python -m tests.group_states`."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from pathlib import Path

from udfs.group.events.timers import TimerKind
from udfs.group.state.state_machine import KIND_TRANSITIONS, TRANSITIONS, GroupKind, GroupState

PAGE = Path(__file__).parents[1] / "docs" / "groups.md"
_BEGIN, _END = "<!-- drawn by python -m tests.group_states -->\n", "<!-- end of the drawing -->\n"


def drawing() -> str:
    """Return the tables as the page shows them."""
    return "\n".join(
        [
            "### Kinds",
            "",
            *_table(("kind", "meaning"), ((f"`{kind.value}`", kind.meaning) for kind in GroupKind)),
            *_table(
                ("when", "from", "to"),
                (
                    (transition.step.value, _names(GroupKind, transition.before), _names(GroupKind, transition.after))
                    for transition in KIND_TRANSITIONS
                ),
            ),
            "### States",
            "",
            *_table(("state", "meaning"), ((f"`{state.value}`", state.meaning) for state in GroupState)),
            *_table(
                ("when", "from", "to"),
                (
                    (transition.step.value, _names(GroupState, transition.before), _names(GroupState, transition.after))
                    for transition in TRANSITIONS
                ),
            ),
            "### Timers",
            "",
            "Timers of the same time run in the order of this table; an event of that time applies before all of them.",
            "The end of a session is not a timer: heartbeats postpone it, so the queue of events has the deadlines.",
            "",
            *_table(("timer", "when it ends"), ((f"`{timer.name.lower()}`", timer.meaning) for timer in TimerKind)),
        ]
    )


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = [head, tuple("---" for _ in head), *rows]
    return [*(f"| {' | '.join(line)} |" for line in lines), ""]


def _names(kind: type[Enum], chosen: Iterable[Enum]) -> str:
    picked = set(chosen)
    return "any" if picked == set(kind) else ", ".join(f"`{state.value}`" for state in kind if state in picked)


def drawn() -> str:
    """Return the tables that the page has."""
    return PAGE.read_text(encoding="utf-8").split(_BEGIN)[1].split(_END)[0]


def redraw() -> None:
    """Write the tables into the page."""
    before, rest = PAGE.read_text(encoding="utf-8").split(_BEGIN)
    PAGE.write_text(before + _BEGIN + drawing() + _END + rest.split(_END)[1], encoding="utf-8")


if __name__ == "__main__":
    redraw()
