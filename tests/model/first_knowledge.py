"""Events that may make a group or cluster known: commits, ends of queues, clocks, bare heartbeats, reports."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.model.disturbances import History
from tests.model.times import T0, Event

# Such an event may arrive this much later than its time: within the lateness.
_DELAY_MS = 1_500
_STRANGER = "q"  # a group that only such events name


def add_first_knowledge(chance: random.Random, made: History) -> None:
    """Add events of every such kind to a history: before all others, at the same time, and between them."""
    for cluster in sorted({event["cluster"] for _, event in made.events}):
        mine = [event for _, event in made.events if event["cluster"] == cluster]
        newest = max(event["event_time"] for event in mine) - T0
        for number in range(chance.choice((0, 2, 6))):
            at = chance.choice((0, 0, chance.randint(0, newest)))
            event = chance.choice(_KINDS)(chance, mine) | {
                "schema_version": 1,
                "event_time": T0 + at,
                "system": mine[0]["system"],
                "cluster": cluster,
            }
            if event["type"] == "assignment_reported":
                event["event_id"] = f"{cluster}-first-{number}"
            made.events.append((at + chance.randint(0, _DELAY_MS), event))


def _commit(chance: random.Random, mine: list[Event]) -> Event:
    queue = _queue(chance, mine) | {"offset": chance.randrange(50)}
    if chance.random() < 0.3:  # a poll shows the end of the queue, but no commit
        queue = queue | {"moved": False, "end_offset": 60}
    return {"type": "progress", "group": _group(chance, mine), "queues": [queue]}


def _ends(chance: random.Random, mine: list[Event]) -> Event:
    queue = _queue(chance, mine)
    return {"type": "queue_ends", "topic": queue.pop("topic"), "queues": [queue | {"end_offset": chance.randrange(60)}]}


def _clock(_chance: random.Random, _mine: list[Event]) -> Event:
    return {"type": "clock"}


def _heartbeat(chance: random.Random, mine: list[Event]) -> Event:
    return {"type": "heartbeat", "group": _group(chance, mine), "member_id": chance.choice(("a0", "b1", "z"))}


def _report(chance: random.Random, mine: list[Event]) -> Event:
    held = [_queue(chance, mine)] if chance.random() < 0.7 else []
    return {"type": "assignment_reported", "group": _group(chance, mine), "member_id": "a0", "queues": held}


_KINDS: tuple[Callable[[random.Random, list[Event]], Event], ...] = (
    _commit, _commit, _commit, _ends, _clock, _heartbeat, _report,
)  # fmt: skip


def _group(chance: random.Random, mine: list[Event]) -> str:
    return chance.choice(sorted({event["group"] for event in mine if "group" in event} | {_STRANGER}))


def _queue(chance: random.Random, mine: list[Event]) -> dict[str, Any]:
    topics = sorted({event["topic"] for event in mine if "topic" in event}) or ["t0"]
    place = {} if mine[0]["system"] == "kafka" else {"broker": chance.choice(("b0", "b1"))}
    return {"topic": chance.choice(topics), "queue_id": chance.randrange(3), **place}
