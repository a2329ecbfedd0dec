"""Shell: the state of a MetaQ cluster in ZooKeeper, as values. No I/O here."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec


class Violation(msgspec.Struct, frozen=True, order=True):
    """A node that cannot be parsed. ``path`` is relative to the root; ``raw`` is the beginning of its data."""

    path: str
    reason: str
    raw: str = ""


class Folder(msgspec.Struct, frozen=True):
    """ZooKeeper's record of a node's children.

    Attributes:
        cversion: How often children were added or removed, as a signed 32-bit number that wraps.
        pzxid: The last transaction that did so. ZooKeeper does not keep its time.
    """

    cversion: int = 0
    pzxid: int = 0


class ZkMember(msgspec.Struct, frozen=True):
    """A consumer's node in ``ids``: when it was created, in which transaction, by which session."""

    subscriptions: tuple[str, ...]
    czxid: int
    joined_at: int
    session: int


class ZkOwner(msgspec.Struct, frozen=True):
    """A partition's node in ``owners``."""

    member_id: str
    czxid: int
    since: int


class ZkOwners(msgspec.Struct, frozen=True):
    """One topic in ``owners``: partition name -> owner."""

    folder: Folder
    owners: dict[str, ZkOwner]


class ZkGroup(msgspec.Struct, frozen=True):
    """A group in one read.

    Attributes:
        members: By consumer id. topics: Current and former owners, by topic.
    """

    ids: Folder
    members: dict[str, ZkMember]
    topics: dict[str, ZkOwners]
    violations: tuple[Violation, ...] = msgspec.field(default=(), name="faults")

    def owned(self) -> Iterator[tuple[str, str, ZkOwner]]:
        """Return each topic and partition with a registered owner, in order."""
        for topic in sorted(self.topics):
            for name, owner in sorted(self.topics[topic].owners.items()):
                if owner.member_id in self.members:
                    yield topic, name, owner

    def held(self) -> dict[str, dict[tuple[str, str], ZkOwner]]:
        """Return the partitions of each member that has any, by topic and partition, in order."""
        held: dict[str, dict[tuple[str, str], ZkOwner]] = {name: {} for name in sorted(self.members)}
        for topic, name, owner in self.owned():
            held[owner.member_id][topic, name] = owner
        return held


class ZkShare(msgspec.Struct, frozen=True):
    """A broker's or slave's number of partitions of a topic, and when it was written."""

    broker: str
    partitions: int
    since: int


class ZkTopic(msgspec.Struct, frozen=True):
    """A topic in one read: node name (``0-m``, ``0-s1``) -> share."""

    folder: Folder
    shares: dict[str, ZkShare]
    violations: tuple[Violation, ...] = msgspec.field(default=(), name="faults")

    def queues(self) -> tuple[tuple[str, int], ...]:
        """Return the partitions, sorted; a master and its slaves have the same ones."""
        most: dict[str, int] = {}
        for share in self.shares.values():
            most[share.broker] = max(share.partitions, most.get(share.broker, 0))
        return tuple((broker, number) for broker in sorted(most) for number in range(most[broker]))


def changes_between(before: Folder, now: Folder) -> int:
    """Return how often children were added or removed in between."""
    return (now.cversion - before.cversion) % 2**32
