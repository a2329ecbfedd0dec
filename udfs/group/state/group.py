"""Core: the state of one group between its decisions. No I/O.

Everything that grows with time has a limit, stated here; beyond it the oldest entry is forgotten. Everything that grows
with the group (members, owners, topics) is bounded by the group itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from udfs.group.state.audit_results import CurrentAudit, StrategyVerdict
from udfs.group.state.episodes import Episode, Root
from udfs.group.state.flapping import Usual
from udfs.group.state.queue_findings import CommitsBack, ExpiredCommits, Standstill, UnreadQueues
from udfs.group.state.recorded_group import RecordedGroup
from udfs.model.events import HeldQueue, MemberFields, Mode, QueueInfo, QueueRef, RevokedQueue
from udfs.model.journal import GroupChanged, LeftReason, MemberReplaced, Trigger, TriggerKind
from udfs.model.queue_outages import QueueOutage
from udfs.model.spans import QueuesReassigned
from udfs.model.systems import SYSTEMS, System

# (topic, broker, queue id); Kafka's partitions have no broker.
Queue: TypeAlias = tuple[str, str | None, int]
# The owners of each queue: one or more members, sorted. Queues without an owner are not in it.
Owners: TypeAlias = Mapping[Queue, tuple[str, ...]]

POLLS = "polls"  # the row's value for a generation that only polls of its coordinator showed

MAX_EVIDENCE = 256  # evidence that no reported generation has shown yet
MAX_WAITING_REPORTS = 4_096  # reported assignments whose generation was not yet observed
MAX_REPLACEMENTS = 256  # replacements of static members, since a rebalance whose spans are not all written
MAX_IDLE_QUEUES = 4_096  # queues between two owners; if there are more, none is remembered, and pauses are not measured


class Member(MemberFields, frozen=True, kw_only=True, omit_defaults=False, gc=False):  # type: ignore[misc]
    """One member, in its current or its last session, with its description.

    Attributes:
        name: The client's own id; it differs from ``member_id`` if two live connections share one.
        by_heartbeats: Its liveness comes from its own heartbeats; otherwise from snapshots.
        holds_since: The time since which it has owned exactly its current queues.
        field_times: The newest event time that carried each field.
        reported_at: When it last reported its queues, if no whole assignment was reported since.
        timeout_since: The time from which its session timeout applies, if it was reported late.
        own_joined_at: The time of the event that began its session, if that came late.
    """

    member_id: str
    name: str
    joined_at: int
    by_heartbeats: bool = True
    holds_since: int | None = None
    field_times: Mapping[str, int] = msgspec.field(default_factory=dict)
    timeout_since: int | None = None
    reported_at: int | None = None
    own_joined_at: int | None = None

    @property
    def begins_at(self) -> int:
        """Return the time from which its events belong to its session."""
        return self.joined_at if self.own_joined_at is None else self.own_joined_at

    @property
    def begun(self) -> tuple[int, int | None, int | None]:
        """Return when its session began, by which event, and since when it has owned what it owns."""
        return self.joined_at, self.own_joined_at, self.holds_since

    def copied(self, *, by_heartbeats: bool, name: str | None = None) -> Member:
        """Return a copy that can change its liveness and name independently of the member."""
        times, name = dict(self.field_times), self.name if name is None else name
        return msgspec.structs.replace(self, field_times=times, by_heartbeats=by_heartbeats, name=name)


class Departed(msgspec.Struct, frozen=True, kw_only=True):
    """A departed member: it may rejoin with its last description, and an expiry may be disproved.

    Attributes:
        own_at: The time of the departure itself, if that is not the end of the session: the departure, or the event
            that showed the expiry, came late, or the member left again while it was absent.
    """

    member: Member
    left_at: int
    left_reason: LeftReason
    last_heartbeat_at: int | None = None
    own_at: int | None = None

    @property
    def over_at(self) -> int:
        """Return the time up to which its events belong to a session that is over."""
        return self.left_at if self.own_at is None else self.own_at


class Evidence(msgspec.Struct, frozen=True, array_like=True):
    """Evidence of a change in a group with reported generations, kept until a generation shows it."""

    kind: TriggerKind
    time: int
    member_id: str | None = None
    topic: str | None = None
    event_id: str | None = None
    detail: str | None = None


class WaitingReport(msgspec.Struct, frozen=True, array_like=True):
    """A member's reported queues in a generation that was not yet observed."""

    generation: int
    member_id: str
    queues: tuple[HeldQueue, ...]
    time: int
    host: str | None = None


