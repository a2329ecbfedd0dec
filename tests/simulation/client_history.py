"""The history of one group, written by what its clients do: the events that a source of each kind of system reports."""

from __future__ import annotations

from typing import Any

Event = dict[str, Any]
HEARTBEAT_MS = 15_000
TOPIC_ID = "T" * 22
_HOW = {"-": "left", "~": "left", "!": "expired"}
_REASONS = {"~": "consumer poll timeout has expired"}
# Kafka's classic protocol, its new one, and the systems whose groups are counted.
KINDS = ("kafka", "kafka-new", "rocketmq", "metaq")


class ClientHistory:
    """A group ``g`` and what happens to it; ``t`` of an event is its time in ms.

    A client's host follows from its name, so that it comes back on the same one.
    """

    def __init__(self, kind: str, group: str = "g", cluster: str = "only", queues: int = 12) -> None:
        self.kind, self.group, self.cluster, self.queues = kind, group, cluster, queues
        self.system = kind.partition("-")[0]
        self.events: list[Event] = []
        self.members: dict[str, str] = {}  # member id -> client, oldest first
        self.joined: dict[str, int] = {}
        self.topics: dict[str, list[str]] = {}
        self.hosts: dict[str, str] = {}
        self.generation = self.serial = self.offset = 0

    def emit(self, at: int, kind: str, **fields: Any) -> None:
        """Add an event."""
        self.serial += 1
        common = {"system": self.system, "cluster": self.cluster, "event_id": f"{self.group}-{self.serial}"}
        self.events.append({"t": at, "type": kind} | common | fields)

    def begin(self, at: int, clients: list[str]) -> None:
        """Begin with these clients."""
        self._describe(at, "t" if self.group == "g" else f"of-{self.group}")
        self.change(at + 1, [("+", client) for client in clients])

    def _describe(self, at: int, topic: str) -> None:
        broker = {} if self.system == "kafka" else {"broker": "b"}
        queues = [{"queue_id": queue} | broker for queue in range(self.queues)]
        extra = {"topic_id": TOPIC_ID} if self.kind == "kafka-new" else {}
        self.emit(at, "topic_queues", topic=topic, queues=queues, **extra)
        self.topic = getattr(self, "topic", topic)

    def change(self, at: int, deeds: list[tuple[str, str]]) -> None:
        """Let clients join (+) and their oldest members leave (-), leave by poll timeout (~) or expire (!), at once."""
        left: list[tuple[str, str]] = []
        come: list[str] = []
        for deed, client in deeds:
            if deed == "+":
                come.append(self._new_member(client, at))
            else:
                left.append((deed, self._oldest(client)))
        for _, member_id in left:
            if self.kind != "kafka":
                self._beat(member_id, at)
        if self.kind == "kafka":
            for _, member_id in left:
                del self.members[member_id]
            self._generation(at, left)
            return
        if self.kind == "kafka-new":
            self._epoch(at, come, left)
            return
        for deed, member_id in left:
            self.emit(at, "member_left", group=self.group, member_id=member_id, **self._reasons(deed))
            del self.members[member_id]
        for member_id in come:
            self.emit(at, "member_joined", group=self.group, **self._described(member_id))

    def subscribe(self, at: int, client: str, topic: str) -> None:
        """Let a client subscribe to one more topic, which exists from then on."""
        self._describe(at - 1, topic)
        self.topics.setdefault(client, []).append(topic)
        if self.kind == "kafka":
            self._generation(at, [])
            return
        member_id = self._oldest(client)
        self.emit(at, "heartbeat", group=self.group, **self._described(member_id))

    def delete(self, at: int) -> None:
        """Delete the group."""
        self.emit(at, "group_deleted", group=self.group)
        self.members.clear()

    def clock(self, at: int) -> None:
        """Report that everything is known up to a time; members that did not depart were alive until then."""
        for member_id in list(self.members):
            self._beat(member_id, at)
        for time in range(30_000, at, 30_000):
            self.emit(time, "clock")
        self.emit(at + 2_000, "clock")

    def is_ghost(self, member_id: str) -> bool:
        """Return whether a younger member of the same client has taken its place."""
        return member_id in self.dead

    @property
    def dead(self) -> set[str]:
        """Return the members whose clients died without leaving."""
        found: set[str] = self.__dict__.setdefault("_dead", set())
        return found

    def crash(self, client: str) -> None:
        """Let the oldest living member of a client die; it stays a member until its session ends."""
        self.dead.add(
            next(member for member in self.members if self.members[member] == client and member not in self.dead)
        )

    def _oldest(self, client: str) -> str:
        return next(member_id for member_id, of in self.members.items() if of == client)

    def _new_member(self, client: str, at: int) -> str:
        self.serial += 1
        self.hosts.setdefault(client, f"10.0.0.{len(self.hosts) + 1}")
        member_id = f"{client}@{self.serial}"
        self.members[member_id], self.joined[member_id] = client, at
        return member_id

    def _beat(self, member_id: str, until: int) -> None:
        if self.system == "kafka" or member_id in self.dead:
            return
        for at in range(self.joined[member_id] + HEARTBEAT_MS, until, HEARTBEAT_MS):
            self.emit(at, "heartbeat", group=self.group, member_id=member_id)

    def _described(self, member_id: str) -> Event:
        client = self.members[member_id]
        return {
            "member_id": member_id,
            "client_id": client,
            "host": self.hosts[client],
            "subscriptions": sorted({self.topic, *self.topics.get(client, ())}),
        }

    def _reasons(self, deed: str) -> Event:
        return {"how": _HOW[deed]} | ({"reason": _REASONS[deed]} if deed in _REASONS else {})

    def _shares(self) -> dict[str, list[int]]:
        ids = sorted(self.members)
        return {member_id: list(range(place, self.queues, len(ids))) for place, member_id in enumerate(ids)}

    def _generation(self, at: int, left: list[tuple[str, str]]) -> None:
        self.generation += 1
        assignments = {
            member_id: [{"topic": self.topic, "queue_id": queue} for queue in queues]
            for member_id, queues in self._shares().items()
        }
        self.emit(
            at,
            "group_snapshot",
            group=self.group,
            generation=self.generation,
            state="Stable" if self.members else "Empty",
            strategy="roundrobin",
            members=[self._described(member_id) | {"session_timeout_ms": 45_000} for member_id in self.members],
            assignments=assignments,
            departures=[
                {"member_id": member_id, "kind": _HOW[deed], "evidence": _REASONS.get(deed)} for deed, member_id in left
            ],
        )

    def _record(self, at: int, record: str, **fields: Any) -> None:
        self.offset += 1
        self.emit(
            at, "group_record", group=self.group, protocol="consumer", record=record, offset=self.offset, **fields
        )

    def _epoch(self, at: int, come: list[str], left: list[tuple[str, str]]) -> None:
        self.generation += 1
        for deed, member_id in left:
            self.emit(at, "member_left", group=self.group, member_id=member_id, **self._reasons(deed))
            for record in ("member_current", "member_target", "member"):
                self._record(at, record, member_id=member_id, deleted=True)
            del self.members[member_id]
        for member_id in come:
            self._record(at, "member", member_id=member_id, member=self._described(member_id))
        self._record(at, "group", epoch=self.generation)
        for member_id, queues in self._shares().items():
            partitions = [{"topic": TOPIC_ID, "partitions": queues}]
            self._record(at, "member_target", member_id=member_id, partitions=partitions)
        self._record(at, "target", epoch=self.generation)
        for member_id, queues in self._shares().items():
            self._record(
                at,
                "member_current",
                member_id=member_id,
                epoch=self.generation,
                previous_epoch=self.generation - 1,
                state="stable",
                partitions=[{"topic": TOPIC_ID, "partitions": queues}],
                revoking=[],
            )
