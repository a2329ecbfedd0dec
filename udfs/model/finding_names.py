"""Core: the names in a finding, as data: queues, members, clients, subscriptions, its cause. No I/O."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

# A finding names at most this many of each, and gives the number left out.
MAX_NAMED = 50
MAX_SUBSCRIPTIONS = 10

# Why the member that a queue is assigned to does not read it.
QueueReason: TypeAlias = Literal["not_subscribed", "not_owned"]
NOT_SUBSCRIBED: Final = "not_subscribed"
NOT_OWNED: Final = "not_owned"


class NamedQueue(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A queue named in a finding.

    Attributes:
        member_id: The member that the strategy assigns it to; None if there is none, or if it is unknown. reason: Why
            that member does not read it. owners: Its owners.
    """

    topic: str
    broker: str | None
    queue_id: int
    member_id: str | None = None
    reason: QueueReason | None = None
    owners: tuple[str, ...] = ()


class NamedMember(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A member named in a finding; detail: the finding's statement about this member."""

    member_id: str
    client: str
    detail: str | None = None


class NamedClient(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A client named in a finding; rebalances: how many it caused, if they are counted."""

    client: str
    rebalances: int | None = None


class NamedSubscription(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A subscription with the members that have it, and how many more do."""

    topics: tuple[str, ...]
    members: tuple[str, ...]
    members_left_out: int = 0


class FindingNames(msgspec.Struct, frozen=True, kw_only=True):
    """All names in a finding, each list bounded, with the number left out.

    Attributes:
        caused_by: The id of the finding that this one follows from.
    """

    queues: tuple[NamedQueue, ...] = ()
    queues_left_out: int = 0
    members: tuple[NamedMember, ...] = ()
    members_left_out: int = 0
    clients: tuple[NamedClient, ...] = ()
    clients_left_out: int = 0
    subscriptions: tuple[NamedSubscription, ...] = ()
    subscriptions_left_out: int = 0
    caused_by: str | None = None


NAMES: tuple[str, ...] = FindingNames.__struct_fields__