class Replacement(msgspec.Struct, frozen=True, array_like=True):
    """A static member came back under a new id.

    ``written``: its spans are already split; otherwise they are split once the pending rebalance is written.
    ``outages``: how long nobody read its queues.
    """

    former_id: str
    member_id: str
    instance_id: str | None
    at: int
    written: bool = True
    outages: Sequence[QueueOutage] = msgspec.field(default_factory=list)


class Awaited(msgspec.Struct, frozen=True, kw_only=True):
    """A reported generation with topics without metadata: the input for computing it once they have it.

    Attributes:
        since: The generation's own time. topic_queues: Queues of its topics, as of then or as first reported; only a
            count if no more is reported.
        guessed: Its computed spans begin with the queues that the assignment named.
        assumes_queues: Some of these belong to a topic without metadata then, so differences from them prove nothing.
        before: The previous computed owners.
        previous: The owners that its strategy starts from, if different.
        again: Earlier changes of computed spans at that same time; they count, although everything written from then on
            is withdrawn. None if an earlier batch wrote some of them.
    """

    since: int
    topic_queues: Mapping[str, int | tuple[QueueInfo, ...]]
    guessed: bool
    assumes_queues: bool
    before: Owners
    previous: Owners | None = None
    again: Sequence[QueuesReassigned | MemberReplaced] | None = msgspec.field(default_factory=list)


class Pending(msgspec.Struct, frozen=True, array_like=True):
    """Changes that one rebalance will cover: all from ``opened_at`` on within the settling time.

    ``reported`` is the whole reported assignment, if the last change came with one.
    """

    opened_at: int
    changed_at: int
    triggers: Sequence[Trigger] = msgspec.field(default_factory=list)
    reported: Sequence[tuple[Queue, tuple[str, ...]]] | None = None


class GroupFinding(msgspec.Struct, frozen=True, array_like=True):
    """An open finding; ``closes_at`` if time alone closes it; ``digest``: 64 bits of its row's content."""

    finding_id: str
    opened_at: int
    closes_at: int | None = None
    digest: int = 0


