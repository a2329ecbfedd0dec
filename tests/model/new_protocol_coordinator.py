"""A small coordinator of Kafka's new protocol: requests in, the records that it writes out. From KIP-848 alone.

It is as small as the protocol allows. A request is one moment; what it writes is one batch of records, one after the
other: members that depart (current assignment, target, description, each deleted), a member's description, what
patterns match, the group's epoch, changed targets, the target's epoch, the current assignment of the member that asked.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.model.server_assignments import Target, likely_order, server_answer, voted

Partitions = dict[str, set[int]]  # topic id -> partitions
AWAY = -2  # the epoch of a static member that has left for a while
Write = Callable[..., None]


@dataclass
class ClusterTopic:
    """A topic as the brokers have it."""

    name: str
    topic_id: str
    count: int


@dataclass
class CoordinatedMember:
    """One member as its coordinator has it; ``client`` is what stays the same over restarts."""

    member_id: str
    client: str
    instance_id: str | None = None
    names: tuple[str, ...] = ()
    pattern: str | None = None
    assignor: str | None = None
    host: str = "h0"
    epoch: int = 0
    previous: int = 0
    state: str = "stable"
    assigned: Partitions = field(default_factory=dict)
    revoking: Partitions = field(default_factory=dict)


def new_topic_id(chance: random.Random) -> str:
    """Return a topic id as Kafka writes it."""
    return base64.urlsafe_b64encode(chance.randbytes(16)).decode().rstrip("=")


class NewProtocolCoordinator:
    """One group.

    Args:
        topics: Of the cluster; they grow and go outside.
        write: Takes one record, as fields of ``group_record``.
        release: Of the broker; those before 4.1 also write the topics of a group.
        default: The assignor where no member names one.
    """

    def __init__(
        self, topics: dict[str, ClusterTopic], write: Write, release: str, default: str, chance: random.Random
    ) -> None:
        self.topics, self.write, self.release, self.default, self.chance = topics, write, release, default, chance
        self.members: dict[str, CoordinatedMember] = {}
        self.targets: dict[str, dict[str, list[int]]] = {}
        self.matched: dict[str, tuple[str, ...]] = {}  # pattern -> topics
        self.epoch = self.target_epoch = 0
        self.seen: dict[str, tuple[str, int]] = {}  # the topics that the last epoch knew
        self.newest: list[str] = []
        self.delays_targets = False
        self.has_gaps = False  # an epoch is missing now and then: its records have been compacted

    # ---- requests

    def join(self, member: CoordinatedMember) -> None:
        former = self.static(member.instance_id)
        if former is not None:
            self._replace(former, member)
            bumps = set(former.names) != set(member.names) or former.pattern != member.pattern
        else:
            self.members[member.member_id], bumps = member, True
            self._describe(member)
            self.newest.append(member.member_id)
        self._ask(member, bumps=bumps, acknowledges=True, owns=False)

    def heartbeat(self, member_id: str, *, acknowledges: bool = True) -> None:
        self._ask(self.members[member_id], bumps=False, acknowledges=acknowledges)

    def change(self, member_id: str, **fields: Any) -> None:
        """Let a member describe itself anew."""
        member = self.members[member_id]
        bumps = any(getattr(member, name) != fields.get(name, getattr(member, name)) for name in ("names", "pattern"))
        for name, value in fields.items():
            setattr(member, name, value)
        self._describe(member)
        self._ask(member, bumps=bumps, acknowledges=True)

    def remove(self, *member_ids: str) -> None:
        """Let members leave, or expire: their records are deleted, and an epoch begins; nobody asks for its target."""
        for member_id in member_ids:
            self._delete(member_id)
        self._begin_epoch()

    def go_away(self, member_id: str) -> None:
        """Let a static member leave for a while."""
        member = self.members[member_id]
        member.epoch, member.revoking = AWAY, {}
        self._write_current(member)

    def resolve(self) -> None:
        """Resolve all patterns anew: an epoch begins if any topic was found or lost."""
        found = {
            member.pattern: tuple(sorted(name for name in self.topics if name.startswith(member.pattern)))
            for member in self.members.values()
            if member.pattern
        }
        changed = {pattern: names for pattern, names in found.items() if self.matched.get(pattern) != names}
        was = dict(self.matched)
        for pattern, names in sorted(changed.items()):
            self.matched[pattern] = names
            self.write("pattern", pattern=pattern, topics=list(names))
        for pattern in sorted(self.matched.keys() - found.keys()):
            del self.matched[pattern]
            self.write("pattern", pattern=pattern, deleted=True)
        if any(names != was.get(pattern, ()) for pattern, names in changed.items()):
            self._begin_epoch()

    def refresh(self) -> None:
        """Begin an epoch because of what no record shows, such as racks of partitions."""
        self._begin_epoch()

    def delete_group(self) -> None:
        """Delete the group, which is empty."""
        self.write("target", deleted=True)
        if self.release < "4.1":
            self.write("topics", deleted=True)
        self.write("group", deleted=True)
        self.epoch = self.target_epoch = 0
        self.seen, self.targets, self.matched = {}, {}, {}

    def static(self, instance_id: str | None) -> CoordinatedMember | None:
        if instance_id is None:
            return None
        return next((member for member in self.members.values() if member.instance_id == instance_id), None)

    # ---- one request

    def _ask(self, member: CoordinatedMember, *, bumps: bool, acknowledges: bool, owns: bool = True) -> None:
        if bumps or self._known_topics() != self.seen:
            self._begin_epoch()
        if self.epoch > self.target_epoch and not (self.delays_targets and self.chance.random() < 0.5):
            self._assign(member.member_id)
        if self.target_epoch:
            self._reconcile(member, acknowledges, owns)

    def _begin_epoch(self) -> None:
        seen, self.seen = self.seen, self._known_topics()
        if self.release < "4.1" and self.seen != seen:
            self.write("topics", topic_ids={topic_id: name for name, (topic_id, _) in sorted(self.seen.items())})
        self.epoch += 2 if self.has_gaps and self.chance.random() < 0.2 else 1
        self.write("group", epoch=self.epoch)

    def _known_topics(self) -> dict[str, tuple[str, int]]:
        """Return id and partitions of every topic that a member subscribes to."""
        names = {name for member in self.members.values() for name in self.subscribed(member)}
        return {name: (topic.topic_id, topic.count) for name, topic in self.topics.items() if name in names}

    def subscribed(self, member: CoordinatedMember) -> tuple[str, ...]:
        matched = self.matched.get(member.pattern, ()) if member.pattern else ()
        return tuple(sorted({*member.names, *matched}))

    def _assign(self, asking: str) -> None:
        """Publish the target of the newest epoch."""
        held = self._computed(asking)
        for member_id in held:
            target: dict[str, list[int]] = {}
            for topic, number in held[member_id]:
                target.setdefault(self.topics[topic].topic_id, []).append(number)
            before = self.targets.get(member_id)
            if before is None or _as_sets(before) != _as_sets(target):
                self.targets[member_id] = target
                self.write("member_target", member_id=member_id, partitions=_written(target))
        self.target_epoch, self.newest = self.epoch, []
        self.write("target", epoch=self.epoch)

    def _computed(self, asking: str) -> Target:
        """Return the target by the assignor that most members name; of several, by the likeliest."""
        named = [member.assignor for member in self.members.values() if member.assignor]
        names = {topic.topic_id: topic.name for topic in self.topics.values()}
        return server_answer(
            voted(named, self.default, self.members[asking].assignor if asking in self.newest else None)[0],
            {
                member_id: {
                    "instance_id": member.instance_id,
                    "subscriptions": self.subscribed(member),
                    "pattern": member.pattern,
                }
                for member_id, member in self.members.items()
            },
            self.seen,
            {
                member_id: [(names[topic], number) for topic, numbers in target.items() for number in numbers]
                for member_id, target in self.targets.items()
            },
            likely_order(self.members, asking if asking in self.newest else None),
            self.release,
        )

    def _reconcile(self, member: CoordinatedMember, acknowledges: bool, owns: bool) -> None:
        """Bring a member one step nearer to its target.

        It gives up what it has too much first, at its old epoch; then it gets the new epoch, and what is free of the
        rest; what others have yet to release comes as soon as it is free.
        """
        is_at_target = member.epoch == self.target_epoch
        if (member.state == "stable" and is_at_target) or (member.state == "unrevoked" and not acknowledges):
            return
        target = _as_sets(self.targets.get(member.member_id, {}))
        before = (member.state, member.epoch, member.assigned, member.revoking)
        kept = _clean({topic: numbers & target.get(topic, set()) for topic, numbers in member.assigned.items()})
        lost = _clean({topic: numbers - kept.get(topic, set()) for topic, numbers in member.assigned.items()})
        if lost and owns:  # one that joins owns nothing yet
            member.state, member.assigned, member.revoking = "unrevoked", kept, lost
        else:
            taken = self._taken(member.member_id)
            wanted = {topic: numbers - kept.get(topic, set()) for topic, numbers in target.items()}
            free = _clean({topic: numbers - taken.get(topic, set()) for topic, numbers in wanted.items()})
            waits = any(numbers & taken.get(topic, set()) for topic, numbers in wanted.items())
            member.state = "unreleased" if waits else "stable"
            member.assigned = _clean(
                {t: kept.get(t, set()) | free.get(t, set()) for t in sorted(kept.keys() | free.keys())}
            )
            member.revoking = {}
            if not is_at_target:
                member.previous, member.epoch = member.epoch, self.target_epoch
        if (member.state, member.epoch, member.assigned, member.revoking) != before:
            self._write_current(member)

    def _taken(self, by_others_than: str) -> Partitions:
        taken: Partitions = {}
        for member_id, member in self.members.items():
            if member_id != by_others_than:
                for held in (member.assigned, member.revoking):
                    for topic, numbers in held.items():
                        taken[topic] = taken.get(topic, set()) | numbers
        return taken

    # ---- records

    def _delete(self, member_id: str) -> None:
        for kind in ("member_current", "member_target", "member"):
            self.write(kind, member_id=member_id, deleted=True)
        del self.members[member_id]
        self.targets.pop(member_id, None)
        self.newest = [name for name in self.newest if name != member_id]

    def _replace(self, former: CoordinatedMember, member: CoordinatedMember) -> None:
        """Let a static member take the place of its former id: it has what that had.

        Its first description is that of the former; its own follows if it differs. Source: kafka-group-coordinator 4.1
        ``GroupMetadataManager#getOrMaybeSubscribeStaticConsumerMember``, ``#hasMemberSubscriptionChanged``.
        """
        target = self.targets.get(former.member_id)
        member.state, member.assigned, member.revoking = former.state, former.assigned, former.revoking
        self._delete(former.member_id)
        self.members[member.member_id] = member
        as_former = replace(former, member_id=member.member_id)
        self._describe(as_former)
        if target is not None:
            self.targets[member.member_id] = target
            self.write("member_target", member_id=member.member_id, partitions=_written(target))
        self._write_current(member)
        if _description(as_former) != _description(member):
            self._describe(member)

    def _describe(self, member: CoordinatedMember) -> None:
        self.write("member", member_id=member.member_id, **_description(member))

    def _write_current(self, member: CoordinatedMember) -> None:
        self.write(
            "member_current",
            member_id=member.member_id,
            epoch=member.epoch,
            previous_epoch=member.previous,
            state=member.state,
            partitions=_written(member.assigned),
            revoking=_written(member.revoking),
        )


def _description(member: CoordinatedMember) -> dict[str, Any]:
    described: dict[str, Any] = {
        "member_id": member.member_id,
        "client_id": member.client,
        "host": member.host,
        "subscriptions": sorted(member.names),
        "strategies": [f"server.{member.assignor}"] if member.assignor else [],
        "rebalance_timeout_ms": 300_000,
        "protocol": "consumer",
    }
    if member.instance_id:
        described["instance_id"] = member.instance_id
    return {"member": described, **({"pattern": member.pattern} if member.pattern else {})}


def _as_sets(partitions: dict[str, list[int]]) -> Partitions:
    return {topic: set(numbers) for topic, numbers in partitions.items() if numbers}


def _clean(partitions: Partitions) -> Partitions:
    return {topic: numbers for topic, numbers in partitions.items() if numbers}


def _written(partitions: Any) -> list[dict[str, Any]]:
    return [
        {"topic": topic, "partitions": sorted(numbers) if isinstance(numbers, set) else numbers}
        for topic, numbers in partitions.items()
        if numbers
    ]
