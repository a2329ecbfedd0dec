"""Core: the audit of one generation compares its recomputed and its reported assignment, queue by queue. No I/O.

A coordinator's generation is audited when it is reported or, if topics have no metadata yet, once they have it. If each
member assigns for itself, the generation is audited as soon as all members report what is expected, or else when they
have had time to follow. A generation that is overtaken before that is audited as it is then.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final

import msgspec

from udfs.group.assignment.rebalance_plan import RebalancePlan, queues_of
from udfs.group.assignment.target_assignment import QueuesByTopic, TargetAssignment, topics_with_metadata
from udfs.group.audit.audit_variants import Basis, as_owned_before, false_claims
from udfs.group.audit.likely_reason import LikelyReason, likely_reason, named
from udfs.group.state.assignment_diff import changed_queues
from udfs.group.state.audit_results import CurrentAudit
from udfs.group.state.group import Owners, Queue
from udfs.group.state.state_machine import GroupKind
from udfs.group.state.view import GroupView
from udfs.model import audit_reasons as reasons
from udfs.model.audits import Audited, AuditedQueue, DifferenceKind
from udfs.model.comparability import CUSTOM_STRATEGY, LEADER_METADATA_STALE, SENTENCES, STRATEGY_FAILED, TOPICS_UNKNOWN
from udfs.model.journal import Rebalance
from udfs.strategies.registry import ignores_owned

# An audit lists at most this many differing queues, in order, and their total number.
MAX_LISTED: Final = 50


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """The generation that is audited, and when."""

    rebalance_id: str
    system: str
    generation: int
    rebalanced_at: int
    at: int
    strategy: str | None
    library: str | None
    members: int
    queues: int


def difference(expected: Sequence[str], reported: Sequence[str]) -> DifferenceKind:
    """Return how the reported owners of a queue differ from the expected ones.

    Example:
        >>> difference(["a"], []), difference(["a"], ["a", "b"]), difference(["a"], ["b"])
        ('missing', 'duplicate', 'unexpected_owner')
    """
    if set(reported) < set(expected):
        return "missing"
    return "duplicate" if len(reported) > 1 else "unexpected_owner"


# ---- when to audit


def audit_of_plan(view: GroupView, plan: RebalancePlan, row: Rebalance) -> Audited | None:
    """Return the audit of a generation that is about to be applied; None if it cannot be compared yet.

    Args:
        row: The generation's row of the table ``rebalances``.
    """
    if not row.members_after or view.mode != "clustering":
        return None
    audit = _of_row(row)
    reported = plan.reported if plan.compared is None else plan.compared
    incomparable = plan.target.incomparable or row.agrees_reason
    if row.agrees is None:
        if incomparable == LEADER_METADATA_STALE and reported is not None:
            return _stale(view, audit, plan.target, reported)
        if incomparable in reasons.PASSING or (reported is None and not view.group.has_reported):
            return None
        moving = plan.revoked_pending
        return _without_expectation(view, audit, plan.target, incomparable, plan.topic_queues, reported, moving)
    if reported is None:
        return None
    if view.kind is GroupKind.CLIENT_ASSIGNED and not row.agrees:
        return None  # each of its members follows at its own time
    previous = view.group.reported if view.group.has_reported and row.generations_missed is None else None
    basis = Basis(
        topic_queues=plan.topic_queues,
        strategy=row.strategy,
        since=plan.at,
        generation=plan.generation,
        reported=reported,
    )
    return _compared(view, audit, basis, plan.target.owners, reported, previous)


def audit_of_awaited(
    view: GroupView, topic_queues: QueuesByTopic, target: TargetAssignment, previous: Owners | None, at: int
) -> Audited | None:
    """Return the audit of the current generation once all its topics have metadata; None if nothing is reported."""
    group = view.group
    audit = _current(view, at)
    if audit is None or not set(group.reporters) >= group.members.keys():
        return None
    audit = msgspec.structs.replace(audit, library=target.library, queues=sum(map(len, topic_queues.values())))
    if target.incomparable == LEADER_METADATA_STALE:
        return _stale(view, audit, target, group.reported)
    if not target.recomputed:
        why, moving = target.incomparable, group.revoked_pending
        return _without_expectation(view, audit, target, why, topic_queues, group.reported, moving)
    basis = Basis(
        topic_queues=topic_queues,
        strategy=audit.strategy,
        since=audit.rebalanced_at,
        generation=audit.generation,
        previous=previous,
        reported=group.reported,
    )
    return _compared(view, audit, basis, target.owners, group.reported, previous)


def audit_of_reports(view: GroupView, at: int, *, is_over: bool) -> Audited | None:
    """Return the audit of the current generation, whose members have all reported; None if nothing is new.

    Args:
        is_over: Whether members have had the time to follow.
    """
    group, audit = view.group, _current(view, at)
    if audit is None:
        return None
    is_failed = group.row is not None and group.row.state == "failed"
    if is_failed or not group.recomputable:
        why = STRATEGY_FAILED if is_failed else CUSTOM_STRATEGY
        reason = LikelyReason(why, f"{SENTENCES[why]}: {audit.strategy or 'not named'}.")
        return None if group.audit is not None else _verdict(audit, "not_recomputable", reason)
    if not group.computed:
        return None
    differing = _differing(view, group.computed, group.reported)
    if group.audit is not None and group.audit.digest == _digest(differing):
        return None
    if differing and (group.pending is not None or not is_over):
        return None  # it is overtaken at this timestamp, or members still follow
    strategy = None if view.kind is GroupKind.CLIENT_ASSIGNED else audit.strategy
    basis = Basis(
        topic_queues=topics_with_metadata(view, at),
        strategy=strategy,
        since=audit.rebalanced_at,
        generation=audit.generation,
    )
    return _compared(view, audit, basis, group.computed, group.reported, None)


def audit_of_overtaken(view: GroupView, at: int) -> Audited | None:
    """Return the audit of the current generation, which another one overtakes before it could be compared."""
    group, audit = view.group, _current(view, at)
    if audit is None or group.audit is not None or not group.has_reported or not group.recomputable:
        return None
    if not audit.members or (group.row is not None and group.row.state == "failed"):
        return None
    if group.topics_without_metadata:
        topics = named(group.topics_without_metadata)
        return _verdict(audit, "not_recomputable", LikelyReason(TOPICS_UNKNOWN, f"Without metadata: {topics}."))
    if not group.computed:
        return None
    if len(group.reporters) < audit.members:
        detail = f"{len(group.reporters)} of {audit.members} members have reported."
        return _verdict(audit, "not_recomputable", LikelyReason(reasons.MEMBERS_NOT_REPORTING, detail))
    differing = _differing(view, group.computed, group.reported)
    if not differing:
        return _verdict(audit, "agrees", None)
    detail = f"The next generation came after {at - audit.rebalanced_at} ms."
    return _verdict(audit, "differs", LikelyReason(reasons.NOT_YET_FOLLOWED, detail), differing)


def audit_of_late(row: Rebalance) -> Audited:
    """Return the audit of a generation that was reported after newer ones; the state that it started from is lost."""
    audit = _of_row(row)
    reason = LikelyReason(reasons.REPORTED_LATE, "Newer generations had been applied before it came.")
    return _verdict(audit, "not_recomputable", reason)


def brief(audited: Audited) -> CurrentAudit:
    """Return the part of an audit that the group remembers for its current generation."""
    is_evidence = {
        "agrees": audited.members > 1 and audited.queues > 0,
        "differs": audited.reason in reasons.AGAINST_THE_STRATEGY,
        "not_recomputable": audited.reason not in reasons.PASSING,
    }
    found = is_evidence[audited.verdict]
    return CurrentAudit(audited.verdict, found, audited.rebalanced_at, audited.reason, audited.digest)


def _of_row(row: Rebalance) -> Audit:
    return Audit(
        rebalance_id=row.rebalance_id,
        system=row.system,
        generation=row.generation,
        rebalanced_at=row.event_time,
        at=row.event_time,
        strategy=row.strategy,
        library=row.library,
        members=row.members_after,
        queues=row.queues_after,
    )


def _current(view: GroupView, at: int) -> Audit | None:
    group = view.group
    if group.row is None or group.last_rebalance_id is None or group.last_rebalance_at is None:
        return None
    if view.mode != "clustering":
        return None
    return Audit(
        rebalance_id=group.last_rebalance_id,
        system=view.system,
        generation=group.row.generation or 0,
        rebalanced_at=group.last_rebalance_at,
        at=max(at, group.last_rebalance_at),
        strategy=group.last_strategy,
        library=None,
        members=group.members_decided,
        queues=sum(group.counts.values()),
    )


# ---- the verdict


def _compared(
    view: GroupView, audit: Audit, basis: Basis, expected: Owners, reported: Owners, previous: Owners | None
) -> Audited:
    """Return the verdict on two assignments.

    Args:
        previous: The assignment of the previous generation, if observed.
    """
    differing = _differing(view, expected, reported)
    if differing:
        return _verdict(audit, "differs", likely_reason(view, basis, audit.strategy, expected, reported), differing)
    if previous is not None and not ignores_owned(audit.strategy or "", view.system):
        liars = false_claims(view, audit.generation, previous)
        honest = as_owned_before(view, basis, liars) if liars else None
        differing = [] if honest is None else _differing(view, honest, reported)
        if differing:
            detail = f"{named(liars)} claimed queues of other members; the leader assigned by these claims."
            return _verdict(audit, "differs", LikelyReason(reasons.WRONG_OWNERSHIP, detail), differing)
    return _verdict(audit, "agrees", None)


def _differing(view: GroupView, expected: Owners, reported: Owners) -> list[AuditedQueue]:
    return [
        AuditedQueue(*queue, difference(old, new), list(old), list(new))
        for queue, old, new in changed_queues(expected, reported)
        if not view.is_quiet(queue[0])
    ]


def _stale(view: GroupView, audit: Audit, target: TargetAssignment, reported: Owners) -> Audited:
    """Return the verdict on a generation that is right except that its leader did not know whole topics."""
    differing = _differing(view, target.owners, reported)
    topics = sorted({queue.topic for queue in differing})
    reason = LikelyReason(reasons.STALE_METADATA, f"It is as expected but for whole topics: {named(topics)}.")
    return _verdict(audit, "differs", reason, differing)


def _without_expectation(
    view: GroupView,
    audit: Audit,
    target: TargetAssignment,
    why: str | None,
    topic_queues: QueuesByTopic,
    reported: Owners | None,
    moving: Collection[Queue],
) -> Audited:
    """Return the verdict on a generation that cannot be recomputed: the violations under any strategy.

    Args:
        why: A reason of ``comparability``. moving: Queues that a cooperative rebalance has revoked and not yet
            assigned; nobody should own them.
    """
    of = target.error if target.failed else target.strategy
    reason = LikelyReason(why or CUSTOM_STRATEGY, f"{SENTENCES.get(why or '', why)}: {of or 'not named'}.")
    waiting = set(moving).difference(reported or ())
    there = [queue for queue in queues_of(view, topic_queues) if queue not in waiting]
    differing = [] if reported is None else _wrong_in_any_case(view, there, reported)
    return _verdict(audit, "not_recomputable", reason, differing)


def _wrong_in_any_case(view: GroupView, queues: Iterable[Queue], reported: Owners) -> list[AuditedQueue]:
    """Return the queues with no owner, with several, or with an owner that does not subscribe to their topic."""
    found = []
    for queue in queues:
        holders = reported.get(queue, ())
        if view.is_quiet(queue[0]):
            continue
        members = [view.group.members.get(holder) for holder in holders]
        is_foreign = any(member is not None and queue[0] not in (member.subscriptions or ()) for member in members)
        if len(holders) != 1 or is_foreign:
            kind: DifferenceKind = "missing" if not holders else "duplicate" if len(holders) > 1 else "unexpected_owner"
            found.append(AuditedQueue(*queue, kind, [], list(holders)))
    return found


def _digest(differing: Sequence[AuditedQueue]) -> int:
    return zlib.crc32(msgspec.json.encode(differing)) if differing else 0


def _verdict(
    audit: Audit,
    verdict: str,
    reason: LikelyReason | None,
    differing: Sequence[AuditedQueue] = (),
) -> Audited:
    kinds = Counter(queue.kind for queue in differing)
    return Audited(
        rebalance_id=audit.rebalance_id,
        system=audit.system,
        generation=audit.generation,
        rebalanced_at=audit.rebalanced_at,
        audited_at=audit.at,
        strategy=audit.strategy,
        library=audit.library,
        verdict=verdict,  # type: ignore[arg-type]
        reason=None if reason is None else reason.name,
        detail=None if reason is None else reason.detail,
        members=audit.members,
        queues=audit.queues,
        queues_differing=len(differing),
        missing=kinds["missing"],
        duplicate=kinds["duplicate"],
        unexpected_owner=kinds["unexpected_owner"],
        differing=list(differing[:MAX_LISTED]),
        digest=_digest(differing),
    )
