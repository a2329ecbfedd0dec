"""A history, and disturbances of the whole of it: an event comes late, or one clock is ahead of all others."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import count

from tests.model.conditions import RECORDING, Conditions
from tests.model.times import LATENESS_MS, Event

_OF_A_CLOCK = ("schema_version", "event_time", "system", "cluster")


@dataclass
class History:
    """Events in the order of their times, each with the time at which it arrives, and what may happen in it."""

    seed: int
    features: frozenset[str] = frozenset()
    how: Conditions = RECORDING
    events: list[tuple[int, Event]] = field(default_factory=list)  # (arrival, event)

    def in_order(self) -> list[Event]:
        """Return the events as they arrive."""
        return [event for _, event in sorted(self.events, key=lambda timed: timed[0])]


def delay_one(chance: random.Random, made: History) -> None:
    """Let one event of a group arrive later than the allowed lateness."""
    chosen = chance.choice([event for _, event in made.events if "group" in event] or [{}])
    delay = chance.randint(LATENESS_MS, 60_000)
    made.events = [(at + delay if event == chosen else at, event) for at, event in made.events]


def delay_many(chance: random.Random, made: History) -> None:
    """Let any events arrive up to a minute later than they happened.

    One that comes late has a time of its own: of two of one time, the one that comes late is applied after the other.
    """
    share = chance.choice((0.05, 0.1, 0.3))
    times = {event["event_time"] for _, event in made.events}
    moved: list[tuple[int, Event]] = []
    for at, event in made.events:
        delay = chance.randint(LATENESS_MS, 60_000) if chance.random() < share else 0
        if delay:
            event = event | {"event_time": next(time for time in count(event["event_time"]) if time not in times)}
            times.add(event["event_time"])
        moved.append((at + delay, event))
    made.events = moved


def send_clocks(made: History) -> None:
    """Have a collector report its time before each event.

    What is late depends on how far the cluster's time has come. A collector's clock counts for the whole cluster; which
    times of a few members support each other, and from when on, is the core's own affair.
    """
    made.events = [
        pair
        for at, event in made.events
        for pair in ((at, {name: event[name] for name in _OF_A_CLOCK} | {"type": "clock"}), (at, event))
    ]


def send_ahead(chance: random.Random, made: History) -> None:
    """Add an event of a member whose clock is ahead of all others; two others have sent theirs before."""
    cluster = chance.choice(sorted({event["cluster"] for _, event in made.events}))
    producers: set[tuple[str, str]] = set()
    arrivals = []
    for at, event in sorted(made.events, key=lambda timed: timed[0]):
        kind = "group" if event["type"] == "group_snapshot" else "member_id"
        if event["cluster"] == cluster and kind in event:
            producers.add((kind, event[kind]))
            arrivals += [at] if len(producers) > 1 else []
    if not arrivals:
        return
    at, lag_ms = chance.choice(arrivals), made.how.lag_ms or 0
    # A late event may arrive long after the newest time by which a batch is dated.
    newest = max(event["event_time"] for arrival, event in made.events if arrival <= at)
    like = next(event for _, event in made.events if event["cluster"] == cluster)
    described = {"member_id": "z9", "subscriptions": ["t0"], "session_timeout_ms": 45_000}
    kind, fields = chance.choice(
        (
            ("member_joined", {"group": chance.choice(("g0", "other")), "event_id": f"{cluster}-ahead", **described}),
            ("heartbeat", {"group": chance.choice(("g0", "other")), "member_id": "z9"}),
            ("group_snapshot", {"group": "other", "event_id": f"{cluster}-ahead", "members": [described]}),
        )
    )
    ahead: Event = {
        "schema_version": 1,
        "event_time": newest + chance.randint(LATENESS_MS + 1, lag_ms + 590_000),
        "system": like["system"],
        "cluster": cluster,
        "type": kind,
        "is_ahead": True,
        **fields,
    }
    made.events.append((at, ahead))
