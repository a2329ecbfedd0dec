"""Core: the input of a rebalance: causes, topics, target assignment, members' reports. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from udfs.group.assignment.queue_handover import (
    estimates,
    expected_waits,
    first_pulls,
    idle_queues_with,
    measured_pauses,
    moved_queues,
)
from udfs.group.assignment.span_runs import Pauses as QueuePauses
from udfs.group.assignment.target_assignment import (
    QueuesByTopic,
    TargetAssignment,
    compute_target_assignment,
    previous_owners,
    topics_with_metadata,
)
from udfs.group.batch.phases import Phases
from udfs.group.members.client_ids import reporting_member
from udfs.group.state.assignment_diff import held_only_by, owners_of
from udfs.group.state.group import Awaited, IdleQueue, Owners, Pending, Queue, key_of, keys_of
from udfs.group.state.state_machine import GroupKind
from udfs.group.state.view import GroupView
from udfs.model.journal import Trigger

COOPERATIVE = "kafka.cooperative-sticky"


class Pauses(msgspec.Struct, frozen=True, kw_only=True):
    """How long a rebalance stopped its members, measured or estimated; None if unknown."""

    pause_ms: int | None = None
    queue_pause_ms: int | None = None
    pause_estimated_ms: int | None = None
    queue_pause_estimated_ms: int | None = None


def as_estimates(pauses: Pauses) -> Pauses:
    """Return pauses as estimates: their ends are the times of polls."""
    whole = pauses.pause_estimated_ms if pauses.pause_ms is None else pauses.pause_ms
    queues = pauses.queue_pause_estimated_ms if pauses.queue_pause_ms is None else pauses.queue_pause_ms
    return Pauses(pause_estimated_ms=whole, queue_pause_estimated_ms=queues)


class RebalancePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The input from which one rebalance is decided.

    Attributes:
        topic_queues: Queues of the subscribed topics. guessed: Topics without metadata. awaited: The input for
            computing the generation once they have metadata.
        reported: The whole assignment as it was reported, if it was. compared: The queues that members themselves
            reported with that same timestamp: they held these when the rebalance began.
        revoked_pending: Queues that cooperative generations revoked and this one does not assign yet.
        waiting_since: When queues revoked by an earlier generation were revoked; None if unknown.
        converging: Whether a poll shows it while members still give queues up and take them over.
        steps: The owners from each time on, ascending. step_pauses: How long queues that moved had no owner.
        overtaken: The newer generation that came before its members had converged on this one.
        made_again: Topics that were deleted and re-created under the same names: none of their queues existed before.
        idle_queues, pulls: Existing queues between two owners, and when each queue was last pulled.
        first_pulls: The member observed to pull each queue at the time of the rebalance, and when.
    """

    at: int
    generation: int
    triggers: Sequence[Trigger]
    topic_queues: QueuesByTopic
    target: TargetAssignment
    guessed: Sequence[str] = ()
    awaited: Awaited | None = None
    reported: Owners | None = None
    compared: Owners | None = None
    generations_missed: int | None = None
    pauses: Pauses = Pauses()
    phases: Phases = Phases()
    revoked_pending: Sequence[Queue] = ()
    waiting_since: Mapping[Queue, int | None] = msgspec.field(default_factory=dict)
    converging: bool = False
    steps: Sequence[tuple[int, Owners]] = ()
    step_pauses: QueuePauses = msgspec.field(default_factory=dict)
    overtaken: int | None = None
    made_again: frozenset[str] = frozenset()
    idle_queues: dict[Queue, IdleQueue] = msgspec.field(default_factory=dict)
    pulls: dict[Queue, int] = msgspec.field(default_factory=dict)
    first_pulls: Mapping[Queue, tuple[str, int]] = msgspec.field(default_factory=dict)


