"""Random churn on Kafka: members of many kinds come, go, hang and restart, topics grow, brokers of a cluster die."""

from __future__ import annotations

import random
import subprocess
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from tests.kit.brokers import Broker
from tests.kit.kafka_cluster import KafkaCluster
from tests.kit.light_members import start_light_member
from tests.kit.members import Member, start_member
from tests.kit.topics import add_partitions, create_topic

_SESSION_MS = 6_000
_CONSUMER = {"group.protocol": "consumer"}
_CLASSIC = {"session.timeout.ms": str(_SESSION_MS), "heartbeat.interval.ms": "500"}
_QUEUES, _MOST_QUEUES, _MOST_MEMBERS = 4, 24, 3
_BETWEEN_DEEDS_S, _BETWEEN_DEATHS_S = (0.5, 6.0), (4.0, 12.0)
_AWAY_S, _HANGS_S = (0.5, 8.0), (7.0, 10.0)
_STOP_S, _SHARED_S, _STUCK_S = 30.0, 240.0, 20.0
_POLL_S = 0.2
_SEND_S = 0.3
_DEEDS = {"joins": 5, "leaves": 2, "is killed": 2, "hangs": 1, "restarts": 3, "grows": 0.4}


class Kind(NamedTuple):
    """One kind of group, by its members.

    Attributes:
        name: Of the group and of its topic.
        settings: Of librdkafka; of Java's client where `is_java`.
    """

    name: str
    settings: dict[str, str]
    is_static: bool = False
    is_java: bool = False


KINDS = (
    Kind("range", {**_CLASSIC, "partition.assignment.strategy": "range"}),
    Kind("roundrobin", {**_CLASSIC, "partition.assignment.strategy": "roundrobin"}),
    Kind("cooperative", {**_CLASSIC, "partition.assignment.strategy": "cooperative-sticky"}),
    Kind("static", {**_CLASSIC, "partition.assignment.strategy": "range"}, is_static=True),
    Kind("uniform", _CONSUMER),
    Kind("server-range", {**_CONSUMER, "group.remote.assignor": "range"}),
    Kind("uniform-static", _CONSUMER, is_static=True),
    Kind("java-sticky", {"partition.assignment.strategy": "sticky"}, is_java=True),
    Kind("java-uniform", _CONSUMER, is_static=True, is_java=True),
)


def cheap_kinds(prefix: str) -> tuple[Kind, ...]:
    """Return those without a JVM, under names of their own."""
    return tuple(kind._replace(name=f"{prefix}-{kind.name}") for kind in KINDS if not kind.is_java)


@dataclass
class Actor:
    """One member's process.

    Attributes:
        hangs_until: By the monotonic clock; None: it does not hang.
    """

    name: str
    instance: str | None
    process: Member
    hangs_until: float | None = None