class IdleQueue(msgspec.Struct, frozen=True, array_like=True):
    """A queue between two owners.

    Attributes:
        estimate: The expected pause. released_at: When the pause began, if observed.
        taker: The member that reports the queue but has not pulled it yet. read_at: The last known time at which the
            former owner had read it.
    """

    estimate: int | None = None
    released_at: int | None = None
    taker: str | None = None
    read_at: int | None = None


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """One group.

    Attributes:
        number: Changes written so far; never reset.
        counted: Counted generations so far; never reset.
        generation: The last reported generation; None while generations are counted.
        exists: It had a rebalance since it was last deleted or forgotten, so the next one is not its creation.
        followed: False for a kind of group that is not recomputed.
        settings_at: The newest event time that carried each of mode, strategy and strategy settings.
        members: In the order of joining. departed: Oldest first.
        reported_at: When the reported spans last changed; reports alone do not make later events late.
        assigned_at: When a whole assignment was last reported.
        polled: Its coordinator assigns, but only polls show its generations, which the monitor counts.
        converging: The newest of these was polled while members still gave queues up and took them over.
        counts: The number of queues of each subscribed topic with metadata at the last decision.
        topics_without_metadata: Topics of the current reported generation without metadata so far.
        awaited: The input for computing it once they have metadata; None if it will not be computed.
        replaced: Static members that rejoined since a rebalance whose spans are still to be written.
        revoked_pending: Queues that cooperative generations revoked and have not yet assigned.
        waiting_since: When the queues revoked before the last generation were revoked; None if unknown.
        rebalance_ordinals: The number of rebalances of each generation at the newest event time with rebalances.
        recomputable: Whether the group's own strategies can be recomputed.
        compare_at: The time by which members should own what the last rebalance assigned to them.
        pulls: When reporting owners last pulled each queue, if they report it.
        idle_queues: Queues whose next owner was not observed yet, or has not pulled them yet.
        recent: Times of the newest rebalances, ascending. usual: The memory of older ones, see ``flapping``.
        touched_at: The time of the last applied event; ``forget_after`` counts from it.
        recorded: The coordinator's records of a consumer, share or streams group.
        last_heartbeats: The last heartbeats of members that are tracked by snapshots now.
        logical_id: The first generation of the cooperative rebalance that ``revoked_pending`` belongs to.
        preparing_since, preparing_reason, join_ended_at: Start, reason and end of the join phase of the rebalance in
            progress, if reported.
        audit: The current generation's audit; None while it is still to come. verdict: The verdict of all earlier
            audits.
        last_library: The client library that assigned the last generation.
        deleted_at: When the former group of that name was deleted, by the newest deletion.
        computed_at: The time of the last written change of computed spans; None for that of the last rebalance.
        under_way_since: The time since which its source has shown it rebalancing without a break; None if it is not.
        returned_after: When members that a snapshot brought back had departed; older events belong to a former session.
            If a member expired, when that session had begun, because a late heartbeat may show that it had not expired.
        recent_clients: The clients that caused each of ``recent``, see ``flapping``.
        standstill, retention: The open findings that queues stand, and those of ``lost_messages``, by kind.
        roots: The newest rebalances, by what caused them. episodes: The open ones.
    """

    number: int = 0
    counted: int = 0
    generation: int | None = None
    exists: bool = False
    followed: bool = True
    mode: Mode | None = None
    strategy: str | None = None
    strategy_inferred: bool = False
    strategy_settings: Mapping[str, object] | None = None
    reported_strategy: str | None = None
    last_strategy: str | None = None
    settings_at: Mapping[str, int] = msgspec.field(default_factory=dict)
    leader: str | None = None
    members: Mapping[str, Member] = msgspec.field(default_factory=dict)
    departed: Mapping[str, Departed] = msgspec.field(default_factory=dict)
    members_decided: int = 0
    computed: Owners = msgspec.field(default_factory=dict)
    reported: Owners = msgspec.field(default_factory=dict)
    has_reported: bool = False
    reported_at: int | None = None
    reporters: Sequence[str] = msgspec.field(default_factory=list)
    counts: Mapping[str, int] = msgspec.field(default_factory=dict)
    topics_without_metadata: Sequence[str] = msgspec.field(default_factory=list)
    awaited: Awaited | None = None
    replaced: Sequence[Replacement] = msgspec.field(default_factory=list)
    revoked_pending: Sequence[Queue] = msgspec.field(default_factory=list)
    preparing_since: int | None = None
    last_rebalance_at: int | None = None
    last_rebalance_id: str | None = None
    rebalance_ordinals: Mapping[str, int] = msgspec.field(default_factory=dict)
    last_applied: int | None = None
    last_snapshot_at: int | None = None
    touched_at: int | None = None
    evidence: Sequence[Evidence] = msgspec.field(default_factory=list)
    waiting_reports: Sequence[WaitingReport] = msgspec.field(default_factory=list)
    pending: Pending | None = None
    findings: Mapping[str, GroupFinding] = msgspec.field(default_factory=dict)
    late_events: int = 0
    recomputable: bool = True
    compare_at: int | None = None
    pulls: Mapping[Queue, int] = msgspec.field(default_factory=dict)
    idle_queues: Mapping[Queue, IdleQueue] = msgspec.field(default_factory=dict)
    recent: Sequence[int] = msgspec.field(default_factory=list)
    usual: Usual | None = None
    row: GroupChanged | None = None
    last_heartbeats: Mapping[str, int] = msgspec.field(default_factory=dict)
    assigned_at: int | None = None
    polled: bool = False
    logical_id: str | None = None
    preparing_reason: str | None = None
    join_ended_at: int | None = None
    recorded: RecordedGroup | None = None
    audit: CurrentAudit | None = None
    verdict: StrategyVerdict | None = None
    last_library: str | None = None
    waiting_since: Mapping[Queue, int | None] = msgspec.field(default_factory=dict)
    converging: bool = False
    deleted_at: int | None = None
    computed_at: int | None = None
    under_way_since: int | None = None
    returned_after: Mapping[str, int] = msgspec.field(default_factory=dict)
    recent_clients: Sequence[Sequence[int]] = msgspec.field(default_factory=list)
    standstill: Standstill | None = None
    unread: UnreadQueues | None = None
    retention: Mapping[str, Standstill] = msgspec.field(default_factory=dict)
    went_back: CommitsBack | None = None
    expired: ExpiredCommits | None = None
    roots: Sequence[Root] = msgspec.field(default_factory=list)
    episodes: Sequence[Episode] = msgspec.field(default_factory=list)

    @property
    def source(self) -> Literal["reported", "counted"]:
        """Return the source of the group's generation numbers: the event source or the monitor."""
        return "counted" if self.generation is None else "reported"

    @property
    def current_generation(self) -> int:
        """Return the current generation, or 0 if there was none."""
        return self.counted if self.generation is None else self.generation

    def revoked_at(self, queue: Queue) -> int | None:
        """Return when one of ``revoked_pending`` was taken from its last owner; None if unknown."""
        return self.waiting_since.get(queue, self.last_rebalance_at)

    def subscribed_topics(self) -> list[str]:
        """Return the topics that members subscribe to: sorted, distinct."""
        return sorted({topic for member in self.members.values() for topic in member.subscriptions or ()})

    def current_topics(self) -> set[str]:
        """Return the topics that members subscribe to and, if polls do not show subscriptions, the assigned ones."""
        topics = set(self.subscribed_topics())
        is_hidden = self.polled and any(member.subscriptions is None for member in self.members.values())
        return topics.union(self.counts) if is_hidden else topics


