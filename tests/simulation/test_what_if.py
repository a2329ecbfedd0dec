"""What is foreseen of a change is what the core decides once the change happens, for every strategy of every system."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest

from streaming.settings.defaults import default_core_config
from streaming.views.foresight import Foresight, answer
from streaming.views.known_groups import FoundGroup, found_group
from streaming.views.wished_changes import Wish
from tests.simulation.core_run import CoreRun, run_of
from tests.simulation.given_tables import GivenTables
from udfs.group.state.group import Owners
from udfs.group.what_if.planned_change import new_id
from udfs.group.what_if.prediction import assumed_place
from udfs.model.queues import numbered
from udfs.strategies.problem import Participant, Problem, Topic
from udfs.strategies.registry import strategy

SEEDS = 3
T0 = 1_772_323_200_000  # 2026-03-01
CONFIG = default_core_config()
MINUTE = 60_000
TOPIC_ID = "dHR0dHR0dHR0dHR0dHR0dA"
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
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky", "server.range", "server.uniform")


class History:
    """The events of one group, minute by minute."""

    def __init__(self, strategy: str, seed: int) -> None:
        self.random = random.Random(f"{strategy}/{seed}")
        self.system, _, self.strategy = strategy.partition(".")
        self.topics = {f"t{number}": self.random.randint(1, 9) for number in range(self.random.randint(1, 3))}
        self.members = [f"10.0.0.{number}@{number}" for number in self.random.sample(range(10, 99), 5)]
        self.is_mixed = seed % 3 == 2
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

    def join(self, member: str, topics: Sequence[str] = ()) -> None:
        more = {"strategies": [self.strategy]} if self.system == "kafka" else {}
        self.event(
            "member_joined", member_id=member, host=member, subscriptions=[*topics] or self.some_topics(),
            session_timeout_ms=86_400_000, **more,
        )  # fmt: skip

    def some_topics(self) -> list[str]:
        """Return what a member subscribes to: in every third group of a system that allows it, not everything."""
        everything = sorted(self.topics)
        if self.system == "rocketmq" or not self.is_mixed:
            return everything
        return self.random.sample(everything, self.random.randint(1, len(everything)))

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


def foreseen(run: CoreRun, wish: Wish) -> Foresight:
    tables, found = found_in(run)
    return answer(tables, found, wish, CONFIG, None)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_foreseen_change_is_what_the_core_decides(strategy: str, seed: int) -> None:
    history = History(strategy, seed)
    run = history.run()
    gone = history.random.sample(history.members, history.random.randint(0, 2))
    subscribed = found_in(run)[1].known.topics
    grown = {topic: history.topics[topic] + history.random.randint(0, 3) for topic in sorted(subscribed)}
    added = history.random.randint(0 if gone else 1, 2)
    place = assumed_place(strategy)
    given = foreseen(run, Wish(add=added, remove=gone, queues=grown))
    joining = {member.member_id: member.subscriptions or () for member in given.prediction.after.members}
    for topic, number in grown.items():
        history.resize(topic, number)
    for member in gone:
        history.leave(member)
    for number in range(1, added + 1):
        history.join(new_id(place, number), joining[new_id(place, number)])
    history.end()
    history.end()
    after = history.run()
    if strategy == "kafka.cooperative-sticky":
        # The core awaits the second generation, which members begin once they have given up the queues on the move.
        assert owners_of_run(after) == first_step(given)
    else:
        assert owners_of_run(after) == given.prediction.after.owners
        assert after.rows()[-1]["spread"] == given.after.balance.spread


def first_step(given: Foresight) -> Owners:
    """Return the owners of the first cooperative generation: nobody yet where a member that stays gives a queue up."""
    staying, before = set(given.prediction.after.member_ids), given.prediction.before.owners
    return {
        queue: holders
        for queue, holders in given.prediction.after.owners.items()
        if not staying.intersection(before.get(queue, ())) or before[queue] == holders
    }


class Published:
    """A group whose coordinator publishes what was foreseen; the core audits it as any other assignment."""

    def __init__(self, assignor: str, seed: int) -> None:
        self.assignor = assignor
        self.random = random.Random(f"{assignor}/{seed}")
        self.queues = self.random.randint(3, 20)
        self.members: dict[str, list[int]] = {}
        self.minute = self.epoch = 0
        self.lines: list[bytes] = []
        self.event("topic_queues", topic="t", queue_count=self.queues, topic_id=TOPIC_ID)

    def event(self, kind: str, **fields: Any) -> None:
        of_group = {} if kind in ("topic_queues", "clock") else {"group": "g"}
        common = {"schema_version": 1, "system": "kafka", "cluster": "c", "event_time": T0 + self.minute * MINUTE}
        self.lines.append(json.dumps({"type": kind, **common, **of_group, **fields}).encode())

    def first(self) -> dict[str, list[int]]:
        """Return the first assignment of a few members."""
        ids = sorted(f"m{number}" for number in self.random.sample(range(10, 99), self.random.randint(2, 6)))
        members = tuple(Participant(member_id=each, name=each, subscriptions=("t",)) for each in ids)
        topics = {"t": Topic(name="t", queues=numbered(self.queues))}
        held = strategy(f"kafka.{self.assignor}", "kafka")(Problem(group="g", members=members, topics=topics))
        return {member: [queue.queue_id for queue in queues] for member, queues in held.items()}

    def publish(self, held: dict[str, list[int]]) -> None:
        """Have the group take this assignment over; who is not in it has left, who is new in it has joined."""
        self.minute += 1
        self.epoch += 1
        gone, joined = self.members.keys() - held.keys(), held.keys() - self.members.keys()
        self.members = held
        if self.assignor.startswith("server."):
            self._records(sorted(gone), sorted(joined))
        else:
            self._snapshot()
        self.minute += 1
        self.event("clock")

    def take_over(self, given: Foresight) -> None:
        """Publish what was foreseen, in as many generations."""
        (rebalance,) = given.prediction.rebalances
        if self.assignor == "cooperative-sticky" and rebalance.generations > 1:
            self.publish(numbers_of(given, first_step(given)))
        self.publish(numbers_of(given))

    def _snapshot(self) -> None:
        described = {"subscriptions": ["t"], "strategies": [self.assignor]}
        assignments = {
            member: [{"topic": "t", "queue_id": number} for number in numbers]
            for member, numbers in self.members.items()
        }
        self.event(
            "group_snapshot", generation=self.epoch, state="Stable", strategy=self.assignor, assignments=assignments,
            members=[{"member_id": member, **described} for member in self.members],
        )  # fmt: skip

    def _records(self, gone: Sequence[str], joined: Sequence[str]) -> None:
        def record(kind: str, **fields: Any) -> None:
            self.event("group_record", protocol="consumer", record=kind, **fields)

        for member in gone:
            for kind in ("member_current", "member_target", "member"):
                record(kind, member_id=member, deleted=True)
        for member in joined:
            description = {"subscriptions": ["t"], "strategies": [self.assignor.removeprefix("server.")]}
            record("member", member_id=member, member={"member_id": member, **description})
        record("group", epoch=self.epoch)
        record("target", epoch=self.epoch)
        for member, numbers in self.members.items():
            partitions = [{"topic": TOPIC_ID, "partitions": numbers}] if numbers else []
            record("member_target", member_id=member, partitions=partitions)
            record("member_current", member_id=member, epoch=self.epoch, state="stable", partitions=partitions)

    def run(self) -> CoreRun:
        return run_of(self.lines)


def numbers_of(given: Foresight, owners: Owners | None = None) -> dict[str, list[int]]:
    held: dict[str, list[int]] = {member_id: [] for member_id in given.prediction.after.member_ids}
    for (_, _, queue_id), holders in (given.prediction.after.owners if owners is None else owners).items():
        held[holders[0]].append(queue_id)
    return {member: sorted(numbers) for member, numbers in held.items()}


@pytest.mark.parametrize("assignor", ASSIGNORS)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_coordinator_that_does_what_was_foreseen_agrees_with_the_core(assignor: str, seed: int) -> None:
    group = Published(assignor, seed)
    group.publish(group.first())
    # In the newer protocols each member that joins makes an epoch of its own.
    added = 1 if assignor.startswith("server.") else 2
    group.take_over(foreseen(group.run(), Wish(add=added)))
    group.take_over(foreseen(group.run(), Wish(remove=[group.random.choice(sorted(group.members))])))
    tables: Any = GivenTables.of(group.run())
    verdicts = [row["verdict"] for row in tables.rows("audits")]
    assert verdicts == ["agrees"] * group.epoch
