"""Core: the output of decisions: rebalances, changes and rejected inputs, as plain values. No I/O.

Every row is a pure function of events and state. A change is numbered within the history of its group (or topic, or
cluster), so that the order of a journal never depends on how the input was cut into batches.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import msgspec

from udfs.model.audits import Audited, VerdictFields
from udfs.model.episode_changed import EpisodeChanged
from udfs.model.finding_names import FindingNames
from udfs.model.member_fields import ShownFields
from udfs.model.queue_outages import QueueOutage
from udfs.model.spans import QueueResumed, QueuesReassigned, SpansWithdrawn

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
    "topic_learned",
    "cooperative_follow_up",
    "coordinator_changed",
    "late_evidence",
    "unexplained",
]
# The main trigger is the first of these that is present.
TRIGGER_ORDER: tuple[TriggerKind, ...] = get_args(TriggerKind)
CLASSIC_UNDER_WAY = ("preparing_rebalance", "completing_rebalance")  # states during a rebalance, by protocol
UNDER_WAY = (*CLASSIC_UNDER_WAY, "assigning", "reconciling")
# A streams group whose target gives no member a task, which Kafka shows as NotReady, waits for this. Rows keep this
# text, and views compare with it: to reword it, views must know both.
TOPOLOGY_NOT_READY = "no member gets a task: topics of the topology are missing, or incorrectly partitioned"
# A row names the members at another epoch than their group's target, unless there are more than this.
MAX_MEMBER_EPOCHS = 100
# Beyond this many members, or queues, a row of a reconciling group names none of them. Each of their records is a row.
MAX_RECONCILING_MEMBERS = 50
MAX_RECONCILING_QUEUES = 1_000


class Trigger(msgspec.Struct, frozen=True, kw_only=True):
    """One cause of a rebalance."""

    kind: TriggerKind
    member_id: str | None = None
    topic: str | None = None
    detail: str | None = None
    event_id: str | None = None
    client: str | None = None  # the member's client, see ``clients``; known once the rebalance is decided
    host: str | None = None  # the member's host without a port; likewise
    part_of: str | None = None  # ``host_lost`` or ``rolling_restart``, see ``joint_departures``


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
    library: str | None = None  # the client library whose assignment was computed (Kafka's classic groups)
    agrees_reason: str | None = None  # why ``agrees`` is null, or what was left out if it is true
    observed_by: str | None = None
    logical_id: str | None = None  # the first generation of the same logical rebalance; in most rows its own id
    began_at: int | None = None
    joined_at: int | None = None
    completed_at: int | None = None
    repeated_messages: int | None = None
    repeated_estimated_messages: int | None = None
    waiting_messages: int | None = None
    waiting_estimated_messages: int | None = None
    outage_min_ms: int | None = None
    outage_max_ms: int | None = None
    queue_outage_min_ms: int | None = None
    queue_outage_max_ms: int | None = None
    outage_queues: int = 0
    outage_unknown_queues: int = 0
    outage_evidence: str | None = None
    outages: list[QueueOutage] = msgspec.field(default_factory=list)
    episode_id: str | None = None  # the episode that it was known to belong to when it was decided
    settings: str | None = None  # what was set for the group, see ``GroupView.settings_text``


class MemberOpened(ShownFields, kw_only=True, omit_defaults=False, tag_field="kind", tag="member_opened"):
    """A session begins, with its member's description; its key is (cluster, group, member_id, joined_at).

    ``former_member_id`` is the id that a static member had before it came back under this one.
    """

    member_id: str
    joined_at: int
    lives_by: str = "heartbeats"
    former_member_id: str | None = None
    client: str | None = None
    address: str | None = None


class MemberChanged(MemberOpened, kw_only=True, tag_field="kind", tag="member_changed"):
    """The description of an open session changed (all fields, not a patch)."""


class MemberClosed(msgspec.Struct, kw_only=True, tag_field="kind", tag="member_closed"):
    """A session ends. An empty session (left_at == joined_at) leaves no row."""

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
    """A static member came back under a new id: its open spans end then, and continue under ``member_id``.

    They keep their rebalance, generation and origin. Its sessions have changes of their own.

    Attributes:
        outages: How long nobody read each of its queues before, as far as known.
    """

    former_member_id: str
    member_id: str
    instance_id: str | None
    replaced_at: int
    outages: list[QueueOutage] = msgspec.field(default_factory=list)


class MemberEpoch(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A member of a consumer group of Kafka's new protocol, and its epoch; None if no record shows one."""

    member_id: str
    epoch: int | None = None


class AssignedQueues(msgspec.Struct, array_like=True, frozen=True, order=True, gc=False):
    """Queues of a topic, ascending; in a streams group, tasks of a subtopology."""

    topic: str
    queue_ids: tuple[int, ...]


class ReconcilingMember(msgspec.Struct, array_like=True, frozen=True):
    """A member while its group assigns or reconciles, as the coordinator sees it.

    Attributes:
        epoch: None if no record shows one. state: stable, unrevoked (it has queues to give up), unreleased (it waits
            for queues of others).
        assigned: The queues that it may consume. revoking: Those that it has yet to give up. target: Its target; in a
            streams group all three without standby and warm-up tasks.
    """

    member_id: str
    instance_id: str | None
    client_id: str | None
    host: str | None
    epoch: int | None
    state: str
    assigned: tuple[AssignedQueues, ...]
    revoking: tuple[AssignedQueues, ...]
    target: tuple[AssignedQueues, ...]


