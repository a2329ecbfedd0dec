"""Core: what a decision leaves behind: rebalances, changes and rejected inputs, as plain values. No I/O.

Every row is a pure function of events and state. A change is numbered within the history of its group
(or topic, or cluster), so that the order of a journal never depends on how the input was cut.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import msgspec

from udfs.model.member_fields import ShownFields

Origin: TypeAlias = Literal["computed", "reported"]
GenerationSource: TypeAlias = Literal["reported", "counted"]
LeftReason: TypeAlias = Literal["left", "expired", "gone", "absent_from_snapshot", "replaced"]
TriggerKind: TypeAlias = Literal[
    "group_created",
    "session_expired",
    "member_left",
    "member_gone",
    "member_joined",
    "subscription_changed",
    "strategy_changed",
    "settings_changed",
    "queue_count_changed",
    "cooperative_follow_up",
    "coordinator_changed",
    "late_evidence",
    "unexplained",
]
# The main trigger is the first of these that is present.
TRIGGER_ORDER: tuple[TriggerKind, ...] = get_args(TriggerKind)


class Trigger(msgspec.Struct, frozen=True, kw_only=True):
    """One cause of a rebalance."""

    kind: TriggerKind
    member_id: str | None = None
    topic: str | None = None
    detail: str | None = None
    event_id: str | None = None


class Rebalance(msgspec.Struct, kw_only=True):
    """One row of ``rebalances``; ``*_at`` and ``event_time`` in epoch ms."""

    rebalance_id: str
    cluster: str
    system: str
    group_id: str
    generation: int
    generation_source: GenerationSource
    event_time: int
    detected_at: int
    trigger: TriggerKind
    triggers: list[Trigger]
    strategy: str | None = None
    leader: str | None = None
    mode: str = "clustering"
    status: Literal["completed", "failed"] = "completed"
    error: str | None = None
    members_before: int = 0
    members_after: int = 0
    queues_before: int = 0
    queues_after: int = 0
    queues_kept: int = 0
    queues_assigned: int = 0
    queues_revoked: int = 0
    queues_moved: int = 0
    generations_missed: int | None = None
    idle_members: int = 0
    unassigned_queues: int = 0
    spread: int = 0
    agrees: bool | None = None
    queues_differing: int | None = None
    pause_ms: int | None = None
    queue_pause_ms: int | None = None
    pause_estimated_ms: int | None = None
    queue_pause_estimated_ms: int | None = None


class MemberOpened(ShownFields, kw_only=True, omit_defaults=False, tag_field="kind", tag="member_opened"):
    """A session begins, with what is shown of its member; its key is (cluster, group, member_id, joined_at).

    ``former_member_id`` is the id that a static member had before it came back under this one.
    """

    member_id: str
    joined_at: int
    lives_by: str = "heartbeats"
    former_member_id: str | None = None


class MemberChanged(MemberOpened, kw_only=True, tag_field="kind", tag="member_changed"):
    """The description of an open session changed (all fields, not a patch).

    Journals of older versions set ``former_member_id`` where a static member came back under a new id: its session
    went on under ``member_id``.
    """


class MemberClosed(msgspec.Struct, kw_only=True, tag_field="kind", tag="member_closed"):
    """A session ends. A session of no length (left_at == joined_at) leaves no row."""

    member_id: str
    joined_at: int
    left_at: int
    left_reason: LeftReason
    last_heartbeat_at: int | None = None


class MemberReopened(msgspec.Struct, kw_only=True, tag_field="kind", tag="member_reopened"):
    """Late evidence disproves an expiry: the session continues."""

    member_id: str
    joined_at: int


class MemberReplaced(msgspec.Struct, kw_only=True, tag_field="kind", tag="member_replaced"):
    """A static member came back under a new id: its open spans end then, and go on under ``member_id``.

    They keep their rebalance, generation and origin. Its sessions have changes of their own.
    """

    former_member_id: str
    member_id: str
    instance_id: str | None
    replaced_at: int


class QueueAssigned(msgspec.Struct, kw_only=True, tag_field="kind", tag="queue_assigned"):
    """A span opens; at most one span is open for each (group, queue, member, origin).

    Journals of earlier releases hold one such change for each queue; ``QueuesReassigned`` takes its place.
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
    pause_ms: int | None = None  # for how long the queue had no owner before, where that was observed
    pause_estimated_ms: int | None = None  # where it was not


class QueueResumed(msgspec.Struct, kw_only=True, tag_field="kind", tag="queue_resumed"):
    """The owner of the open span of (queue, member, origin) is observed to pull the queue after taking it over."""

    topic: str
    broker: str | None
    queue_id: int
    member_id: str
    origin: Origin
    pause_ms: int


class QueueReleased(msgspec.Struct, kw_only=True, tag_field="kind", tag="queue_released"):
    """The open span of (queue, member, origin) ends; a span of no length leaves no row.

    As ``QueueAssigned`` in journals of earlier releases.
    """

    topic: str
    broker: str | None
    queue_id: int
    member_id: str
    origin: Origin
    valid_to: int


