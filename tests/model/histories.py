"""Random histories: events of a few groups, hostile at every deadline, and the ways in which they are cut into batches.

One seed is one history. Times are small and collide on purpose: T−1, T and T+1 around deadlines, equal times for
different things, topics that become known after their groups.
"""

from __future__ import annotations

import random
from typing import Any

from tests.model.conditions import Conditions
from tests.model.disturbances import History, delay_one, send_ahead, send_clocks
from tests.model.times import LATENESS_MS, T0, Event

STRATEGIES = {
    "kafka": ["range", "roundrobin", "sticky", "cooperative-sticky"],
    "rocketmq": ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"],
    "metaq": ["metaq.default", "metaq.consistent-hash"],
}
_RACKS = ("east", "west", "north")
_TIMEOUTS = (4_000, 6_000, 10_000, 30_000)


FEATURES = (
    "reported",
    "racks",
    "statics",
    "polls",
    "settings",
    "deletes",
    "late_topics",
    "describes",
    "repeats",
    "brokers",
    "disorder",
    "unknown",
    "shrink",
    "ties",
    "assignments",
    "late",
    "reports",
    "ahead",
    "settles",
    "cooperative",
)


def history(seed: int, only: frozenset[str] | None = None) -> History:
    """Return the history of a seed; ``only`` are the features that it may have."""
    chance = random.Random(seed)
    features = {name for name in FEATURES if chance.random() < 0.4}
    if only is not None:
        features &= only
    if "ties" in features:  # the rulings leave open what a member describes first in several events of one time
        features.discard("unknown")
    if features >= {"reported", "describes"}:  # late descriptions are not modelled beside generations
        features.discard("late")
    lag_ms = chance.choice((0, 1_000, 60_000, 300_000)) if "ahead" in features else None
    settle_ms = chance.choice((1, 500, 3_000)) if "settles" in features else 0
    made = History(seed, frozenset(features), Conditions(lag_ms=lag_ms, settle_ms=settle_ms))
    for number in range(chance.choice((1, 1, 2))):
        _Maker(chance, made, f"c{number}").make()
    if made.features >= {"late", "ahead"}:
        send_clocks(made)
    if "late" in made.features:
        delay_one(chance, made)
    if "ahead" in made.features:
        send_ahead(chance, made)
    made.events.sort(key=lambda timed: timed[1]["event_time"])
    return made


