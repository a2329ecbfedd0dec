"""Random histories of groups of Kafka's new protocol: what a coordinator records of requests, and polls of topics.

One seed is one history. Requests come at equal times, a millisecond apart, or later; a request is one batch of records.
"""

from __future__ import annotations

import random
from typing import Any

from tests.model.disturbances import History
from tests.model.new_protocol_coordinator import (
    AWAY,
    ClusterTopic,
    CoordinatedMember,
    NewProtocolCoordinator,
    new_topic_id,
)
from tests.model.times import LATENESS_MS, T0, Event

FEATURES = (
    "ties",
    "statics",
    "growth",
    "late_growth",
    "subscriptions",
    "patterns",
    "assignors",
    "redescribes",
    "bare_epochs",
    "deletes",
    "slow",
    "delayed_targets",
    "old_brokers",
    "several_leave",
    "gaps",
    "disorder",
    "repeats",
    "no_offsets",
    "logs",
)


def new_protocol_history(seed: int) -> History:
    """Return the history of a seed."""
    chance = random.Random(seed)
    # One more feature changes no history that does not have it.
    features = {name for name in FEATURES if random.Random(f"{seed} {name}").random() < 0.35}
    # Without offsets a moment's records have no order, and which id took whose place in it would be open.
    if "no_offsets" in features:
        features -= {"ties", "statics"}
    made = History(seed, frozenset(features))
    _Maker(chance, made, "c0").make()
    made.events.sort(key=lambda timed: timed[1]["event_time"])
    return made


