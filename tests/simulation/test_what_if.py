"""What is foreseen of a change is what the core decides once the change happens, for every strategy of every system."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest

from streaming.settings.defaults import default_core_config
from streaming.views.known_groups import FoundGroup, found_group
from streaming.views.what_if import Answer, answer
from streaming.views.wished_changes import Wish
from tests.simulation.core_run import CoreRun, run_of
from tests.simulation.given_tables import GivenTables
from udfs.group.state.group import Owners
from udfs.group.what_if.change import new_id

SEEDS = 6
T0 = 1_772_323_200_000  # 2026-03-01
CONFIG = default_core_config()
MINUTE = 60_000
STRATEGIES = (
    "kafka.range",
    "kafka.roundrobin",
    "kafka.sticky",
    "kafka.cooperative-sticky",
    "rocketmq.AVG",
    "rocketmq.AVG_BY_CIRCLE",
    "rocketmq.CONSISTENT_HASH",
    "metaq.default",
    "metaq.consistent-hash",
)


class History:
    """The events of one group, minute by minute."""

    def __init__(self, strategy: str, seed: int) -> None:
        self.random = random.Random(f"{strategy}/{seed}")
        self.system, _, self.strategy = strategy.partition(".")
        self.topics = {f"t{number}": self.random.randint(1, 9) for number in range(self.random.randint(1, 3))}
        self.members = [f"10.0.0.{number}@{number}" for number in self.random.sample(range(10, 99), 5)]
        self.minute = 0
        self.lines: list[bytes] = []
        for topic, number in self.topics.items():
            self.resize(topic, number)
        self.event("group_settings", strategy=self.strategy)
        for member in self.members:
            self.join(member)
        self.end()

    def event(self, kind: str, **fields: Any) -> None:
        of_group = {} if kind in ("topic_queues", "clock") else {"group": "g"}
        common = {"schema_version": 1, "system": self.system, "cluster": "c", "event_time": T0 + self.minute * MINUTE}
        self.lines.append(json.dumps({"type": kind, **common, **of_group, **fields}).encode())

    def resize(self, topic: str, number: int) -> None:
        brokers = [None] if self.system == "kafka" else ["a", "b"]
        queues = [{"broker": broker, "queue_id": each} for broker in brokers for each in range(number)]
        self.event("topic_queues", topic=topic, queues=queues)

    def subscriptions(self) -> list[str]:
        return sorted(self.topics)

    def join(self, member: str) -> None:
        more = {"strategies": [self.strategy]} if self.system == "kafka" else {}
        self.event(
            "member_joined", member_id=member, host=member, subscriptions=self.subscriptions(),
            session_timeout_ms=86_400_000, **more,
        )  # fmt: skip

    def leave(self, member: str) -> None:
        self.event("member_left", member_id=member, reason="shutdown")

    def end(self) -> None:
        self.minute += 1
        self.event("clock")

    def run(self) -> CoreRun:
        return run_of(self.lines)


def owners_of_run(run: CoreRun) -> Owners:
    spans = [row for row in GivenTables.of(run).rows("assignments") if row["valid_to"] is None]
    held: dict[Any, list[str]] = {}
    for row in spans:
        held.setdefault((row["topic"], row["broker"], row["queue_id"]), []).append(row["member_id"])
    return {queue: tuple(sorted(members)) for queue, members in held.items()}


def found_in(run: CoreRun) -> tuple[Any, FoundGroup]:
    tables: Any = GivenTables.of(run)
    return tables, found_group(tables, "g", None, None, CONFIG.vote_tie_order)


def foreseen(run: CoreRun, wish: Wish) -> Answer:
    tables, found = found_in(run)
    return answer(tables, found, wish, CONFIG, None)


def moved_by(run: CoreRun, before: int) -> int:
    return sum(row["queues_moved"] for row in run.rows()[before:])


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_foreseen_change_is_what_the_core_decides(strategy: str, seed: int) -> None:
    history = History(strategy, seed)
    run = history.run()
    gone = history.random.sample(history.members, history.random.randint(0, 2))
    grown = {topic: number + history.random.randint(0, 3) for topic, number in history.topics.items()}
    added = history.random.randint(0 if gone else 1, 2)
    place = 0 if "hash" in strategy.lower() else "last"
    given = foreseen(run, Wish(add=added, remove=gone, queues=grown))
    for topic, number in grown.items():
        history.resize(topic, number)
    for member in gone:
        history.leave(member)
    for number in range(1, added + 1):
        history.join(new_id(place, number))
    history.end()
    history.end()
    after = history.run()
    assert given.prediction.after.owners == owners_of_run(after)
    before = len(run.rebalances)
    assert given.after.balance.spread == after.rows()[-1]["spread"]
    assert sum(r.generations for r in given.prediction.rebalances) >= len(after.rebalances) - before
