"""Fleets in which queues, members or groups stop reading while they are alive: is it found, and nothing else?

Around the planted standstills others commit rarely by habit, pause for less than the limit, are caught up, wait behind
an end that stands, or are deployed anew, member by member. `python -m tests.simulation.standstills [FLEETS]` prints
recall and precision of each kind; the target of both is 99 %.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.core_config import core_config
from tests.simulation.core_run import CoreRun, rows_of

START = 1_767_225_600_000
SECOND, MINUTE = 1_000, 60_000
LENGTH = 40 * MINUTE
STEP = 5 * SECOND  # between two commits of a member
ENDS_EVERY = 10 * SECOND
BATCH_MS = 30 * SECOND
KINDS = ("queue_stalled", "member_stalled", "group_stalled")
HEALTHY = ("busy", "rare", "pauses", "ends_stand", "deployed", "markers")
SYSTEMS = ("kafka", "rocketmq", "metaq")
# A standstill opens at the latest this long after it began: the limit, one evaluation, two reads of ends, one commit.
_OPENS_WITHIN = 3 * MINUTE + MINUTE + 2 * ENDS_EVERY + STEP
_CLOSES_WITHIN = MINUTE + STEP + ENDS_EVERY
Event = dict[str, Any]


class Group:
    """One group, what happens to it, and the events of its life."""

    def __init__(self, seed: str, system: str, fate: str) -> None:
        self.chance = random.Random(seed)
        self.system, self.fate = system, fate
        self.name = f"{fate}-{seed}".replace(" ", "-")
        self.topic = f"of-{self.name}"
        self.size = self.chance.randrange(2, 5)
        # At most ten: beyond that MetaQ sorts queue 10 before queue 2, and members hold no ranges.
        self.queues = self.size * self.chance.randrange(2, min(3, 10 // self.size) + 1)
        self.rates = [self.chance.choice((3, 10, 200)) for _ in range(self.queues)]
        self.ends = [self.chance.randrange(1_000) for _ in range(self.queues)]
        self.read = list(self.ends)
        self.serial = 0
        self.members = [self._new_member(number) for number in range(self.size)]
        self.generation = 0
        self.begin = START + self.chance.randrange(12, 18) * MINUTE + self.chance.randrange(MINUTE)
        self.end = self.begin + self.chance.randrange(7, 14) * MINUTE
        self.culprit = self.chance.randrange(self.size)
        self.events: list[Event] = []

    def held(self, number: int) -> list[int]:
        """Return the queues of a member, which every strategy assigns to it in ranges."""
        each = self.queues // self.size
        return list(range(number * each, (number + 1) * each))

    def standing(self) -> set[int]:
        """Return the queues that are planted to stand."""
        mine = self.held(self.culprit)
        return {"queue_stalled": {mine[0]}, "member_stalled": set(mine), "group_stalled": set(range(self.queues))}.get(
            self.fate, set()
        )

    def _new_member(self, number: int) -> str:
        self.serial += 1
        return f"m{number}-{self.serial}"

    def emit(self, at: int, kind: str, **fields: Any) -> None:
        """Add an event."""
        common = {"schema_version": 1, "event_time": at, "system": self.system, "cluster": self.system, "type": kind}
        self.events.append(common | fields)

    def _ref(self, queue: int, **fields: Any) -> Event:
        broker = {} if self.system == "kafka" else {"broker": "b"}
        return {"topic": self.topic, "queue_id": queue} | broker | fields

    def live(self) -> None:
        """Play the group's life."""
        broker = {} if self.system == "kafka" else {"broker": "b"}
        self.emit(
            START, "topic_queues", topic=self.topic, queues=[{"queue_id": q} | broker for q in range(self.queues)]
        )
        if self.system != "kafka":
            for member in self.members:
                self.emit(START, "member_joined", **self._described(member))
        else:
            self._generation(START)
        deploys = self._deploys()
        for at in range(START + STEP, START + LENGTH, STEP):
            if deploys and at >= deploys[0]:
                self._deploy(at, len(deploys) % self.size)
                deploys.pop(0)
            if (at - START) % ENDS_EVERY == 0:
                self._write(at)
            self._commit(at + 300)
            if self.system != "kafka" and (at - START) % (4 * STEP) == 0:
                for member in self.members:
                    self.emit(at + 1, "heartbeat", group=self.name, member_id=member)

    def _deploys(self) -> list[int]:
        if self.fate != "deployed":
            return []
        return [self.begin + number * 20 * SECOND for number in range(self.size * 3)]

    def _deploy(self, at: int, number: int) -> None:
        former = self.members[number]
        self.members[number] = self._new_member(number)
        if self.system == "kafka":
            self._generation(at)
        else:
            self.emit(at, "member_left", group=self.name, member_id=former)
            self.emit(at, "member_joined", **self._described(self.members[number]))

    def _described(self, member: str) -> Event:
        return {"group": self.name, "member_id": member, "subscriptions": [self.topic]}

    def _generation(self, at: int) -> None:
        self.generation += 1
        self.emit(
            at,
            "group_snapshot",
            group=self.name,
            generation=self.generation,
            state="Stable",
            strategy="range",
            members=[
                {"member_id": member, "client_id": member, "host": "/10.0.0.9", "subscriptions": [self.topic]}
                for member in self.members
            ],
            assignments={
                member: [self._ref(queue) for queue in self.held(number)] for number, member in enumerate(self.members)
            },
        )

    def _write(self, at: int) -> None:
        is_over = self.fate == "ends_stand" and at >= self.begin
        for queue in range(self.queues):
            if not is_over:
                more = self.rates[queue] + (self.chance.random() < 0.5)
                self.ends[queue] += more
            elif self.fate == "ends_stand" and at < self.begin + ENDS_EVERY:
                self.ends[queue] += 500  # nobody reads these, and nothing comes after them
        if self.system == "kafka":
            queues = [{"queue_id": queue, "end_offset": end} for queue, end in enumerate(self.ends)]
            self.emit(at, "queue_ends", topic=self.topic, queues=queues)

    def _reads(self, queue: int, at: int) -> bool:
        match self.fate:
            case "queue_stalled" | "member_stalled" | "group_stalled":
                return queue not in self.standing() or not self.begin <= at < self.end
            case "rare":
                return (at - START) // STEP % 96 == queue  # every eight minutes
            case "pauses":
                return not self.begin <= at < self.begin + 2 * MINUTE
            case "ends_stand":
                return at < self.begin
            case _:
                return True

    def _commit(self, at: int) -> None:
        moved = []
        for queue in range(self.queues):
            if self._reads(queue, at):
                behind = 1 if self.fate == "markers" else 0
                now = max(self.read[queue], self.ends[queue] - behind)
                if now != self.read[queue]:
                    self.read[queue] = now
                    moved.append(queue)
        if self.system == "kafka":
            queues = [self._ref(queue, offset=self.read[queue]) for queue in moved]
        elif (at - START) % ENDS_EVERY < STEP:  # a poll shows what moved, and whose lag did
            queues = [
                self._ref(queue, offset=self.read[queue], end_offset=self.ends[queue], moved=self._polled(queue))
                for queue in range(self.queues)
            ]
        else:
            queues = []
        if queues:
            self.emit(at, "progress", group=self.name, queues=queues)

    def _polled(self, queue: int) -> bool:
        shown = self.__dict__.setdefault("shown", {})
        moved = shown.get(queue) != self.read[queue]
        shown[queue] = self.read[queue]
        return bool(moved)

    def verdicts(self, found: list[Event]) -> Iterator[tuple[str, bool]]:
        """Yield each finding with whether it is the planted one, and a planted one that was not found."""
        is_found = False
        for row in found:
            queues = {queue["queue_id"] for queue in row["queues"]}
            members = {member["member_id"] for member in row["members"]}
            owners = {self.members[number] for number in range(self.size) if set(self.held(number)) & self.standing()}
            is_right = (
                (row["kind"], queues, members) == (self.fate, self.standing(), owners)
                and self.begin < row["opened_at"] <= self.begin + _OPENS_WITHIN
                and row["closed_at"] is not None
                and self.end <= row["closed_at"] <= self.end + _CLOSES_WITHIN
                and not is_found
            )
            is_found |= is_right
            yield row["kind"], is_right
        if self.fate in KINDS and not is_found:
            yield f"missed {self.fate}", False


