"""Core: the audit of one generation, in the journal's form. No I/O."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Verdict: TypeAlias = Literal["agrees", "differs", "not_recomputable"]
DifferenceKind: TypeAlias = Literal["missing", "duplicate", "unexpected_owner"]


class VerdictFields(msgspec.Struct, kw_only=True):
    """The audits' verdict on a group's strategy: proven, contradicted or not_recomputable.

    Attributes:
        verdict_generations: The number of generations with it, the first at ``verdict_from``. verdict_reason: Why it is
            not proven.
    """

    strategy_verdict: str | None = None
    verdict_generations: int | None = None
    verdict_from: int | None = None
    verdict_reason: str | None = None


class AuditedQueue(msgspec.Struct, array_like=True, gc=False):
    """A queue whose reported owners are not the expected ones; members by id, sorted."""

    topic: str
    broker: str | None
    queue_id: int
    kind: DifferenceKind
    expected: list[str]
    reported: list[str]


class Audited(msgspec.Struct, kw_only=True, tag_field="kind", tag="audited"):
    """The audit of one generation, which replaces its row in ``audits``.

    Attributes:
        audited_at: The event time of the comparison. library: The client library assumed in the recomputation.
        reason, detail: Why it differs or could not be recomputed, and the evidence.
        queues: Number of queues compared. queues_differing: Number that differ; ``differing`` lists the first of them.
        digest: CRC-32 of all queues that differ.
    """

    rebalance_id: str
    system: str
    generation: int
    rebalanced_at: int
    audited_at: int
    strategy: str | None
    library: str | None
    verdict: Verdict
    reason: str | None = None
    detail: str | None = None
    members: int = 0
    queues: int = 0
    queues_differing: int = 0
    missing: int = 0
    duplicate: int = 0
    unexpected_owner: int = 0
    differing: list[AuditedQueue] = msgspec.field(default_factory=list)
    digest: int = 0