@dataclass
class Churn:
    """One run.

    Args:
        cluster: One broker alone is left alive: others may use it.

    Attributes:
        deeds: How often what was done. ends: How the process of each client id ended or hung, in order.
    """

    cluster: Broker
    seed: int
    length_s: float
    kinds: Sequence[Kind] = KINDS
    deeds: Counter[str] = field(default_factory=Counter)
    ends: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    actors: dict[str, list[Actor]] = field(init=False)
    _nodes: Sequence[Broker] = field(init=False)
    _over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.actors = {kind.name: [] for kind in self.kinds}
        self._nodes = self.cluster.nodes if isinstance(self.cluster, KafkaCluster) else ()

    def prepare(self) -> None:
        """Create the topics."""
        for kind in self.kinds:
            create_topic(self.cluster, kind.name, _QUEUES, replicas=max(1, len(self._nodes)))

    def run(self) -> None:
        """Start, stop and kill at random until the run ends; at the end all brokers are up and no member hangs."""
        work: list[Callable[[], None]] = [lambda kind=kind: self._live(kind) for kind in self.kinds]  # type: ignore[misc]
        with ThreadPoolExecutor(len(work) + 2) as pool:
            playing = [
                pool.submit(part) for part in [*work, self._send, *([self._kill_brokers] if self._nodes else [])]
            ]
            try:
                ends = time.monotonic() + self.length_s
                while time.monotonic() < ends and not any(future.done() for future in playing):
                    time.sleep(_POLL_S)
            finally:
                self._over.set()
            for future in playing:
                future.result()

    def held(self) -> dict[str, dict[str, list[tuple[str, int]]]]:
        """Wait until all members of each group share its topic; return what each holds, by group and name.

        A static member's name is its instance id: the records keep the client id of the one whose place it takes.
        """
        began = time.monotonic()
        while True:
            found = {}
            counts = self._queue_counts()
            for name, actors in self.actors.items():
                self._bury(actors)
                found[name] = {actor.instance or actor.name: sorted(actor.process.owned) for actor in actors}
            if all(_is_shared(name, members, counts[name]) for name, members in found.items() if members):
                return found
            waited = time.monotonic() - began
            assert waited < _SHARED_S, f"not shared: {counts} {found}"
            if waited > _STUCK_S:
                self._give_up_idle()
            time.sleep(1.0)

    def _give_up_idle(self) -> None:
        """Kill members that own nothing and do not end: librdkafka may wait for an instance id for ever."""
        for actors in self.actors.values():
            for actor in [idle for idle in actors if not idle.process.owned]:
                self.deeds["waited for ever"] += 1
                self.ends[actor.name].append("is killed")
                actor.process.kill()
                actors.remove(actor)

    def close(self) -> None:
        """End whatever still runs."""
        self._over.set()
        for actors in self.actors.values():
            for actor in actors:
                actor.process.kill()

    # ---- members

    def _live(self, kind: Kind) -> None:
        chance = random.Random(f"{self.seed}:{kind.name}")
        actors = self.actors[kind.name]
        started = 0
        while not self._over.wait(chance.uniform(*_BETWEEN_DEEDS_S) * (2 if kind.is_java else 1)):
            self._thaw(actors, time.monotonic())
            self._bury(actors)
            (deed,) = chance.choices(list(_DEEDS), list(_DEEDS.values()))
            awake = [actor for actor in actors if actor.hangs_until is None]
            if deed == "joins" or not awake:
                if len(actors) < _MOST_MEMBERS:
                    started += 1
                    free = sorted({"i0", "i1", "i2"} - {actor.instance for actor in actors})
                    self._start(kind, f"{kind.name}-{started}", chance.choice(free) if kind.is_static else None)
            elif deed == "grows":
                self._grow(kind.name)
            else:
                self._happen(kind, deed, chance.choice(awake), chance)
        self._thaw(actors, None)

    def _happen(self, kind: Kind, deed: str, actor: Actor, chance: random.Random) -> None:
        if deed == "restarts" and actor.instance is None:
            deed = "leaves"
        self.deeds[deed] += 1
        self.ends[actor.name].append(deed)
        if deed == "hangs":
            actor.process.freeze()
            actor.hangs_until = time.monotonic() + chance.uniform(*_HANGS_S)
            return
        self.actors[kind.name].remove(actor)
        if deed == "leaves" or (deed == "restarts" and chance.random() < 0.5):
            try:
                actor.process.stop(_STOP_S)
            except (OSError, subprocess.TimeoutExpired):
                self.ends[actor.name][-1] = "is killed"
        actor.process.kill()
        if deed == "restarts":
            self._start(kind, actor.name, actor.instance)

    def _start(self, kind: Kind, name: str, instance: str | None) -> None:
        self.deeds["joins"] += 1
        if kind.is_java:
            settings = dict(kind.settings)
            strategy = settings.pop("partition.assignment.strategy", "range")
            process = start_member(
                self.cluster,
                kind.name,
                [kind.name],
                client_id=name,
                instance_id=instance,
                strategies=(strategy,),
                session_timeout_ms=_SESSION_MS,
                settings=settings,
            )
        else:
            named = {"client.id": name, **({"group.instance.id": instance} if instance else {})}
            process = start_light_member(self.cluster, kind.name, [kind.name], {**kind.settings, **named})
        self.actors[kind.name].append(Actor(name, instance, process))

    def _thaw(self, actors: list[Actor], now: float | None) -> None:
        for actor in actors:
            if actor.hangs_until is not None and (now is None or actor.hangs_until <= now):
                actor.process.thaw()
                actor.hangs_until = None

    def _bury(self, actors: list[Actor]) -> None:
        """Forget the members that ended by themselves, because another member took their instance id."""
        for actor in [ended for ended in actors if ended.process.has_ended]:
            self.deeds["ended by itself"] += 1
            self.ends[actor.name].append("ended by itself")
            actor.process.kill()
            actors.remove(actor)

    # ---- what is around them

    def _send(self) -> None:
        """Send records, so that members have something to commit."""
        producer = Producer({**self.cluster.client_settings(), "log_level": 0})
        while not self._over.wait(_SEND_S):
            for kind in self.kinds:
                producer.produce(kind.name, b"x")
            producer.poll(0)
        producer.flush(_STOP_S)

    def _grow(self, topic: str) -> None:
        total = self._queue_counts()[topic] + 1
        if total > _MOST_QUEUES:
            return
        try:
            add_partitions(self.cluster, topic, total)
        except KafkaException:
            return  # a broker was down meanwhile, so the topic may have grown or not
        self.deeds["grows"] += 1

    def _queue_counts(self) -> dict[str, int]:
        client = AdminClient({**self.cluster.client_settings()})
        while True:
            try:
                topics = client.list_topics(timeout=_STOP_S).topics
                return {kind.name: len(topics[kind.name].partitions) for kind in self.kinds}
            except KafkaException:
                time.sleep(_POLL_S)

    def _kill_brokers(self) -> None:
        """Take one broker away after the other: first each of them once."""
        chance = random.Random(f"{self.seed}:brokers")
        waiting: list[int] = []
        while not self._over.wait(chance.uniform(*_BETWEEN_DEATHS_S)):
            waiting = waiting or chance.sample(range(len(self._nodes)), len(self._nodes))
            node = self._nodes[waiting.pop()]
            (what,) = chance.choices(["is killed", "stops", "hangs"], [6, 2, 2])
            self.deeds[f"broker {what}"] += 1
            away = chance.uniform(*_AWAY_S)
            if what == "hangs":
                node.server.freeze()
                time.sleep(away)
                node.server.thaw()
                continue
            (node.kill if what == "is killed" else node.stop)()
            time.sleep(away)
            node.start()


def _is_shared(topic: str, members: Mapping[str, Sequence[tuple[str, int]]], queues: int) -> bool:
    """Return whether the members hold each queue once, and none is without: it would be about to join again."""
    held = sorted(queue for each in members.values() for queue in each)
    return held == [(topic, number) for number in range(queues)] and all(members.values())
