"""Core: the seam between a shard and its groups: what a group is told, what it answers. No I/O.

A shard holds liveness in arrays and groups as encoded values. When something about a group is due, the
shard decodes it, tells it everything due as ``GroupFacts`` and writes back what ``group.advance`` answers.
All times are epoch ms; "due" means strictly before ``clock``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from udfs.events import AnyEvent, GroupSnapshot, QueueInfo, System
from udfs.journal import Change, Rebalance, Rejected
from udfs.rules import Rules


class Due(msgspec.Struct, frozen=True):
    """One event whose time has come.

    Attributes:
        event: Parsed, all times epoch ms.
        event_id: The event's own id, else the hash of its canonical content.
        late: Older than the clock before this batch *and* than what was applied to its group. It applies at
            ``GroupFacts.clock_before``, before everything else, and the rebalance names its own time.
        source, position: Where it was read.
    """

    event: AnyEvent
    event_id: str
    late: bool = False
    source: str = ""
    position: str = ""


class TopicsView(Protocol):
    """The cluster's topics as the events so far describe them."""

    def at(self, topic: str, time_ms: int) -> tuple[QueueInfo, ...] | None:
        """Answer the topic's queues as known at that time (events of that very moment included).

        Returns: queues by (broker, queue_id); ``()`` when deleted; None when not known yet.
        """

    def first_known(self, topic: str) -> tuple[QueueInfo, ...] | None:
        """Answer the first queues ever known of the topic since it was last unknown."""

    def topic_id(self, topic: str) -> str | None:
        """Answer Kafka's UUID of the topic where it was told."""


class RepeatLedger(Protocol):
    """The remembered ids of one group."""

    def is_repeat(self, event_id: str, time_ms: int) -> bool:
        """Judge an event as it is applied, and remember it when it is the first with its id.

        Not asked about ``TopicQueues`` (their topic's ledger has judged them: a group is told of changes only),
        nor about heartbeats without a description.
        """


class GroupFacts(msgspec.Struct, kw_only=True):
    """All that is due for one group.

    Attributes:
        clock_before: The cluster clock as it stood before the batch; None before the first.
        clock: What lies strictly before it is due; a deadline D is due when clock > D.
        detected_at: The batch's own timestamp.
        events: Due events of this group, late ones included, any order; ``TopicQueues`` of topics that a
            member of the group subscribes to (now or as of events in this list) are among them.
        heartbeats: Heartbeats without a description that are due: member id -> distinct times, ascending.
        last_seen: Last applied heartbeat of each member that lives by heartbeats.
        progress: Commit times by ``packing.queue_key``: what was known before and what is due, ascending.
    """

    cluster: str
    system: System
    group_id: str
    clock_before: int | None
    clock: int
    detected_at: int
    events: Sequence[Due] = ()
    heartbeats: Mapping[str, Sequence[int]] = msgspec.field(default_factory=dict)
    last_seen: Mapping[str, int] = msgspec.field(default_factory=dict)
    progress: Mapping[int, Sequence[int]] = msgspec.field(default_factory=dict)


class Advanced(msgspec.Struct, kw_only=True):
    """What a group answers.

    Attributes:
        last_seen: Every member that lives by heartbeats now, with its last applied heartbeat (or its join).
        session_timeouts_ms: Its session timeout, for the same members.
        topics: Topics that the group's members subscribe to: sorted, distinct.
        wake_at: The group must be advanced again once the clock is past this, even if nothing is due.
        last_applied_ms: The last thing applied: a change that makes a rebalance, an expiry, a snapshot.
        unheeded: Ids of late events that changed nothing, as a heartbeat of a member that had left: they are not
            late after all, and nobody lists them.
        rebalances, changes, rejected: In the order in which they were decided. Late events are listed by the shard.
    """

    last_seen: dict[str, int] = msgspec.field(default_factory=dict)
    session_timeouts_ms: dict[str, int] = msgspec.field(default_factory=dict)
    topics: list[str] = msgspec.field(default_factory=list)
    wake_at: int | None = None
    last_applied_ms: int | None = None
    unheeded: list[str] = msgspec.field(default_factory=list)
    rebalances: list[Rebalance] = msgspec.field(default_factory=list)
    changes: list[Change] = msgspec.field(default_factory=list)
    rejected: list[Rejected] = msgspec.field(default_factory=list)


class GroupLogic(Protocol):
    """What a shard asks of groups: the functions of ``udfs.group``; a group is whatever they take and answer."""

    def new_group(self, cluster: str, system: System, group_id: str) -> Any:
        """Answer a group of which nothing is known yet."""

    def encode_group(self, group: Any, /) -> bytes:
        """Answer a group as bytes, its version first."""

    def decode_group(self, data: bytes, /) -> Any:
        """Read what ``encode_group`` wrote, now or in an earlier version."""

    def members_by_heartbeat(self, group: Any, /) -> Sequence[str]:
        """Answer exactly the members that ``Advanced.last_seen`` named when the group was last advanced."""

    def snapshot_of(self, group: Any, last_seen: Mapping[str, int], event_time: int, /) -> GroupSnapshot:
        """Answer the group as a restored snapshot of the contract, for people and for other versions to read."""

    def advance(
        self, group: Any, facts: GroupFacts, topics: TopicsView, ledger: RepeatLedger, rules: Rules, /
    ) -> Advanced:
        """Tell a group all that is due; it is changed in place."""
