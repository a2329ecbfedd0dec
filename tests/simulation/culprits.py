"""Groups of simulated fleets with one planted culprit each: does the finding name it?

Around the culprit the others restart now and then, topics grow, and a fleet of other groups lives in the same clusters.
`python -m tests.simulation.culprits [CASES]` prints, for each kind of mistake, in how many cases the
culprit that the finding names is the planted one; the target is 99 %.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from streaming.simulator import Fleet
from streaming.simulator.serializer import line
from tests.core_config import core_config
from tests.simulation.core_run import CoreRun, rows_of

START = 1_767_225_600_000
MINUTE = 60_000
BATCH_MS = 20_000
RULES = core_config(shards=2, flapping_after_ms=5 * MINUTE)
Event = dict[str, Any]
Found = list[dict[str, Any]]


class Scene:
    """One group with a planted culprit, and the events of its life."""

    def __init__(self, seed: int, system: str, cluster: str) -> None:
        self.chance = random.Random(seed)
        self.system = system
        self.group = f"planted-{seed}"
        self.cluster = cluster
        self.events: list[Event] = []
        self.size = self.chance.randrange(3, 9)
        self.topics = {f"planted-{seed}-t{number}": self.chance.randrange(4, 17) for number in range(2)}
        self.culprit = self.chance.randrange(self.size)
        self.serial = 0
        for topic in self.topics:
            self.grow(START - MINUTE, topic)

    def emit(self, at: int, kind: str, **fields: Any) -> None:
        common = {"schema_version": 1, "event_time": at, "system": self.system, "cluster": self.cluster, "type": kind}
        self.events.append(common | fields)

    def grow(self, at: int, topic: str) -> None:
        broker = None if self.system == "kafka" else "broker-a"
        queues = [{"queue_id": number} | ({"broker": broker} if broker else {}) for number in range(self.topics[topic])]
        self.emit(at, "topic_queues", topic=topic, queues=queues)

    def member(self, number: int) -> Event:
        """Return a member of a client in a new session: with an id of its own, as its system makes it."""
        self.serial += 1
        host = f"10.7.{number}.{number + 2}"
        fields: Event = {"group": self.group, "subscriptions": sorted(self.topics)}
        if self.system == "kafka":
            client_id = f"worker-{number % 3}"  # the same on several hosts
            return fields | {"member_id": f"{client_id}-{self.serial:08x}", "client_id": client_id, "host": f"/{host}"}
        pid = 300 + self.serial
        return fields | {"member_id": f"{host}@{pid}#{10**12 + self.serial}", "host": f"{host}:{30_000 + self.serial}"}

    def client(self, number: int) -> str:
        """Return the client of a member, by ruling 34."""
        host = f"10.7.{number}.{number + 2}"
        return f"worker-{number % 3}@{host}" if self.system == "kafka" else host

    def live(self, restarts: int, every_ms: int, *, kills: bool = False, mean: int = 2) -> dict[int, Event]:
        """Let all join, the culprit restart this often, the others now and then; return the members at the end."""
        timeout = 6_000
        present = {number: self.member(number) for number in range(self.size)}
        for member in present.values():
            self.emit(START, "member_joined", session_timeout_ms=10**9, **member)
        at = START + 20 * MINUTE
        times = [(at + every_ms * number, self.culprit) for number in range(restarts)]
        others = [number for number in range(self.size) if number != self.culprit]
        span = restarts * every_ms
        times += [
            (at + self.chance.randrange(span), member_id)
            for member_id in others
            for _ in range(self.chance.randrange(mean + 1))
        ]
        for time, number in sorted(times):
            if kills and number == self.culprit:
                # It sends nothing more: its session expires before it is back.
                self.emit(time - timeout - 1, "heartbeat", session_timeout_ms=timeout, **present[number])
            else:
                self.emit(time, "member_left", group=self.group, member_id=present[number]["member_id"])
            present[number] = self.member(number)
            self.emit(time + 700, "member_joined", session_timeout_ms=10**9, **present[number])
        if self.chance.random() < 0.5:
            topic = next(iter(self.topics))
            self.topics[topic] += 2
            self.grow(at + span // 2, topic)
        self.emit(at + span + 4_000, "clock")
        return present


def _findings(found: Found, kind: str) -> Found:
    return [row for row in found if row["kind"] == kind]


def crash_loop(seed: int) -> tuple[Scene, Callable[[Found], bool]]:
    scene = Scene(seed, "kafka", "kafka-main")
    scene.live(scene.chance.randrange(8, 15), 20_000, kills=bool(seed % 2))

    def is_named(found: Found) -> bool:
        rows = _findings(found, "flapping")
        return bool(rows) and all(row["clients"][0]["client"] == scene.client(scene.culprit) for row in rows)

    return scene, is_named


def crash_loop_of_rocketmq(seed: int) -> tuple[Scene, Callable[[Found], bool]]:
    scene = Scene(seed, "rocketmq", "rocketmq-orders")
    scene.live(scene.chance.randrange(8, 15), 25_000)

    def is_named(found: Found) -> bool:
        rows = _findings(found, "flapping")
        return bool(rows) and all(row["clients"][0]["client"] == scene.client(scene.culprit) for row in rows)

    return scene, is_named


def generations(seed: int) -> tuple[Scene, Callable[[Found], bool]]:
    """A crash loop in a group whose coordinator reports its generations."""
    scene = Scene(seed, "kafka", "kafka-main")
    present = {number: scene.member(number) for number in range(scene.size)}
    others = [number for number in range(scene.size) if number != scene.culprit]
    at, generation = START, 0

    def snapshot() -> None:
        members = [{key: value for key, value in member.items() if key != "group"} for member in present.values()]
        scene.emit(at, "group_snapshot", group=scene.group, generation=generation, strategy="range", members=members)

    for number in range(scene.chance.randrange(9, 15)):
        generation += 1
        snapshot()
        at = START + 20 * MINUTE + 24_000 * number
        gone = [scene.culprit, *(member_id for member_id in others if scene.chance.random() < 0.15)]
        kept = {member_id: present.pop(member_id) for member_id in gone if member_id in present}
        generation += 1
        snapshot()
        at += 9_000
        present |= {member_id: scene.member(member_id) for member_id in kept}
    generation += 1
    snapshot()
    scene.emit(at + 4_000, "clock")

    def is_named(found: Found) -> bool:
        rows = _findings(found, "flapping")
        return bool(rows) and all(row["clients"][0]["client"] == scene.client(scene.culprit) for row in rows)

    return scene, is_named


def other_subscription(seed: int) -> tuple[Scene, Callable[[Found], bool]]:
    scene = Scene(seed, "rocketmq", "rocketmq-orders")
    present = scene.live(2, 60_000, mean=1)
    culprit = present[scene.culprit] | {"subscriptions": sorted(scene.topics)[:1]}
    at = scene.events[-1]["event_time"] + 5_000
    scene.emit(at, "heartbeat", **culprit)
    scene.emit(at + 4_000, "clock")

    def is_named(found: Found) -> bool:
        member_id = culprit["member_id"]
        differ, unread = _findings(found, "subscriptions_differ"), _findings(found, "unassigned_queues")
        names = {queue["member_id"] for row in unread for queue in row["queues"]}
        is_story = all(row["caused_by"] == differ[0]["finding_id"] for row in unread)
        return differ[0]["subscriptions"][0]["members"] == [member_id] and names <= {member_id} and is_story

    return scene, is_named


def other_strategy(seed: int) -> tuple[Scene, Callable[[Found], bool]]:
    scene = Scene(seed, "rocketmq", "rocketmq-orders")
    present = scene.live(2, 60_000, mean=1)
    at = scene.events[-1]["event_time"] + 5_000
    for number, member in present.items():
        strategy = "AVG_BY_CIRCLE" if number == scene.culprit else "AVG"
        scene.emit(at, "heartbeat", strategies=[strategy], **member)
    scene.emit(at + 4_000, "clock")

    def is_named(found: Found) -> bool:
        row = _findings(found, "strategies_differ")[-1]
        return row["members"][0]["member_id"] == present[scene.culprit]["member_id"]

    return scene, is_named


def client_id_twice(seed: int) -> tuple[Scene, Callable[[Found], bool]]:
    scene = Scene(seed, "rocketmq", "rocketmq-orders")
    present = scene.live(2, 60_000, mean=1)
    at = scene.events[-1]["event_time"] + 5_000
    culprit = present[scene.culprit]
    members = [{key: value for key, value in member.items() if key != "group"} for member in present.values()]
    members.append({**members[0], "member_id": culprit["member_id"], "host": "10.9.9.9:1"})
    scene.emit(at, "group_snapshot", group=scene.group, members=members)
    scene.emit(at + 4_000, "clock")

    def is_named(found: Found) -> bool:
        row = _findings(found, "duplicate_ids")[-1]
        return {member["member_id"].partition("#2")[0] for member in row["members"]} == {culprit["member_id"]}

    return scene, is_named


def other_queues(seed: int) -> tuple[Scene, Callable[[Found], bool]]:
    """A coordinator's assignment in which one member has what another should have."""
    scene = Scene(seed, "kafka", "kafka-main")
    present = {number: scene.member(number) for number in range(scene.size)}
    members = [{key: value for key, value in member.items() if key != "group"} for member in present.values()]
    ids = sorted(member["member_id"] for member in members)
    held: dict[str, list[Event]] = {member_id: [] for member_id in ids}
    for topic, count in scene.topics.items():
        each, more = divmod(count, len(ids))
        first = 0
        for place, member_id in enumerate(ids):
            last = first + each + (place < more)
            held[member_id] += [{"topic": topic, "queue_id": number} for number in range(first, last)]
            first = last
    culprit = scene.chance.choice([member_id for member_id in ids if held[member_id]])
    thief = scene.chance.choice([member_id for member_id in ids if member_id != culprit])
    held[thief].append(held[culprit].pop())
    assigned = {"members": members, "assignments": held, "strategy": "range", "generation": 1}
    scene.emit(START, "group_snapshot", group=scene.group, **assigned)
    scene.emit(START + 4_000, "clock")

    def is_named(found: Found) -> bool:
        (queue,) = _findings(found, "expected_differs")[-1]["queues"]
        return bool(queue["member_id"] == culprit and queue["owners"] == [thief])

    return scene, is_named


