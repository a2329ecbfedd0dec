"""Shell: simulated groups that a collector polls whole: members without heartbeats or generations of their own."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal, TypeAlias

from streaming.simulator.cluster import Cluster
from streaming.simulator.group_life import GroupLife
from streaming.simulator.truth import Cause
from udfs.model.events import Departure, GroupSnapshot, MemberInfo

POLL_INTERVAL_MS = 5_000
_Evident: TypeAlias = Literal["left", "expired"]
_HOWS: tuple[_Evident | None, ...] = (None, "left", "expired")
_TRIGGERS = {"left": "member_left", "expired": "session_expired", "gone": "member_gone"}
_EVIDENCE: dict[_Evident, str] = {
    "left": "it released its queues before it left",
    "expired": "it had not answered for a while",
}


class PolledGroup(GroupLife):
    """Members join and leave; a reader finds out only from one poll to the next."""

    def __init__(self, cluster: Cluster, group_id: str, topics: list[str], rng: random.Random, size: int) -> None:
        super().__init__(cluster, group_id, topics, rng)
        self.size = size
        self.members: dict[str, tuple[str, tuple[str, ...]]] = {}  # id -> host, topics
        self.reported: dict[str, tuple[str, tuple[str, ...]]] = {}
        # since the last poll, if the source could report the kind of departure
        self.departures: dict[str, Departure] = {}
        self.created = False

    def start(self) -> None:
        for _ in range(self.size):
            self._add()
        self.later(self.rng.randrange(50, POLL_INTERVAL_MS), self._poll)
        self.rest()

    def topic_grown(self, topic: str) -> None:
        """Ignore it, because members assign the queues that the source reports."""

    def on_topic_changed(self, topic: str) -> None:
        if any(topic in topics for _, topics in self.reported.values()):
            self._caused(Cause("queue_count_changed", topic=topic))

    def source_falls_silent(self) -> None:
        """Ignore it, because members of polls do not expire without heartbeats."""

    def _caused(self, cause: Cause) -> None:
        place = (self.cluster.name, self.cluster.system, self.group_id, self.now)
        if not self.created:
            self.created = True
            self.cluster.truth.counted(*place, Cause("group_created"), len(self.reported))
        self.cluster.truth.counted(*place, cause, len(self.reported))

    def _poll(self) -> None:
        before, self.reported = self.reported, dict(self.members)
        for member_id in sorted(before.keys() - self.reported.keys()):
            how = self.departures[member_id].kind if member_id in self.departures else "gone"
            self._caused(Cause(_TRIGGERS[how], member_id))
        for member_id in sorted(self.reported.keys() - before.keys()):
            self._caused(Cause("member_joined", member_id))
        for member_id in sorted(self.reported.keys() & before.keys()):
            if self.reported[member_id] != before[member_id]:
                self._caused(Cause("subscription_changed", member_id))
        members = tuple(
            MemberInfo(member_id=member_id, client_id=member_id, host=host, subscriptions=topics)
            for member_id, (host, topics) in sorted(self.reported.items())
        )
        departures = tuple(self.departures[member_id] for member_id in sorted(before.keys() & self.departures.keys()))
        self.departures.clear()
        event = GroupSnapshot(
            **self.fields(), state="Stable" if members else "Empty", members=members, departures=departures or None
        )
        self.cluster.emit(event, may_repeat=self.may_repeat, rng=self.rng)
        self.later(POLL_INTERVAL_MS, self._poll)

    def _add(self) -> None:
        host = f"10.{self.rng.randrange(8)}.{self.rng.randrange(16)}.{self.rng.randrange(2, 250)}"
        if self.cluster.system == "metaq":
            member_id = (
                f"{self.group_id}_{host}-{self.rng.randrange(300, 32_000)}-{self.rng.randrange(10**12, 10**13)}-1"
            )
        else:
            member_id = f"{host}@{self.rng.randrange(300, 32_000)}#{self.rng.randrange(10**12, 10**14)}"
        self.members[member_id] = (host, tuple(sorted(self.topics)))

    def _remove(self) -> None:
        if self.members:
            self._depart(self.rng.choice(sorted(self.members)))

    def _depart(self, member_id: str) -> None:
        host, _ = self.members.pop(member_id)
        how = self.rng.choice(_HOWS)
        if how is not None:
            is_dated = self.rng.random() < 0.5
            self.departures[member_id] = Departure(
                member_id=member_id, kind=how, host=host, at=self.now if is_dated else None, evidence=_EVIDENCE[how]
            )

    def actions(self) -> list[tuple[int, Callable[[], None]]]:
        possible: list[tuple[int, Callable[[], None]]] = []
        if len(self.members) < 2 * self.size:
            possible.append((3, self._add))
        if self.members:
            possible += [(3, self._remove), (2, self._replace), (1, self._subscribe_otherwise), (1, self._restart_all)]
        return possible

    def _replace(self) -> None:
        self._remove()
        self._add()

    def _restart_all(self) -> None:
        for member_id in sorted(self.members):
            self._depart(member_id)
        wait = self.rng.randrange(1_000, 15_000)
        for _ in range(self.size):
            self.later(wait, self._add)
        self.busy_for(wait)

    def _subscribe_otherwise(self) -> None:
        member_id = self.rng.choice(sorted(self.members))
        self.members[member_id] = (self.members[member_id][0], self.some_topics())


class ForeignGroup(GroupLife):
    """A group of a kind that is not followed: it is listed, and never has a rebalance."""

    def __init__(self, cluster: Cluster, group_id: str, topics: list[str], rng: random.Random) -> None:
        super().__init__(cluster, group_id, topics, rng)
        self.epoch = 0

    def start(self) -> None:
        self.later(self.rng.randrange(50, 3_000), self._emit)

    def _emit(self) -> None:
        self.epoch += 1
        self.cluster.emit(GroupSnapshot(**self.fields(), state="not_followed", generation=self.epoch), rng=self.rng)
        self.later(self.rng.randrange(10_000, 40_000), self._emit)

    def on_topic_changed(self, topic: str) -> None:
        """Ignore it."""

    def topic_grown(self, topic: str) -> None:
        """Ignore it."""

    def source_falls_silent(self) -> None:
        """Ignore it."""
