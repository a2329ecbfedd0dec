"""Shell: how a consumer departed, judging by the transactions that ZooKeeper keeps. No I/O here.

A session that ends removes all its nodes in one transaction; a consumer that stops releases its partitions one by one
and removes its name last (``ConsumerZooKeeper#unRegisterConsumer``). For each folder ZooKeeper keeps the last
transaction that changed its children, so this is visible until another client changes them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from streaming.collectors.metaq.observed import ZkGroup
from udfs.model.events import Departure

# A stopping consumer deletes its id right after releasing its last partition; an expired session was silent for
# at least two ticks of ZooKeeper, 4 s by default.
STOPPING_MS: Final = 3_000


class GivenBack(msgspec.Struct, frozen=True):
    """A partition that lost its owner while the owner was registered, and that has had no owner since.

    Attributes:
        member_id: Its last owner. pzxid: Of its topic's folder, when observed. at: When the loss was observed.
    """

    member_id: str
    topic: str
    partition: str
    pzxid: int
    at: int


def departure_of(
    member_id: str,
    held: Collection[tuple[str, str]],
    given_back: Mapping[tuple[str, str], GivenBack],
    now: ZkGroup,
    *,
    changes: int,
    at: int,
) -> Departure:
    """Return how a member departed.

    Args:
        held: The partitions it owned in the previous read, by topic and partition.
        given_back: Partitions that it, and others, gave back before that.
        now: The first read in which it is not registered.
        changes: How often ``ids`` changed in between.
        at: When its absence was noticed.
    """
    released = [
        partition
        for partition in given_back.values()
        if partition.member_id == member_id and at - partition.at <= STOPPING_MS
    ]
    topics = sorted({topic for topic, _ in held} | {partition.topic for partition in released})
    if not topics:
        return _undecided(member_id, "it owned no partition: no second node shows how it departed")
    removal = now.ids.pzxid
    last_changes = {
        topic: now.topics[topic].folder.pzxid
        for topic in topics
        if topic in now.topics and not _still_owns(now, member_id, topic)
    }
    for topic, changed in last_changes.items():
        if changed == removal:
            return Departure(
                member_id=member_id,
                kind="expired",
                evidence=f"its id and its partitions of {topic} were deleted in one ZooKeeper transaction"
                f" ({removal:#x}): its"
                " session ended without unregistering",
            )
    if changes == 1:
        earlier = [partition.pzxid for partition in released] + [
            changed for changed in last_changes.values() if changed < removal
        ]
        if earlier and max(earlier) < removal:
            return Departure(
                member_id=member_id,
                kind="left",
                evidence=f"it released its partitions (transaction {max(earlier):#x}) before it deleted its id"
                f" ({removal:#x}), as a consumer does on shutdown",
            )
    return _undecided(member_id, "other members had changed the same nodes before they were read")


def _still_owns(now: ZkGroup, member_id: str, topic: str) -> bool:
    return any(owner.member_id == member_id for owner in now.topics[topic].owners.values())


def _undecided(member_id: str, evidence: str) -> Departure:
    return Departure(member_id=member_id, kind="gone", evidence=evidence, inferred=False)
