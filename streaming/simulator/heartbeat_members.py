"""Shell: simulated members that are tracked by their own heartbeats, and what readers must conclude."""

from __future__ import annotations

import random
from typing import TypedDict

from streaming.settings.defaults import default
from streaming.simulator.cluster import Cluster
from streaming.simulator.group_life import GroupLife
from streaming.simulator.timeline import EXPIRY, HEARTBEAT
from streaming.simulator.truth import Cause
from udfs.model.events import Heartbeat, MemberJoined, MemberLeft

HEARTBEAT_INTERVAL_MS = {"kafka": 3_000, "rocketmq": 10_000, "metaq": 5_000}
STRATEGIES = {
    "kafka": ("range", "roundrobin"),
    "rocketmq": ("AVG", "AVG_BY_CIRCLE"),
    "metaq": ("default", "consistent-hash"),
}


def default_session_timeout_ms(system: str) -> int:
    """Return the session timeout of members that report none."""
    timeout: int = default("session_timeouts", f"{system}_ms")
    return timeout


class MemberDescription(TypedDict, total=False):
    """The fields of an event that describe its member."""

    client_id: str
    host: str
    subscriptions: tuple[str, ...]
    strategies: tuple[str, ...] | None
    session_timeout_ms: int | None


class SimulatedMember:
    """One consumer; ``alive`` is its real state, ``present`` the one that its events show."""

    def __init__(self, member_id: str, client_id: str, host: str, subscriptions: tuple[str, ...]) -> None:
        self.member_id = member_id
        self.reported_id = member_id  # its id in events: two connections may have the same
        self.client_id = client_id
        self.host = host
        self.subscriptions: tuple[str, ...] = subscriptions
        self.strategies: tuple[str, ...] | None = None
        self.alive = False
        self.present = False
        self.heartbeat_at = 0  # its last reported heartbeat
        self.life = 0  # heartbeats of an earlier life stop
        self.timeout_ms = 0  # as far as readers know
        self.bound = False  # it has a twin or is one, so nothing else may happen to it

    @property
    def is_free(self) -> bool:
        """Return whether anything may happen to it."""
        return self.alive and self.present and not self.bound


