"""Core: spans of ownership in the journal: queues that get owners, and queues that lose them. No I/O."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Origin: TypeAlias = Literal["computed", "reported"]


class QueueAssigned(msgspec.Struct, kw_only=True):
    """A span opens; at most one span is open for each (group, queue, member, origin).

    In the journal it is part of ``QueuesReassigned``.
    """

    topic: str
    broker: str | None
    queue_id: int
    member_id: str
    instance_id: str | None = None
    origin: Origin
    generation: int
    rebalance_id: str
    valid_from: int
    inferred: bool = False
    pause_ms: int | None = None  # how long the queue had no owner before, if observed
    pause_estimated_ms: int | None = None  # the same, if not observed
    repeated_messages: int | None = None  # messages read twice, by the former owner's position
    repeated_estimated_messages: int | None = None  # the same, if that position is unknown
    waiting_messages: int | None = None  # messages between the committed and the end offset
    waiting_estimated_messages: int | None = None  # the same, if the end offset was not observed at that time
    outage_min_ms: int | None = None  # minimum time in which nobody read the queue before
    outage_max_ms: int | None = None  # maximum time


class QueueResumed(msgspec.Struct, kw_only=True, tag_field="kind", tag="queue_resumed"):
    """The owner of the open span of (queue, member, origin) was observed to pull the queue after taking it over."""

    topic: str
    broker: str | None
    queue_id: int
    member_id: str
    origin: Origin
    pause_ms: int
    outage_min_ms: int | None = None
    outage_max_ms: int | None = None


class QueueReleased(msgspec.Struct, kw_only=True):
    """The open span of (queue, member, origin) ends; a span of no length leaves no row.

    In the journal it is part of ``QueuesReassigned``.
    """

    topic: str
    broker: str | None
    queue_id: int
    member_id: str
    origin: Origin
    valid_to: int


class SpansWithdrawn(msgspec.Struct, kw_only=True, tag_field="kind", tag="spans_withdrawn"):
    """The computed spans from ``since`` on were provisional: the previous ones continue; the correct ones follow."""

    since: int


class ReleasedRun(msgspec.Struct, array_like=True, gc=False):
    """Neighbouring queues whose open spans end.

    Attributes:
        member: The owner whose spans end, as its index in ``QueuesReassigned.members``; None for every owner that does
            not get the queue by the same change.
    """

    first: int
    last: int
    member: int | None = None


class AssignedRun(msgspec.Struct, array_like=True, gc=False):
    """Neighbouring queues for which spans open.

    Attributes:
        member: The new owner, as its index in ``QueuesReassigned.members``. None if each queue goes to the member that
            owned, before this change, the queue ``shift`` ids below it.
        pause_ms, pause_estimated_ms, outage_min_ms, outage_max_ms: See ``QueueAssigned``; valid for each of these
            queues.
    """

    first: int
    last: int
    member: int | None = None
    shift: int = 0
    pause_ms: int | None = None
    pause_estimated_ms: int | None = None
    outage_min_ms: int | None = None
    outage_max_ms: int | None = None


class QueueCost(msgspec.Struct, array_like=True, gc=False):
    """The cost of giving a queue to its new owners, see ``QueueAssigned``."""

    queue_id: int
    repeated_messages: int | None = None
    repeated_estimated_messages: int | None = None
    waiting_messages: int | None = None
    waiting_estimated_messages: int | None = None


class ReassignedTopic(msgspec.Struct, array_like=True):
    """The changes of one topic's queues on one broker; runs and costs by their first queue.

    Attributes:
        costs: Costs of queues that get an owner, as far as offsets are known.
    """

    topic: str
    broker: str | None
    released: list[ReleasedRun]
    assigned: list[AssignedRun]
    inferred: bool = False
    costs: list[QueueCost] = msgspec.field(default_factory=list)


class QueuesReassigned(msgspec.Struct, kw_only=True, tag_field="kind", tag="queues_reassigned"):
    """All spans of one origin that end and open at one event time; at most one span is open for each (queue, member).

    Attributes:
        members: Each named member with its instance id.
        topics: By topic and broker.
    """

    origin: Origin
    at: int
    generation: int
    rebalance_id: str
    members: list[tuple[str, str | None]]
    topics: list[ReassignedTopic]