KINDS: dict[str, Callable[[int], tuple[Scene, Callable[[Found], bool]]]] = {
    "crash loop (Kafka, own heartbeats)": crash_loop,
    "crash loop (Kafka, generations)": generations,
    "crash loop (RocketMQ)": crash_loop_of_rocketmq,
    "another subscription": other_subscription,
    "another strategy": other_strategy,
    "one client id twice": client_id_twice,
    "another one's queue": other_queues,
}


def played(scenes: Iterable[Scene], seed: int) -> Found:
    """Return the findings of planted groups that live in the clusters of one fleet, through packets and shards."""
    fleet = Fleet(seed, groups=6, members=30)
    lines = [
        (delivery.deliver_at, line(delivery))
        for delivery in [*fleet.deliveries_until(fleet.start_ms + 2 * MINUTE), *fleet.finish()]
    ]
    lines += [(event["event_time"] + 50, json.dumps(event).encode()) for scene in scenes for event in scene.events]
    run = CoreRun(RULES)
    batch: list[bytes] = []
    end, at = 0, 0
    for at, text in sorted(lines, key=lambda timed: timed[0]):
        if batch and at >= end:
            run.batch(end + 1_000, batch)
            batch = []
        if not batch:
            end = at - at % BATCH_MS + BATCH_MS
        batch.append(text)
    run.batch(at + 1_000, batch)
    run.flush(at + 2_000)
    return rows_of(run.changes)["findings"]


