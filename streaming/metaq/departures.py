"""Shell: how a consumer went that is registered no more, by the transactions that ZooKeeper keeps. No I/O here.

A session that ends takes all its nodes away in one transaction; a consumer that stops gives its partitions back one by
one and takes its name out last (``ConsumerZooKeeper#unRegisterConsumer``). Of each folder ZooKeeper keeps the last
transaction that changed its children, so this can be seen until somebody else changes them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from streaming.metaq.seen import SeenGroup
from udfs.events import Departure

# Who stops takes its name out within moments of giving the last partition back; a session that expires was silent for
# at least two ticks of ZooKeeper, 4 s by default.
STOPPING_MS: Final = 3_000


class GivenBack(msgspec.Struct, frozen=True):
    """A partition that lost its owner while the owner was registered, and that nobody has taken since.

    Attributes:
        member_id: Who owned it. pzxid: Of its topic's folder, when that was seen. at: When it was seen.
    """

    member_id: str
    topic: str
    partition: str
    pzxid: int
    at: int


def judge(
    member_id: str,
    held: Collection[tuple[str, str]],
    given_back: Mapping[tuple[str, str], GivenBack],
    now: SeenGroup,
    *,
    changes: int,
    at: int,
) -> Departure:
    """Judge how a member went.

    Args:
        held: What it owned in the look before, by topic and partition.
        given_back: What it, and others, gave back before that.
        now: The look in which it is not registered any more.
        changes: How often ``ids`` changed in between.
        at: When its absence was noticed.
    """
    back = [one for one in given_back.values() if one.member_id == member_id and at - one.at <= STOPPING_MS]
    topics = sorted({topic for topic, _ in held} | {one.topic for one in back})
    if not topics:
        return _undecided(member_id, "it owned no partition, so no second node tells how it went")
    gone = now.ids.pzxid
    last_changes = {
        topic: now.topics[topic].folder.pzxid
        for topic in topics
        if topic in now.topics and not _still_owns(now, member_id, topic)
    }
    for topic, changed in last_changes.items():
        if changed == gone:
            return Departure(
                member_id=member_id,
                kind="expired",
                evidence=f"its id and its partitions of {topic} went in one ZooKeeper transaction ({gone:#x}): its"
                " session ended without a goodbye",
            )
    if changes == 1:
        earlier = [one.pzxid for one in back] + [changed for changed in last_changes.values() if changed < gone]
        if earlier and max(earlier) < gone:
            return Departure(
                member_id=member_id,
                kind="left",
                evidence=f"it gave its partitions back (transaction {max(earlier):#x}) before it took its id out"
                f" ({gone:#x}), as a consumer does that stops",
            )
    return _undecided(member_id, "others had changed the same nodes before they were looked at")


def _still_owns(now: SeenGroup, member_id: str, topic: str) -> bool:
    return any(owner.member_id == member_id for owner in now.topics[topic].owners.values())


def _undecided(member_id: str, evidence: str) -> Departure:
    return Departure(member_id=member_id, kind="gone", evidence=evidence, inferred=False)