class _Maker:
    """Makes the events of one cluster."""

    def __init__(self, chance: random.Random, made: History, cluster: str) -> None:
        self.chance, self.made, self.features, self.cluster = chance, made, made.features, cluster
        self.at = self.offset = self.ids = self.starts = 0
        names = ["t0", "t1", "u0"][: chance.choice((1, 2, 3))]
        self.topics = {name: ClusterTopic(name, new_topic_id(chance), chance.choice((1, 2, 3, 4, 6))) for name in names}
        release = chance.choice(("3.9", "4.0.0")) if "old_brokers" in self.features else "4.1.0"
        default = chance.choice(("uniform", "uniform", "range"))
        self.assignor = chance.choice((None, "uniform", "range")) if default == "uniform" else "range"
        self.clients = [f"c{number}" for number in range(chance.choice((2, 3, 4)))]
        self.statics = {client for client in self.clients if "statics" in self.features and chance.random() < 0.6}
        self.groups = [f"g{number}" for number in range(chance.choice((1, 1, 2)))]
        self.coordinators = {
            group: NewProtocolCoordinator(self.topics, self.writer(group), release, default, chance)
            for group in self.groups
        }
        for coordinator in self.coordinators.values():
            coordinator.delays_targets = "delayed_targets" in self.features
            coordinator.has_gaps = "gaps" in self.features
        self.polled: dict[str, int] = {}

    def writer(self, group: str) -> Any:
        def write(record: str, **fields: Any) -> None:
            self.offset += 1
            placed = {} if "no_offsets" in self.features else {"offset": self.offset}
            self.event("group_record", group=group, protocol="consumer", record=record, **placed, **fields)

        return write

    def event(self, kind: str, **fields: Any) -> None:
        made: Event = {
            "schema_version": 1,
            "event_time": T0 + self.at,
            "system": "kafka",
            "cluster": self.cluster,
            "type": kind,
            **fields,
        }
        arrival = self.at
        if "disorder" in self.features:
            arrival += self.chance.choice((0, 0, self.chance.randint(0, LATENESS_MS)))
        if kind == "topic_queues":
            self.ids += 1
            made["event_id"] = f"{self.cluster}-{self.ids:03}"
        self.made.events.append((arrival, made))
        if "repeats" in self.features and kind != "clock" and self.chance.random() < 0.1:
            self.made.events.append((arrival + self.chance.randint(0, 1_500), dict(made)))

    # ---- the steps

    def make(self) -> None:
        for name in sorted(self.topics):
            self.poll(name)
        for _ in range(self.chance.randint(6, 24)):
            self.pass_time()
            self.step(self.chance.choice(self.groups))
        for group in self.groups:
            if self.chance.random() < 0.6:
                self.settle(group)
        self.at += self.chance.choice((1, 3_000, 12_000))
        self.event("clock")

    def pass_time(self) -> None:
        before = self.at
        self.at += self.chance.choice((0, 0, 1, 30, 250, 1_000, 5_000))
        if "ties" not in self.features and self.at <= before:
            self.at = before + 1

    def poll(self, name: str) -> None:
        topic = self.topics[name]
        self.polled[name] = topic.count
        self.event("topic_queues", topic=name, topic_id=topic.topic_id, queue_count=topic.count)

    def settle(self, group: str) -> None:
        """Let all members send heartbeats until nothing changes any more."""
        coordinator = self.coordinators[group]
        coordinator.delays_targets = False
        for _ in range(6):
            for member_id in self.alive(group):
                self.pass_time()
                coordinator.heartbeat(member_id)

    def step(self, group: str) -> None:
        kinds = [self.join, self.join, self.beat, self.beat, self.beat, self.leave]
        kinds += [self.settle] if "slow" not in self.features else []
        if self.statics:
            kinds += [self.go_away, self.join]
        if "growth" in self.features:
            kinds += [self.grow]
        if "subscriptions" in self.features:
            kinds += [self.subscribe]
        if "redescribes" in self.features:
            kinds += [self.describe]
        if "patterns" in self.features:
            kinds += [self.resolve]
        if "deletes" in self.features and not self.coordinators[group].members:
            kinds += [self.delete] * 3
        if "bare_epochs" in self.features and self.coordinators[group].members:
            kinds += [self.refresh]
        kinds += [self.poll_all]
        self.chance.choice(kinds)(group)

    def alive(self, group: str) -> list[str]:
        return [name for name, member in self.coordinators[group].members.items() if member.epoch != AWAY]

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self.chance.sample(sorted(self.topics), self.chance.randint(1, len(self.topics)))))

    def described(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"names": self.names() if "subscriptions" in self.features else tuple(self.topics)}
        if "patterns" in self.features and self.chance.random() < 0.5:
            fields = {"names": (), "pattern": self.chance.choice("tu")}
        return fields

    def join(self, group: str) -> None:
        coordinator = self.coordinators[group]
        there = {member.client for member in coordinator.members.values() if member.epoch != AWAY}
        clients = [client for client in self.clients if client not in there]
        if not clients:
            return self.beat(group)
        client = self.chance.choice(clients)
        instance = f"i-{client}" if client in self.statics else None
        former = coordinator.static(instance)
        described = self.described()
        if former is not None and self.chance.random() < 0.8:
            described = {"names": former.names, "pattern": former.pattern}
        self.starts += 1
        assignor = self.chance.choice(("uniform", "range")) if "assignors" in self.features else self.assignor
        if former is not None and "redescribes" not in self.features:
            assignor = former.assignor
        member = CoordinatedMember(
            f"{self.chance.choice('abxy')}-{client}-{self.starts}",
            client,
            instance,
            assignor=assignor,
            **described,
        )
        return coordinator.join(member)

    def beat(self, group: str) -> None:
        alive = self.alive(group)
        if alive:
            acknowledges = self.chance.random() < 0.7
            self.coordinators[group].heartbeat(self.chance.choice(alive), acknowledges=acknowledges)

    def leave(self, group: str) -> None:
        coordinator = self.coordinators[group]
        present = list(coordinator.members)
        if not present:
            return
        several = "several_leave" in self.features and self.chance.random() < 0.5
        leaving = self.chance.sample(present, min(len(present), 2 if several else 1))
        if "logs" in self.features and self.chance.random() < 0.6:
            for member_id in leaving:
                how = self.chance.choice(("left", "expired"))
                self.event(
                    "member_left", group=group, member_id=member_id, how=how, event_id=f"l-{self.offset}-{member_id}"
                )
        coordinator.remove(*leaving)

    def go_away(self, group: str) -> None:
        coordinator = self.coordinators[group]
        found = [name for name in self.alive(group) if coordinator.members[name].instance_id]
        if found:
            coordinator.go_away(self.chance.choice(found))

    def grow(self, _group: str) -> None:
        self.at += 1
        topic = self.topics[self.chance.choice(sorted(self.topics))]
        topic.count += self.chance.randint(1, 3)
        if "late_growth" not in self.features:
            self.poll(topic.name)
            self.at += 1  # of one time, whether the coordinator knew it already would be open

    def poll_all(self, _group: str) -> None:
        for name in sorted(self.topics):
            if self.polled[name] != self.topics[name].count or self.chance.random() < 0.3:
                self.poll(name)

    def subscribe(self, group: str) -> None:
        alive = self.alive(group)
        if alive:  # it may be the same topics, named or by a pattern
            self.coordinators[group].change(self.chance.choice(alive), **{"pattern": None, **self.described()})

    def describe(self, group: str) -> None:
        """Let a member come from another address, or name another assignor: that begins no epoch."""
        alive = self.alive(group)
        if alive:
            named = {"assignor": self.chance.choice(("uniform", "range"))} if "assignors" in self.features else {}
            fields = self.chance.choice(({"host": f"h{self.chance.randrange(3)}"}, named))
            self.coordinators[group].change(self.chance.choice(alive), **fields)

    def resolve(self, group: str) -> None:
        self.coordinators[group].resolve()

    def refresh(self, group: str) -> None:
        self.coordinators[group].refresh()

    def delete(self, group: str) -> None:
        coordinator = self.coordinators[group]
        if not coordinator.members and coordinator.epoch:
            coordinator.delete_group()
