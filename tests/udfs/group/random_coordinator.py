"""A coordinator of one consumer group with random members: it writes records as Kafka's does, each target computed from
the one before. Requests are as far apart as the caller sets; the assignor is the core's own, which is compared with
Kafka's elsewhere."""

from __future__ import annotations

import random
import string
from dataclasses import dataclass, field

from tests.udfs.group.record_script import IDS, RecordScript
from udfs.model.events import QueueInfo, QueueRef, TopicPartitions
from udfs.strategies.kafka.server_uniform import kafka_server_uniform
from udfs.strategies.problem import Participant, Problem, Topic

AWAY = -2
Partition = tuple[str, int]  # topic, number


@dataclass
class Consumer:
    """One member; a static one has an instance."""

    topics: tuple[str, ...]
    instance: str | None
    epoch: int = 0
    state: str = "stable"
    owned: set[Partition] = field(default_factory=set)
    revoking: set[Partition] = field(default_factory=set)


class RandomCoordinator:
    """Makes requests up and handles them.

    Attributes:
        at: The time of the next request. at_once: The share of requests at the time of the one before.
        most_members, subscriptions: What members there may be.
        owners: Who owned each queue after the requests of each time, as ``Script.owners`` spells it.
    """

    def __init__(self, seed: int, script: RecordScript, most_members: int = 5, at_once: float = 0.0) -> None:
        self.dice, self.script, self.most_members = random.Random(seed), script, most_members
        self.at_once = at_once
        self.at = 10
        self.members: dict[str, Consumer] = {}
        self.target: dict[str, set[Partition]] = {}
        self.owners: dict[int, dict[str, str]] = {}
        self.epoch = self.target_epoch = 0
        self.has_grown = False
        self.counts = {"t": self.dice.randrange(1, 8), "u": self.dice.randrange(1, 6)}
        for topic, count in self.counts.items():
            script.queues(0, topic, count, topic_id=IDS[topic])
        self.has_static = self.dice.random() < 0.5
        kinds: list[list[tuple[str, ...]]] = [[("t",)], [("t", "u")], [("t",), ("t", "u"), ("u",)]]
        self.subscriptions = self.dice.choice([*kinds, [("t", "u"), ("u", "nowhere")]])

    def run(self, requests: int) -> None:
        """Handle random requests, then have all members converge."""
        kinds = [self.join, self.leave, self.rejoin, self.subscribe, self.refresh, *[self.heartbeat] * 6]
        for _ in range(requests):
            request = self.dice.choice(kinds)
            if not self.members or (request == self.join and len(self.members) < self.most_members):
                self.join()
            elif request != self.join:
                request()
            self._note_owners()
            self.at += self.dice.randrange(1, 40) * (self.at_once == 0 or self.dice.random() >= self.at_once)
            if self.dice.random() < 0.03:
                self.grow()
        for _ in range(60):
            self.heartbeat()
            self._note_owners()
            self.at += 3

    # ---- requests

    def join(self) -> None:
        instance = f"i{self.dice.randrange(20)}" if self.has_static and self.dice.random() < 0.8 else None
        if instance is not None and any(consumer.instance == instance for consumer in self.members.values()):
            return
        member = self._new_id()
        self.members[member] = Consumer(self.dice.choice(self.subscriptions), instance)
        self._describe(member)
        self._bump()
        self._compute()
        self._take(member)

    def leave(self) -> None:
        member = self.dice.choice(sorted(self.members))
        consumer = self.members[member]
        if consumer.epoch == AWAY:
            return
        if consumer.instance is not None and self.dice.random() < 0.7:
            consumer.epoch, consumer.state, consumer.revoking = AWAY, "stable", set()
            self._current(member)
            return
        del self.members[member]
        self.target.pop(member, None)
        self.script.delete_member(self.at, member)
        self._bump()

    def rejoin(self) -> None:
        """Have a static member come back under another id, some with other topics."""
        away = [member for member, consumer in sorted(self.members.items()) if consumer.epoch == AWAY]
        if not away:
            return
        former, member = self.dice.choice(away), self._new_id()
        self.members[member] = consumer = self.members.pop(former)
        self.target[member] = self.target.pop(former, set())
        self.script.delete_member(self.at, former)
        consumer.epoch = 0
        self._describe(member)
        self._write_target(member)
        self._current(member)
        topics = self.dice.choice(self.subscriptions)
        if self.dice.random() < 0.3 and topics != consumer.topics:
            consumer.topics = topics
            self._describe(member)
            self._bump()
        self._compute()
        self._take(member)

    def subscribe(self) -> None:
        member = self._present()
        topics = self.dice.choice(self.subscriptions)
        if member is not None and topics != self.members[member].topics:
            self.members[member].topics = topics
            self._describe(member)
            self._bump()
            self._compute()
            self._reconcile(member)

    def refresh(self) -> None:
        """Bump the epoch though nothing has changed, as other racks of the topics do; some get their target later."""
        if self.members:
            self._bump()
            if self.dice.random() < 0.7:
                self._compute()

    def heartbeat(self) -> None:
        member = self._present()
        if member is None:
            return
        if self.has_grown:
            self.has_grown = False
            self._bump()
        self._compute()
        self._reconcile(member)

    def grow(self) -> None:
        """Add partitions, which a poll of the metadata shows at once or later."""
        topic = self.dice.choice(sorted(self.counts))
        self.counts[topic] += self.dice.randrange(1, 3)
        self.has_grown = True
        self.script.queues(self.at + self.dice.choice((0, 1, 30)), topic, self.counts[topic], topic_id=IDS[topic])

    # ---- what follows from them

    def _compute(self) -> None:
        """Publish the target of the newest epoch; only of members whose target changed."""
        if self.target_epoch >= self.epoch or not self.members:
            return
        counts = self.counts.items()
        topics = {name: Topic(name=name, queues=_queues(count), topic_id=IDS[name]) for name, count in counts}
        members = tuple(
            Participant(member_id=member, name=member, subscriptions=consumer.topics, instance_id=consumer.instance)
            for member, consumer in self.members.items()
        )
        previous = {
            member: tuple(QueueRef(*partition) for partition in sorted(self.target.get(member, ())))
            for member in self.members
        }
        found = kafka_server_uniform(Problem(group="g", members=members, topics=topics, previous=previous))
        self.target_epoch = self.epoch
        self.script.record(self.at, "target", epoch=self.epoch)
        for member in self.members:
            target = {(queue.topic, queue.queue_id) for queue in found[member]}
            if self.target.get(member) != target:
                self.target[member] = target
                self._write_target(member)

    def _reconcile(self, member: str) -> None:
        """Have a member give up what its target lacks, in one heartbeat, and take what is free, in a later one."""
        consumer, target = self.members[member], self.target.get(member, set())
        if consumer.state == "stable" and consumer.epoch == self.target_epoch:
            return
        consumer.revoking = set()
        if consumer.owned - target:
            consumer.revoking, consumer.owned, consumer.state = (
                consumer.owned - target,
                consumer.owned & target,
                "unrevoked",
            )
            self._current(member)
        else:
            self._take(member)

    def _take(self, member: str) -> None:
        consumer, target = self.members[member], self.target.get(member, set())
        held = {
            queue for name, other in self.members.items() if name != member for queue in other.owned | other.revoking
        }
        consumer.owned, consumer.epoch = target - held, self.target_epoch
        consumer.state = "stable" if consumer.owned == target else "unreleased"
        self._current(member)

    def _note_owners(self) -> None:
        held: dict[str, list[str]] = {}
        for member, consumer in self.members.items():
            for topic, number in consumer.owned | consumer.revoking:
                held.setdefault(f"{topic}/{number}", []).append(member)
        self.owners[self.at] = {queue: "+".join(sorted(members)) for queue, members in sorted(held.items())}

    # ---- records

    def _bump(self) -> None:
        self.epoch += 1
        self.script.epoch(self.at, self.epoch)

    def _describe(self, member: str) -> None:
        consumer = self.members[member]
        static = {} if consumer.instance is None else {"instance_id": consumer.instance}
        self.script.member(self.at, member, consumer.topics, **static)

    def _write_target(self, member: str) -> None:
        partitions = _by_topic(self.target[member])
        self.script.record(self.at, "member_target", member_id=member, partitions=partitions)

    def _current(self, member: str) -> None:
        consumer = self.members[member]
        held = {"partitions": _by_topic(consumer.owned), "revoking": _by_topic(consumer.revoking)}
        self.script.record(
            self.at, "member_current", member_id=member, epoch=consumer.epoch, state=consumer.state, **held
        )

    def _present(self) -> str | None:
        present = [member for member, consumer in sorted(self.members.items()) if consumer.epoch != AWAY]
        return self.dice.choice(present) if present else None

    def _new_id(self) -> str:
        return "".join(self.dice.choice(string.ascii_letters + string.digits) for _ in range(22))


def _queues(count: int) -> tuple[QueueInfo, ...]:
    return tuple(QueueInfo(number) for number in range(count))


def _by_topic(partitions: set[Partition]) -> tuple[TopicPartitions, ...]:
    topics = sorted({topic for topic, _ in partitions}, key=lambda topic: IDS[topic])
    return tuple(
        TopicPartitions(IDS[name], tuple(sorted(n for topic, n in partitions if topic == name))) for name in topics
    )