class _Maker:
    """Makes the events of one cluster."""

    def __init__(self, chance: random.Random, made: History, cluster: str) -> None:
        self.chance = chance
        self.made = made
        self.features = made.features
        self.cluster = cluster
        self.reported = "reported" in self.features
        self.system = "kafka" if self.reported else chance.choice(("kafka", "rocketmq", "metaq"))
        self.at = 0
        self.ids = 0
        self.topics = [f"t{number}" for number in range(chance.choice((1, 2, 2, 3)))]
        self.groups = [f"g{number}" for number in range(chance.choice((1, 1, 2)))]
        self.members = [f"{chance.choice('abxy')}{number}" for number in range(chance.choice((2, 3, 4)))]
        self.timeouts = {member: chance.choice(_TIMEOUTS) for member in self.members}
        self.strategies = {
            member: chance.sample(STRATEGIES[self.system][:3], chance.choice((1, 2))) for member in self.members
        }
        if chance.random() < 0.7:  # the same for all members, as in a healthy group
            self.strategies = dict.fromkeys(self.members, next(iter(self.strategies.values())))
        self.is_cooperative = "cooperative" in self.features and self.system == "kafka"
        if self.is_cooperative:
            self.strategies = {member: ["cooperative-sticky"] for member in self.members}
        self.racks = {member: chance.choice(_RACKS) for member in self.members} if "racks" in self.features else {}
        self.is_static = "statics" in self.features and self.system == "kafka"
        self.last: dict[tuple[str, str], int] = {}
        self.generation = {group: chance.choice((0, 1, 1, 5)) for group in self.groups}
        self.present: dict[str, list[str]] = {group: [] for group in self.groups}
        self.subscriptions: dict[str, list[str]] = {}
        self.counts: dict[str, int] = {}
        self.newest_queues: dict[str, list[dict[str, Any]]] = {}  # the newest queues of each topic
        self.assigned: dict[str, dict[str, list[dict[str, Any]]] | None] = {}
        self.coming: dict[str, dict[str, list[dict[str, Any]]]] = {}  # group -> after a cooperative move
        self.restarts: dict[tuple[str, str], int] = {}

    def event(self, kind: str, at: int | None = None, **fields: Any) -> None:
        self.ids += 1
        at = self.at if at is None else at
        arrival = at
        if "disorder" in self.features:
            arrival += self.chance.choice((0, 0, self.chance.randint(0, LATENESS_MS)))
        made: Event = {
            "schema_version": 1,
            "event_time": T0 + at,
            "system": self.system,
            "cluster": self.cluster,
            "type": kind,
            **fields,
        }
        bare = kind == "heartbeat" and not fields.keys() - {"group", "member_id"}
        if not bare and kind != "clock":
            made["event_id"] = f"{self.cluster}-{self.ids:03}"
        self.made.events.append((arrival, made))
        if "repeats" in self.features and self.chance.random() < 0.2:
            self.made.events.append((arrival + self.chance.randint(0, 1_500), dict(made)))

    # ---- the steps

    def make(self) -> None:
        late = "late_topics" in self.features
        for topic in self.topics:
            if not late or self.chance.random() < 0.5:
                self.count(topic)
        steps = self.chance.randint(8, 30)
        for _ in range(steps):
            self.pass_time()
            self.step()
        for topic in self.topics:
            if late and self.chance.random() < 0.7:
                self.at += self.chance.choice((0, 1, 700))
                self.count(topic)
        self.at += self.chance.choice((1, 3_000, 12_000))
        self.event("clock")

    def pass_time(self) -> None:
        before = self.at
        deadlines = [at + self.timeouts[member] for (_, member), at in self.last.items()]
        ahead = [at for at in deadlines if at >= self.at]
        if ahead and self.chance.random() < 0.35:
            self.at = max(self.at, self.chance.choice(ahead) + self.chance.choice((-1, 0, 1)))
        else:
            self.at += self.chance.choice((0, 0, 1, 250, 1_000, 2_500))
        if "ties" not in self.features and self.at <= before:
            self.at = before + 1

    def step(self) -> None:
        kinds = [self.join, self.beat, self.beat, self.beat, self.leave, self.grow]
        if self.reported:
            kinds = [self.generate, self.generate, self.generate, self.same_generation, self.grow]
            if "polls" in self.features:
                kinds += [self.beat, self.leave]
        elif "polls" in self.features:
            kinds += [self.poll]
        if self.is_static:
            kinds += [self.restart]
        if "settings" in self.features and not self.reported:
            kinds += [self.settings]
        if "describes" in self.features:
            kinds += [self.describe]
        if "reports" in self.features:
            kinds += [self.report]
        if "deletes" in self.features and self.chance.random() < 0.3:
            kinds += [self.delete]
        self.chance.choice(kinds)()

    def queues(self, count: int) -> dict[str, Any]:
        racks = "racks" in self.features
        if (self.system == "kafka" and not racks) or (self.system != "kafka" and "brokers" not in self.features):
            return {"queue_count": count}
        if self.system == "kafka":
            return {"queues": [{"queue_id": number, "rack": self.chance.choice(_RACKS)} for number in range(count)]}
        return {"queues": [{"broker": f"b{number % 2}", "queue_id": number // 2} for number in range(count)]}

    def count(self, topic: str) -> None:
        count = self.chance.randint(1, 6)
        if self.system == "kafka" and (
            "shrink" not in self.features or "assignments" in self.features
        ):  # partitions are never taken away
            count = self.counts[topic] = min(12, self.counts.get(topic, 0) + self.chance.randint(0, 3)) or 2
        queues = self.queues(count)
        if not (self.reported and "shrink" in self.features):  # reported partitions are evidence that they exist
            plain = [{"queue_id": number} for number in range(count)]
            self.newest_queues[topic] = [{"topic": topic, **_place(queue)} for queue in queues.get("queues", plain)]
        self.event("topic_queues", topic=topic, **queues)

    def grow(self) -> None:
        topic = self.chance.choice(self.topics)
        if "late_topics" in self.features and "assignments" not in self.features and self.chance.random() < 0.1:
            self.event("topic_queues", topic=topic, queue_count=0)
        else:
            self.count(topic)

    def subscribe(self, member: str, anew: bool = False) -> list[str]:
        if anew or member not in self.subscriptions:
            number = self.chance.randint(1, len(self.topics))
            self.subscriptions[member] = sorted(self.chance.sample(self.topics, number))
        return self.subscriptions[member]

    def name(self, group: str, member: str) -> str:
        """Return the id of a member in a group: a static member gets a new one with each restart."""
        times = self.restarts.get((group, member), 0)
        return f"{member}-{times}" if times else member

    def restart(self) -> None:
        group, member = self.anyone()
        if self.reported:
            if member not in self.present[group]:
                return
            self.restarts[group, member] = self.restarts.get((group, member), 0) + 1
            self.generation_snapshot(group)
        elif (group, member) in self.last:
            if self.chance.random() < 0.4:  # the former id may send its last heartbeat at the same time
                self.event("heartbeat", group=group, member_id=self.name(group, member))
                self.at += self.chance.choice((0, 1))
            self.restarts[group, member] = self.restarts.get((group, member), 0) + 1
            self.last[group, member] = self.at
            self.event("member_joined", group=group, member_id=self.name(group, member), **self.description(member))

    def description(self, member: str) -> dict[str, Any]:
        described: dict[str, Any] = {
            "subscriptions": self.subscribe(member),
            "strategies": self.strategies[member],
            "session_timeout_ms": self.timeouts[member],
        }
        if self.racks:
            described["rack"] = self.racks[member]
        if self.is_static:
            described["instance_id"] = f"i-{member}"
        return described

    def anyone(self) -> tuple[str, str]:
        return self.chance.choice(self.groups), self.chance.choice(self.members)

    def join(self) -> None:
        group, member = self.anyone()
        self.last[group, member] = self.at
        owned: dict[str, Any] = {}
        if self.is_cooperative and self.chance.random() < 0.7:
            owned["owned"] = [
                queue
                for topic in sorted(self.newest_queues)
                for queue in self.newest_queues[topic]
                if self.chance.random() < 0.3
            ]
        self.event(
            "member_joined", group=group, member_id=self.name(group, member), **self.description(member), **owned
        )

    def some_queues(self, share: float) -> list[dict[str, Any]]:
        return [
            queue
            for topic in sorted(self.newest_queues)
            for queue in self.newest_queues[topic]
            if self.chance.random() < share
        ]

    def beat(self) -> None:
        group, member = self.anyone()
        if (group, member) not in self.last and "unknown" not in self.features:
            return self.join() if not self.reported else None
        self.last[group, member] = self.at
        self.event("heartbeat", group=group, member_id=self.name(group, member))
        return None

    def describe(self) -> None:
        group, member = self.anyone()
        if (group, member) not in self.last and "unknown" not in self.features:
            return
        self.last[group, member] = self.at
        fields: dict[str, Any] = {}
        match self.chance.randint(0, 3):
            case 0:
                fields["subscriptions"] = self.subscribe(member, anew=True)
            case 1:
                self.timeouts[member] = fields["session_timeout_ms"] = self.chance.choice(_TIMEOUTS)
            case 2:
                names = STRATEGIES[self.system][:3]
                fields["strategies"] = self.strategies[member] = self.chance.sample(names, 2)
            case _:
                fields["client_id"] = self.chance.choice(("one", "two"))
        self.event("heartbeat", group=group, member_id=self.name(group, member), **fields)

    def leave(self) -> None:
        group, member = self.anyone()
        if (group, member) not in self.last and "unknown" not in self.features:
            return
        self.event("member_left", group=group, member_id=self.name(group, member))

    def settings(self) -> None:
        fields: dict[str, Any] = {"strategy": self.chance.choice(STRATEGIES[self.system][:3])}
        if self.chance.random() < 0.2:
            modes = ("clustering", "broadcasting", *(("message",) if self.system == "rocketmq" else ()))
            fields = {"mode": self.chance.choice(modes)}
        self.event("group_settings", group=self.chance.choice(self.groups), **fields)

    def delete(self) -> None:
        self.event("group_deleted", group=self.chance.choice(self.groups))

    def poll(self) -> None:
        group = self.chance.choice(self.groups)
        members = self.chance.sample(self.members, self.chance.randint(0, len(self.members)))
        infos = []
        for member in sorted(members):
            info: dict[str, Any] = {"member_id": self.name(group, member)}
            if self.is_static:
                info["instance_id"] = f"i-{member}"
            if self.chance.random() < 0.8:
                info["subscriptions"] = self.subscribe(member)
            if self.chance.random() < 0.1:
                info["session_timeout_ms"] = self.timeouts[member] = self.chance.choice(_TIMEOUTS)
            infos.append(info)
        self.event("group_snapshot", group=group, members=infos)

    def report(self) -> None:
        """Let a member report its queues: any queues of known topics."""
        group, member = self.anyone()
        held = self.some_queues(0.4)
        fields: dict[str, Any] = {}
        if self.reported:  # in groups with counted generations, members do not know the numbers
            now = self.generation[group]
            fields = self.chance.choice(({}, *({"generation": max(0, now + more)} for more in (-1, 0, 0, 1))))
        self.event("assignment_reported", group=group, member_id=self.name(group, member), queues=held, **fields)

    # ---- reported generations

    def generate(self) -> None:
        group = self.chance.choice(self.groups)
        self.generation[group] += self.chance.choice((1, 1, 1, 1, 2, 3))
        members = self.chance.sample(self.members, self.chance.randint(0, len(self.members)))
        before, coming = self.assigned.get(group), self.coming.pop(group, None)
        for member in self.present[group] if self.is_static else ():
            if self.chance.random() < 0.2:  # it is back under another id before the generation comes
                self.restarts[group, member] = self.restarts.get((group, member), 0) + 1
        if coming is not None and self.chance.random() < 0.7:  # the second half of a cooperative move
            self.assigned[group] = coming
            self.generation_snapshot(group)
            return
        self.present[group] = sorted(members)
        self.assigned[group] = None
        if "assignments" in self.features and members:
            self.assigned[group] = whole = self.assignment(self.present[group])
            if self.is_cooperative and before is not None:
                self.assigned[group] = first = _without_moves(before, whole)
                if first != whole:
                    self.coming[group] = whole
        self.generation_snapshot(group)

    def assignment(self, members: list[str]) -> dict[str, list[dict[str, Any]]]:
        """Return an assignment as a leader may make it: mostly as range does without racks."""
        held: dict[str, list[dict[str, Any]]] = {member: [] for member in members}
        for topic in self.topics:
            mine = [member for member in members if topic in self.subscribe(member)]
            if self.chance.random() < 0.2:
                self.chance.shuffle(mine)
            if "late_topics" in self.features and topic not in self.newest_queues and self.chance.random() < 0.2:
                continue  # the topic does not exist yet
            count = self.counts.setdefault(topic, self.chance.randint(1, 4))
            if count < 12 and self.chance.random() < 0.1:  # the record names partitions that metadata has not shown
                count = self.counts[topic] = count + 1
            for number in range(count if mine else 0):
                held[mine[number * len(mine) // count]].append({"topic": topic, "queue_id": number})
        return held

    def same_generation(self) -> None:
        group = self.chance.choice(self.groups)
        if self.generation[group]:
            self.generation_snapshot(group)

    def generation_snapshot(self, group: str) -> None:
        members = self.present[group]
        infos: list[dict[str, Any]] = []
        for member in members:
            info: dict[str, Any] = {"member_id": self.name(group, member), "subscriptions": self.subscribe(member)}
            if self.racks:
                info["rack"] = self.racks[member]
            if self.is_static:
                info["instance_id"] = f"i-{member}"
            infos.append(info)
        strategy = "cooperative-sticky" if self.is_cooperative else "range"
        fields: dict[str, Any] = {"strategy": strategy, "leader": infos[0]["member_id"]} if infos else {}
        assigned = self.assigned.get(group)
        if assigned is not None:
            fields["assignments"] = {self.name(group, member): assigned[member] for member in members}
        self.event(
            "group_snapshot",
            group=group,
            generation=self.generation[group],
            state="Stable" if members else "Empty",
            members=infos,
            **fields,
        )


def _place(queue: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in queue.items() if name != "rack"}


def _without_moves(
    before: dict[str, list[dict[str, Any]]], after: dict[str, list[dict[str, Any]]]
) -> dict[str, list[dict[str, Any]]]:
    """Return the first half of a cooperative move: queues that a present member gives up are assigned to nobody."""
    owners = {(queue["topic"], queue["queue_id"]): member for member, held in before.items() for queue in held}
    absent = before.keys() - after.keys()
    return {
        member: [queue for queue in held if owners.get((queue["topic"], queue["queue_id"])) in {member, None, *absent}]
        for member, held in after.items()
    }