class HeartbeatMembers(GroupLife):
    """Members join, send heartbeats and leave, each by its own events; generations are counted."""

    def __init__(
        self, cluster: Cluster, group_id: str, topics: list[str], rng: random.Random, size: int, timeout_ms: int | None
    ) -> None:
        super().__init__(cluster, group_id, topics, rng)
        self.size = size
        self.reported_timeout_ms = timeout_ms
        self.timeout_ms = timeout_ms or default_session_timeout_ms(cluster.system)
        self.interval_ms = min(HEARTBEAT_INTERVAL_MS[cluster.system], self.timeout_ms // 4)
        self.members: dict[str, SimulatedMember] = {}
        self.created = False
        self.uncertain_until = 0  # until then counts depend on when late events are read
        self.mode = "clustering"
        self.strategy: str | None = None
        self.setting = 0
        # RocketMQ's consumers have their own strategies, which are reported where the group's is not.
        self.reports_strategies = cluster.system == "rocketmq" and rng.random() < 0.5
        self.deletes = rng.random() < 0.15
        self.may_repeat = not self.deletes

    # -- what readers must find ------------------------------------------------------------------------------

    def caused(self, kind: str, member_id: str | None = None, topic: str | None = None) -> None:
        """Record that something that is a rebalance happened now."""
        after: int | None = sum(member.present for member in self.members.values())
        if self.now <= self.uncertain_until:
            after = None
        place = (self.cluster.name, self.cluster.system, self.group_id, self.now)
        if not self.created:
            self.created = True
            self.cluster.truth.counted(*place, Cause("group_created"), after)
        self.cluster.truth.counted(*place, Cause(kind, member_id, topic), after)

    def on_topic_changed(self, topic: str) -> None:
        if any(member.present and topic in member.subscriptions for member in self.members.values()):
            self.caused("queue_count_changed", topic=topic)

    def topic_grown(self, topic: str) -> None:
        """Ignore it, because members assign the queues that the source reports."""

    def source_falls_silent(self) -> None:
        for member in self.members.values():
            self.watch(member)

    def watch(self, member: SimulatedMember) -> None:
        """End the member's session in time unless a heartbeat is reported before."""
        heartbeat_at = member.heartbeat_at
        if member.present:
            self.cluster.timeline.at(
                heartbeat_at + member.timeout_ms, lambda: self._expire(member, heartbeat_at), EXPIRY
            )

    def _expire(self, member: SimulatedMember, heartbeat_at: int) -> None:
        if member.present and member.heartbeat_at == heartbeat_at:
            member.present = False
            self.caused("session_expired", member.member_id)

    # -- what members do -------------------------------------------------------------------------------------

    def new_member(self) -> SimulatedMember:
        """Create a consumer with an id in its system's form."""
        host = f"10.{self.rng.randrange(8)}.{self.rng.randrange(16)}.{self.rng.randrange(2, 250)}"
        process = self.rng.randrange(300, 32_000)
        if self.cluster.system == "kafka":
            client_id = f"consumer-{self.group_id}-{self.rng.randrange(1, 9)}"
            member_id = f"{client_id}-{self.hexadecimal(8)}-{self.hexadecimal(4)}"
        elif self.cluster.system == "rocketmq":
            client_id = member_id = f"{host}@{process}#{self.rng.randrange(10**12, 10**14)}"
        else:
            client_id = f"{host}-{process}-{self.rng.randrange(10**12, 10**13)}-{self.rng.randrange(9)}"
            member_id = f"{self.group_id}_{client_id}"
        member = SimulatedMember(member_id, client_id, host, self.topics_of_new_member())
        member.timeout_ms = default_session_timeout_ms(self.cluster.system)
        if self.cluster.system == "kafka":
            member.strategies = STRATEGIES["kafka"]
        elif self.reports_strategies:
            member.strategies = ("AVG",)
        self.members[member_id] = member
        return member

    def topics_of_new_member(self) -> tuple[str, ...]:
        """Return the topics of a newcomer: mostly all, sometimes fewer."""
        return tuple(sorted(self.topics)) if self.rng.random() < 0.85 else self.some_topics()

    def description(self, member: SimulatedMember) -> MemberDescription:
        """Return a member's description."""
        member.timeout_ms = self.timeout_ms
        return {
            "client_id": member.client_id,
            "host": member.host,
            "subscriptions": member.subscriptions,
            "strategies": member.strategies,
            "session_timeout_ms": self.reported_timeout_ms,
        }

    def describes_in_heartbeats(self) -> bool:
        """Return whether members of this system describe themselves in every heartbeat."""
        return self.cluster.system == "rocketmq"

    def join(self, member: SimulatedMember) -> None:
        """Start a consumer; it sends its description."""
        member.alive = True
        member.life += 1
        kind = Heartbeat if self.describes_in_heartbeats() else MemberJoined
        self._emit(kind(**self.fields(), member_id=member.reported_id, **self.description(member)))
        self._note_liveness(member)
        self._schedule_heartbeat(member, self.rng.randrange(1, self.interval_ms))

    def leave(self, member: SimulatedMember, delay_ms: int | None = None) -> None:
        """Stop a consumer; it sends a leave."""
        member.alive = False
        member.life += 1
        event = MemberLeft(**self.fields(), member_id=member.reported_id, reason="shutdown")
        self._emit(event, delay_ms=delay_ms)
        if delay_ms is None:
            member.present = False
            self.caused("member_left", member.member_id)

    def crash(self, member: SimulatedMember) -> None:
        """Kill a consumer; no event reports it."""
        member.alive = False
        member.life += 1
        self.watch(member)

    def send_heartbeat(self, member: SimulatedMember, described: bool = False, delay_ms: int | None = None) -> None:
        """Send one heartbeat."""
        description = self.description(member) if described or self.describes_in_heartbeats() else {}
        event = Heartbeat(**self.fields(), member_id=member.reported_id, **description)
        event.event_id = None
        self._emit(event, delay_ms=delay_ms)
        if delay_ms is None:
            self._note_liveness(member)

    def _emit(self, event: Heartbeat | MemberJoined | MemberLeft, delay_ms: int | None = None) -> None:
        self.cluster.emit(event, delay_ms=delay_ms, may_repeat=self.may_repeat, rng=self.rng)

    def _note_liveness(self, member: SimulatedMember) -> None:
        member.heartbeat_at = self.now
        if not member.present:
            member.present = True
            self.caused("member_joined", member.member_id)

    def _schedule_heartbeat(self, member: SimulatedMember, wait_ms: int) -> None:
        life = member.life
        self.cluster.timeline.at(self.now + wait_ms, lambda: self._on_heartbeat_due(member, life), HEARTBEAT)

    def _on_heartbeat_due(self, member: SimulatedMember, life: int) -> None:
        if member.life != life:
            return
        if not self.cluster.is_silent():
            self.send_heartbeat(member)
        self._schedule_heartbeat(member, self.interval_ms + self.rng.randrange(-50, 50))
