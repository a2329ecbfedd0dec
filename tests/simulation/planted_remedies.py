"""Fleets of groups that one setting would have helped: does advice name it first, and leave healthy groups alone?

`python -m tests.simulation.planted_remedies [FLEETS]` prints for each fate how often the planted remedy came first; the
target is 95 %, and no advice for healthy groups.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import count
from typing import NamedTuple

from streaming.history.advice import GroupAdvice, asked_of, group_advice
from streaming.history.replay_figures import replay_figures
from tests.core_config import core_config
from tests.model.core_tables import run_core
from tests.model.times import T0, Event
from tests.simulation.given_tables import GivenTables
from tests.streaming.history.test_reported_policies import Life, World, coordinator_events

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
DAY = 24 * HOUR
# Without a coordinator, members have their system's strategy.
AS_USUAL = ""
# A queue stands still for this long in a rebalance, at random around it.
PAUSE_MS = 2_500


class Fate(NamedTuple):
    """What happens to groups of a kind, and which policies would have helped; none for a healthy group.

    Attributes:
        system: Kafka's coordinators report generations; elsewhere members alone are seen.
    """

    name: str
    lives: Callable[[random.Random], World]
    remedies: frozenset[str]
    system: str = "kafka"


def clients(chance: random.Random, least: int = 4, most: int = 9) -> list[str]:
    return [f"worker-{number}" for number in range(chance.randint(least, most))]


class Lives:
    """The processes of a group, one after the other for each client."""

    def __init__(self, names: Iterable[str], timeout_ms: int, topics: tuple[str, ...] = ("t",)) -> None:
        self._numbers = count(1)
        self._timeout_ms, self._topics = timeout_ms, topics
        self._done: list[Life] = []
        self._now = {name: self._begun(name, SECOND) for name in names}

    def _begun(self, name: str, since: int) -> Life:
        return Life(name, f"{name}-{next(self._numbers)}", since, None, False, self._topics, self._timeout_ms)

    def away(self, name: str, since: int, away_ms: int, *, is_killed: bool) -> int:
        """End a client's process, and begin another one some time later, at a time that is returned."""
        self._done.append(self._now[name]._replace(until=since, is_killed=is_killed))
        self._now[name] = self._begun(name, since + away_ms)
        return since + away_ms

    def visit(self, name: str, since: int, until: int | None) -> None:
        """Begin another client's process, and end it."""
        self._done.append(self._begun(name, since)._replace(until=until))

    @property
    def all(self) -> list[Life]:
        return [*self._done, *self._now.values()]


def deploys(chance: random.Random, timeout_ms: int = 45_000, away_ms: tuple[int, int] = (4_000, 20_000)) -> World:
    """Several times a day each process is closed and started again, one after the other."""
    names = clients(chance)
    lives = Lives(names, timeout_ms)
    for number in range(chance.randint(4, 6)):
        at = (number + 1) * 3 * HOUR + chance.randrange(HOUR)
        for name in names:
            at = lives.away(name, at, chance.randrange(*away_ms), is_killed=False)
            at += chance.randrange(20_000, 60_000)
    return World(lives.all, [(0, "t", chance.randint(12, 36))], chance.choice(("range", "sticky")))


def slow_deploys(chance: random.Random) -> World:
    """Processes come back after longer than their session lasts."""
    return deploys(chance, timeout_ms=10_000, away_ms=(15_000, 50_000))


def short_timeouts(chance: random.Random) -> World:
    """Pauses of processes are longer than their sessions."""
    names = clients(chance)
    lives = Lives(names, timeout_ms=6_000)
    at = HOUR
    while at < 20 * HOUR:
        at = lives.away(chance.choice(names), at, chance.randrange(9_000, 25_000), is_killed=True)
        at += chance.randrange(10 * MINUTE, 60 * MINUTE)
    return World(lives.all, [(0, "t", chance.randint(12, 36))], chance.choice(("range", "roundrobin")))


def crash_loop(chance: random.Random) -> World:
    """The processes of one host are killed again and again, and are soon back."""
    names = clients(chance, 5, 9)
    lives = Lives(names, timeout_ms=30_000)
    at = HOUR
    while at < 20 * HOUR:
        for name in names[:2]:
            at = lives.away(name, at, chance.randrange(3_000, 12_000), is_killed=True) + 45_000
        at += chance.randrange(20 * MINUTE, 60 * MINUTE)
    return World(lives.all, [(0, "t", chance.randint(12, 36))], chance.choice(("range", "roundrobin")))


def range_over_many_topics(chance: random.Random) -> World:
    """Members come and go for hours: each time all queues stop, though few move."""
    names = clients(chance, 4, 6)
    topics = tuple(f"t{number}" for number in range(12))
    lives = Lives(names, timeout_ms=45_000, topics=topics)
    for number in range(chance.randint(8, 14)):
        name = f"extra-{number}"
        since = (number + 1) * HOUR + chance.randrange(MINUTE)
        lives.visit(name, since, since + chance.randrange(20 * MINUTE, 50 * MINUTE))
    return World(lives.all, [(0, topic, chance.randint(1, 4)) for topic in topics], "range")


