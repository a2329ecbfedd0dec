"""Compare the model with the core, and find the smallest history that shows a difference."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.model.conditions import RECORDING, Conditions
from tests.model.core_tables import core_tables
from tests.model.disturbances import History
from tests.model.reference import model_tables
from tests.model.rows import BALANCE, Tables
from tests.model.times import T0, Event

Batches = Sequence[Sequence[Event]]
# These findings depend on members' own reports, once members had the time to follow.
OF_OWNERS = ("expected_differs", "unassigned_queues", "idle_members")
TABLES = ("rebalances", "spans", "members", "topics", "findings", "groups", "late", "rejected")


def cuts(made: History) -> list[tuple[Batches, Conditions]]:
    """Return the three ways to cut a history into batches, each with how it is played."""
    last = single_events(made) if made.seed % 16 == 0 else some_batches(made, 4)
    return [(one_batch(made), made.how), (some_batches(made), made.how), (last, replace(made.how, shards=2))]


def difference(batches: Batches, how: Conditions = RECORDING, expected: Tables | None = None) -> list[str]:
    """Return the rows that differ for one cut, one line each; none where model and core agree."""
    found = core_tables(batches, how)
    expected = model_tables(batches, how) if expected is None else expected
    timed = {event["cluster"] for batch in batches for event in batch if event["system"] != "kafka" and _reports(event)}
    lines = []
    for name in TABLES:
        want, got = getattr(expected, name), getattr(found, name)
        if name == "groups":
            want, got = ([_without_figures(row, timed) for row in rows] for rows in (want, got))
        if name == "findings":
            want, got = ([row for row in rows if _is_compared(row, timed)] for rows in (want, got))
        if want != got:
            lines += _differing(name, want, got)
    return lines


def _reports(event: Event) -> bool:
    """Return whether an event shows what members hold."""
    return event["type"] == "assignment_reported" or "assignments" in event


def _is_compared(row: Any, timed: set[str]) -> bool:
    """Return whether the rulings decide a finding: it lasts, and does not depend on how fast clients follow."""
    return row["opened_at"] != row["closed_at"] and not (row["kind"] in OF_OWNERS and row["cluster"] in timed)


def _without_figures(row: Any, timed: set[str]) -> Any:
    """Return a group without the figures whose time depends on how fast clients follow."""
    return row | dict.fromkeys(BALANCE) if row["cluster"] in timed else row


def _differing(name: str, want: Any, got: Any) -> list[str]:
    if not isinstance(want, list):
        return [f"{name}: model {dict(want)}, core {dict(got)}"]
    lines = []
    if name == "rebalances":
        ours = {(row["cluster"], row["group_id"], row["event_time"], row["generation"]): row for row in want}
        theirs = {(row["cluster"], row["group_id"], row["event_time"], row["generation"]): row for row in got}
        for key in sorted(ours.keys() & theirs.keys()):
            if ours[key] != theirs[key]:
                named = [column for column in ours[key] if ours[key][column] != theirs[key][column]]
                differences = ", ".join(
                    f"{column}: model {ours[key][column]!r} core {theirs[key][column]!r}" for column in named
                )
                lines.append(f"rebalances {_time(key)}: {differences}")
        want = [ours[key] for key in sorted(ours.keys() - theirs.keys())]
        got = [theirs[key] for key in sorted(theirs.keys() - ours.keys())]
    lines += [f"{name} only model: {_time(row)}" for row in want if row not in got]
    lines += [f"{name} only core:  {_time(row)}" for row in got if row not in want]
    return lines


def _time(row: Any) -> str:
    values = row.items() if isinstance(row, dict) else enumerate(row)
    return " ".join(str(value - T0 if isinstance(value, int) and value > 10**12 else value) for _, value in values)


def smallest(batches: Batches, how: Conditions) -> Batches:
    """Return the smallest history that still shows the difference: no event can be left out of it."""
    now = [list(batch) for batch in batches]
    changed = True
    while changed:
        changed = False
        for number in reversed(range(len(now))):
            for place in reversed(range(len(now[number]))):
                if how.lag_ms is not None and now[number][place]["type"] == "clock":
                    continue  # Without this event other events would lead the clock, and other ones would be late.
                less = [list(batch) for batch in now]
                del less[number][place]
                less = [batch for batch in less if batch]
                if less and difference(less, how):
                    now, changed = less, True
                    break
            if changed:
                break
        for number in range(len(now) - 1):
            less = [*now[:number], now[number] + now[number + 1], *now[number + 2 :]]
            if difference(less, how):
                now, changed = less, True
                break
    return now


def story(batches: Batches) -> str:
    """Return a history as text, a line for each event."""
    lines = []
    for number, batch in enumerate(batches):
        for event in sorted(batch, key=lambda event: event["event_time"]):
            rest = {k: v for k, v in event.items() if k not in ("schema_version", "event_time", "system", "type")}
            lines.append(f"  {number}: {event['event_time'] - T0:>7} {event['system']} {event['type']} {rest}")
    return "\n".join(lines)


def one_batch(made: History) -> list[list[Event]]:
    """Return everything as one batch, its lines in any order."""
    events = [event for _, event in made.events]
    random.Random(made.seed).shuffle(events)
    return [events]


def some_batches(made: History, most: int = 6) -> list[list[Event]]:
    """Return a few batches, cut anywhere, in the order of arrival."""
    chance = random.Random(made.seed + 1)
    events = made.in_order()
    places = sorted(chance.randint(0, len(events)) for _ in range(chance.randint(1, most)))
    return [events[low:high] for low, high in zip([0, *places], [*places, len(events)], strict=True) if low < high]


def single_events(made: History) -> list[list[Event]]:
    """Return one event a batch, in the order of arrival."""
    return [[event] for event in made.in_order()]