def measured(cases: int) -> dict[str, tuple[int, int]]:
    """Return for each kind of mistake in how many cases the culprit is named, and the number of cases."""
    right: Counter[str] = Counter()
    for seed in range(cases):
        scenes = {kind: plant(1_000 * seed + place) for place, (kind, plant) in enumerate(KINDS.items())}
        findings = played([scene for scene, _ in scenes.values()], seed)
        for kind, (scene, is_named) in scenes.items():
            found = [row for row in findings if row["group_id"] == scene.group]
            right[kind] += bool(found) and _holds(is_named, found)
    return {kind: (right[kind], cases) for kind in KINDS}


def _holds(is_named: Callable[[Found], bool], found: Found) -> bool:
    try:
        return is_named(found)
    except (IndexError, ValueError, TypeError):
        return False  # there is no such finding, or it names nothing


def main() -> None:
    """Print the shares."""
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    found = measured(cases)
    right, number = (sum(column) for column in zip(*found.values(), strict=True))
    lines = [f"{kind:40} {of:5} of {all_of:5}  {100 * of / all_of:5.1f} %" for kind, (of, all_of) in found.items()]
    sys.stdout.write("\n".join([*lines, f"{'all':40} {right:5} of {number:5}  {100 * right / number:5.1f} %", ""]))


if __name__ == "__main__":
    main()