def healthy(chance: random.Random) -> World:
    """A group that is scaled once, by a strategy that stops what moves alone."""
    names = clients(chance)
    lives = Lives(names, timeout_ms=45_000)
    lives.visit("worker-9", 5 * HOUR, None)
    return World(lives.all, [(0, "t", chance.randint(8, 12))], "cooperative-sticky")


def members_come_and_go(chance: random.Random) -> World:
    """Whoever joins or leaves moves queues of all others, by a strategy that gives each a part of the list."""
    names = clients(chance, 5, 9)
    lives = Lives(names, timeout_ms=30_000)
    for number in range(chance.randint(10, 16)):
        name = f"extra-{chance.randrange(1_000)}-{number}"
        since = (number + 1) * HOUR + chance.randrange(MINUTE)
        lives.visit(name, since, since + chance.randrange(20 * MINUTE, 50 * MINUTE))
    return World(lives.all, [(0, "t", chance.randint(32, 64))], AS_USUAL)


def idle_surplus(chance: random.Random, visitors: int = 0) -> World:
    """Three members more than queues are there for all of a day, but for one restart; others only for half of it."""
    names = [f"worker-{number}" for number in range(8 - visitors)]
    lives = Lives(names, timeout_ms=45_000)
    for number in range(visitors):
        lives.visit(f"extra-{number}", 6 * HOUR, 18 * HOUR)
    lives.away(names[0], chance.randrange(7, 11) * HOUR, 4_000, is_killed=False)
    lives.away(names[1], 20 * HOUR, 4_000, is_killed=False)
    return World(lives.all, [(0, "t", 5)], "cooperative-sticky")


STATIC = frozenset(("static", "static + session_timeout=60s"))
FATES = (
    Fate("deploys", deploys, STATIC),
    Fate("slow deploys", slow_deploys, frozenset(("static + session_timeout=60s",))),
    Fate("short timeouts", short_timeouts, frozenset(("session_timeout=30s",))),
    Fate("crash loop", crash_loop, STATIC),
    Fate("range over many topics", range_over_many_topics, frozenset(("strategy=cooperative-sticky",))),
    Fate("members come and go", members_come_and_go, frozenset(("strategy=CONSISTENT_HASH",)), "rocketmq"),
    Fate("members of MetaQ come and go", members_come_and_go, frozenset(("strategy=consistent-hash",)), "metaq"),
    Fate("healthy", healthy, frozenset()),
    Fate("healthy RocketMQ", healthy, frozenset(), "rocketmq"),
)


def counted_events(made: World, system: str) -> list[Event]:
    """Return what members of a system without a coordinator show of themselves."""
    common = {"schema_version": 1, "system": system, "cluster": "c"}
    events: list[Event] = [
        common | {"type": "topic_queues", "event_time": T0 + at, "topic": topic, "broker": "b", "queue_count": number}
        for at, topic, number in made.growths
    ]
    for life in made.lives:
        named = common | {"group": "g", "member_id": life.member_id}
        joined = {"subscriptions": life.topics, "client_id": life.client, "session_timeout_ms": DAY}
        events.append(named | {"type": "member_joined", "event_time": T0 + life.since} | joined)
        if life.departs is not None:
            how = "expired" if life.is_killed else "left"
            events.append(named | {"type": "member_left", "event_time": T0 + life.departs, "how": how})
    return sorted(events, key=lambda event: event["event_time"])


def tables_of(made: World, system: str, chance: random.Random) -> GivenTables:
    """Return the tables; that queues stood still is given, because nobody consumes here."""
    events = coordinator_events(made) if system == "kafka" else counted_events(made, system)
    tables = GivenTables.of(run_core([events]))
    rows = {name: tables.rows(name) for name in ("groups", "members", "assignments", "topics", "rebalances")}
    for row in rows["rebalances"]:
        stood = row["queues_moved"]
        if system == "kafka":
            stood += row["queues_kept"] + row["queues_revoked"]
        row["queue_pause_ms"] = round(stood * PAUSE_MS * chance.uniform(0.5, 1.5)) if stood else None
    return GivenTables(rows)


def advised(fate: Fate, seed: int) -> GroupAdvice:
    """Return what a group of a fate is advised."""
    chance = random.Random(f"{fate.name} {seed}")
    tables = tables_of(fate.lives(chance), fate.system, chance)
    return group_advice(replay_figures(tables, "c", "g", asked_of(0), core_config()))


def first_advice(fate: Fate, seeds: Iterable[int]) -> Counter[str | None]:
    """Return which policies came first; None for no advice."""
    return Counter(next((advice.policy for advice in advised(fate, seed).advice), None) for seed in seeds)


def right_share(fate: Fate, first: Counter[str | None]) -> float:
    """Return in which share of the groups the planted remedy came first, or rightly nothing."""
    return sum(first[remedy] for remedy in fate.remedies or (None,)) / first.total()


def main() -> None:
    """Print what came first, by fate."""
    for fate in FATES:
        first = first_advice(fate, range(int(sys.argv[1]) if len(sys.argv) > 1 else 50))
        sys.stdout.write(f"{fate.name:30} {right_share(fate, first):7.2%}  {dict(first)}\n")


if __name__ == "__main__":
    main()
