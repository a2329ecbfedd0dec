"""Core: what a finding speaks of, as data: queues, members, clients, subscriptions, its cause. No I/O."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

# A finding names at most this many of each, and has the number of those left out.
MAX_NAMED = 50
MAX_SUBSCRIPTIONS = 10

# These say why the member that a queue is assigned to does not read it.
QueueReason: TypeAlias = Literal["not_subscribed", "not_owned"]
NOT_SUBSCRIBED: Final = "not_subscribed"
NOT_OWNED: Final = "not_owned"


class NamedQueue(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A queue that a finding speaks of.

    Attributes:
        member_id: Whom the strategy assigns it to; None: nobody, or it is not known. reason: Why that member does not
            read it. owners: Who owns it.
    """

    topic: str
    broker: str | None
    queue_id: int
    member_id: str | None = None
    reason: QueueReason | None = None
    owners: tuple[str, ...] = ()


class NamedMember(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A member that a finding names; detail: what it states about this member."""

    member_id: str
    client: str
    detail: str | None = None


class NamedClient(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A client that a finding speaks of; rebalances: how many it caused, where they are counted."""

    client: str
    rebalances: int | None = None


class NamedSubscription(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A subscription, with members that have it and how many more do."""

    topics: tuple[str, ...]
    members: tuple[str, ...]
    members_left_out: int = 0


class FindingNames(msgspec.Struct, frozen=True, kw_only=True):
    """All that a finding speaks of, each list bounded, with how many it leaves out.

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
