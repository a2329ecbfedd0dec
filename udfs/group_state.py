"""Core: what is remembered of one group between its decisions. No I/O.

Every list and map has a limit, stated where it is; beyond it the oldest entry is forgotten.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from udfs.events import HeldQueue, Mode, QueueInfo, QueueRef, System
from udfs.journal import GroupChanged, LeftReason, Trigger, TriggerKind

# (topic, broker, queue id); Kafka's partitions have no broker.
Queue: TypeAlias = tuple[str, str | None, int]
# Who holds each queue: one or more members, sorted. Queues that nobody holds are not in it.
Owners: TypeAlias = dict[Queue, tuple[str, ...]]

MAX_EVIDENCE = 256  # what was learned and not yet shown by a reported generation
MAX_WAITING_REPORTS = 4_096  # reports of holdings whose generation was not yet seen
MAX_STANDING = 4_096  # queues between two owners: further ones are neither measured nor estimated


class Member(msgspec.Struct, kw_only=True):
    """One member, in its present or its last session.

    Attributes:
        name: The id that the client goes by: differs from ``member_id`` where two live connections share one.
        by_heartbeats: Lives by its own heartbeats, else by snapshots.
        holds_since: Since when it holds exactly what it holds.
    """

    member_id: str
    name: str
    joined_at: int
    by_heartbeats: bool = True
    client_id: str | None = None
    host: str | None = None
    instance_id: str | None = None
    rack: str | None = None
    client_library: str | None = None
    client_version: str | None = None
    language: str | None = None
    ordered: bool | None = None
    subscriptions: tuple[str, ...] | None = None
    strategies: tuple[str, ...] | None = None
    strategy_settings: dict[str, object] | None = None
    session_timeout_ms: int | None = None
    rebalance_timeout_ms: int | None = None
    owned: tuple[QueueRef, ...] | None = None
    owned_generation: int | None = None
    holds_since: int | None = None


class Departed(msgspec.Struct, kw_only=True):
    """A member that went: it may come back with its last description, and an expiry may prove wrong."""

    member: Member
    left_at: int
    left_reason: LeftReason
    last_heartbeat_at: int | None = None


class Evidence(msgspec.Struct, array_like=True):
    """Something learned about a group whose generations are reported, until a generation shows it."""

    kind: TriggerKind
    time: int
    member_id: str | None = None
    topic: str | None = None
    event_id: str | None = None


class WaitingReport(msgspec.Struct, array_like=True):
    """What a member says it holds in a generation that was not yet seen."""

    generation: int
    member_id: str
    queues: tuple[HeldQueue, ...]
    time: int
    host: str | None = None


class Pending(msgspec.Struct, array_like=True):
    """Changes that one rebalance will take in: all from ``opened_at`` on that fall within the settling time.

    ``told`` is the whole assignment where the last change came with one.
    """

    opened_at: int
    changed_at: int
    triggers: list[Trigger] = msgspec.field(default_factory=list)
    told: list[tuple[Queue, tuple[str, ...]]] | None = None


class OpenFinding(msgspec.Struct, array_like=True):
    """A finding that stands open; ``closes_at`` where time alone closes it."""

    finding_id: str
    opened_at: int
    closes_at: int | None = None


class Standstill(msgspec.Struct, array_like=True):
    """A queue between two owners.

    Attributes:
        estimate: For how long it should stand still. released_at: Since when it does, where that was seen.
        taker: Who says that it holds the queue, and was not seen to read it yet.
    """

    estimate: int | None = None
    released_at: int | None = None
    taker: str | None = None


class Group(msgspec.Struct, kw_only=True):
    """One group.

    Attributes:
        number: Changes written so far; never starts again.
        counted: Counted generations so far; never starts again.
        generation: The last reported generation; None while generations are counted.
        exists: It had a rebalance since it was last deleted or forgotten, so the next one is no creation.
        followed: False: of a kind that is not recomputed.
        members: In the order in which they joined. departed: The longest gone first.
        reported_at: When the reported spans last changed: reports alone make nothing that follows late.
        counts: Queues of each subscribed, known topic as of the last decision.
        guessed_topics: Topics that the standing reported generation was computed without metadata for.
        handed_over: Queues that a cooperative generation took from their owners and gave to nobody yet.
        rebalance_ordinals: Of the newest moment with rebalances: how many of each generation.
        recomputable: What the group's own strategies give is known.
        compare_at: When members should hold what they should since the last rebalance.
        pulls: When owners that say what they hold last pulled each queue, where they say that too.
        standing: Queues whose next owner was not seen yet, or not seen to read them.
        recent: Times of the newest rebalances, ascending, at most as many as flapping asks for.
        touched_at: The last time anything was told; what ``forget_after`` counts from.
    """

    number: int = 0
    counted: int = 0
    generation: int | None = None
    exists: bool = False
    followed: bool = True
    mode: Mode | None = None
    strategy: str | None = None
    strategy_inferred: bool = False
    strategy_settings: dict[str, object] | None = None
    reported_strategy: str | None = None
    dealt_strategy: str | None = None
    leader: str | None = None
    members: dict[str, Member] = msgspec.field(default_factory=dict)
    departed: dict[str, Departed] = msgspec.field(default_factory=dict)
    members_decided: int = 0
    computed: Owners = msgspec.field(default_factory=dict)
    reported: Owners = msgspec.field(default_factory=dict)
    has_reported: bool = False
    reported_at: int | None = None
    reporters: list[str] = msgspec.field(default_factory=list)
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    guessed_topics: list[str] = msgspec.field(default_factory=list)
    handed_over: list[Queue] = msgspec.field(default_factory=list)
    preparing_since: int | None = None
    last_rebalance_at: int | None = None
    last_rebalance_id: str | None = None
    rebalance_ordinals: dict[str, int] = msgspec.field(default_factory=dict)
    last_applied: int | None = None
    last_snapshot_at: int | None = None
    touched_at: int | None = None
    evidence: list[Evidence] = msgspec.field(default_factory=list)
    waiting_reports: list[WaitingReport] = msgspec.field(default_factory=list)
    pending: Pending | None = None
    findings: dict[str, OpenFinding] = msgspec.field(default_factory=dict)
    late_events: int = 0
    recomputable: bool = True
    compare_at: int | None = None
    pulls: dict[Queue, int] = msgspec.field(default_factory=dict)
    standing: dict[Queue, Standstill] = msgspec.field(default_factory=dict)
    recent: list[int] = msgspec.field(default_factory=list)
    row: GroupChanged | None = None

    @property
    def source(self) -> Literal["reported", "counted"]:
        """Answer whose generations the group has."""
        return "counted" if self.generation is None else "reported"

    @property
    def current_generation(self) -> int:
        """Answer the standing generation, 0 when there was none."""
        return self.counted if self.generation is None else self.generation

    def subscribed_topics(self) -> list[str]:
        """Answer the topics that members subscribe to: sorted, distinct."""
        return sorted({topic for member in self.members.values() for topic in member.subscriptions or ()})


def key_of(queue: QueueRef | HeldQueue | QueueInfo, system: System, topic: str | None = None) -> Queue:
    """Answer the queue's key; a partition of Kafka is the same whichever broker leads it."""
    name = topic or "" if isinstance(queue, QueueInfo) else queue.topic
    return (name, None if system == "kafka" else queue.broker, queue.queue_id)


def queue_order(queue: Queue) -> tuple[str, str, int]:
    """Answer what queues are sorted by."""
    return (queue[0], queue[1] or "", queue[2])