class GroupChanged(VerdictFields, kw_only=True, tag_field="kind", tag="group_changed"):
    """The group's current state, which replaces its row in ``groups``."""

    system: str
    state: str  # stable, empty, failed, not_followed; during a rebalance one of ``UNDER_WAY``
    mode: str | None = None
    strategy: str | None = None
    generation: int | None = None
    generation_source: str | None = None
    members: int | None = 0  # None if unknown, for a group that is not followed
    queues: int = 0
    idle_members: int = 0
    unassigned_queues: int = 0
    spread: int = 0
    last_rebalance_at: int | None = None
    last_rebalance_id: str | None = None
    observed_by: str | None = None
    # These are set for groups of Kafka's newer protocols.
    protocol: str | None = None
    epoch: int | None = None
    assignment_epoch: int | None = None
    waits: str | None = None
    library: str | None = None  # the client library that assigned the last generation
    # Members at another epoch than ``assignment_epoch``, sorted; None if unknown, or if there are too many.
    member_epochs: list[MemberEpoch] | None = None
    # All members while the group assigns or reconciles, sorted; None if the group does neither, or has too many members
    # or queues.
    reconciling: list[ReconcilingMember] | None = None


class GroupRemoved(msgspec.Struct, kw_only=True, tag_field="kind", tag="group_removed"):
    """The group was deleted: its row in ``groups`` is removed."""


class Rebalanced(msgspec.Struct, kw_only=True, tag_field="kind", tag="rebalanced"):
    """The figures of one rebalance for ``group_minutes``."""

    rebalance_id: str
    members: int
    queues_moved: int
    queue_pause_ms: int | None
    idle_members: int
    unassigned_queues: int
    spread: int
    outage_min_ms: int | None = None
    outage_max_ms: int | None = None


class TopicChanged(msgspec.Struct, kw_only=True, tag_field="kind", tag="topic_changed"):
    """A topic's queues from ``valid_from`` on; the previous span ends then; 0 queues open no span."""

    topic: str
    queue_count: int
    queues: list[dict[str, object]]  # broker, queue_id, racks
    valid_from: int
    topic_id: str | None = None


class FindingFields(FindingNames, frozen=True, kw_only=True):
    """A problem from ``opened_at`` on, and the names that it concerns."""

    finding_id: str
    finding: str  # the kind of the finding: source_silent, generations_missed, ...
    severity: Literal["info", "warning", "critical"]
    message: str
    advice: str
    evidence: list[str]
    opened_at: int


class FindingOpened(FindingFields, frozen=True, omit_defaults=True, tag_field="kind", tag="finding_opened"):
    """A finding opens at ``opened_at``."""


class FindingChanged(
    FindingFields, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="finding_changed"
):
    """An open finding's content from ``changed_at`` on: all fields, not a patch."""

    changed_at: int


class FindingClosed(msgspec.Struct, kw_only=True, tag_field="kind", tag="finding_closed"):
    """A finding closes."""

    finding_id: str
    closed_at: int


class AnnotationWritten(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="annotation_written"):
    """A version of an annotation; that with the newest ``written_at`` is its row, whatever the order of the journal."""

    annotation_id: str
    annotation: str  # the kind of the annotation: deploy, scaling, ...
    text: str
    url: str | None
    cluster: str | None  # None: any
    groups: tuple[str, ...]
    client_ids: tuple[str, ...]
    hosts: tuple[str, ...]
    began_at: int | None  # None: with the first version
    ended_at: int | None
    written_at: int
    platform: str | None = None
    pod: str | None = None
    namespace: str | None = None
    workload: str | None = None
    revision: str | None = None
    node: str | None = None
    image: str | None = None


Body: TypeAlias = (
    MemberOpened
    | MemberChanged
    | MemberClosed
    | MemberReopened
    | MemberReplaced
    | QueueResumed
    | SpansWithdrawn
    | QueuesReassigned
    | GroupChanged
    | GroupRemoved
    | Rebalanced
    | TopicChanged
    | FindingOpened
    | FindingChanged
    | FindingClosed
    | Audited
    | AnnotationWritten
    | EpisodeChanged
)


class Change(msgspec.Struct, kw_only=True):
    """One row of ``changes``, without the batch.

    ``number`` counts the changes of one history: that of the group or, if ``group_id`` is None, of the topic or cluster
    (``subject``). It fixes the order of the rows of that history.
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


class ClusterBegun(msgspec.Struct, kw_only=True):
    """A shard has its first state of a cluster; with ``time.silence = "expire"`` its clock advances from now on."""

    cluster: str


class ClusterObserved(msgspec.Struct, kw_only=True):
    """Events of a cluster arrived in a batch, which shows how far the cluster is known.

    Attributes:
        latest_ms: The newest event time of this batch, without those ahead of it if there are others.
        newest_ms: The newest event time of all batches so far.
        clock_ms: The cluster's clock; None before the first event that is not ahead.
    """

    cluster: str
    system: str | None
    latest_ms: int
    newest_ms: int
    clock_ms: int | None


class Unfinished(msgspec.Struct, kw_only=True):
    """Groups of one shard had more work than fits a batch: another batch must follow, even without new input."""

    cluster: str
    groups: int