def observed_by(group: Group, source: str | None) -> str | None:
    """Return how a row's generation was observed: ``polls``, or None if it was reported or computed."""
    return POLLS if group.polled and source == "counted" else None


def key_of(queue: QueueRef | HeldQueue | RevokedQueue | QueueInfo, system: System, topic: str | None = None) -> Queue:
    """Return the queue's key; a Kafka partition's key has no broker."""
    name = topic or "" if isinstance(queue, QueueInfo) else queue.topic
    return (name, queue.broker if SYSTEMS[system].counts_queues_per_broker else None, queue.queue_id)


def keys_of(queues: Iterable[QueueInfo], system: System, topic: str) -> list[Queue]:
    """Return the keys of a topic's queues."""
    per_broker = SYSTEMS[system].counts_queues_per_broker
    return [(topic, queue.broker if per_broker else None, queue.queue_id) for queue in queues]


def queue_order(queue: Queue) -> tuple[str, str, int]:
    """Return the sort key of a queue."""
    return (queue[0], queue[1] or "", queue[2])


def by_place(owners: Owners) -> list[tuple[str, str | None, dict[int, tuple[str, ...]]]]:
    """Return the owners of each topic's and broker's queues by id; topics and brokers in order."""
    places: dict[tuple[str, str | None], dict[int, tuple[str, ...]]] = {}
    place: tuple[str | None, str | None] = (None, None)
    for (topic, broker, queue_id), holders in owners.items():
        # Queues of one topic mostly follow each other.
        if topic is not place[0] or broker is not place[1]:
            place = (topic, broker)
            of_place = places.setdefault((topic, broker), {})
        of_place[queue_id] = holders
    ordered = sorted(places, key=lambda place: (place[0], place[1] or ""))
    return [(topic, broker, places[topic, broker]) for topic, broker in ordered]