def fleet(seed: int) -> list[Group]:
    """Return groups of all systems with all fates; of those that must not be found, some."""
    chance = random.Random(seed)
    groups = []
    for system in SYSTEMS:
        fates = [*KINDS, *chance.sample(HEALTHY, 3)]
        groups += [Group(f"{seed}-{system}", system, fate) for fate in fates]
    for group in groups:
        group.live()
    return groups


def findings_of(groups: list[Group], batch_ms: int = BATCH_MS) -> list[Event]:
    """Return all findings of groups that live in the clusters of one fleet."""
    lines = [(event["event_time"], json.dumps(event).encode()) for group in groups for event in group.events]
    for system in SYSTEMS:
        for at in range(START, START + LENGTH + MINUTE, 5 * SECOND):
            tick = {"schema_version": 1, "event_time": at, "system": system, "cluster": system, "type": "clock"}
            lines.append((at, json.dumps(tick).encode()))
    run = CoreRun(core_config(shards=2))
    batches: dict[int, list[bytes]] = {}
    for at, text in lines:
        batches.setdefault(at // batch_ms, []).append(text)
    for number in sorted(batches):
        run.batch((number + 1) * batch_ms + 1_000, batches[number])
    return rows_of(run.changes)["findings"]


def measured(fleets: int) -> dict[str, tuple[int, int, int]]:
    """Return for each kind how many are right, how many were planted, and how many opened."""
    right: Counter[str] = Counter()
    planted: Counter[str] = Counter()
    opened: Counter[str] = Counter()
    for seed in range(fleets):
        groups = fleet(seed)
        rows = [row for row in findings_of(groups) if row["kind"] in KINDS]
        for group in groups:
            planted[group.fate] += group.fate in KINDS
            for kind, is_right in group.verdicts([row for row in rows if row["group_id"] == group.name]):
                opened[kind] += not kind.startswith("missed")
                right[kind] += is_right
                if not is_right:
                    sys.stderr.write(f"{group.name}: {kind}\n")
    return {kind: (right[kind], planted[kind], opened[kind]) for kind in KINDS}


def main() -> None:
    """Print recall and precision."""
    found = measured(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
    for kind, (right, planted, opened) in found.items():
        shares = f"recall {right / planted:7.2%}  precision {right / max(opened, 1):7.2%}"
        sys.stdout.write(f"{kind:16} {right:5} right of {planted:5} planted, {opened:5} opened  {shares}\n")


if __name__ == "__main__":
    main()