class SpansWithdrawn(msgspec.Struct, kw_only=True, tag_field="kind", tag="spans_withdrawn"):
    """The computed spans from ``since`` on were provisional: those before continue, and the correct ones follow."""

    since: int


class ReleasedRun(msgspec.Struct, array_like=True, gc=False):
    """Neighbouring queues whose open spans end.

    Attributes:
        member: The owner whose spans end, as its place in ``QueuesReassigned.members``; None: every owner that does
            not get the queue by the same change.
    """

    first: int
    last: int
    member: int | None = None


class AssignedRun(msgspec.Struct, array_like=True, gc=False):
    """Neighbouring queues for which spans open.

    Attributes:
        member: The new owner, as its place in ``QueuesReassigned.members``. None: each goes to the member that owned,
            before this change, the queue ``shift`` ids below it.
        pause_ms, pause_estimated_ms: Of each of these queues: as in ``QueueAssigned``.
    """

    first: int
    last: int
    member: int | None = None
    shift: int = 0
    pause_ms: int | None = None
    pause_estimated_ms: int | None = None


class ReassignedTopic(msgspec.Struct, array_like=True):
    """What becomes of the queues of one topic on one broker; runs by their first queue."""

    topic: str
    broker: str | None
    released: list[ReleasedRun]
    assigned: list[AssignedRun]
    inferred: bool = False


class QueuesReassigned(msgspec.Struct, kw_only=True, tag_field="kind", tag="queues_reassigned"):
    """All spans of one origin that end and open at one event time: at most one span is open for each (queue, member).

    Attributes:
        members: Each member that is named, with its instance id.
        topics: By topic and broker.
    """

    origin: Origin
    at: int
    generation: int
    rebalance_id: str
    members: list[tuple[str, str | None]]
    topics: list[ReassignedTopic]


class GroupChanged(msgspec.Struct, kw_only=True, tag_field="kind", tag="group_changed"):
    """The group as it is now: replaces its row in ``groups``."""

    system: str
    state: str  # stable, empty, failed, not_followed
    mode: str | None = None
    strategy: str | None = None
    generation: int | None = None
    generation_source: str | None = None
    members: int = 0
    queues: int = 0
    idle_members: int = 0
    unassigned_queues: int = 0
    spread: int = 0
    last_rebalance_at: int | None = None
    last_rebalance_id: str | None = None


class GroupRemoved(msgspec.Struct, kw_only=True, tag_field="kind", tag="group_removed"):
    """The group was deleted: its row in ``groups`` is removed."""


class Rebalanced(msgspec.Struct, kw_only=True, tag_field="kind", tag="rebalanced"):
    """What ``group_minutes`` needs of one rebalance."""

    rebalance_id: str
    members: int
    queues_moved: int
    queue_pause_ms: int | None
    idle_members: int
    unassigned_queues: int
    spread: int


class TopicChanged(msgspec.Struct, kw_only=True, tag_field="kind", tag="topic_changed"):
    """A topic's queues from ``valid_from`` on; the span before ends then; 0 queues open none."""

    topic: str
    queue_count: int
    queues: list[dict[str, object]]  # broker, queue_id, racks
    valid_from: int


class FindingOpened(msgspec.Struct, kw_only=True, tag_field="kind", tag="finding_opened"):
    """Something is wrong from ``opened_at`` on."""

    finding_id: str
    finding: str  # the kind of the finding: source_silent, generations_missed, ...
    severity: Literal["info", "warning", "critical"]
    message: str
    advice: str
    evidence: list[str]
    opened_at: int


class FindingClosed(msgspec.Struct, kw_only=True, tag_field="kind", tag="finding_closed"):
    """It is no longer so."""

    finding_id: str
    closed_at: int


Body: TypeAlias = (
    MemberOpened
    | MemberChanged
    | MemberClosed
    | MemberReopened
    | MemberReplaced
    | QueueAssigned
    | QueueResumed
    | QueueReleased
    | SpansWithdrawn
    | QueuesReassigned
    | GroupChanged
    | GroupRemoved
    | Rebalanced
    | TopicChanged
    | FindingOpened
    | FindingClosed
)


class Change(msgspec.Struct, kw_only=True):
    """One row of ``changes``, but for the batch.

    ``number`` counts the changes of one history: of the group, or, where ``group_id`` is None, of the topic
    or the cluster (``subject``). It fixes the order of the rows of that history.
    """

    cluster: str
    group_id: str | None
    subject: str | None
    number: int
    event_time: int
    body: Body


class Rejected(msgspec.Struct, kw_only=True):
    """One row of ``rejected_events``."""

    source: str
    position: str
    raw: str | None
    reason: str
    detail: str
    seen_at: int
    raw_length: int
    raw_sha256: str
    cluster: str | None = None
    group_id: str | None = None


class Unfinished(msgspec.Struct, kw_only=True):
    """Groups of one shard had more to do than fits into a batch: another batch must follow, though nothing comes."""

    cluster: str
    groups: int
