"""Core: a change that someone thinks of, and the members and topics of a group after it. No I/O."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from udfs.group.state.group import Member
from udfs.group.what_if.known_group import KnownGroup
from udfs.model.events import QueueInfo
from udfs.model.queues import with_count
from udfs.model.systems import SYSTEMS

# Nobody knows the ids of members that do not exist yet. These ids sort after, or before, all that clients make: U+FFFF
# and U+0001 are the last and the first character that they could use.
_AFTER_ALL, _BEFORE_ALL = "\uffff", "\x01"
# The places of new ids among the others; a number makes ids without an order, as clients do with random parts.
Place: TypeAlias = Literal["last", "first"] | int
_NAME: Final = "new-"


class PlannedChange(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that changes at once.

    Attributes:
        strategy: The qualified name of another strategy. add: The number of new members. like: The member that they
            subscribe like; None for the description that most members have.
        leaving, lost: The ids of members that leave in order, and of those that fall silent.
        queues: The new number of queues by topic; where queues belong to brokers, on each broker that has the topic.
        at_once: In a rolling restart, how many members restart at a time; 0 for none.
        is_static: Whether they restart as static members, within their session timeout.
    """

    strategy: str | None = None
    add: int = 0
    like: str | None = None
    leaving: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    queues: Mapping[str, int] = msgspec.field(default_factory=dict)
    at_once: int = 0
    is_static: bool = False

    @property
    def is_resizing(self) -> bool:
        """Return whether members or queues change, and not only how they are assigned."""
        return bool(self.add or self.leaving or self.lost or self.queues)


def new_id(place: Place, number: int) -> str:
    """Return the id of a member that does not exist yet.

    Example:
        >>> sorted(["b", new_id("first", 1), new_id("last", 1)])[1], shown_id(new_id("last", 1)), shown_id("b")
        ('b', 'new-1', 'b')
    """
    name = f"{_NAME}{number}"
    if place == "last":
        return f"{_AFTER_ALL}{number:09d}{_AFTER_ALL}{name}"
    if place == "first":
        return f"{_BEFORE_ALL}{number:09d}{_AFTER_ALL}{name}"
    return f"{hashlib.sha256(f'{place}:{number}'.encode()).hexdigest()[:12]}{_AFTER_ALL}{name}"


def is_new(member_id: str) -> bool:
    """Return whether a member does not exist yet."""
    return _AFTER_ALL in member_id


def shown_id(member_id: str) -> str:
    """Return a member's id for people and programs."""
    return member_id.rpartition(_AFTER_ALL)[2]


def some_topic_ids(known: KnownGroup, number: int) -> dict[str, str]:
    """Return made-up ids of the topics, in another order for each number."""
    digests = {topic: hashlib.sha256(f"{number}:{topic}".encode()).digest()[:16] for topic in known.topics}
    return {topic: base64.urlsafe_b64encode(digest).decode().rstrip("=") for topic, digest in digests.items()}


def usual_member(known: KnownGroup, like: str | None) -> Member:
    """Return the member whose description new ones get: the named one, else the first with the commonest one."""
    if like is not None:
        return next(member for member in known.members if member.member_id == like)
    numbers: dict[object, int] = {}
    for member in known.members:
        numbers[_kind(member)] = numbers.get(_kind(member), 0) + 1
    most = max(numbers.values())
    return next(member for member in known.members if numbers[_kind(member)] == most)


def _kind(member: Member) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    return (tuple(sorted(member.subscriptions or ())), member.strategies)


def kinds_of_members(known: KnownGroup) -> int:
    """Return how many different descriptions the members have: subscriptions and strategies."""
    return len(set(map(_kind, known.members)))


def new_members(known: KnownGroup, change: PlannedChange, place: Place) -> list[Member]:
    """Return the members that join; they own nothing, and their rack is not known."""
    if not change.add:
        return []
    usual = usual_member(known, change.like)
    ids = [new_id(place, number) for number in range(1, change.add + 1)]
    return [
        msgspec.structs.replace(
            usual,
            member_id=member_id,
            name=member_id,
            instance_id=None if usual.instance_id is None else member_id,
            client_id=None,
            host=None,
            rack=None,
            owned=None,
            owned_generation=None,
        )
        for member_id in ids
    ]


def with_queues(known: KnownGroup, queues: Mapping[str, int]) -> dict[str, tuple[QueueInfo, ...]]:
    """Return the topics with new numbers of queues."""
    per_broker = SYSTEMS[known.system].counts_queues_per_broker
    changed = {
        topic: with_count(known.topics[topic], number, per_broker=per_broker) for topic, number in queues.items()
    }
    return {**known.topics, **changed}


def batches(members: Sequence[Member], at_once: int) -> Iterator[Sequence[Member]]:
    """Yield the members that restart together, in the order in which they joined."""
    for begin in range(0, len(members), at_once):
        yield members[begin : begin + at_once]