def plan_counted(view: GroupView, pending: Pending) -> RebalancePlan:
    """Return the input of the rebalance that covers the pending changes."""
    group, at = view.group, pending.changed_at
    generation = group.counted + 1
    triggers = list(pending.triggers)
    if not group.exists:
        triggers.append(Trigger(kind="group_created"))
    topic_queues = topics_with_metadata(view, at)
    reported = None if pending.reported is None else held_only_by(dict(pending.reported), group.members)
    target = compute_target_assignment(view, topic_queues, None, at, generation, reported=reported)
    revoked: list[Queue] = []
    waiting: list[Queue] = []
    if reported is None and (target.failed or not group.members):
        # They wait for a later generation.
        waiting = [queue for queue in group.revoked_pending if queue not in target.owners]
    elif reported is None and target.strategy == COOPERATIVE:
        previous = previous_owners(group)
        free = set(queues_of(view, topic_queues)).difference(target.owners)
        revoked = [queue for queue in previous if queue in free]
        # Its members still claim them: it could not assign them yet.
        waiting = [queue for queue in group.revoked_pending if queue in free and queue not in previous]
    plan = RebalancePlan(
        at=at,
        generation=generation,
        triggers=triggers,
        topic_queues=topic_queues,
        target=target,
        reported=reported,
        revoked_pending=[*revoked, *waiting],
        waiting_since={queue: group.revoked_at(queue) for queue in waiting},
    )
    return _with_reports_and_pauses(view, plan)


def _with_reports_and_pauses(view: GroupView, plan: RebalancePlan) -> RebalancePlan:
    """Add the members' own reports with that timestamp, and how long their queues have no owner."""
    group, at = view.group, plan.at
    held: dict[str, list[Queue]] = {}
    pulls: dict[Queue, tuple[str, int]] = {}
    for report in group.waiting_reports:
        member = reporting_member(group, report.member_id, report.host)
        if report.generation == plan.generation and report.time >= at and member is not None:
            held[member.member_id] = [key_of(queue, view.system) for queue in report.queues]
            pulled = first_pulls(view, report.queues)
            pulls.update({queue: (member.member_id, time) for queue, time in pulled.items()})
    if plan.reported is None and held.keys() >= group.members.keys() and view.mode == "clustering":
        plan = msgspec.structs.replace(plan, compared=owners_of(held))
    if view.kind is not GroupKind.CLIENT_ASSIGNED:
        return plan
    before, after = group.computed, plan.target.owners
    moved = moved_queues(view.changed_queues(before, after))
    if plan.reported is not None and view.profile.owns_by_node:
        pulls = {queue: (holders[0], at) for queue, holders in plan.reported.items()}
    kinds = {trigger.kind for trigger in plan.triggers}
    waits = expected_waits(view, moved, kinds)
    measured = measured_pauses(view, moved, pulls, at)
    estimated = estimates(view, before, after, waits, kinds)
    existing = set(queues_of(view, plan.topic_queues)) if group.idle_queues or group.pulls else set()
    idle = {queue: idle_queue for queue, idle_queue in group.idle_queues.items() if queue in existing}
    return msgspec.structs.replace(
        plan,
        pauses=Pauses(
            pause_ms=measured.get("pause_ms"),
            queue_pause_ms=measured.get("queue_pause_ms"),
            pause_estimated_ms=None if "pause_ms" in measured else estimated.get("pause_estimated_ms"),
            queue_pause_estimated_ms=(
                None if "queue_pause_ms" in measured else estimated.get("queue_pause_estimated_ms")
            ),
        ),
        idle_queues=idle_queues_with(idle, waits) if group.has_reported else idle,
        pulls={queue: pulled_at for queue, pulled_at in group.pulls.items() if queue in existing},
        first_pulls=pulls,
    )


def queues_of(view: GroupView, topic_queues: QueuesByTopic) -> list[Queue]:
    """Return the queues of all these topics."""
    return [queue for topic, infos in topic_queues.items() for queue in keys_of(infos, view.system, topic)]
